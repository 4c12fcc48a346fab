"""The OpenAPI document: what a reader of the routes should know besides them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from marg_ray.api.problems import Problem
from marg_ray.report.model import Report

TAGS: list[dict[str, Any]] = [
    {"name": "research", "description": "Ask, follow, decide, steer, cancel."},
    {"name": "reports", "description": "What came of it, in every format, and what each sentence rests on."},
    {"name": "knowledge", "description": "Your documents."},
    {"name": "chat", "description": "Questions about finished reports and your documents."},
    {"name": "openai", "description": "What clients of OpenAI's API ask."},
    {"name": "system", "description": "Health and figures."},
]
ABOUT = """
A question is answered by a report whose every sentence cites passages that were read, with the verdict of a check.

1. `POST /v1/research` takes a question and answers at once with a session's id.
2. `GET /v1/research/{id}/events` streams what happens, from the beginning or from where you left off;
   `GET /v1/research/{id}` says where it stands.
3. `GET /v1/research/{id}/report` gives the report as data, `report.md`, `.html`, `.pdf`, `.docx` as a document.

**Errors** are `application/problem+json`: `code` is for programs, `detail` and `hint` for people. **Keys** go into
`Authorization: Bearer KEY`; without one the service answers on the machine that it runs on. Everybody sees only their
own sessions, documents and conversations.
"""

GUARDED = {
    "401": "A key is needed, or the one that came is not valid.",
    "403": "The key lacks a scope, or another site's page sends this.",
    "421": "The server is called by a name that is not its own.",
    "429": "Too many requests; `Retry-After` says when to come again.",
}
UNREADABLE = {"400": "The body cannot be read.", "413": "The body is too large."}
EVENT = {
    "type": "object",
    "description": "one event; `data` is JSON",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {"type": "string"},
        "retry": {"type": "integer"},
    },
}


def described(app: FastAPI) -> None:
    """Have the application's document made once, with keys, problems and the report's schema in it."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's own way


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=ABOUT.strip(),
        routes=app.routes,
        tags=app.openapi_tags,
    )
    parts = document.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for model in (Problem, Report):
        _add(schemas, model)
    for item in document["paths"].values():
        for operation in item.values():
            _complete(operation)
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": "`marg keys add` makes one"}}
    document["security"] = [{"key": []}, {}]
    return document


def _complete(operation: dict[str, Any]) -> None:
    """Add what the guards may answer before a route is reached, and what an event of a stream looks like."""
    answers: dict[str, Any] = operation["responses"]
    for status, what in (GUARDED | UNREADABLE if "requestBody" in operation else GUARDED).items():
        problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
        answers.setdefault(status, {"description": what, "content": problem})
    for answer in answers.values():
        if stream := answer.get("content", {}).get("text/event-stream"):
            stream["schema"] = EVENT
    operation["responses"] = dict(sorted(answers.items()))


def _add(schemas: dict[str, Any], model: type[Any]) -> None:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    for name, part in schema.pop("$defs", {}).items():
        schemas.setdefault(name, part)
    schemas.setdefault(model.__name__, schema)
