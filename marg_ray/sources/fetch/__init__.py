"""Guarded page fetches: see `fetcher.GuardedFetcher`."""

from marg_ray.sources.fetch.addresses import AddressGuard
from marg_ray.sources.fetch.fetcher import GuardedFetcher

__all__ = ["AddressGuard", "GuardedFetcher"]
