"""What a conversation is made of, and what is remembered of it: commands, bounds, recall. Pure: no clock, no I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from marg_ray.grounding.injection import scan
from marg_ray.grounding.terms import STOP_WORDS, stem, words
from marg_ray.models.tasks import Turn as Turn
from marg_ray.records import Record
from marg_ray.seams import Vectors
from marg_ray.store.talk import MemoryRow
from marg_ray.text import one_line

LONGEST = 600  # characters of one memory
NEAR = 0.45  # cosine from which a memory is of a question's meaning
SHARED = 0.5  # share of a question's words from which it speaks of it


class Cited(Record):
    """A sentence of an answer, the evidence ids it rests on, and the check's verdict on it."""

    text: str
    citations: tuple[str, ...] = ()
    verdict: str = ""
    reason: str = ""


class Said(Record):
    """What a user says in a conversation, and where the answer may be looked for."""

    conversation: str
    turn: str  # id of this turn
    text: str
    report: str = ""  # session id: answer from this report alone
    reports: bool = True  # all of the user's own
    folders: tuple[str, ...] = ()  # of documents
    web: bool = False


class Passage(Record):
    """What an answer cites: the words, and where they stand. `source` is a snapshot's id; empty for what was said."""

    id: str
    quote: str
    title: str = ""
    location: str = ""
    source: str = ""
    start: int = 0
    end: int = 0
    session: str = ""  # of the report that it was quoted in


class Looked(Record):
    """One step of the assistant: where it looked, for what, and what came of it."""

    where: Literal["memory", "reports", "library", "web"]
    query: str
    found: int = 0
    text: str = ""  # in words


class Answer(Record):
    """An answer from evidence that is there; `known` is False where the evidence does not answer, and says so."""

    sentences: tuple[Cited, ...]
    known: bool = True
    dropped: tuple[Cited, ...] = ()  # sentences that failed their check
    missing: tuple[str, ...] = ()  # words of the question that occur in nothing that was looked at
    passages: tuple[Passage, ...] = ()  # what the sentences cite
    looked: tuple[Looked, ...] = ()
    remembered: tuple[str, ...] = ()  # what became part of the core memory with this turn
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return " ".join(s.text for s in self.sentences)


def answer_in(body: str) -> Answer | None:
    """The answer that a turn was kept with; None where it was kept without one."""
    return Answer.model_validate_json(body) if body else None


# ---- what the user orders


@dataclass(frozen=True)
class Order:
    """A message that is about the memory, and no question."""

    kind: Literal["remember", "forget", "recite"]
    text: str = ""


_REMEMBER = re.compile(
    r"^(?:please\s+|bitte\s+)?(?:remember|keep in mind|note down|memori[sz]e|merke? dir|merk dir|souviens-toi|retiens|"
    r"recuerda)\b\s*[:,]?\s*(?:(?:this|that|dass|que)\b\s*[:,]?\s*)?(?P<what>\S.*)$|^(?:请|請)?(?:记住|記住)[:：,，]?\s*(?P<cjk>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_FORGET = re.compile(
    r"^(?:please\s+|bitte\s+)?(?:forget|vergiss|oublie|olvida)\b\s*[:,]?\s*(?:(?:about|that|dass|que)\b\s*[:,]?\s*)?(?P<what>\S.*)$|"
    r"^(?:请|請)?(?:忘记|忘記)[:：,，]?\s*(?P<cjk>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_EVERYTHING = re.compile(
    r"^(?:everything|all|alles|tout|todo)(?: (?:you (?:know|remember|have)|of it|about me))*[.!]*$", re.IGNORECASE
)
_RECITE = re.compile(
    r"^what do you (?:remember|know)(?: (?:about|of) me)?\s*[?.!]*$|^show (?:me )?(?:your|my) memory[.!]*$|"
    r"^was (?:weißt|weisst) du über mich\s*\??$",
    re.IGNORECASE,
)


def order_of(message: str) -> Order | None:
    """The order that a message gives, if it is one. A question ("Do you remember ...?") is none."""
    line = message.strip()
    if _RECITE.match(line):
        return Order("recite")
    if line.endswith(("?", "？")):
        return None
    for kind, pattern in (("remember", _REMEMBER), ("forget", _FORGET)):
        if found := pattern.match(line):
            what = (found["what"] or found["cjk"] or "").strip()
            text = "" if kind == "forget" and _EVERYTHING.match(what) else what
            return Order("remember" if kind == "remember" else "forget", text)
    return None


_GREETING = re.compile(
    r"^(?:hi|hello|hey|good (?:morning|evening|afternoon|day)|thanks?(?: you)?(?: (?:very|so) much)?|thx|ok(?:ay)?|"
    r"great|bye|goodbye|hallo|danke|merci|bonjour|hola|gracias|你好|谢谢|こんにちは)[\s!.,]*$",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^(?:what|who|whom|whose|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|should|has|have|"
    r"tell|explain|describe|list|give|show|compare|summari[sz]e|find|name|search|look|was|wer|wie|wo|wann|warum|welche|"
    r"i (?:want|need|would like|wish) to (?:know|see|learn|understand|find)|i['’]d like to (?:know|see|learn)|i wonder|"
    r"nenne|erkläre|que|qui|où|quand|pourquoi|comment|quel|qué|quién|cómo|dónde|cuándo|por qué)\b",
    re.IGNORECASE,
)


def is_greeting(message: str) -> bool:
    return bool(_GREETING.match(message.strip()))


def asks(message: str) -> bool:
    """Whether a message wants an answer, and does not only tell something."""
    return "?" in message or "？" in message or "؟" in message or bool(_ASKS.match(message.strip()))


def tells(message: str) -> bool:
    """Whether a message is a statement: it asks nothing, and ends like a sentence. Mere words are to be looked for."""
    return not asks(message) and message.rstrip().rstrip("\"'”’»)").endswith((".", "!", "。", "！", "।"))


# ---- what may be kept


def fit_to_keep(text: str) -> str:
    """A memory's words: one line, bounded, without sentences that order a model about; empty where nothing is left."""
    line = one_line(text)
    for found in reversed(scan(line)):
        line = f"{line[: found.start]} {line[found.end :]}"
    return one_line(line)[:LONGEST].rstrip()


def said_by(fact: str, message: str) -> bool:
    """Whether a fact that a model took from a message is the message's: most of its words stand there.

    "The user" and the like may be added, a figure or a name may not.
    """
    own = [w for w in words(fact) if w not in STOP_WORDS and w not in ("user", "users", "wants", "want", "prefers")]
    there = {stem(w) for w in words(message)}
    missing = [w for w in own if stem(w) not in there]
    exact = any(any(c.isdigit() for c in w) for w in missing)
    return bool(own) and not exact and len(missing) <= 0.4 * len(own)


def memory_of(
    text: str, *, kind: Literal["core", "archival"], by: Literal["user", "assistant"], conversation: str, at: float
) -> MemoryRow:
    """A memory; the same words are the same memory, in whatever conversation they were said."""
    digest = hashlib.sha256(" ".join(words(text) or [text]).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return MemoryRow(id=f"m{digest}", conversation=conversation, kind=kind, by=by, text=text, at=at, used_at=at, uses=0)


def with_core(rows: Sequence[MemoryRow], new: MemoryRow, room: int) -> tuple[MemoryRow, ...] | None:
    """What changes when `new` comes into a core memory of `room` characters; None where there is no room for it.

    What the assistant kept by itself makes way, the oldest first, and goes to the archive; what the user asked to be
    remembered stays.
    """
    core = [m for m in rows if m.kind == "core" and m.id != new.id]
    used = sum(len(m.text) for m in core) + len(new.text)
    moved: list[MemoryRow] = []
    for old in sorted((m for m in core if m.by == "assistant"), key=lambda m: (m.at, m.id)):
        if used <= room:
            break
        moved.append(old.model_copy(update={"kind": "archival"}))
        used -= len(old.text)
    return (*moved, new) if used <= room else None


def core_of(rows: Sequence[MemoryRow], room: int) -> tuple[MemoryRow, ...]:
    """The core memory, newest last, at most `room` characters of it."""
    kept: list[MemoryRow] = []
    for one in reversed([m for m in rows if m.kind == "core"]):
        room -= len(one.text)
        if room < 0:
            break
        kept.append(one)
    return tuple(reversed(kept))


# ---- looking for it


def holding(rows: Sequence[MemoryRow], query: str) -> list[MemoryRow]:
    """The memories that have all words of a query, newest first. Signs are no words, and match nothing."""
    wanted = {stem(w) for w in words(query)}
    return [m for m in reversed(rows) if wanted and wanted <= {stem(w) for w in words(m.text)}]


def says_something(query: str) -> bool:
    return bool(words(query))


def recalled(
    rows: Sequence[MemoryRow], query: str, query_vector: Vectors, vectors: Vectors, limit: int
) -> list[MemoryRow]:
    """The memories nearest to a query, by meaning and by the words that carry it.

    Args:
        query_vector: shape (dimension,).
        vectors: shape (len(rows), dimension).
    """
    wanted = {stem(w) for w in words(query) if w not in STOP_WORDS}
    scored: list[tuple[float, MemoryRow]] = []
    for row, vector in zip(rows, vectors, strict=True):
        cosine = float(vector @ query_vector)
        own = {stem(w) for w in words(row.text)}
        share = len(wanted & own) / len(wanted) if wanted else 0.0
        if cosine >= NEAR or share >= SHARED:
            scored.append((0.7 * cosine + 0.3 * share, row))
    scored.sort(key=lambda pair: -pair[0])
    return [row for _, row in scored[:limit]]
