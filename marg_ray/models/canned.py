"""Plain answers computed from a task's own input: what `CannedModel` and the simulated server reply with.

No language model and no embedding: whole sentences of the input, word for word, with their citations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from marg_ray.grounding.judging import Opinion
from marg_ray.models.tasks import (
    AnalyseEvidence,
    AnalysisIdea,
    AnswerQuestion,
    ClaimIdea,
    ClaimIdeas,
    ClaimRuling,
    DraftSection,
    ExtractClaims,
    FindingIdea,
    FreeText,
    IssueIdea,
    JudgeClaims,
    Judgement,
    MakePlan,
    Pick,
    Picks,
    PlanIdea,
    PlanTurn,
    QueryIdea,
    ReviewIdea,
    ReviewReport,
    RewriteQuery,
    ScoreIdea,
    SectionIdea,
    SummariseReport,
    TurnIdea,
)
from marg_ray.records import Depth, IssueKind, RequestClass

ASPECTS = (
    "Background", "Present state", "Figures and costs", "Effects", "Risks and limits", "Examples",
    "Comparison", "Rules and policy", "Open questions", "Outlook",
)  # fmt: skip
SECTIONS = {Depth.OVERVIEW: 3, Depth.STANDARD: 5, Depth.DEEP: 8}
_STOP_WORDS = """
a an and are as at be by can did do does for from has have how in is it its of on or that the their there this
to was were what when where which who whom whose why will with would you
"""
_STOP = frozenset(_STOP_WORDS.split())
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=\S)|(?<=[。!?])(?=\S)|\n{2,}")
_CITED = re.compile(r"\s*\[\d+(?:\s*,\s*\d+)*\]")


def sentences(text: str) -> list[str]:
    """Stretches of `text` that end like sentences, each verbatim (line breaks inside it kept)."""
    return [piece for raw in _END.split(text) if (piece := raw.strip())]


def keywords(text: str, limit: int = 8) -> str:
    """The words of `text` that carry meaning, in order, without repeats."""
    words = dict.fromkeys(w for w in re.findall(r"[\w'-]+", text) if w.lower() not in _STOP)
    return " ".join(list(words)[:limit]) or text.strip()[:80]


def plan(task: MakePlan) -> PlanIdea:
    topic = keywords(task.question)
    if task.outline:
        ideas = [SectionIdea(title=e.title[:200], queries=list(e.queries[:5]) or [e.title]) for e in task.outline]
    else:
        count = max(1, min(task.max_sections, SECTIONS[task.depth], 12))
        titles = [*task.focus_areas, *ASPECTS][:count]
        ideas = [
            SectionIdea(title=title[:200], queries=[f"{topic} {title.lower()}"[:400]], weight=1 / count)
            for title in titles
        ]
    checks = [f"The sources state figures about {topic}.", f"The sources agree on {topic}."]
    return PlanIdea(
        title=task.question.strip().rstrip("?")[:300] or "Report",
        request_class=RequestClass.FULL_RESEARCH,
        sections=ideas[:12],
        hypotheses=checks,
    )


def rewritten(task: RewriteQuery) -> QueryIdea:
    return QueryIdea(query=keywords(f"{task.section_title} {task.question}", 6)[:400])


def claims(task: ExtractClaims) -> ClaimIdeas:
    """The passages' sentences that share most words with the question and the section's title; else the first ones."""
    columns = [[s for s in sentences(p.text) if len(s) > 20] for p in task.passages]
    deepest = max((len(c) for c in columns), default=0)
    quotes = dict.fromkeys(c[row] for row in range(deepest) for c in columns if row < len(c))
    ranked = _best(quotes, task)[: min(task.max_claims, 20)]
    return ClaimIdeas(claims=[ClaimIdea(claim=q, quote=q) for q in ranked])


def picks(task: ExtractClaims, passages: Sequence[Sequence[tuple[int, str]]]) -> Picks:
    """The same from the numbered sentences of passages, as a language model is shown them."""
    columns = [[line for line in passage if len(line[1]) > 20] for passage in passages]
    deepest = max((len(c) for c in columns), default=0)
    numbers: dict[str, int] = {}
    for row in range(deepest):
        for number, text in (c[row] for c in columns if row < len(c)):
            numbers.setdefault(text, number)
    ranked = _best(numbers, task)[: min(task.max_claims, 20)]
    return Picks(claims=[Pick(claim=text, sentences=[numbers[text]]) for text in ranked])


def _best(texts: Iterable[str], task: ExtractClaims) -> list[str]:
    wanted = set(keywords(f"{task.question} {task.section_title}", 30).lower().split())
    return sorted(texts, key=lambda s: -len(wanted & set(re.findall(r"[\w'-]+", s.lower()))))


def section(task: DraftSection) -> FreeText:
    cards = [(card.number, card.quote) for card in task.evidence]
    return FreeText(markdown=cited_text(cards, task.words))


def cited_text(cards: Iterable[tuple[int, str]], words: int) -> str:
    """Whole sentences of the cards with their numbers: about `words` words, three to a paragraph."""
    lines = list(_within(_cited_sentences(cards), words))
    paragraphs = [" ".join(lines[n : n + 3]) for n in range(0, len(lines), 3)]
    return "\n\n".join(paragraphs) or "The sources at hand do not treat this."


def _cited_sentences(cards: Iterable[tuple[int, str]]) -> Iterator[str]:
    split = [(number, sentences(quote)) for number, quote in cards]
    for row in range(max((len(parts) for _, parts in split), default=0)):
        for number, parts in split:
            if row < len(parts):
                yield with_mark(parts[row], number)


def with_mark(sentence: str, number: int) -> str:
    """The sentence on one line, its citation before the closing punctuation."""
    flat = " ".join(sentence.split())
    body = flat.rstrip(".!?。")
    return f"{body} [{number}]{flat[len(body) :][:1] or '.'}"


def _within(lines: Iterable[str], words: int) -> Iterator[str]:
    used = 0
    for line in lines:
        if used and used + len(line.split()) > words:
            return
        used += len(line.split())
        yield line


def summary(task: SummariseReport) -> FreeText:
    """The first cited sentence of every section, as it stands there."""
    firsts = []
    for part in task.sections:
        prose = [s for s in sentences(part.text) if not s.startswith(("#", "|", "```"))]
        cited = [s for s in prose if _CITED.search(s)]
        firsts += [" ".join((cited or prose)[0].lstrip("-*> ").split())] if prose else []
    return FreeText(markdown=" ".join(_within(firsts, task.words)) or "The report has no findings.")


def analysis(task: AnalyseEvidence) -> AnalysisIdea:
    by_source: dict[str, FindingIdea] = {}
    for card in task.evidence:
        if card.source_id not in by_source and (parts := sentences(card.quote)):
            by_source[card.source_id] = FindingIdea(text=parts[0], evidence=[card.number])
    seen = " ".join(card.quote.lower() for card in task.evidence)
    unknown = [h for h in task.hypotheses if not any(w in seen for w in keywords(h).lower().split())]
    return AnalysisIdea(findings=list(by_source.values())[:12], unknowns=unknown[:8])


def judgement(task: JudgeClaims) -> Judgement:
    """Supported where one sentence has most of the claim's words, partly where it has a third of them."""
    rulings = []
    for claim in task.claims:
        wanted = set(keywords(claim.text, 40).lower().split())
        lines = [line for index in claim.passages for line in task.shown[index].numbered]
        shares = {n: len(wanted & set(re.findall(r"[\w'-]+", text.lower()))) / len(wanted) for n, text in lines}
        best = max(shares, key=lambda n: shares[n], default=0)
        share = shares.get(best, 0.0)
        verdict: Opinion = "supported" if share >= 0.5 else "partly" if share >= 1 / 3 else "not_shown"
        rulings.append(ClaimRuling(claim=claim.number, verdict=verdict, sentence=best if share >= 1 / 3 else 0))
    return Judgement(rulings=rulings[:20])


def review(task: ReviewReport) -> ReviewIdea:
    """Good marks; each gap is an issue and costs coverage."""
    by_title = {s.title: s.id for s in task.sections}
    issues = [
        IssueIdea(
            kind=IssueKind.INCOMPLETE,
            severity="medium",
            section=by_title.get(gap, ""),
            detail=f"There is no evidence for {gap}.",
            fix_query=keywords(f"{task.question} {gap}"),
        )
        for gap in task.gaps[:20]
    ]
    return ReviewIdea(
        scores=ScoreIdea(accuracy=0.9, coverage=max(0.5, 0.9 - 0.1 * len(issues)), clarity=0.9, objectivity=0.9),
        issues=issues,
    )


def turn(task: PlanTurn) -> TurnIdea:
    """The message as it is, its key words as the query; with fewer words after a search in vain."""
    queries = [keywords(task.question, 8 - 4 * bool(task.tried))[:400]]
    return TurnIdea(question=task.question.strip()[:1000] or "?", queries=[q for q in queries if q not in task.tried])


def answered(task: AnswerQuestion) -> FreeText:
    """The sentences of the first card that share words with the question, three at most; none: it is not known."""
    wanted = set(keywords(task.question, 30).lower().split())
    shared = ([(c.number, s) for s in sentences(c.quote) if _shares(s, wanted)] for c in task.evidence)
    best = next((found for found in shared if found), [])[:3]
    text = " ".join(with_mark(s, n) for n, s in best)
    return FreeText(markdown=text or "UNKNOWN: none of the cards speaks of this.")


def _shares(sentence: str, wanted: set[str]) -> bool:
    return not wanted.isdisjoint(re.findall(r"[\w'-]+", sentence.lower()))
