"""The outline: the question's clauses or the things it lists, then what the sources' own headings offer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from marg_ray.models.extractive.clauses import (
    FACTOIDS,
    HEADINGS,
    Clause,
    Kind,
    as_title,
    clauses,
    kind_of,
    strip_lead,
    topic_of,
)
from marg_ray.models.extractive.enumerations import Items, items, of_items, with_item
from marg_ray.models.extractive.facets import COMPARISON, OVERVIEW, names_item
from marg_ray.models.extractive.words import (
    FUNCTION_WORDS,
    asked_terms,
    contained,
    is_english,
    short_title,
    squeeze,
    term_set,
    unnumbered,
    word_count,
)  # fmt: skip
from marg_ray.models.tasks import MakePlan, PlanIdea, ScoutHit, SectionIdea
from marg_ray.records import Depth, RequestClass
from marg_ray.seams import Vectors

TARGET = {Depth.OVERVIEW: 3, Depth.STANDARD: 6, Depth.DEEP: 9}
_OPEN = frozenset({Kind.WHAT, Kind.CONSEQUENCE, Kind.RISK, Kind.RESPONSE, Kind.HOW, Kind.CAUSE, Kind.MAKE})
NEAR = 0.42  # cosine to the question from which a heading of another document is worth a section
_EMPTY = re.compile(
    r"^(?:\d+[.\s]*)*(?:references?|see also|external links?|further reading|notes?|footnotes|bibliography|citations|"
    r"sources|gallery|contents|table of contents|index|appendix|appendices|acknowledge?ments?|navigation|search|about|"
    r".*\b(?:readings?|documentations?|bibliograph\w+)\b.*|introduction|preface|foreword|copyright.*|licen[cs]e|"
    r"changelog|elsewhere|misc\w*|other|general|others|examples?|summary|conclusions?|"
    r"discography|filmography|works cited|explanatory notes|abstract|overview)\W*$",
    re.I,
)
_TABLE = re.compile(r"\.(?:csv|tsv|xlsx?|ods)\b", re.I)
_CLASSES: tuple[tuple[RequestClass, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.I))
    for name, pattern in (
        (RequestClass.WRITE_ONLY,
         r"^(?:please\s+)?(?:write|draft|compose)\s+(?:me\s+)?(?:an?|the)\s+(?:\w+\s+){0,2}(?:poem|email|e-mail|"
         r"letter|tweet|story|slogan|speech|cover letter|message|post|announcement)\b|"
         r"^(?:please\s+)?(?:rewrite|rephrase|paraphrase|proofread|translate|polish|shorten)\b"),
        (RequestClass.ANALYZE_PROVIDED,
         r"\b(?:analy[sz]e|summari[sz]e|review|evaluate|assess|explain|interpret|compare)\b[^.?!]{0,40}\b(?:"
         r"the following|(?:this|these|the attached|the provided|the given|my|our|the uploaded) "
         r"(?:text|document|documents|data|file|files|report|paper|table|dataset|article|passage|contract|notes))\b|"
         r"\b(?:attached|provided|uploaded) (?:text|document|file|data)"),
        (RequestClass.RESEARCH_ONLY,
         r"\b(?:find|list|collect|gather|search for|look for|give me|show me)\b[^.?!]{0,25}\b(?:"
         r"sources|references|papers|articles|literature|citations|links|evidence|documents)\b|\bno report\b"),
        (RequestClass.QUICK_RESEARCH,
         r"\bquick(?:ly)?\b|\bbrief(?:ly)?\b|\bin (?:one|a|two|a few) (?:sentences?|words?|lines?)\b|"
         r"\bshort answer\b|\btl;?dr\b|\bin short\b"),
    )
)  # fmt: skip


@dataclass(frozen=True)
class Offer:
    """A source's heading that could become a section."""

    heading: str
    document: str
    order: int  # place among the offers of its document
    rank: int  # place of its document among the hits
    strange: bool  # the document's title shares no word with the question
    own: bool  # the document is what the question is about


@dataclass(frozen=True)
class Planning:
    """What planning prepared for the embedder: the question, then one text per offer."""

    title: str
    request_class: RequestClass
    sections: tuple[SectionIdea, ...]
    hypotheses: tuple[str, ...]
    offers: tuple[Offer, ...]
    broad: bool  # the question asks for all there is on its subject
    whole: bool  # one question and nothing else: with more sections, its own is an overview
    room: int  # sections that may be added from the offers
    texts: tuple[str, ...]


def classify(question: str, depth: Depth) -> RequestClass:
    """The kind of request, by its words. A short question for one fact is quick research unless depth was asked for."""
    for name, pattern in _CLASSES:
        if pattern.search(question):
            return name
    found = clauses(question)
    if len(found) == 1 and found[0].kind in FACTOIDS and word_count(question) <= 14 and depth is Depth.OVERVIEW:
        return RequestClass.QUICK_RESEARCH
    return RequestClass.FULL_RESEARCH


def prepare(task: MakePlan) -> Planning:
    """Sections from the question itself, and the headings that could join them. Pure CPU."""
    titles = [h.title for h in task.scout]
    question = squeeze(task.question)
    english = task.language in {"", "en"} and is_english(question)
    parts = clauses(question, titles) if english else (Clause(as_title(question), question),)
    kind = classify(question, task.depth) if english else RequestClass.FULL_RESEARCH
    hypotheses = _hypotheses(parts, english)
    title = as_title(strip_lead(question)) if english else question
    if task.outline:
        given = tuple(
            SectionIdea(title=_cut(o.title), queries=list(o.queries[:5]) or _outline_queries(o.title, question, titles))
            for o in task.outline[:12]
        )
        return Planning(_cut(title, 300), kind, given, hypotheses, (), False, False, 0, ())
    sections = _from_question(parts, question, task.scout, english)
    sections += [
        SectionIdea(title=_cut(as_title(a)), queries=[_cut(f"{a} {topic_of(question, titles) or question}", 400)])
        for a in task.focus_areas if not any(a.casefold() in s.title.casefold() for s in sections)
    ]  # fmt: skip
    sections = sections[: max(1, min(12, task.max_sections))]
    single = kind is RequestClass.QUICK_RESEARCH
    target = min(task.max_sections, TARGET[task.depth], 12)
    topic = topic_of(question, titles).casefold()
    offers = (
        ()
        if single or (english and items(question, titles) and len(sections) > 1)
        else _offers(task.scout, sections, topic, question)
    )
    several = len(parts) > 1 or len(sections) > 1
    room = max(0, target - len(sections)) if not several or task.depth is Depth.DEEP else 0
    whole = english and len(parts) == 1 and len(sections) == 1
    broad = sections[0].title == OVERVIEW or (len(parts) == 1 and parts[0].kind is Kind.WHAT)
    broad = broad or (whole and parts[0].kind in _OPEN and any(o.own for o in offers))
    if task.depth is not Depth.DEEP and not broad:
        room = min(room, 2)
    if parts[0].kind in FACTOIDS | {Kind.CAUSE} and task.depth is not Depth.DEEP:
        room = 0  # one thing is asked: what stands under the source's other headings is not the answer
    if several:  # a question that says what it wants gets more only from the article on its very subject
        offers = tuple(o for o in offers if o.own)
    texts = (question, *(o.heading if o.own and not broad else f"{o.document}: {o.heading}" for o in offers))
    texts = texts if room and offers else ()
    return Planning(
        _cut(title, 300), kind, tuple(sections), hypotheses, offers if texts else (), broad, whole, room, texts
    )


def finish(work: Planning, vectors: Vectors) -> PlanIdea:
    """Add the best offers, in the order of their sources. Pure CPU."""
    sections = list(work.sections)
    if work.texts:
        cosines = [float(x) for x in vectors[1:] @ vectors[0]]
        ranked = sorted(
            zip(work.offers, cosines, strict=True),
            key=lambda p: -(p[1] + 0.15 * p[0].own - 0.03 * p[0].rank - _behind(p[0])),
        )
        taken: list[Offer] = []
        for offer, cosine in ranked:
            if len(taken) >= work.room:
                break
            if cosine >= (
                0.0 if offer.own and work.broad else 0.3 if offer.own else NEAR if work.broad else NEAR + 0.13
            ) and not any(_alike(offer, t) for t in taken):
                taken.append(offer)
        taken.sort(key=lambda o: (not o.own, o.rank, o.order))
        if taken and work.whole:
            sections[0] = sections[0].model_copy(update={"title": OVERVIEW})  # the report's title is the question
        sections += [_section_of(o, taken) for o in taken]
    return PlanIdea(
        title=work.title, request_class=work.request_class, sections=sections, hypotheses=list(work.hypotheses)
    )


def _behind(offer: Offer) -> float:
    """What nobody knows comes after what is known."""
    return 0.25 * bool(
        re.search(r"\b(?:not known|unknowns?|limitations|open questions|further research)\b", offer.heading, re.I)
    )


def _from_question(
    parts: tuple[Clause, ...], question: str, scout: tuple[ScoutHit, ...], english: bool
) -> list[SectionIdea]:
    titles = [h.title for h in scout]
    sections: list[SectionIdea] = []
    found: Items | None = None
    for part in parts:
        here = items(part.text, titles) if english else None
        if here and not found:
            found = here
            if here.compared and _compared_in(scout, here):
                sections.append(SectionIdea(title=COMPARISON, queries=[_cut(part.text, 400)]))
            sections += [_item_section(n, here, parts) for n in here.names]
        elif found and of_items(part, found):
            continue  # asked of every item: a query of each item's section
        else:
            queries = [part.query] if part.query else [part.text]
            if len(parts) == 1 and english and (content := _content_query(part.query)):
                queries.append(content)
            bare = english and squeeze(part.query).casefold() == topic_of(question, titles).casefold().removeprefix(
                "the "
            )
            sections.append(
                SectionIdea(title=OVERVIEW if bare else _cut(part.text), queries=[_cut(q, 400) for q in queries])
            )
    return sections or [SectionIdea(title=_cut(question), queries=[_cut(question, 400)])]


def _item_section(name: str, found: Items, parts: tuple[Clause, ...]) -> SectionIdea:
    queries = [with_item(found.pattern, name, found.compared)]
    for part in parts:
        if of_items(part, found):
            queries.append(
                squeeze(
                    re.sub(
                        r"\b(?:each|them|these|those|both|they|their|either)\b", name, part.text, count=1, flags=re.I
                    )
                )
            )
    title = name[0].upper() + name[1:] if name.islower() else name
    return SectionIdea(title=_cut(title), queries=[_cut(q, 400) for q in queries[:5]])


def _compared_in(scout: tuple[ScoutHit, ...], found: Items) -> bool:
    """Whether a source seems to speak of two of the things at once, or has a table in which they are rows."""
    for hit in scout:
        named = sum(names_item(hit.snippet, n) for n in found.names)
        if named >= 2 or (named and _TABLE.search(hit.title)):
            return True
    return False


def _content_query(text: str) -> str:
    kept = [w for w in re.findall(r"[\w'’.+#-]+", text) if w.lower() not in FUNCTION_WORDS]
    query = " ".join(kept)
    return query if kept and query.casefold() != text.casefold().rstrip("?") else ""


def _outline_queries(title: str, question: str, titles: list[str]) -> list[str]:
    topic = topic_of(question, titles)
    if not topic or topic.casefold().removeprefix("the ").removeprefix("a ").removeprefix("an ") in title.casefold():
        return [_cut(title, 400)]
    return [_cut(f"{title} {topic}", 400)]


def _hypotheses(parts: tuple[Clause, ...], english: bool) -> tuple[str, ...]:
    """What the finished research can be held against: that the sources answer each clause."""
    return tuple(_cut(p.text, 300) for p in parts[:3])


def _offers(scout: tuple[ScoutHit, ...], sections: list[SectionIdea], topic: str, question: str) -> tuple[Offer, ...]:
    asked = [term_set(s.title) for s in sections]
    about = asked_terms(question)
    covered = [HEADINGS.get(kind_of(s.title)) for s in sections]
    best = max((h.relevance for h in scout), default=0.0)
    offers: list[Offer] = []
    topic = topic.removeprefix("the ").removeprefix("a ").removeprefix("an ")
    for rank, hit in enumerate(scout):
        bare = squeeze(re.sub(r"\s*\([^)]*\)", "", hit.title))
        own = bool(topic) and (bare.casefold() == topic or bare.casefold() in question.casefold())
        own = own or (len(about) > 1 and contained(about, term_set(hit.title)) >= 0.99)
        strange = not asked_terms(short_title(hit.title, 99)) & about
        others = [h.title.casefold() for h in scout if h is not hit]
        if not own and hit.relevance < 0.6 * best:
            continue
        for order, raw in enumerate(hit.headings):
            heading = unnumbered(raw)
            words = word_count(heading)
            if _EMPTY.match(heading) or heading.casefold() == hit.title.casefold() or not 1 <= words <= 12:
                continue
            terms = term_set(heading)
            if words > 1 and heading.istitle() and any(t.startswith(heading.casefold()) for t in others):
                continue  # has a document of its own
            if any(p and p.search(heading) and words <= 3 for p in covered):
                continue  # a clause asks for that already
            if not terms or (not own and words < 2) or any(contained(terms, a) >= 0.99 for a in asked):
                continue
            offers.append(Offer(heading, hit.title, order, rank, strange, own))
    return tuple(offers[:80])


def _alike(a: Offer, b: Offer) -> bool:
    one, two = term_set(a.heading), term_set(b.heading)
    return contained(one, two) >= 0.75 or contained(two, one) >= 0.75


def _section_of(offer: Offer, taken: list[Offer]) -> SectionIdea:
    """The section of a heading; its document is named where the heading alone does not say of what it speaks."""
    documents = {o.document for o in taken}
    asks = offer.heading.endswith("?")
    generic = len(term_set(offer.heading)) <= 1 and not (offer.own and len(documents) == 1)
    clash = sum(o.heading.casefold() == offer.heading.casefold() for o in taken) > 1
    shown = not asks and (generic or clash or (offer.strange and not offer.own))
    title = f"{offer.heading} ({short_title(offer.document) or unnumbered(offer.document)})" if shown else offer.heading
    return SectionIdea(title=_cut(title), queries=[_cut(f"{offer.document}: {offer.heading}", 400)], weight=0.7)


def _cut(text: str, limit: int = 200) -> str:
    text = squeeze(text) or "Question"
    if len(text) <= limit:
        return text
    return text[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;") + "…"


__all__ = ["Planning", "asked_terms", "classify", "finish", "kind_of", "prepare"]
