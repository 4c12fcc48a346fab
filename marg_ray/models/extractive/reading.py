"""Reading: from one document, the runs of sentences that answer one section, word for word."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from marg_ray.models.extractive import rules
from marg_ray.models.extractive.clauses import FACTOIDS, Kind
from marg_ray.models.extractive.facets import (
    Facet,
    addresses_others,
    answer_fit,
    contrast,
    defines,
    facet,
    heading_fit,
    is_on_topic,
    names_item,
    path_fit,
    rivals,
    same_heading,
    speaks_of,
    subject_fit,
    title_fit,
    word_fit,
)
from marg_ray.models.extractive.runs import Candidate, Reading, Run, is_about, runs_of
from marg_ray.models.extractive.units import Group, Unit, groups_at, outline, subtrees, with_units
from marg_ray.models.extractive.words import is_english, same_statement, squeeze, term_set, unnumbered
from marg_ray.models.tasks import ClaimIdea, ClaimIdeas, ExtractClaims
from marg_ray.seams import Vectors

EMBEDDED = 24  # sentences of one document that are worth an embedding
GROUPS = 14  # headings of one document that are looked into
FLOOR = 0.70  # of the mean of the best five runs
LEAST = 0.30  # below this a run does not speak of the facet at all
_LEADING = frozenset({Kind.WHAT, Kind.WHO, Kind.WHEN, Kind.WHERE, Kind.NUMBER})  # what an article says first
_NO_WALK = FACTOIDS | {Kind.HAPPENED}  # one thing is asked, which no enumeration of parts answers
_WALKED = range(2, 10)  # child headings of a subtree walk


def prepare(task: ExtractClaims) -> Reading:
    """Rank the document's sentences by words, and say which to embed. Pure CPU."""
    document = task.document
    wanted = facet(task.question, task.section_title, task.queries, (task.source_title,))
    groups = _section_groups(outline(document), wanted, task)
    best = max((p.score for p in task.passages), default=0.0) or 1.0
    spans = sorted(task.passages, key=lambda p: -p.score)
    fits = [path_fit(wanted, g.path, document.title) for g in groups]
    picked, walked = _groups(wanted, groups, fits, [(p.start, p.end) for p in spans])
    opened = tuple(with_units(document, groups[i], 60 if i in walked else 120) for i in picked)
    english = wanted.english and is_english(document.text[:2000])
    rarity = _rarity(opened)
    by_title = title_fit(wanted, task.source_title)
    candidates = []
    first_start = min((g.start for g in groups), default=0)
    for g, (index, group) in enumerate(zip(picked, opened, strict=True)):
        own_title = group.start == first_start and len(group.path) <= 1
        for unit in group.units:
            passage = max((p.score / best for p in spans if p.start < unit.end and unit.start < p.end), default=0.0)
            about = subject_fit(wanted, f"{task.source_title} {group.heading} {unit.term} {unit.text}")
            found = _candidate(unit, g, wanted, rarity, passage, fits[index], english, by_title, lead=own_title,
                               heading=group.heading)  # fmt: skip
            candidates.append(replace(found, rest=found.rest - 0.12 * (1 - about)))
    chosen = sorted(range(len(candidates)), key=lambda i: -candidates[i].before)
    usable = [i for i in chosen if not candidates[i].junk and is_about(candidates[i], opened, wanted)]
    usable = usable[:EMBEDDED]
    others = rivals(task.question, wanted, (task.source_title,))
    texts = [wanted.query, wanted.topic or wanted.query, *others] + [
        embedded_text(opened[candidates[i].group].heading, candidates[i].unit.text) for i in usable
    ]
    return Reading(
        wanted, opened, tuple(candidates), tuple(usable), tuple(texts), len(others),
        frozenset(g for g, i in enumerate(picked) if i in walked), task.max_claims,
        tuple((g.start, document.text[g.start : g.end]) for g in opened),
    )  # fmt: skip


def embedded_text(heading: str, sentence: str) -> str:
    """What stands for a sentence in embedding space. The document's title would make all its sentences alike."""
    return f"{heading}: {sentence}" if heading else sentence


def _section_groups(groups: list[Group], wanted: Facet, task: ExtractClaims) -> list[Group]:
    """The groups worth a look: none of a document on something else; its own where a heading names the section."""
    if not is_on_topic(wanted, f"{task.source_title} {task.document.text}"):
        return []
    if not wanted.heading or not wanted.document:
        return groups
    if unnumbered(wanted.document).casefold() not in {
        unnumbered(t).casefold() for t in (task.source_title, task.document.title)
    }:
        return []
    named = [g for g in groups if any(same_heading(h, wanted.heading) for h in g.path)]
    return named or groups


def _groups(
    wanted: Facet, groups: list[Group], fits: list[float], spans: list[tuple[int, int]]
) -> tuple[list[int], frozenset[int]]:
    """Where to look: the passages' groups, those whose heading fits, and the children of a heading that fits."""
    found = groups_at(groups, spans)
    walked: set[int] = set()
    for path, below in subtrees(groups).items():
        if (
            len(path) > 1
            and len(below) in _WALKED
            and wanted.kind not in _NO_WALK
            and heading_fit(wanted, path[-1]) >= 0.7
        ):
            walked.update(below)
    fitting = [i for i in sorted(range(len(groups)), key=lambda i: -fits[i]) if fits[i] >= 0.7]
    lead = [0] if groups else []
    picked = list(dict.fromkeys([*lead, *fitting[: GROUPS // 2], *found]))[:GROUPS]
    return sorted({*picked, *sorted(walked)[:GROUPS]}), frozenset(walked)


def _rarity(groups: tuple[Group, ...]) -> dict[str, float]:
    """Inverse document frequency of each stem over the sentences at hand."""
    counts: Counter[str] = Counter()
    total = 1
    for group in groups:
        for unit in group.units:
            counts.update(term_set(unit.text))
            total += 1
    return {t: math.log(1 + total / (1 + n)) / math.log(1 + total) for t, n in counts.items()}


def _candidate(
    unit: Unit, group: int, wanted: Facet, rarity: dict[str, float], passage: float, fit: float, english: bool,
    by_title: float,
    *, lead: bool, heading: str,
) -> Candidate:  # fmt: skip
    text = unit.text
    own, everything, cues = word_fit(wanted, f"{unit.term} {text}", rarity)
    rest = 0.08 * (lead and wanted.kind in _LEADING) + (0.10 if wanted.factoid else 0.05) * answer_fit(wanted, text)
    rest += 0.20 * defines(wanted, text) + 0.10 * (lead and bool(wanted.defined))
    row = unit.kind == "table_row"
    rest -= 0.10 * addresses_others(wanted, f"{heading} {text}")
    junk = unit.kind in {"code", "caption", "heading"} or (
        not row and rules.is_junk(text, english=english, labelled=bool(unit.term))
    )
    if english and not row:
        rest -= 0.08 * (rules.is_pointer(text) or rules.is_deictic(text))
        rest -= 0.12 * rules.is_anecdote(text) + 0.05 * rules.is_personal(text) + 0.04 * rules.has_cross_reference(text)
    if wanted.siblings and sum(names_item(text, n) for n in (wanted.item, *wanted.siblings)) > 1:
        rest -= 0.12
    rest -= 0.10 * (not speaks_of(wanted, f"{unit.term} {text}", max(fit, by_title)))
    alone = row or (rules.stands_alone(text, english) and not (english and rules.is_deictic(text)))
    if wanted.item and unit.term and unit.opens:
        rest += 0.15 if unit.term == wanted.item else -0.30
    if unit.term_start >= 0 or (unit.term and unit.opens and unit.term in text[: len(unit.term) + 2]):
        alone = True
    long = junk and unit.kind == "paragraph" and not rules.is_junk(text, english=english, inside=True)
    by_words = 0.15 * own + 0.10 * everything + 0.08 * cues
    return Candidate(unit, group, passage, fit, by_words, rest, junk, alone, long)


def finish(reading: Reading, vectors: Vectors) -> ClaimIdeas:
    """Score runs with the embeddings and quote the best ones. Pure CPU."""
    scores = _scores(reading, vectors)
    runs = sorted(runs_of(reading, scores), key=lambda r: -r.score)
    floor = _floor(runs, scores, reading)
    kept: list[Run] = []
    for run in [*_outside(runs, reading)[:2], *_one_per_child(runs, reading, 0.75 * floor), *runs]:
        if len(kept) >= reading.max_claims:
            break
        listed = bool(reading.facet.compared) and reading.candidates[run.first].unit.kind == "table_row"
        if run.score < (0.75 * floor if run.group in reading.walked else floor) and not listed:
            continue
        if any(run.first <= k.last and k.first <= run.last for k in kept) or _repeats(run, kept, reading):
            continue
        kept.append(run)
    return ClaimIdeas(claims=[_claim(r, reading, scores) for r in kept])


def _outside(runs: list[Run], reading: Reading) -> list[Run]:
    """The runs that stand in no walked subtree: what is said of the whole comes before what is said of its parts."""
    out: list[Run] = []
    for run in runs:
        if run.group not in reading.walked and not any(run.first <= k.last and k.first <= run.last for k in out):
            out.append(run)
    return out if reading.walked else runs


def _one_per_child(runs: list[Run], reading: Reading, floor: float) -> list[Run]:
    """The best run under each child heading of a walked subtree: breadth before a second run anywhere."""
    best: dict[int, Run] = {}
    for run in runs:
        if run.group in reading.walked and run.score >= floor:
            best.setdefault(run.group, run)
    return list(best.values())


def _floor(runs: list[Run], scores: list[float], reading: Reading) -> float:
    """What a run must reach: most of the best ones' mean, and well above the document's ordinary sentence."""
    best: list[Run] = []
    for run in runs:
        if len(best) == 5:
            break
        if not any(run.first <= k.last and k.first <= run.last for k in best):
            best.append(run)
    if not best or (reading.facet.heading and reading.facet.document):
        return LEAST / 2  # the groups are the section's own already
    usual = sorted(scores[i] for i in reading.chosen)[len(reading.chosen) // 2] if reading.chosen else 0.0
    top = sum(r.score for r in best[:3]) / len(best[:3])
    return max(LEAST, FLOOR * sum(r.score for r in best) / len(best), usual + 0.25 * (top - usual))


def _scores(reading: Reading, vectors: Vectors) -> list[float]:
    """The score of every candidate. One without an embedding gets what its embedded neighbours suggest."""
    wanted = reading.facet
    n = 2 + reading.rivals
    cosines = [contrast(row[0], row[1], row[2:]) for row in (vectors[n:] @ vectors[:n].T).tolist()]
    known = dict(zip(reading.chosen, cosines, strict=True))
    mean = sum(cosines) / len(cosines) if cosines else 0.3
    by_group: dict[int, list[float]] = {}
    for i, value in known.items():
        by_group.setdefault(reading.candidates[i].group, []).append(value)
    scores = []
    for i, c in enumerate(reading.candidates):
        group = by_group.get(c.group)
        cosine = known.get(i, 0.8 * (sum(group) / len(group) if group else 0.9 * mean))
        score = 0.60 * cosine + c.words + 0.12 * c.passage + 0.13 * c.heading + c.rest
        if c.group in reading.walked:
            score += 0.10 + 0.08 * (c.unit.order == 0)
        if wanted.heading and c.heading == 1.0:
            score += 0.08 + 0.04 * (c.unit.order == 0)
        if wanted.document and wanted.heading and c.heading < 1.0:
            score -= 0.10
        scores.append(score)
    return scores


def _repeats(run: Run, kept: list[Run], reading: Reading) -> bool:
    mine = [reading.candidates[i].unit.text for i in range(run.first, run.last + 1)]
    for other in kept:
        theirs = [reading.candidates[i].unit.text for i in range(other.first, other.last + 1)]
        if any(same_statement(a, b) for a in mine for b in theirs):
            return True
    return False


def _claim(run: Run, reading: Reading, scores: list[float]) -> ClaimIdea:
    start = reading.candidates[run.first].unit.start
    if reading.candidates[run.first].unit.term_start >= 0:
        start = reading.candidates[run.first].unit.term_start
    end = reading.candidates[run.last].unit.end
    best = max(range(run.first, run.last + 1), key=lambda i: scores[i] + 0.1 * reading.candidates[i].alone)
    return ClaimIdea(claim=squeeze(reading.candidates[best].unit.text), quote=reading.text_at(start, end))


__all__ = ["Kind", "Reading", "embedded_text", "finish", "prepare"]
