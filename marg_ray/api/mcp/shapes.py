"""What the tools answer with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Out(BaseModel):
    model_config = ConfigDict(frozen=True)


class Research(_Out):
    """A session: its report in Markdown when it is over, or where it stands."""

    session_id: str
    status: Annotated[
        str,
        Field(description="running, passed, quality_warning, insufficient_evidence, budget_stopped, cancelled, halted"),
    ]
    finished: bool
    report: Annotated[str, Field(description="Markdown; of a refusal, why there is no report")] = ""
    cached: Annotated[bool, Field(description="the report was there already")] = False
    next: Annotated[str, Field(description="what to do, where it is not finished")] = ""


class Passage(_Out):
    """A verbatim passage: `text` is `[start:end]` of the document's frozen text."""

    text: str
    title: str
    location: Annotated[str, Field(description="the document's path within its folder")]
    document: Annotated[str, Field(description="the document's id, for doc_summary")]
    heading: Annotated[str, Field(description="the headings above it")] = ""
    start: int
    end: int
    score: Annotated[float, Field(description="relevance, 0 to 1")]


class Passages(_Out):
    query: str
    passages: tuple[Passage, ...]
    answers: Annotated[
        Literal["answer", "nearest", "nothing"],
        Field(description="whether the documents answer the query, hold only the nearest material, or nothing"),
    ]
    found_nowhere: Annotated[tuple[str, ...], Field(description="words of the query that are in no document")] = ()
    notes: tuple[str, ...] = ()


class WebResult(_Out):
    title: str
    url: str
    snippet: str
    published: Annotated[str, Field(description="ISO date, where it is known")] = ""


class WebResults(_Out):
    query: str
    results: tuple[WebResult, ...]
    notes: Annotated[tuple[str, ...], Field(description="engines that failed, entries that were dropped")] = ()


class Quoted(_Out):
    """A sentence of the document, word for word."""

    text: str
    start: int
    end: int
    heading: str = ""


class Summary(_Out):
    """A document by its own sentences: what is said here is said there, at these places."""

    document: str
    title: str
    location: str
    language: str = ""
    published: str = ""
    characters: int
    headings: tuple[str, ...] = ()
    sentences: tuple[Quoted, ...]


class Health(_Out):
    status: Literal["ok"] = "ok"
    version: str
    model: Annotated[str, Field(description="that writes the reports")]
    web: Annotated[bool, Field(description="whether the web can be searched")]
    documents: Annotated[int, Field(description="that you can search")]
