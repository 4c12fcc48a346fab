"""Which tool of a foreign server is asked, and what is made of its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.types import CallToolResult, EmbeddedResource, ImageContent, TextContent, TextResourceContents, Tool
from mcp.types import ToolAnnotations as Hints

from marg_ray.sources.mcp.choosing import NoTool, way_of
from marg_ray.sources.mcp.replies import LONGEST_TEXT, error_of, pieces_of

TEXT = "The Rance tidal power station opened in 1966."
STRING, NUMBER = {"type": "string"}, {"type": "integer"}


def tool(name: str, required: tuple[str, ...] = (), hints: Hints | None = None, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name=name, input_schema=schema, annotations=hints)


def said(*texts: str, structured: Any = None, error: bool = False) -> CallToolResult:
    content: list[Any] = [TextContent(type="text", text=t) for t in texts]
    return CallToolResult(content=content, structured_content=structured, is_error=error)


def texts_of(result: CallToolResult) -> list[str]:
    return [p.text for p in pieces_of(result).found]


# ---- tools


def test_the_tool_that_searches_is_asked_by_its_text() -> None:
    tools = [tool("delete", ("path",), path=STRING), tool("search_docs", ("query",), query=STRING)]
    way = way_of(tools)
    assert (way.tool, way.arguments("tides", 5)) == ("search_docs", {"query": "tides"})


def test_the_number_of_results_is_asked_for_where_the_tool_takes_one() -> None:
    way = way_of([tool("search", ("q",), q=STRING, top_k={"type": "integer", "maximum": 3})])
    assert way.arguments("tides", 10) == {"q": "tides", "top_k": 3}


def test_no_tool_is_asked_by_chance() -> None:
    """A query must not become the argument of whatever takes a text."""
    with pytest.raises(NoTool, match="none of its tools searches by one text: delete_file, run"):
        way_of([tool("delete_file", ("path",), path=STRING), tool("run", ("command",), command=STRING)])


def test_a_tool_that_says_it_destroys_is_not_asked() -> None:
    tools = [tool("find_and_delete", ("query",), hints=Hints(destructive_hint=True), query=STRING)]
    with pytest.raises(NoTool):
        way_of(tools)


def test_a_tool_that_only_reads_will_do() -> None:
    tools = [tool("weather", ("city",), hints=Hints(read_only_hint=True), city=STRING)]
    assert way_of(tools).tool == "weather"


def test_a_tool_that_needs_more_than_a_text_is_not_asked() -> None:
    with pytest.raises(NoTool):
        way_of([tool("search", ("query", "token"), query=STRING, token=STRING)])


def test_a_named_tool_is_asked_whatever_it_is_called() -> None:
    tools = [tool("search", ("query",), query=STRING), tool("ponder", (), thought=STRING, times=NUMBER)]
    assert way_of(tools, "ponder").arguments("tides", 3) == {"thought": "tides"}


def test_a_named_tool_that_is_not_there_is_said() -> None:
    with pytest.raises(NoTool, match="it has no tool 'look': search"):
        way_of([tool("search", ("query",), query=STRING)], "look")


def test_a_parameter_that_may_be_null_is_a_text_all_the_same() -> None:
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert way_of([tool("search", (), query=optional)]).query == "query"


@pytest.mark.parametrize("schema", [{}, {"properties": "none"}, {"properties": {"query": "text"}}])
def test_a_schema_that_is_none_is_passed_over(schema: dict[str, Any]) -> None:
    with pytest.raises(NoTool):
        way_of([Tool(name="search", input_schema={"type": "object", **schema})])


# ---- answers


def test_records_become_pieces_with_their_titles_and_places() -> None:
    record = {"title": "La Rance", "url": "https://tides.test/rance", "snippet": "The Rance", "content": TEXT}
    piece = pieces_of(said(structured={"results": [{**record, "date": "2020-03-04T00:00"}]})).found[0]
    assert (piece.title, piece.place, piece.text) == ("La Rance", "https://tides.test/rance", TEXT)
    assert piece.published == "2020-03-04"


@pytest.mark.parametrize(
    "structured",
    [
        {"result": [{"text": TEXT}]},
        {"result": TEXT},
        {"data": {"hits": [{"body": TEXT}]}},
        {"documents": [TEXT]},
        {"answer": TEXT, "sources": ["a.pdf"]},
        {"passages": [{"content": [{"type": "text", "text": TEXT}]}]},
    ],
)
def test_however_records_are_wrapped(structured: Any) -> None:
    assert texts_of(said(structured=structured)) == [TEXT]


def test_json_in_a_text_is_read_as_records() -> None:
    assert texts_of(said(json.dumps([{"text": TEXT}, {"text": ""}]))) == [TEXT]


def test_json_without_texts_is_spelled_out_so_that_it_can_be_quoted() -> None:
    found = texts_of(said(json.dumps({"station": {"name": "La Rance", "megawatts": 240}})))
    assert found == ["station.name: La Rance\n\nstation.megawatts: 240"]


def test_prose_is_taken_as_it_is() -> None:
    assert texts_of(said(f"# La Rance\n\n{TEXT}")) == [f"# La Rance\n\n{TEXT}"]


def test_a_resource_has_its_address() -> None:
    resource = TextResourceContents(uri="https://tides.test/r", text=TEXT, mime_type="text/html; charset=utf-8")
    piece = pieces_of(CallToolResult(content=[EmbeddedResource(type="resource", resource=resource)])).found[0]
    assert (piece.text, piece.place, piece.media_type) == (TEXT, "https://tides.test/r", "text/html")


def test_what_holds_no_text_is_counted() -> None:
    image = ImageContent(type="image", data="AAAA", mime_type="image/png")
    pieces = pieces_of(CallToolResult(content=[image, TextContent(type="text", text=TEXT)]))
    assert (len(pieces.found), pieces.dropped) == (1, 1)


@pytest.mark.parametrize(
    "words", ["No results found.", "0 matching documents", "Nothing was found for 'tides'", "", "ok"]
)
def test_an_answer_that_says_nothing_is_none(words: str) -> None:
    assert texts_of(said(words)) == []


def test_the_same_text_comes_once_and_none_is_longer_than_it_may_be() -> None:
    found = texts_of(said(TEXT, TEXT, "long " * LONGEST_TEXT))
    assert [len(t) for t in found] == [len(TEXT), LONGEST_TEXT]


def test_deep_json_ends() -> None:
    deep: Any = "bottom of it all"
    for _ in range(60):
        deep = {"data": deep}
    assert len(texts_of(said(json.dumps(deep)))) == 1


def test_an_error_is_told_in_one_line() -> None:
    assert error_of(said("the index\nis gone", error=True)) == "the index is gone"
    assert error_of(said(error=True)) == "it failed without saying why"
    assert error_of(said(TEXT)) == ""
