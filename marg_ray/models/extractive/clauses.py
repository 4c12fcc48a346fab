"""A question's clauses and what kind of answer each one asks for. Rules for English; other languages stay whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from marg_ray.models.extractive.words import FUNCTION_WORDS, asked_terms, is_english, names, squeeze


class Kind(StrEnum):
    """What a clause asks for."""

    HAPPENED = "happened"
    PREPARE = "prepare"
    RISK = "risk"
    CONSEQUENCE = "consequence"
    CAUSE = "cause"
    MAKE = "make"
    RESPONSE = "response"
    COMPARE = "compare"
    HOW_TO = "how_to"
    WHEN = "when"
    NUMBER = "number"
    WHERE = "where"
    WHO = "who"
    HOW = "how"
    WHAT = "what"


LONGEST = 3000  # characters of a question that are taken apart
FACTOIDS = frozenset({Kind.WHEN, Kind.NUMBER, Kind.WHERE, Kind.WHO})

# In the order in which they are tried: "what damage did the storm cause" asks for consequences, not for a cause.
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.I))
    for kind, pattern in (
        (Kind.COMPARE, r"\bdiffer(s|ed|ences?|ent)?\b|\bcompar(e[sd]?|ing|isons?)\b|\bversus\b|\bvs\b|\bbetter than\b"),
        (Kind.HAPPENED, r"^what happened\b|^what (went on|took place)\b"),
        (Kind.PREPARE, r"\bprepar\w+|\bevacuat\w+|\bprecautions?\b"),
        (Kind.RISK, r"\brisks?\b|\bgo(es)? wrong\b|\bwent wrong\b|\bproblems?\b|\btroubles?\b|\bpitfalls?\b|"
                    r"\bdangers?\b"
                    r"|\bside effects\b|\bcomplications\b|\bcriticisms?\b|\bcriticised\b|\bcriticized\b|"
                    r"\bcontrovers\w+"),
        (Kind.CONSEQUENCE, r"\bdamaged?\b|\bimpacts?\b|\bconsequences?\b|\beffects?\b|\baffect(s|ed)?\b|\baftermath\b|"
                           r"\bcasualties\b|\btoll\b|\bwhat\b.*\bcaused?\W*$|\bresult(s|ed)? (of|in|from)\b|"
                           r"\boutcomes?\b"),
        (Kind.CAUSE, r"^why\b|\bcaused?\b|\bcauses\b|\breasons?\b|\bled to\b|\bwhat made\b"),
        (Kind.RESPONSE, r"\brespon(d|ds|ded|se|ses)\b|\breact(s|ed|ions?)?\b|\brelief\b|\breceived\b|\breception\b"),
        (Kind.HOW_TO, r"^how (do|can|should|could|would|may|to|does one|must)\b (i|you|we|one|someone|a|an)?\b"),
        (Kind.MAKE, r"\bhow (is|are|was|were)\b.*\b(made|produced|built|synthesi[sz]ed|manufactured|"
                    r"prepared)\b|\bsynthesis\b"),
        (Kind.WHEN, r"^when\b|^(what|which|in (what|which)|on (what|which)) (year|date|day|month|century)\b|"
                    r"^how long\b|^since when\b"),
        (Kind.NUMBER, r"^how (many|much|large|big|tall|far|old|fast|high|deep|often|wide|heavy)\b|"
                      r"^what (is|was|are|were) the (number|size|price|cost|height|population|length|amount|"
                      r"score|share|rate)\b"),
        (Kind.WHERE, r"^where\b|^(in|at|on|to|from) (what|which) (country|city|place|town|state)\b"),
        (Kind.WHO, r"^(by |to |with |for )?(who|whom|whose)\b|^(which|what) (person|people|man|woman|player|"
                   r"company)\b"),
        (Kind.HOW, r"^how\b"),
    )
)  # fmt: skip

CUES: dict[Kind, tuple[str, ...]] = {
    Kind.HAPPENED: ("incident", "accident", "lost", "died", "killed", "crashed", "sank", "imploded", "exploded",
                    "collapsed", "disappeared", "discovered", "attack", "fire", "ended", "destroyed"),
    Kind.PREPARE: ("preparation", "preparations", "prepared", "evacuated", "evacuation", "warning", "warnings",
                   "precaution", "suspended", "closed", "shelters", "emergency", "advisory", "cancelled"),
    Kind.RISK: ("risk", "problem", "trouble", "broken", "failure", "fail", "conflict", "danger", "criticism",
                "careful", "warning", "complications", "difficult", "controversy", "wrong", "go"),
    Kind.CONSEQUENCE: ("impact", "damage", "damaged", "destroyed", "killed", "deaths", "injured", "loss", "losses",
                       "consequences", "effect", "affected", "missing", "flooded", "collapsed"),
    Kind.CAUSE: ("because", "due", "caused", "led", "factor", "factors", "reason", "background", "result", "triggered",
                 "attributed", "blamed", "driven"),
    Kind.MAKE: ("made", "synthesis", "production", "process", "produced", "built", "preparation", "manufactured"),
    Kind.RESPONSE: ("response", "relief", "aid", "reaction", "support", "assistance", "condemned", "pledged",
                    "criticised", "praised", "rescue", "announced", "guaranteed", "donated", "deployed",
                    "ordered"),
    Kind.COMPARE: ("difference", "unlike", "whereas", "similar", "than", "both", "contrast"),
    Kind.HOW_TO: ("must", "should", "need", "step", "run", "command", "use", "first"),
    Kind.WHEN: ("date", "year", "began", "started", "founded", "announced", "launched"),
    Kind.NUMBER: ("total", "number", "approximately", "estimated", "least", "average"),
    Kind.WHERE: ("located", "place", "near", "city", "country", "held"),
    Kind.WHO: ("founded", "named", "called", "leader", "chief", "born", "led"),
}  # fmt: skip

# What is asked in these kinds has words of its own: a text with none of them does not answer.
TOLD_BY_WORDS = frozenset({Kind.PREPARE, Kind.RISK, Kind.CONSEQUENCE, Kind.CAUSE, Kind.MAKE, Kind.RESPONSE})

# Headings under which an answer of that kind stands, whatever words its sentences use.
HEADINGS: dict[Kind, re.Pattern[str]] = {
    kind: re.compile(rf"\b(?:{pattern})\b", re.I)
    for kind, pattern in {
        Kind.HAPPENED: r"incidents?|accidents?|disappearance|disaster|deaths?|crash|implosion|explosion|loss|sinking|"
        r"attacks?|events?|shooting|collision",
        Kind.PREPARE: r"preparations?|preparedness|warnings?|evacuations?",
        Kind.RISK: r"risks?|problems?|issues|criticisms?|controvers(?:y|ies)|complications|safety|troubles?|"
        r"adverse effects|broken",
        Kind.CONSEQUENCE: r"impacts?|aftermath|damages?|effects?|consequences|casualties|results?|losses|"
        r"outcomes?|victims",
        Kind.CAUSE: r"causes?|collapse|failure|decline|downfall|background|origins?|reasons?|factors?|"
        r"motives?|history|investigation|pathophysiology",
        Kind.MAKE: r"synthesis|production|manufactur\w+|construction|preparation|process|development|recording",
        Kind.RESPONSE: r"responses?|reactions?|relief|reception|rescue|recovery|aid|tributes",
        Kind.NUMBER: r"statistics|demographics|records?|specifications",
        Kind.WHEN: r"history|timeline|chronology|release|schedule",
        Kind.HOW_TO: r"how to|procedures?|steps|installation|usage|upgrad\w+|instructions",
    }.items()
}


# Words that say the same of an event or a thing: an answer may use any of a group.
_SYNONYMS = """fail failure collapse collapsed bankruptcy insolvency; die died death dead killed; founded
    established created
    formed; begin began start started launched; doubt doubted doubts skeptical sceptical questioned; end ended concluded
    resigned resolved ceased; treat treated treatment therapy medication drug; cost price expense costs; duty duties
    responsible responsibility obligation; become apply join application; upgrade upgrading upgrades; move migrate
    propagate enter; buy bought acquired purchased; win won victory beat; invent invented developed discovered; change
    changed amended revised; environment environmental environmentally ecology ecological ecosystem ecosystems habitat
    habitats wildlife species fish birds mammals plants plankton marine mud sediment silt silting salinity erosion
    eroded pollution emissions biodiversity; output generation generates generated electricity energy;
    grow grew increase increased rise rose; fall fell decline declined decrease dropped; big
    large size area; called named known"""
SYNONYMS = tuple(frozenset(group.split()) for group in _SYNONYMS.split(";"))


@dataclass(frozen=True)
class Clause:
    """One thing that is asked. `query` is what to search for: pronouns resolved, the rest of the question added."""

    text: str
    query: str
    kind: Kind = Kind.WHAT


_LEAD = re.compile(
    r"""^(?:please\s+|kindly\s+)?(?:(?:can|could|would)\ you\s+(?:please\s+)?)?(?:i\ (?:want|need|would\ like
    |'d\ like)\ (?:you\ )?to\s+(?:know|understand|learn)?\s*(?:about\s+)?)?
    (?:(?:give|write|make|create|prepare|produce|draft|provide|do|conduct)\s+(?:me\s+|us\s+)?(?:up\s+)?(?:an?\s+|some\s+|the\s+)?
       (?:(?:\w+[ -]){0,3}?)(?:overview|report|summary|essay|article|research|introduction|explanation
       |account|analysis|study|list|comparison|briefing)\s+(?:of|on|about|into|for)\s+
    |(?:tell\ me|tell\ us|inform\ me|talk)\s+(?:(?:everything|all|more|something)\s+)?about\s+|(?:explain
    |describe|discuss|summari[sz]e|outline|research|investigate|explore)\s+(?:to\ me\s+|me\s+)?(?=\S))""",
    re.X | re.I,
)
_SENTENCE_END = re.compile(r"(?<=[?!])\s+|(?<=[a-z0-9)]\.)\s+(?=[A-Z])|\s*;\s+|(?<=[？。！])\s*")
_WH = r"(?:what|why|how|when|where|who|whom|whose|which)"
_AUX = r"(?:is|are|was|were|does|do|did|can|could|should|will|would|has|have|had)"
_SUBJECT = r"(?:it|they|he|she|there|this|that|these|those|the|a|an|I|we|you|each|its|their|(?-i:[A-Z])\w*)"
_QUESTION = re.compile(
    rf"(?:(?:in|on|at|by|to|for|from|with|under|of|through)\s+)?(?:what|who|whose|which)\b"
    rf"|(?:how|why|when|where)\s+(?:(?:much|many|often|long|far|large|big|old|well)\s.*?\b)?{_AUX}\b|how\s+(?:much|many)\b|{_AUX}\s",
    re.I,
)
_VERBS = r"(?:explain|describe|discuss|compare|summari[sz]e|outline|list|tell me|give|say|show|name)"
_SPLIT = re.compile(
    rf",?\s+(?:and|but|or)\s+(?:also\s+|then\s+)?(?=(?:(?:in|on|at|by|to|for|from|with|under|of|through)\s+)?{_WH}\b|{_AUX}\s+{_SUBJECT}\b|{_VERBS}\s)"
    rf"|,\s+(?=(?:what|why|how)\b)",
    re.I,
)
_RELATIVE = re.compile(r",\s+(?=(?:when|where|who|which)\b)", re.I)
_PRONOUN = re.compile(r"\b(they|it|them|he|she|him|its|their|his|her)\b", re.I)
SIDE_OF = re.compile(  # "the environmental effects of tidal power": tidal power is the topic, its effects are asked
    r"(?:the\s+)?(?:[\w-]+\s+){0,3}?(?:effects?|impacts?|consequences|causes?|costs?|benefits|advantages|disadvantages|"
    r"drawbacks|risks?|dangers?|problems?|uses|types|kinds|forms|prospects|limits|limitations|history|future)\s+(?:of|for)\s+"
    r"(?:an?\s+|the\s+)?(.+)$",
    re.I,
)
_ARTICLE = re.compile(r"\b(an?)\s+$", re.I)
_DETERMINER = re.compile(r"\bthe\s+$", re.I)


def strip_lead(question: str) -> str:
    """The question without "Write a report on", "Please tell me about" and the like."""
    text = squeeze(question)
    rest = _LEAD.sub("", text, count=1)
    return rest if len(rest) >= 3 else text


def kind_of(clause: str) -> Kind:
    text = squeeze(clause)
    for kind, pattern in _KINDS:
        if pattern.search(text):
            return kind
    return Kind.WHAT


def is_comparison(text: str) -> bool:
    return any(pattern.search(text) for kind, pattern in _KINDS if kind is Kind.COMPARE)


def topic_of(question: str, titles: Sequence[str] = ()) -> str:
    """What the question is about, as it is written there: the longest document title in it, else its longest name."""
    folded = question.casefold()
    best = ""
    for title in titles:
        bare = squeeze(re.sub(r"\s*\([^)]*\)", "", title))
        if len(bare) > max(3, len(best)) and re.search(rf"(?<!\w){re.escape(bare.casefold())}(?:s|es)?(?!\w)", folded):
            start = folded.find(bare.casefold())
            best = question[start : start + len(bare)]
    if not best:
        best = max(names(question), key=len, default="")
    if not best:
        defined = re.match(r"(?:what|who)\s+(?:is|are|was|were)\s+(.+?)(?:\?|,|\band\b|$)", question, re.I)
        best = squeeze(defined.group(1)) if defined and len(defined.group(1).split()) <= 6 else ""
        if side := SIDE_OF.match(best):
            best = side.group(1)
    if not best:
        return ""
    at = question.find(best)
    if _DETERMINER.search(question[:at]):
        return f"the {best}"
    article = _ARTICLE.search(question[:at])
    alone = not re.match(r"\s+(?!(?:and|or|is|are|was|in|of|for|work|works|do|does)\b)\w", question[at + len(best) :])
    return f"{article.group(1).lower()} {best}" if article and alone else best


def clauses(question: str, titles: Sequence[str] = ()) -> tuple[Clause, ...]:
    """Split a question into what it asks. At least one clause; later ones name the topic instead of a pronoun."""
    text = strip_lead(question[:LONGEST])
    if not is_english(text):
        return (Clause(text, text),)
    pieces = [p for s in _SENTENCE_END.split(text) for p in _pieces(s)]
    asked = [p for p in pieces if len(p.split()) >= 2 or len(pieces) == 1]
    questions = [p for p in asked if _asks(p)]
    if questions and len(asked) > len(questions) and any(len(p.split()) > 14 for p in asked if not _asks(p)):
        asked = questions  # the rest sets the scene
    topic = topic_of(text, titles)
    titled = any(squeeze(re.sub(r"\s*\([^)]*\)", "", t)).casefold() in topic.casefold() for t in titles)
    return tuple(_clause(p, i, asked[0], topic, titled) for i, p in enumerate(asked or [text]))


def _is_bare(part: str) -> bool:
    """ "by whom", "and why not": nothing that could be asked alone."""
    return len(part.split()) <= 2 and not asked_terms(part)


def _pieces(sentence: str) -> list[str]:
    parts = _SPLIT.split(sentence)
    if len(parts) > 1:
        parts = [q for p in parts for q in _RELATIVE.split(p)]
    parts = [squeeze(p).strip(" ,.;") for p in parts if p and p.strip(" ,.;?")]
    merged: list[str] = []
    for part in parts:  # "what is a stack and how" must not leave "how"
        if merged and (len(part.split()) < 2 or len(merged[-1].split()) < 2 or _is_bare(part)):
            merged[-1] = f"{merged[-1]} and {part}"
        else:
            merged.append(part)
    return merged


def _asks(piece: str) -> bool:
    start = rf"(?:(?:in|on|at|by|to|for|from|with|under|of|through)\s+)?{_WH}\b|{_AUX}\b|{_VERBS}\b"
    return piece.endswith("?") or bool(re.match(start, piece, re.I))


def _clause(piece: str, index: int, first: str, topic: str, titled: bool) -> Clause:
    kind = kind_of(piece)
    text = strip_lead(piece)
    if index == 0:
        return Clause(as_title(text), text, kind)
    resolved = _resolve(text, topic) if topic else text
    if resolved != text or (
        topic and topic.casefold().removeprefix("the ").removeprefix("a ").removeprefix("an ") in text.casefold()
    ):
        return Clause(as_title(resolved), resolved, kind)
    own = asked_terms(text) - asked_terms(" ".join(CUES.get(kind, ())))
    context = topic if topic and (titled or len(own) >= 2) else _content(first)
    return Clause(as_title(text), f"{text.rstrip('?')} {context}".strip(), kind)


def _content(text: str) -> str:
    return " ".join(w for w in re.findall(r"[\w'.-]+", text) if w.lower() not in FUNCTION_WORDS)


def _resolve(text: str, topic: str) -> str:
    """Replace the first pronoun by the topic; "its" and "their" by its genitive."""
    match = _PRONOUN.search(text)
    if not match:
        return text
    word = match.group().lower()
    if word in {"its", "their", "his"} or (word == "her" and re.match(r"\s+\w", text[match.end() :])):
        topic = topic + ("'" if topic.endswith("s") else "'s")
    if match.start() == 0:
        topic = topic[0].upper() + topic[1:]
    return text[: match.start()] + topic + text[match.end() :]


def as_title(clause: str) -> str:
    """A clause as a heading: capital first, a question mark where it asks."""
    text = squeeze(clause).strip(" ,;.")
    if not text:
        return clause
    text = text[0].upper() + text[1:]
    if is_english(text) and not text.endswith("?") and _QUESTION.match(text):
        text += "?"
    return text


__all__ = [
    "CUES",
    "FACTOIDS",
    "HEADINGS",
    "SIDE_OF",
    "SYNONYMS",
    "Clause",
    "Kind",
    "as_title",
    "clauses",
    "is_comparison",
    "kind_of",
    "strip_lead",
    "topic_of",
]
