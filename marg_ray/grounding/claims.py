"""A sentence taken apart into the statements that it makes, each readable alone.

Rules for English; a sentence in another language is one statement. A sentence is left whole where taking it apart could
drop a negation, a condition, a hedge or an attribution, or leave open who is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from marg_ray.grounding.languages import language_checked
from marg_ray.grounding.verbs import (
    AUXILIARIES,
    BASE,
    BE,
    DETERMINERS,
    HAVE,
    PARTICIPLES,
    PAST_SIMPLE,
    PREPOSITIONS,
    is_finite,
    is_past,
    is_verb,
)

MOST = 8  # statements of one sentence
LONGEST = 90  # words; what is longer is hardly one sentence
_MOST_SUBJECT = 12  # words


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement, and the stretch of the sentence that makes it: characters, end exclusive."""

    text: str
    start: int
    end: int


_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_ROW = re.compile(r"^[^:;|]{1,80}: [^;]{1,200}(?:; [^:;|]{1,80}: [^;]{1,200})+;?$")
_WHOLE = re.compile(
    r"\b(?:if|unless|whether|because|although|though|until|except|neither|nor|either|instead|rather than|provided|lest|"
    r"so that|such that|only|when|whenever|once|depending|reportedly|allegedly|supposedly|apparently|presumably|"
    r"purportedly|possibly|perhaps|probably|likely|maybe|respectively|together|between|both|den(?:y|ies|ied)|doubt\w*|"
    r"according to|as well as|hardly|scarcely|barely|said|says|saying|claim\w*|argu\w+|believ\w+|thought|thinks?|"
    r"estimat\w+|suggest\w*|stated|reported|expected|alleged|supposed|rumou?red|considered|seems?|appears?|who|whom|"
    r"whose|which|where)\b",
    re.IGNORECASE,
)
_ATTRIBUTION = re.compile(
    r"^(?:according to [^,;]{2,80}, |(?:[^,;]{2,80}? )(?:said|says|stated|states|reported|reports|noted|notes|found|"
    r"finds|showed|shows|argued|argues|claimed|claims|estimated|estimates|suggested|suggests|concluded|concludes|announced|"
    r"announces|believed|believes|warned|warns|explained|explains|added|adds) that )",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"^(?:if|unless|when|whenever|once|because|although|though|until|provided that|as long as)\b[^,;]{2,120}, ",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:in|on|at|by|during|after|before|since|from|under|with|for|as of)\b[^,;]{2,60}, ", re.IGNORECASE
)
_JOINT = re.compile(r";\s+(?:(?:and|but|while|whereas)\s+)?|,?\s+(?:and|but|yet|while|whereas)\s+(?:that\s+)?")
_INSERT = re.compile(r"^(?P<subject>[^,;()¤]{2,90}), (?P<insert>[^,;()]{3,160}), (?=(?P<verb>\w+))")
_TRAIL = re.compile(r", (?P<who>which|who) (?P<rest>[^,;]{4,160})$")
_BRACKETED = re.compile(r"^(?P<subject>[^,;()¤]{2,90}) \((?P<insert>[^()]{3,120})\) (?=(?P<verb>\w+))")
_OBJECT = re.compile(r"\b(?P<verb>\w+) (?P<noun>(?:the|its|their|his|her|an?) (?:[\w'’-]+ ){0,2}[\w'’-]+)$")
_UNSURE = re.compile(r"^(?:no|none|neither|few|not|never|hardly|nobody|nothing|without)\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|never|no|cannot)\b|n[’']t\b", re.IGNORECASE)
_TURN = re.compile(r";|\b(?:but|while|whereas|yet)\b")
_RELATIVE = frozenset(("that", "which", "who"))
_NEVER_DONE = frozenset(
    """
    began became came fell had happened occurred remained rose went
    """.split()  # noqa: SIM905
)  # to somebody
_LISTING = frozenset(
    """
        include includes included contain contains contained comprise comprises produces produced
        """.split()  # noqa: SIM905
)
_LIST = re.compile(r"(?P<items>[^,;]+(?:, [^,;]+)+,? and [^,;]+)$")


def split_claims(sentence: str) -> tuple[Claim, ...]:
    """The statements of one sentence (plain, without marks), in order; the sentence itself where it makes one."""
    whole = (Claim(sentence, 0, len(sentence)),)
    if sentence.lstrip().startswith("|") or _ROW.match(sentence):
        return tuple(_row(sentence)) or whole
    body = sentence.rstrip()
    if not body or body[-1] in "?:" or not language_checked(body) or not 5 <= len(_WORD.findall(body)) <= LONGEST:
        return whole
    pieces = _statements(body.rstrip(".!"))
    if not 1 < len(pieces) <= MOST:
        return whole
    return tuple(Claim(_closed(p.text), p.start, p.end) for p in pieces)


# ---- clauses


def _statements(body: str) -> list[Claim]:
    """The pieces of a sentence without its full stop; one piece where it is to be left whole."""
    prefix, first = _beginning(body)
    at = len(prefix) + len(first)
    rest = body[at:]
    if _UNSURE.match(rest) or (prefix and _NEGATED.search(prefix)):
        return [Claim(body, 0, len(body))]
    inserted, main = _inserts(rest, at)
    flat = _flat(main.text)
    mixed = prefix and _TURN.search(flat)  # whose words, or under what condition, does the second half stand?
    found = [main] if mixed or _WHOLE.search(flat) else list(_clauses(main, flat))
    found[0] = Claim(first + found[0].text, found[0].start - len(first), found[0].end)
    return [Claim(prefix + p.text if prefix else _capital(p.text), p.start, p.end) for p in (*found, *inserted)]


def _beginning(body: str) -> tuple[str, str]:
    """What stands before the first clause: an attribution or condition, which all statements share; a time or place."""
    if found := _ATTRIBUTION.match(body) or _CONDITION.match(body):
        return found.group(), ""
    found = _OPENING.match(body)
    return "", found.group() if found and not any(map(is_verb, _words(found.group()))) else ""


def _clauses(main: Claim, flat: str) -> Iterator[Claim]:
    """Clauses joined by a semicolon, "and" or "but"; a subject that only the first has is carried over."""
    start, carry = 0, ""
    for joint in _JOINT.finditer(flat):
        here = slice(start, joint.start())
        carried = _carried(carry + flat[here], carry + main.text[here], joint.group(), flat[joint.end() :])
        if carried is None:
            continue
        yield Claim(_tidy(carry + main.text[here]), main.start + start, main.start + joint.start())
        start, carry = joint.end(), carried
    last = Claim(_tidy(carry + main.text[start:]), main.start + start, main.start + len(main.text))
    yield from _listed(last)


def _carried(flat: str, text: str, joint: str, right: str) -> str | None:
    """What has to stand before the clause after a joint: "" for nothing; None where no clause begins there.

    `flat` is `text`, the clause before the joint, with quotations and brackets made invisible.
    """
    strong = joint.startswith(";")
    said, coming = _words(flat), _words(_first_clause(right))
    verb = next((n for n, w in enumerate(said) if is_verb(w) or (strong and n > 1 and w in BASE)), -1)
    if not 0 < verb <= _MOST_SUBJECT or not coming:
        return None
    if is_finite(coming[0]) or is_past(coming[0]):
        return _predicate(flat, text, said, verb, coming)
    own = next((n for n, w in enumerate(coming) if is_finite(w) or (strong and n > 0 and w in BASE)), -1)
    if (
        own > 0
        and is_past(coming[own])
        and coming[own] not in PAST_SIMPLE
        and set(coming[own + 1 : own + 2]) & PREPOSITIONS
    ):
        return None  # "and the second governor, known for": a participle
    begins = strong or joint.rstrip().endswith("that") or coming[0] in DETERMINERS or right[:1].isupper()
    if not 0 < own <= _MOST_SUBJECT or not begins or _RELATIVE & set(coming[1:own]):
        return None
    return None if "that" in said and not strong else ""  # it may still be what somebody feared or hoped


def _predicate(flat: str, text: str, said: list[str], verb: int, coming: list[str]) -> str | None:
    """The subject for a second predicate; with the auxiliary, where it is a participle that needs it."""
    at = list(_WORD.finditer(flat))
    later = said[verb + 1 :]
    if _RELATIVE & {*said[:verb], *later} or said[verb - 1] == "to":
        return None
    before = text[: at[verb].start()]
    if not is_past(coming[0]):
        return before
    follows = coming[1] if len(coming) > 1 else "it"
    if follows not in DETERMINERS | PREPOSITIONS and not follows[0].isdigit():
        return None  # "old and retired workers"
    participles = [w for w in later if is_past(w)]
    if said[verb] in BE | HAVE:
        if _NEGATED.search(flat[at[verb].start() :]) or len(participles) != 1:
            return None
        return text[: at[verb + (later[:1] == ["been"])].end()] + " "
    return None if said[verb] in AUXILIARIES or participles or coming[0] in PARTICIPLES else before


def _first_clause(text: str) -> str:
    found = _JOINT.search(text)
    return text[: found.start()] if found else text


def _listed(claim: Claim) -> list[Claim]:
    """ "It contains copper, zinc and lead" as three statements."""
    words = _words(claim.text)
    verb = next((n for n, w in enumerate(words) if is_verb(w)), -1)
    if verb < 1 or words[verb] not in _LISTING or _NEGATED.search(claim.text):
        return [claim]
    at = list(_WORD.finditer(claim.text))[verb].end()
    found = _LIST.match(claim.text[at:].lstrip())
    items = re.split(r",? and |, ", found["items"]) if found else []
    plain = all(
        1 <= len(i.split()) <= 3 and not re.search(r"\d", i) and not any(map(is_verb, _words(i))) for i in items
    )
    if len(items) < 3 or not plain:
        return [claim]
    return [Claim(f"{claim.text[:at]} {item}", claim.start, claim.end) for item in items]


# ---- what is put in


def _inserts(rest: str, at: int) -> tuple[list[Claim], Claim]:
    """Statements that stand between commas or brackets after the subject, or behind the object; and what is left."""
    flat = _flat(rest, brackets=False)
    for pattern in (_INSERT, _BRACKETED):
        found = pattern.match(flat)
        if found and _goes_on(flat[found.start("verb") :]) and not any(map(is_verb, _words(found["subject"]))):
            inside = slice(found.start("insert"), found.end("insert"))
            if said := _said_of(found["subject"], rest[inside], found["verb"].lower()):
                blank = " " * (found.start("verb") - found.end("subject"))  # offsets stay
                main = found["subject"] + blank + rest[found.start("verb") :]
                return _nested(Claim(said, at + inside.start, at + inside.stop)), Claim(main, at, at + len(rest))
    if trail := _TRAIL.search(flat):
        owner = _OBJECT.search(flat[: trail.start()])
        if owner and is_verb(owner["verb"].lower()) and is_finite((_words(trail["rest"]) or [""])[0]):
            noun = re.sub(r"^an? ", "the ", owner["noun"])
            said = f"{noun} {rest[trail.start('rest') :]}"
            main = Claim(rest[: trail.start()], at, at + trail.start())
            return _nested(Claim(said, at + trail.start("rest"), at + len(rest))), main
    return [], Claim(rest, at, at + len(rest))


def _goes_on(rest: str) -> bool:
    """Whether the sentence's own verb comes here, and not another insertion ("..., built in 1966, is ...")."""
    words = _words(rest)
    later = re.search(r", (\w+)", rest)
    if not words or not is_finite(words[0]):
        return False
    return words[0] in AUXILIARIES or not (later and is_finite(later[1].lower()))


def _said_of(subject: str, insert: str, verb: str) -> str:
    """What an insertion says of the subject before it, as a sentence; empty where that is not plain."""
    words = _words(insert)
    if not words or " and " in subject or _UNSURE.match(insert) or _WHOLE.search(subject):
        return ""
    if words[0] in ("which", "who") and len(words) > 2 and is_finite(words[1]):
        return f"{subject} {insert.split(' ', 1)[1]}"
    if any(w in AUXILIARIES for w in words) or _WHOLE.search(insert):
        return ""
    plural, past = verb in ("are", "were", "have"), is_past(verb) or verb in ("was", "were", "had", "did")
    if is_past(words[0]) and len(words) > 2 and words[0] not in _NEVER_DONE:
        return f"{subject} {'were' if plural else 'was'} {insert}"
    if words[0] in ("a", "an", "the") and len(words) > 1 and not any(map(is_finite, words)):
        return f"{subject} {('were' if plural else 'was') if past else ('are' if plural else 'is')} {insert}"
    return ""


def _nested(claim: Claim) -> list[Claim]:
    """The statements of an insertion, all standing where it stands."""
    flat = _flat(claim.text)
    if _WHOLE.search(flat):
        return [claim]
    return [Claim(c.text, claim.start, claim.end) for c in _clauses(claim, flat)]


# ---- rows and words


def _row(row: str) -> Iterator[Claim]:
    """A table's row: its first cell names what the others are said of."""
    if row.lstrip().startswith("|"):
        cells = [
            (m.group().strip(), m.start(), m.end()) for m in re.finditer(r"(?:\\\||[^|])+", row) if m.group().strip()
        ]
    else:
        cells = [(m.group().strip(" ;"), m.start(), m.end()) for m in re.finditer(r"[^;]+", row)]
    for text, start, end in cells[1 : MOST + 1]:
        yield Claim(f"{cells[0][0]}; {text}", start, end)


def _flat(text: str, *, brackets: bool = True) -> str:
    """The text with what is quoted, or in brackets, made invisible; offsets stay."""
    text = re.sub(r"[\"“„«][^\"”“»]*[\"”»]", lambda m: "¤" * len(m.group()), text)
    return re.sub(r"\([^()]*\)", lambda m: "¤" * len(m.group()), text) if brackets else text


def _words(text: str) -> list[str]:
    return ["May" if m.group() == "May" else m.group().lower() for m in _WORD.finditer(text)]  # the month is no verb


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip(" ,;")


def _closed(text: str) -> str:
    text = _tidy(text)
    return text if text.endswith((".", "!")) else f"{text}."
