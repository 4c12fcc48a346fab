"""The OpenAPI document is whole, and the service answers as it says, whatever it is sent."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
import schemathesis.wfc.escalation  # an import in the midst of a test is more than Python 3.11 can do with threads
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import content_type_conformance, not_a_server_error, response_schema_conformance
from schemathesis.checks import status_code_conformance as documented_status
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation import GenerationMode

from marg_ray.api.app import create_app
from tests.asked import MANY, parts_of
from tests.flow import World
from tests.listening import listening

CHECKS = [not_a_server_error, documented_status, content_type_conformance, response_schema_conformance]
VERBS = ("get", "put", "post", "delete", "patch")


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return create_app(parts_of(World(tmp_path), service=MANY))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for verb in VERBS:
            if verb in item:
                yield f"{verb.upper()} {path}", item[verb]


def test_every_operation_says_what_it_does_and_how_it_fails(app: FastAPI) -> None:
    document = app.openapi()
    tags = {tag["name"] for tag in document["tags"]}
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(names) == len(set(names))
    for name, operation in operations(document):
        assert operation.get("summary"), name
        assert set(operation.get("tags", [])) <= tags, name
        assert operation.get("tags"), name
        failures = {s: r for s, r in operation["responses"].items() if s >= "400"}
        assert failures, name
        for status, answer in failures.items():
            assert answer.get("description"), f"{name} {status}"


def test_the_document_has_examples_of_what_is_sent(app: FastAPI) -> None:
    document = app.openapi()
    for name in ("ResearchIn", "DecisionIn", "SteerIn"):
        assert document["components"]["schemas"][name]["examples"], name
    assert {"Problem", "Report"} <= document["components"]["schemas"].keys()


def test_every_reference_leads_somewhere(app: FastAPI) -> None:
    document = app.openapi()
    found: list[str] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(ref := part.get("$ref"), str):
                found.append(ref)
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk(document)
    assert found
    for ref in found:
        place: Any = document
        for step in ref.removeprefix("#/").split("/"):
            assert step in place, ref
            place = place[step]


# ---- whatever it is sent

EXAMPLES = 4  # a route and kind of data: right, and wrong
MADE_UP = 0.3  # of the ids


@contextlib.asynccontextmanager
async def asked(world: World) -> AsyncIterator[None]:
    """The finished session `S`, made in the server's own event loop. Others halt at once, and cost nothing."""
    await world.ask()
    world.broken = frozenset({"search"})
    yield


@pytest.mark.timeout(1200)  # of a busy machine; half a minute of work
def test_whatever_it_is_sent_it_answers_as_documented(tmp_path: Path) -> None:
    world = World(tmp_path)
    app = create_app(parts_of(world, service=MANY))
    app.state.beside.append(lambda: asked(world))
    faults: list[str] = []
    with listening(app) as url, requests.Session() as session:
        report = session.get(f"{url}/v1/research/S/report", timeout=120).json()
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json", timeout=120)
        known = {
            "session_id": ["S"],
            "evidence_id": [e["id"] for e in report["evidence"]][:3],
            "source_id": [s["id"] for s in report["sources"]],
        }
        for found in schema.get_all_operations():
            faults += judged(found.ok(), known, session)
    assert not faults, "\n\n".join(faults)


def judged(operation: Any, known: dict[str, list[str]], session: requests.Session) -> list[str]:
    """What is wrong with the answers of a route to data that fits its schema, and to data that does not."""
    faults = []
    for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
        try:
            sender(operation, mode, known, session)()
        except Unsatisfiable:  # nothing about it can be wrong
            pass
        except (FailureGroup, Failure) as exc:
            told = getattr(exc, "exceptions", [exc])
            faults.append(f"{operation.label} ({mode.value}): " + "; ".join(str(e) for e in told))
    return faults


def sender(
    operation: Any, mode: GenerationMode, known: dict[str, list[str]], session: requests.Session
) -> Callable[[], None]:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        for name, ids in known.items():
            if name in (case.path_parameters or {}) and data.draw(st.floats(0, 1)) > MADE_UP:
                case.path_parameters[name] = data.draw(st.sampled_from(ids))
        case.call_and_validate(session=session, checks=CHECKS, timeout=30)

    return run
