"""`MARG_MODEL=provider:model` for every provider, each against a server that behaves as its API does."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from marg_ray.cli import main
from marg_ray.errors import ModelUnavailable, UsageError
from marg_ray.models.client import Call, ModelClient, ModelTask
from marg_ray.models.endpoints import PROVIDERS, Structure, resolve
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.probe import Capabilities, as_remembered, probe, remember, remembered
from marg_ray.models.select import Choice, build_model, choose, endpoints_of, role_specs
from marg_ray.models.testing import CannedModel
from marg_ray.models.wrappers import aclose
from marg_ray.records import Role
from marg_ray.settings import ModelSettings, Settings
from tests import model_tasks as samples
from tests.loopback import Server
from tests.providers import APIS, KEY, provider

CALL = Call(session_id="r1", task_id="r1/x")
ANSWERED = {  # how each is asked for JSON in the end
    "openai": Structure.SCHEMA,
    "anthropic": Structure.PROMPT,
    "gemini": Structure.OBJECT,
    "groq": Structure.OBJECT,
    "deepseek": Structure.OBJECT,
    "openrouter": Structure.SCHEMA,
    "ollama": Structure.SCHEMA,
    "vllm": Structure.SCHEMA,
}


def test_every_provider_has_a_server_here() -> None:
    assert set(APIS) == set(PROVIDERS) == set(ANSWERED)


def env_for(name: str) -> dict[str, str]:
    return {PROVIDERS[name].key: KEY} if PROVIDERS[name].key else {}


def settings_for(name: str, server: Server, **models: Any) -> Settings:
    return Settings(model=f"{name}:m", models=ModelSettings(base_url=f"{server.url}{APIS[name].path}", **models))


async def model_for(name: str, server: Server) -> ModelClient:
    settings, env = settings_for(name, server), env_for(name)
    return build_model(await choose(settings, env), settings, extractive_factory=CannedModel, env=env)


@pytest.mark.parametrize("name", APIS)
def test_the_usual_address_has_the_path_of_the_api(name: str) -> None:
    endpoint = resolve(f"{name}:m", ModelSettings(), env_for(name))
    assert endpoint.base_url.endswith(APIS[name].path)
    assert endpoint.base_url.startswith("https://") == APIS[name].needs_key


@pytest.mark.parametrize("name", APIS)
async def test_a_plan_and_a_section_come_from_each_provider(name: str) -> None:
    async with provider(name) as server:
        model = await model_for(name, server)
        plan = await model.run(samples.make_plan(), CALL)
        assert [s.title for s in plan.output.sections] == ["Power", "Birds"]
        assert (plan.usage.tokens_in, plan.usage.tokens_out) == (321, 45)
        assert plan.model == f"{name}:m"
        pieces: list[str] = []

        async def watch(piece: str) -> None:
            pieces.append(piece)

        draft = await model.run(samples.draft_section(), Call(session_id="r1", task_id="r1/y", on_delta=watch))
        assert "".join(pieces) == draft.output.markdown
        assert "Let me see" not in repr((plan, draft, pieces))
        assert draft.usage.tokens_in > 0  # counted, or estimated where the stream does not say
        tried = len(server.seen)
        await model.run(samples.make_plan(question="Another?"), CALL)
        assert len(server.seen) == tried + 1, "what an API does not know is tried once"
        await aclose(model)
        sent = json.loads(server.seen[-1].body)
        kind = (sent.get("response_format") or {}).get("type", "prompt")
        assert kind == ANSWERED[name]
        assert ("options" in sent) == (name == "ollama")
    if name == "openrouter":
        assert plan.usage.cost == pytest.approx(0.00012)  # what it says itself


@pytest.mark.parametrize("name", [n for n in APIS if APIS[n].needs_key])
async def test_a_wrong_key_is_said_once_and_never_shown(name: str) -> None:
    wrong = "sk-wrong-9876543210zyxwvutsrq"
    async with provider(name) as server:
        settings = settings_for(name, server, api_key=SecretStr(wrong))
        model = build_model(Choice(f"{name}:m", f"{name}:m", ""), settings, extractive_factory=CannedModel, env={})
        with pytest.raises(ModelUnavailable, match="refused the key") as caught:
            await model.run(samples.make_plan(), CALL)
        await aclose(model)
        assert len(server.seen) == 1
    assert wrong not in repr(
        (caught.value, settings, model, endpoints_of(Choice(f"{name}:m", f"{name}:m", ""), settings, {}))
    )


async def test_a_plain_address_needs_no_key() -> None:
    async with provider("vllm") as server:
        settings = Settings(model=f"{server.url}/v1:some/model:tag")
        model = build_model(await choose(settings, {}), settings, extractive_factory=CannedModel, env={})
        assert (await model.run(samples.make_plan(), CALL)).output.sections
        await aclose(model)
        assert json.loads(server.seen[0].body)["model"] == "some/model:tag"
        assert server.seen[0].headers["authorization"] == "Bearer none"


# ---- of one's own: models, keys and temperatures of single roles


async def test_a_role_has_its_own_model_key_and_temperature() -> None:
    async with provider("vllm") as server, provider("vllm") as critics:
        settings = Settings(
            model=f"{server.url}/v1:m",
            models=ModelSettings(
                roles={Role.CRITIC: f"{critics.url}/v1:judge"},
                keys={"critic": SecretStr("key-of-the-critic"), "synthesizer": SecretStr("key-of-the-writer")},
                temperatures={Role.CRITIC: 0.0, Role.SYNTHESIZER: 0.7},
            ),
        )
        choice = await choose(settings, {})
        assert set(role_specs(choice, settings)) == {Role.CRITIC, Role.SYNTHESIZER}
        model = build_model(choice, settings, extractive_factory=CannedModel, env={})
        tasks: list[ModelTask[Any]] = [samples.make_plan(), samples.draft_section(), samples.review_report()]
        for task in tasks:
            await model.run(task, CALL)
        await aclose(model)
        asked = [(s.headers["authorization"], json.loads(s.body)) for s in (*server.seen, *critics.seen)]
    assert [(key, body["model"], body["temperature"]) for key, body in asked] == [
        ("Bearer none", "m", 0.2),
        ("Bearer key-of-the-writer", "m", 0.7),
        ("Bearer key-of-the-critic", "judge", 0.0),
    ]


def test_the_key_of_one_provider_does_not_go_to_another() -> None:
    settings = Settings(
        model="openai:a",
        models=ModelSettings(
            api_key=SecretStr("for-openai"),
            base_url="http://127.0.0.1:1/v1",
            fallback="groq:b, ollama:c",
            keys={"groq": SecretStr("for-groq")},
        ),
    )
    found = endpoints_of(Choice("openai:a", "openai:a", ""), settings, {})
    assert [(e.provider, e.key) for e in found] == [("openai", "for-openai"), ("groq", "for-groq"), ("ollama", "")]
    assert [e.base_url for e in found[1:]] == [PROVIDERS["groq"].base_url, PROVIDERS["ollama"].base_url]
    with pytest.raises(UsageError, match="groq needs a key"):
        endpoints_of(
            Choice("openai:a", "openai:a", ""),
            Settings(models=ModelSettings(fallback="groq:b")),
            {"OPENAI_API_KEY": "k"},
        )


# ---- what an endpoint can do


@pytest.mark.parametrize("name", APIS)
async def test_what_an_endpoint_can_do_is_found_out(name: str) -> None:
    async with provider(name) as server:
        endpoint = resolve(f"{name}:m", settings_for(name, server).models, env_for(name))
        found = await probe(endpoint, ModelSettings())
    assert found.structure is ANSWERED[name]
    assert found.streams
    assert (found.usage, found.usage_in_stream) == (True, APIS[name].usage_in_stream)


async def test_a_schema_that_is_passed_over_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def babble(_: dict[str, Any]) -> str:
        return "Certainly! It is Paris, which has five letters, and it is a fine city on the river Seine."

    monkeypatch.setitem(APIS, "vllm", replace(APIS["vllm"], answers=babble))
    async with provider("vllm") as server:
        endpoint = resolve(f"{server.url}/v1:m", ModelSettings(), {})
        found = await probe(endpoint, ModelSettings())
    assert found.structure is Structure.PROMPT
    remember(tmp_path, endpoint, found)
    assert as_remembered(tmp_path, endpoint).structure is Structure.PROMPT
    assert remembered(tmp_path, endpoint, now=found.at.replace(year=found.at.year + 1)) is None
    assert remembered(tmp_path, resolve("http://127.0.0.1:1/v1:m", ModelSettings(), {})) is None


async def test_what_is_remembered_is_used(tmp_path: Path) -> None:
    async with provider("groq") as server:
        settings = settings_for("groq", server).model_copy(update={"home": tmp_path})
        (endpoint,) = endpoints_of(Choice("groq:m", "groq:m", ""), settings, env_for("groq"))
        remember(tmp_path, endpoint, await probe(endpoint, settings.models))
        asked = len(server.seen)
        model = build_model(
            Choice("groq:m", "groq:m", ""), settings, extractive_factory=CannedModel, env=env_for("groq")
        )
        assert isinstance(model, OpenAIModel)
        await model.run(samples.make_plan(), CALL)
        await aclose(model)
        assert len(server.seen) == asked + 1


def test_the_words_for_what_an_endpoint_can_do() -> None:
    from datetime import UTC, datetime

    def words(structure: Structure, *seen: bool) -> str:
        streams, usage, usage_in_stream = seen
        return Capabilities(
            structure=structure, streams=streams, usage=usage, usage_in_stream=usage_in_stream, at=datetime.now(UTC)
        ).in_words()

    assert words(Structure.SCHEMA, True, True, True) == "JSON schema, streams, tokens counted"
    assert "not in streams" in words(Structure.OBJECT, True, True, False)
    assert words(Structure.PROMPT, False, False, False).endswith("tokens not counted: they are estimated")


@pytest.fixture
def findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def examine(*args: str) -> tuple[str, list[dict[str, Any]]]:
        monkeypatch.setattr("sys.argv", ["marg", "doctor", "--json", *args])
        with pytest.raises(SystemExit):
            main()
        said = capsys.readouterr()
        return said.out + said.err, [json.loads(line) for line in said.out.splitlines()]

    return examine


def served(name: str) -> tuple[Any, str]:
    """A provider's server in a thread, for a command that has a loop of its own; how to stop it, and its address."""
    import asyncio
    import threading

    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    urls: list[str] = []

    async def run() -> None:
        async with provider(name) as server:
            urls.append(server.url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: (loop.run_until_complete(run()), loop.close()), daemon=True)
    thread.start()
    assert ready.wait(20)

    def end() -> None:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)

    return end, urls[0]


def test_doctor_shows_what_each_endpoint_can_do_and_no_key(
    findings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    end, url = served("groq")
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("MARG_MODEL", "groq:m")
    monkeypatch.setenv("MARG_MODELS__BASE_URL", f"{url}/openai/v1")
    try:
        text, lines = findings()
    finally:
        end()
    (endpoint,) = [f for f in lines if f["name"] == "endpoint"]
    assert endpoint["fine"]
    assert "with a key" in endpoint["detail"]
    assert "JSON without a schema, streams, tokens counted" in endpoint["detail"]
    again, _ = findings()  # the server has gone, and what it can do is remembered
    assert "JSON without a schema" in again
    gone, lines = findings("--probe")
    (endpoint,) = [f for f in lines if f["name"] == "endpoint"]
    assert not endpoint["fine"]
    assert KEY not in text + again + gone + caplog.text
