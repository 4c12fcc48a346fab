"""Any bytes: a document whose parts are exact, or `Unreadable`; never anything else."""

from __future__ import annotations

import pickle
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marg_ray.errors import Unreadable
from marg_ray.grounding.snapshots import Document
from marg_ray.sources.parse import SUPPORTED_SUFFIXES, parse
from marg_ray.text import clean_text
from tests.shared import CASES, case_file

NAMES = st.sampled_from(["a" + suffix for suffix in SUPPORTED_SUFFIXES] + ["plain", "https://x.org/y.pdf?z=1"])
CHARSETS = st.sampled_from(["", "utf-8", "iso-8859-1", "shift_jis", "utf-16", "hex", "no such set"])
_PIECES = "<p>|</p>|<h1>|<h2>Tide</h2>|<ul><li>|</ul>|<table><tr><td>|<th>|</table>|<dl><dt>|<dd>|<pre>|</pre>|<div|>"
_MORE = (
    "&#0;|&amp;|words of the harbour |6.4 m|<!--|-->|<script>|</script>|<sup>[1]</sup>|潮汐|\x00|\n|# |* |---|a,b|```"
)
MARKUP = st.lists(
    st.sampled_from([*_PIECES.split("|"), *_MORE.split("|")]),
    max_size=40,
).map("".join)


def check(document: Document) -> None:
    last = 0
    for part in document.parts:
        assert last <= part.start < part.end <= len(document.text)
        text = document.text[part.start : part.end]
        assert text == text.strip() or part.kind == "code"
        assert document.text[last : part.start] in ("", "\n", "\n\n")
        last = part.end
    assert last == len(document.text)
    assert clean_text(document.text) == document.text
    assert document.title


def outcome(body: bytes, name: str, **hints: str) -> Document | tuple[str, str]:
    try:
        document = parse(body, name=name, **hints)
    except Unreadable as error:
        return error.name, error.why
    check(document)
    return document


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.binary(max_size=300) | MARKUP.map(str.encode), name=NAMES, charset=CHARSETS)
def test_any_bytes(body: bytes, name: str, charset: str) -> None:
    first = outcome(body, name, charset=charset)
    assert first == outcome(body, name, charset=charset)
    if isinstance(first, tuple):
        assert first[0] == name
        assert 3 < len(first[1]) < 90


@pytest.mark.parametrize("case", ["PAR-01", "PAR-03", "PAR-05", "FET-05"])
def test_damaged_files(case: str) -> None:
    if not CASES.is_dir():
        pytest.skip("the failure cases are not at hand")
    rng = random.Random(case)
    for path in sorted((CASES / case).iterdir()):
        body = case_file(case, path.name).read_bytes()
        for _ in range(3):
            outcome(body[: rng.randrange(len(body) + 1)], path.name)
            spoiled = bytearray(body)
            for _ in range(rng.choice((1, 8, 60))):
                spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
            outcome(bytes(spoiled), path.name)


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 100_000 + b"words",
        b"<table><tr><td>" * 5_000 + b"words",
        b"<p>" + b"<b>" * 50_000 + b"words of the harbour keeper here",
        b"[" * 50_000 + b"words",
        b"<!---->" * 20_000 + b"words",
        b"<script" * 20_000 + b"\xe9\xe8 words",
        b"<" * 50_000 + b"\xe9 words",
        b"> " * 5_000 + b"words",
        b"- " * 5_000 + b"words",
        b"%PDF-1.7\n" + b"<<" * 50_000,
        b"PK\x03\x04" + b"word/" * 1000,
        b"\x1f\x8b\x08" + bytes(50),
        b"{\\rtf1 words}",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    ],
)
@pytest.mark.parametrize("name", ["x.html", "x.md", "x.pdf", "x.docx", "x"])
def test_hostile_nesting_and_false_signatures(body: bytes, name: str) -> None:
    outcome(body, name)


def test_refusals_travel_between_processes() -> None:
    with pytest.raises(Unreadable) as caught:
        parse(b"", name="empty.txt")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.name, again.why) == ("empty.txt", "empty: it has no text")
