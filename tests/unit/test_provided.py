from __future__ import annotations

from pathlib import Path

import pytest

from marg_ray.errors import SessionNotFound
from marg_ray.grounding.snapshots import Document, Part, Snapshots
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.records import SourceKind, Zone
from marg_ray.sources.provided import ProvidedText


def put(snapshots: Snapshots, text: str, title: str = "") -> str:
    return snapshots.put(Document(title=title, text=text, parts=(Part(kind="paragraph", start=0, end=len(text)),)))


async def test_every_text_is_found_the_fitting_one_first(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    tea, storm = put(snapshots, "Tea grows on Sulo."), put(snapshots, "The storm destroyed 420 houses.", "Report")
    embedder = HashingEmbedder()
    source = ProvidedText(snapshots, [tea, storm, tea], embedder)
    found = await source.search("How many houses did the storm destroy?", 5)
    assert [(h.source_id, h.title) for h in found.hits] == [(storm, "Report"), (tea, "Provided text 1")]
    assert {h.kind for h in found.hits} == {SourceKind.PROVIDED}
    assert found.answerability.zone is not Zone.NOTHING
    span = found.hits[0].spans[0]
    assert snapshots.text(storm)[span.start : span.end] == "The storm destroyed 420 houses."
    assert len((await source.search("storm", 1)).hits) == 1
    assert embedder.texts.count("Tea grows on Sulo.") == 1  # embedded once


async def test_a_text_about_something_else_is_still_the_nearest(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    source = ProvidedText(snapshots, [put(snapshots, "Tea grows on Sulo.")], HashingEmbedder())
    found = await source.search("melting point of tungsten", 5)
    assert len(found.hits) == 1
    assert found.answerability.zone is Zone.NEAREST


async def test_no_text_and_an_unknown_text(tmp_path: Path) -> None:
    assert (await ProvidedText(Snapshots(tmp_path), [], HashingEmbedder()).search("x", 5)).hits == ()
    with pytest.raises(SessionNotFound):
        await ProvidedText(Snapshots(tmp_path), ["0" * 64], HashingEmbedder()).search("x", 5)
