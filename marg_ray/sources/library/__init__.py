"""Local folders as a source: indexed once, kept up to date, searched by meaning and words."""

from marg_ray.sources.library.library import Library
from marg_ray.sources.library.refresh import LibraryReport, Progress

__all__ = ["Library", "LibraryReport", "Progress"]
