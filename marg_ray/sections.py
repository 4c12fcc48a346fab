"""A section's own path: what a search, a read, a draft and its check change in it. Part of the fold, pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from urllib.parse import urlsplit

from marg_ray.messages import SCOUT, SUMMARY, SearchDone, SourceRead, TaskFailed
from marg_ray.records import (
    Block,
    Draft,
    Evidence,
    Grounding,
    RequestClass,
    Sentence,
    SentenceVerdict,
    Verdict,
    Zone,
)
from marg_ray.state import (
    MAX_FAILED_REVISIONS,
    MAX_FEEDBACK,
    READS_PER_QUERY,
    READS_PER_SECTION,
    ReadSlot,
    ResearchState,
    SearchSlot,
    SectionState,
    Skipped,
    Stop,
    changed,
    grounding_passes,
)

Slot = TypeVar("Slot", SearchSlot, ReadSlot)


def put(state: ResearchState, section: SectionState) -> ResearchState:
    return changed(state, sections={**state.sections, section.section.id: section})


def searched(state: ResearchState, found: SearchDone) -> ResearchState:
    if found.section == SCOUT:
        return changed(state, scouted=True, scout_hits=found.hits, answerability=found.answerability)
    section = state.sections.get(found.section)
    if section is None or state.request is None:
        return state
    searches = tuple(
        s.model_copy(update={"done": True, "zone": found.answerability.zone}) if s.query == found.query else s
        for s in section.searches
    )
    zone = found.answerability.zone
    run_zone = state.answerability.zone
    useful = zone is Zone.ANSWER or (zone is Zone.NEAREST and run_zone is not Zone.NOTHING)
    reads = section.reads + (_chosen(state, section, found) if useful else ())
    if run_zone is Zone.NOTHING and zone is Zone.ANSWER:  # a sub-question found what the question did not
        lifted = state.answerability.model_copy(update={"zone": Zone.NEAREST})
        state = changed(state, answerability=lifted)
    return settle(state, section.model_copy(update={"searches": searches, "reads": reads}))


def _chosen(state: ResearchState, section: SectionState, found: SearchDone) -> tuple[ReadSlot, ...]:
    """Which hits of one search are read: the best, not read for this section yet, within the depth's counts."""
    assert state.request is not None
    depth = state.request.depth
    known = {r.hit.location for r in section.reads}
    rounds = max((s.iteration for s in section.searches), default=1)
    room = READS_PER_SECTION[depth] * rounds - len(section.reads)
    fresh = {
        h.location: h
        for h in reversed(found.hits)
        if h.location not in known | state.unavailable.keys() and not is_banned(h.location, state.banned)
    }
    best = list(reversed(fresh.values()))
    return tuple(ReadSlot(hit=h) for h in best[: max(0, min(READS_PER_QUERY[depth], room))])


def read(state: ResearchState, found: SourceRead) -> ResearchState:
    section = state.sections.get(found.section)
    if section is None:
        return state
    if is_banned(found.location, state.banned):
        found = SourceRead(task_id=found.task_id, section=found.section, location=found.location, status="read")
    reads = tuple(r.model_copy(update={"done": True}) if r.hit.location == found.location else r for r in section.reads)
    if found.source is not None:
        state = changed(state, sources={**state.sources, found.source.id: found.source})
    if found.status == "unavailable":
        state = changed(state, unavailable={**state.unavailable, found.location: found.reason})
    fresh = tuple(e.id for e in found.evidence if e.id not in section.evidence)
    if found.evidence:
        known = {e.id: _better(e, state.evidence.get(e.id)) for e in found.evidence}
        state = changed(state, evidence={**state.evidence, **known})
    return settle(state, section.model_copy(update={"reads": reads, "evidence": section.evidence + fresh}))


def _better(one: Evidence, other: Evidence | None) -> Evidence:
    """Of two finds of one passage the more relevant one, whichever came first."""
    if other is None:
        return one
    return max(one, other, key=lambda e: (e.relevance, e.claim))


def skipped(state: ResearchState, failed: TaskFailed) -> ResearchState:
    """A search or a read that the budget has no room for."""
    section = state.sections.get(failed.section)
    if section is None:
        return state
    update: dict[str, object]
    if failed.stage == "search":
        update = {"searches": tuple(skip(s, s.query == failed.target) for s in section.searches)}
    else:
        update = {"reads": tuple(skip(r, r.hit.location == failed.target) for r in section.reads)}
    return settle(state, section.model_copy(update=update))


def skip(slot: Slot, concerned: bool = True) -> Slot:
    """The slot, left out for want of budget where it is open and concerned."""
    return slot.model_copy(update={"skipped": Skipped.BUDGET}) if concerned and slot.open else slot


def settle(state: ResearchState, section: SectionState) -> ResearchState:
    """When research on a section ends: want a new draft if it brought evidence that the present one did not have."""
    section = _in_order(state, section)
    if section.researched and section.draft is not None and len(section.evidence) > section.drafted_from:
        section = section.model_copy(
            update={"wanted": section.draft.revision + 1, "drafted_from": len(section.evidence)}
        )
    if section.researched and section.draft is None and state.request_class is RequestClass.RESEARCH_ONLY:
        section = quoted(section, state.evidence)
    return put(state, section)


def _in_order(state: ResearchState, section: SectionState) -> SectionState:
    """The section with its evidence as its reads stand, whichever answered first: the same answers, the same text."""
    place = {read.hit.location: n for n, read in enumerate(section.reads)}

    def at(evidence: str) -> int:
        source = state.sources.get(state.evidence[evidence].source)
        return place.get(source.location, -1) if source is not None else -1

    return section.model_copy(update={"evidence": tuple(sorted(section.evidence, key=at))})


def drafted(state: ResearchState, draft: Draft) -> ResearchState:
    if draft.section == SUMMARY:
        return changed(state, summary=draft) if draft.revision == state.summary_round else state
    section = state.sections.get(draft.section)
    if section is None or draft.revision != section.wanted:
        return state
    return put(
        state,
        section.model_copy(update={"draft": draft, "drafted_from": len(section.evidence)}),
    )


def grounded(state: ResearchState, grounding: Grounding) -> ResearchState:
    if grounding.section == SUMMARY:
        if state.summary is None or not grounding_passes(grounding):
            return changed(state, summary=None, summary_failed=True)  # the formatter takes supported sentences
        return changed(state, summary=judged(state.summary, grounding), summary_grounding=grounding)
    section = state.sections.get(grounding.section)
    if section is None or section.draft is None or grounding.revision != section.draft.revision:
        return state
    section = section.model_copy(update={"draft": judged(section.draft, grounding), "grounding": grounding})
    final = state.stop is Stop.ALL or not grounding.checked or section.failed_revisions >= MAX_FAILED_REVISIONS
    if final or grounding_passes(grounding):
        return put(state, section)
    return put(
        state,
        section.model_copy(
            update={
                "wanted": section.wanted + 1,
                "failed_revisions": section.failed_revisions + 1,
                "feedback": told(section, _feedback(section.draft, grounding)),
            }
        ),
    )


def judged(draft: Draft, grounding: Grounding) -> Draft:
    """The draft with each sentence's verdict on it, and without the citations that it does not need."""
    verdicts = iter(grounding.verdicts)
    gone = {(d.sentence, d.evidence) for d in grounding.dropped}
    at = 0
    blocks = []
    for block in draft.blocks:
        sentences = []
        for sentence in block.sentences:
            verdict = next(verdicts, SentenceVerdict(verdict=Verdict.NOT_CHECKED))
            found: dict[str, object] = {"verdict": verdict.verdict, "reason": verdict.reason, "check": verdict}
            if gone:
                found["citations"] = tuple(c for c in sentence.citations if (at, c) not in gone)
            sentences.append(sentence.model_copy(update=found))
            at += 1
        blocks.append(block.model_copy(update={"sentences": tuple(sentences)}))
    return draft.model_copy(update={"blocks": tuple(blocks)})


def told(section: SectionState, fresh: Iterable[str]) -> tuple[str, ...]:
    """Feedback adds up over the revisions: what was mended once shall not come back."""
    return tuple(dict.fromkeys((*section.feedback, *fresh)))[-MAX_FEEDBACK:]


def _feedback(draft: Draft | None, grounding: Grounding) -> Iterable[str]:
    fine = (Verdict.SUPPORTED, Verdict.NOT_FACTUAL)
    for sentence, found in zip(draft.sentences if draft else (), grounding.verdicts, strict=False):
        if found.verdict not in fine:
            yield f'{found.verdict}: "{sentence.text}" ({found.reason})'


def draft_failed(state: ResearchState, failed: TaskFailed) -> ResearchState:
    section = state.sections[failed.section]
    if section.draft is not None:  # the earlier text stands, as the revision that failed: numbers only rise
        stands = {"revision": section.wanted}
        changes: dict[str, object] = {"draft": section.draft.model_copy(update=stands), "failure": failed.detail}
        if section.grounding is not None:
            changes["grounding"] = section.grounding.model_copy(update=stands)
        return put(state, section.model_copy(update=changes))
    return put(state, quoted(section.model_copy(update={"failure": failed.detail}), state.evidence))


def ground_failed(state: ResearchState, failed: TaskFailed) -> ResearchState:
    if failed.section == SUMMARY:
        return changed(state, summary=None, summary_failed=True)
    section = state.sections.get(failed.section)
    if section is None or section.draft is None:
        return state
    count = len(section.draft.sentences)
    unchecked = Grounding(
        section=failed.section,
        revision=section.draft.revision,
        verdicts=(SentenceVerdict(verdict=Verdict.NOT_CHECKED, reason=failed.detail),) * count,
        coverage=0.0,
        checked=False,
    )
    return grounded(state, unchecked)


def quoted(section: SectionState, evidence: dict[str, Evidence]) -> SectionState:
    """A draft without a writer: the section's evidence, each passage quoted and cited."""
    blocks = tuple(
        Block(kind="bullet", sentences=(Sentence(text=" ".join(evidence[e].quote.split()), citations=(e,)),))
        for e in section.evidence
    )
    draft = Draft(section=section.section.id, revision=section.wanted, blocks=blocks, prompted=section.evidence)
    return section.model_copy(update={"draft": draft, "drafted_from": len(section.evidence)})


def is_banned(location: str, banned: tuple[str, ...]) -> bool:
    """Whether a location is one of the banned URLs or paths, lies under a banned folder, or on a banned host."""
    host = (urlsplit(location).hostname or "") if "://" in location else ""
    for entry in banned:
        named = entry.strip().rstrip("/").casefold()
        if not named:
            continue
        where = location.rstrip("/").casefold()
        on_host = bool(host) and (host == named or host.endswith(f".{named}"))
        if on_host or where == named or where.startswith(f"{named}/"):
            return True
    return False
