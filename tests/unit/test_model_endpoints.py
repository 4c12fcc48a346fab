"""What specs, hosts and refusals mean, without a server."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from marg_ray.errors import UsageError
from marg_ray.models.breaker import Breaker
from marg_ray.models.endpoints import Endpoint, ollama_base, resolve
from marg_ray.models.wire import _sizes
from marg_ray.settings import ModelSettings

KEY = "sk-test-1234567890abcdef"


class TestEndpoints:
    @pytest.mark.parametrize(
        ("spec", "name", "base"),
        [
            ("openai:gpt-5", "openai:gpt-5", "https://api.openai.com/v1"),
            ("ollama:llama3.1:8b", "ollama:llama3.1:8b", "http://localhost:11434/v1"),
            ("vllm:meta-llama/Llama-3.1-8B", "vllm:meta-llama/Llama-3.1-8B", "http://localhost:8000/v1"),
            ("http://10.0.0.5:8080/v1:qwen2.5:7b", "10.0.0.5:8080:qwen2.5:7b", "http://10.0.0.5:8080/v1"),
            ("http://[::1]:8080/v1:m", "[::1]:8080:m", "http://[::1]:8080/v1"),
        ],
    )
    def test_specs(self, spec: str, name: str, base: str) -> None:
        endpoint = resolve(spec, ModelSettings(), {"OPENAI_API_KEY": KEY})
        assert (endpoint.name, endpoint.base_url) == (name, base)
        assert endpoint.key == (KEY if spec.startswith("openai") else "")
        assert KEY not in repr(endpoint)

    def test_a_bare_model_needs_an_address(self) -> None:
        settings = ModelSettings(base_url="http://localhost:9000/v1/", api_key=SecretStr("k"))
        endpoint = resolve("llama3.1:8b", settings, {})
        assert (endpoint.model, endpoint.base_url, endpoint.key) == ("llama3.1:8b", "http://localhost:9000/v1", "k")

    @pytest.mark.parametrize(
        ("spec", "complaint"),
        [
            ("nope:x", "no known model provider"),
            ("openai:gpt-5", "needs a key"),
            ("http://h:1/v1", "names no model"),
            ("http://user:secret@h:1/v1:m", "names no model"),
            ("ollama:", "names no model"),
            ("", "no known model provider"),
        ],
    )
    def test_what_cannot_be_meant(self, spec: str, complaint: str) -> None:
        with pytest.raises(UsageError, match=complaint) as caught:
            resolve(spec, ModelSettings(), {})
        assert caught.value.hint
        assert "secret" not in str(caught.value)

    def test_the_window_is_the_setting_or_what_the_provider_has(self) -> None:
        env = {"OPENAI_API_KEY": KEY}
        assert resolve("openai:gpt-5", ModelSettings(), env).window >= 32_000
        assert resolve("openai:gpt-5", ModelSettings(context_tokens=9000), env).window == 0
        assert resolve("ollama:m", ModelSettings(), env).window == 0

    def test_keys_do_not_go_to_other_addresses(self) -> None:
        env = {"OPENAI_API_KEY": KEY}
        assert resolve("http://elsewhere.example/v1:gpt-5", ModelSettings(), env).key == ""

    @pytest.mark.parametrize(
        ("host", "base"),
        [
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            (":9999", "http://127.0.0.1:9999/v1"),
            ("http://box:1234/", "http://box:1234/v1"),
            ("https://ollama.example", "https://ollama.example:443/v1"),
        ],
    )
    def test_the_ways_to_write_ollama_host(self, host: str, base: str) -> None:
        assert ollama_base(host) == base

    def test_secrets_are_cut_out_of_foreign_messages(self) -> None:
        endpoint = Endpoint(provider="x", model="m", base_url="http://h/v1", key="odd key 1")
        said = endpoint.redact("bad odd key 1 and sk-proj-abc***xyz and Bearer abcdef123456")
        assert said == "bad *** and *** and Bearer ***"


def test_half_open_admits_a_single_probe() -> None:
    now = [0.0]
    breaker = Breaker(after=1, pause_s=10, clock=lambda: now[0])
    assert breaker.admit()
    breaker.failed()
    assert (breaker.state, breaker.admit(), breaker.wait_s) == ("open", False, 10)
    now[0] = 10
    assert (breaker.state, breaker.admit(), breaker.admit()) == ("half-open", True, False)
    breaker.abandoned()
    assert breaker.admit()
    breaker.failed()
    assert breaker.state == "open"
    now[0] = 20
    assert breaker.admit()
    breaker.succeeded()
    assert breaker.state == "closed"


@pytest.mark.parametrize(
    ("said", "limit", "counted"),
    [
        ("Prompt has 9100 tokens but the context size is 8192 tokens", 8192, 9100),
        (
            "This model's maximum context length is 4,096 tokens. However, you requested 5,000 tokens "
            "(4,000 in the messages, 1,000 in the completion).",
            4096,
            5000,
        ),
        ("prompt is too long: 212000 tokens > 200000 maximum", 200000, 212000),
        ("the request exceeds the available context size (8192)", 8192, 0),
        ("Input length 9000 exceeds the max_model_len of 2048", 2048, 0),
        ("Please reduce the length of the messages", 0, 0),
    ],
)
def test_sizes_in_many_wordings(said: str, limit: int, counted: int) -> None:
    assert _sizes({}, said) == (limit, counted)
