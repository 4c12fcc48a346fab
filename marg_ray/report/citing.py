"""What a report cites: originals in place of copies, the figures of its citations, and what was left out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from marg_ray.grounding.canon import CitationCounts, counts, repeats
from marg_ray.grounding.verify import check_sentence, verdict_of
from marg_ray.records import Draft, DroppedCitation, Evidence, Sentence, Source, Verdict
from marg_ray.report.model import ReportCitations, ReportDroppedCitation, ReportSentence


def with_originals(
    draft: Draft, copies: Mapping[str, str], known: Mapping[str, Evidence], sources: Mapping[str, Source]
) -> tuple[Draft, tuple[DroppedCitation, ...]]:
    """The draft with each copy replaced by its original where the verdict stays, and what was replaced.

    A section knows only its own evidence: that another one found the original shows when the report is put together.
    """
    gone: list[DroppedCitation] = []
    blocks = []
    at = 0
    for block in draft.blocks:
        sentences = []
        for number, sentence in enumerate(block.sentences, at):
            changed = _with_originals(sentence, copies, known, sources)
            sentences.append(changed)
            if changed is not sentence:
                gone += [
                    DroppedCitation(sentence=number, evidence=c, kept=copies[c], reason="repeats")
                    for c in sentence.citations
                    if c in copies
                ]
        at += len(block.sentences)
        blocks.append(block.model_copy(update={"sentences": tuple(sentences)}))
    return (draft.model_copy(update={"blocks": tuple(blocks)}), tuple(gone)) if gone else (draft, ())


def _with_originals(
    sentence: Sentence, copies: Mapping[str, str], known: Mapping[str, Evidence], sources: Mapping[str, Source]
) -> Sentence:
    if not any(c in copies for c in sentence.citations) or sentence.verdict in (None, Verdict.NOT_CHECKED):
        return sentence
    citations = tuple(dict.fromkeys(copies.get(c, c) for c in sentence.citations))
    cited = [known[c] for c in citations if c in known]
    titles = [sources[e.source].title for e in cited if e.source in sources]
    check = check_sentence(sentence.text, cited, titles=titles)
    if check.verdict is not sentence.verdict:
        return sentence
    update = {"citations": citations, "reason": check.reason}
    return sentence.model_copy(update={**update, "check": verdict_of(check) if sentence.check else None})


def figures(
    sentences: Iterable[ReportSentence], known: Mapping[str, Evidence], sources: Mapping[str, Source]
) -> CitationCounts:
    titles = {key: source.title for key, source in sources.items()}
    return counts(((s.text, s.citations, s.verdict) for s in sentences), known, titles)


def shown(found: CitationCounts) -> ReportCitations:
    return ReportCitations(
        coverage=_rounded(found.coverage),
        precision=_rounded(found.precision),
        factual=found.factual,
        supported=found.supported,
        cited=found.cited,
        contributing=found.contributing,
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def left_out(
    drafts: Iterable[Draft],
    gone: Mapping[str, Sequence[DroppedCitation]],
    evidence: Mapping[str, tuple[str, ...]],
    known: Mapping[str, Evidence],
    sources: Mapping[str, Source],
) -> Iterator[ReportDroppedCitation]:
    """The citations that drafts go without, and the passages that no writer was shown.

    Args:
        gone: section to what its draft lost.
        evidence: section to its evidence ids.
    """
    for draft in drafts:
        sentences = draft.sentences
        for one in gone.get(draft.section, ()):
            if one.evidence in known and one.kept in known and one.sentence < len(sentences):
                text = sentences[one.sentence].text
                yield _entry(draft.section, one.evidence, one.kept, one.reason, known, sentence=text)
        shown_to = set(draft.prompted)
        found = [known[e] for e in evidence.get(draft.section, ()) if e in known]
        for copy, original in repeats(found, sources).items() if shown_to else ():
            if copy not in shown_to and original in shown_to:
                yield _entry(draft.section, copy, original, "not_shown", known)


def _entry(
    section: str, evidence: str, kept: str, reason: str, known: Mapping[str, Evidence], sentence: str = ""
) -> ReportDroppedCitation:
    return ReportDroppedCitation.model_validate(
        {
            "section": section,
            "sentence": sentence,
            "evidence": evidence,
            "source": known[evidence].source,
            "kept": kept,
            "kept_source": known[kept].source,
            "reason": reason,
        }
    )
