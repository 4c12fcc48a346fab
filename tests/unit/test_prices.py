"""What tokens cost, by provider and model, without a network."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from marg_ray.models.endpoints import Endpoint, resolve
from marg_ray.models.prices import price_of, unpriced
from marg_ray.settings import ModelSettings

KEYS = {f"{name}_API_KEY": "k" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GROQ", "DEEPSEEK", "OPENROUTER")}
MILLION = 1_000_000


def endpoint(spec: str, **settings: object) -> Endpoint:
    return resolve(spec, ModelSettings.model_validate(settings), KEYS)


def test_a_known_model_costs_what_the_catalogue_says() -> None:
    price = price_of(endpoint("openai:gpt-4o-mini"))
    assert price.source == "catalogue"
    assert price.per_million == pytest.approx((0.15, 0.60))
    assert price.of(2000, 1000) == pytest.approx(2000 * 0.15e-6 + 1000 * 0.60e-6)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "groq", "deepseek", "openrouter"])
def test_what_auto_takes_from_each_provider_has_a_price(provider: str) -> None:
    from marg_ray.models.endpoints import PROVIDERS

    for model in (PROVIDERS[provider].fast, PROVIDERS[provider].strong):
        assert price_of(endpoint(f"{provider}:{model}")).of(1000, 1000) > 0


def test_the_settings_come_first() -> None:
    price = price_of(endpoint("openai:gpt-4o-mini", prices={"openai:gpt-4o-mini": (2.0, 8.0)}))
    assert (price.source, price.of(MILLION, MILLION)) == ("settings", 10.0)


def test_an_unknown_model_costs_nothing_and_says_so() -> None:
    price = price_of(endpoint("openai:model-of-next-year"))
    assert (price.source, price.of(MILLION, MILLION)) == ("unknown", 0.0)


def test_models_that_no_money_limit_can_hold_are_named() -> None:
    specs = ("extractive", "openai:gpt-4o-mini", "openai:model-of-next-year", "ollama:llama3.1", "")
    assert unpriced(specs, ModelSettings(), KEYS) == ("openai:model-of-next-year",)
    known = ModelSettings(prices={"openai:model-of-next-year": (1.0, 2.0)})
    assert unpriced(specs, known, KEYS) == ()


def test_a_model_on_this_machine_costs_nothing_unless_the_settings_say() -> None:
    assert price_of(endpoint("ollama:llama3.1")).source == "local"
    assert price_of(endpoint("openai:gpt-4o-mini", base_url="http://127.0.0.1:4000/v1")).source == "local"
    priced = endpoint("http://127.0.0.1:4000/v1:m", prices={"http://127.0.0.1:4000/v1:m": (1.0, 1.0)})
    assert price_of(priced).of(MILLION, 0) == 1.0


def test_the_address_sets_the_price_before_the_name() -> None:
    here = Endpoint(provider="api.openai.com", model="gpt-4o-mini", base_url="https://api.openai.com/v1")
    proxied = Endpoint(provider="openai", model="gpt-4o-mini", base_url="https://proxy.example/v1")
    assert price_of(here).of(1000, 1000) == price_of(proxied).of(1000, 1000) > 0


def test_more_tokens_never_cost_less_even_where_long_prompts_cost_more() -> None:
    price = price_of(endpoint("gemini:gemini-2.5-pro"))
    costs = [price.of(n, 500) for n in (0, 1000, 199_999, 200_001, 500_000)]
    assert costs == sorted(costs)
    assert costs[-1] > 500_000 * price.per_million[0] / 1e6


def test_nothing_is_fetched_and_nothing_runs_in_the_background() -> None:
    price_of(endpoint("openai:gpt-4o"))
    assert not [t for t in threading.enumerate() if "genai" in t.name.lower() or "price" in t.name.lower()]


def test_the_catalogue_is_loaded_by_the_first_who_asks() -> None:
    program = (
        "import sys; from marg_ray.models import prices, openai_api\n"
        "from marg_ray.models.endpoints import Endpoint\n"
        "prices.price_of(Endpoint(provider='ollama', model='m', base_url='http://localhost:1/v1'))\n"
        "assert 'genai_prices' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
