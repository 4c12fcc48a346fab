"""Which sentences rest on sources that tried to order a model about, and how near the order stood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from marg_ray.records import Evidence, Source
from marg_ray.report.model import ReportSentence

NEAR = 400  # characters between a passage and a cut that make them neighbours
BESIDE = "rests on a passage beside instruction-like text that was cut out of its source"
SOURCE = "rests on a source that carried instruction-like text; it was cut out"
QUOTES = "rests on a passage that quotes instructions to a model"


def with_cautions(
    sentences: Iterable[ReportSentence], known: Mapping[str, Evidence], sources: Mapping[str, Source]
) -> tuple[ReportSentence, ...]:
    """The sentences, marked where what they cite is tainted."""
    return tuple(_marked(s, [known[c] for c in s.citations if c in known], sources) for s in sentences)


def _marked(sentence: ReportSentence, cited: Iterable[Evidence], sources: Mapping[str, Source]) -> ReportSentence:
    found = {caution for e in cited if (caution := _caution(e, sources.get(e.source)))}
    worst = next((c for c in (BESIDE, QUOTES, SOURCE) if c in found), "")
    return sentence.model_copy(update={"caution": worst}) if worst else sentence


def _caution(evidence: Evidence, source: Source | None) -> str:
    cuts = source.injections if source is not None else ()
    if any(c.at >= 0 and evidence.start - NEAR <= c.at <= evidence.end + NEAR for c in cuts):
        return BESIDE
    if cuts:
        return SOURCE
    return QUOTES if evidence.tainted else ""
