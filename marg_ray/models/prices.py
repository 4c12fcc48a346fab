"""What tokens cost: the settings' own prices, else the catalogue that the `genai-prices` package carries with it.

The catalogue is as old as the installed package: nothing is fetched (its updater starts only when it is told to).
Loading it takes 0.4 s and is left to the first call of a model that is not on this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from marg_ray.models.endpoints import Endpoint, resolve
from marg_ray.settings import ModelSettings

_NAMES: Mapping[str, str] = {"gemini": "google"}  # providers that the catalogue knows under another name


@dataclass(frozen=True)
class Price:
    """US dollars for a call. `source` says where the price is from; "unknown" and "local" calls cost nothing."""

    source: str  # "settings", "catalogue", "local" or "unknown"
    per_million: tuple[float, float] = (0.0, 0.0)  # tokens in and out; of the catalogue's, those of small prompts
    model: str = ""  # as the catalogue looks it up
    provider: str = ""

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """The cost of one call. More tokens never cost less."""
        if self.source == "catalogue":  # some models cost more per token where the prompt is long
            return _from_catalogue(self.provider, self.model, tokens_in, tokens_out) or 0.0
        price_in, price_out = self.per_million
        return (tokens_in * price_in + tokens_out * price_out) / 1e6


def price_of(endpoint: Endpoint) -> Price:
    """The price of an endpoint's model. Blocks for 0.4 s where the catalogue is needed first."""
    if any(endpoint.price):
        return Price("settings", endpoint.price)
    if endpoint.local:
        return Price("local")
    return _catalogued(endpoint.base_url, _NAMES.get(endpoint.provider, endpoint.provider), endpoint.model)


def unpriced(specs: Iterable[str], settings: ModelSettings, env: Mapping[str, str]) -> tuple[str, ...]:
    """Of these models those whose price nobody knows: a money limit cannot hold them.

    Raises:
        UsageError: one of them names no endpoint.
    """
    named = [spec for spec in dict.fromkeys(specs) if spec.strip().lower() not in ("", "extractive")]
    return tuple(spec for spec in named if price_of(resolve(spec, settings, env)).source == "unknown")


def catalogue_needed(endpoint: Endpoint) -> bool:
    """Whether `price_of` has to look into the catalogue."""
    return not any(endpoint.price) and not endpoint.local


@lru_cache(maxsize=256)
def _catalogued(base_url: str, provider: str, model: str) -> Price:
    for where in (base_url, provider):  # who answers at the address sets the price; else the one it is named after
        costs = [_from_catalogue(where, model, *tokens) for tokens in ((1000, 0), (0, 1000))]
        if costs[0] is not None and costs[1] is not None:
            return Price("catalogue", (costs[0] * 1000, costs[1] * 1000), model, where)
    return Price("unknown")


def _from_catalogue(provider: str, model: str, tokens_in: int, tokens_out: int) -> float | None:
    """US dollars, or None where the catalogue does not have the model. `provider` is its name or its address."""
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out)
    try:
        if "://" in provider:
            return float(calc_price(usage, model, provider_api_url=provider).total_price)
        return float(calc_price(usage, model, provider_id=provider).total_price)
    except LookupError:
        return None
