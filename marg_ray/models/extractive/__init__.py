"""A report without a language model: verbatim quotations, chosen by words, structure and sentence embeddings."""

from marg_ray.models.extractive.model import ExtractiveModel

__all__ = ["ExtractiveModel"]
