"""From what a person typed to what is stored, and to what a search engine is asked."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from marg_ray.errors import UsageError
from marg_ray.text import clean_text, one_line

LONGEST_QUESTION = 20_000
LONGEST_QUERY = 400

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟।])\s*|\n+")
_WORD = re.compile(r"[^\W_][\w.'’-]*[^\W_]|[^\W_]")
# Scripts that are written without spaces: a stretch of letters there is many words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_OPERATOR = re.compile(r"(?<!\S)(?:[-+~!?:]+(?=[^\W\d]|[\"'])|[-+~!?:]{2,}(?=\s|$))|~(?=\")")
# English, then German, French, Spanish: words that carry a sentence and say nothing to an index.
_STOP_WORDS_TEXT = """
    a about after again all also although am an and any are as at be because been before being between
    both but by can could did do does doing down during each every few for from further had has have having he her
    here him his how i if in into is it its just me might more most must my no nor not now of off on once only or other
    our out over own please same shall she should so some such than thank thanks that the their them then there these
    they this those through to too until up us use used using very want was we were what when where whether which
    while who whom whose why will with without would you your list main question background answer
    aber als am an auch auf aus bei bin bis bitte da dann das dass dem den der des die dies diese dieser dir doch du
    durch ein eine einem einen einer eines er es für hat haben ich ihr im in ist kann man mit nach nicht noch nur ob
    oder sein seine sich sie sind so über um und uns von vor war warum was welche wenn wer werden wie wir wird wo zu
    zum zur
    au aux avec ce ces cette comme dans de des du elle en est et il ils je la le les leur mais ne nous on ou où par pas
    plus pour qu que quel quelle qui quoi sa sans se ses son sont sur un une vous
    al como con cual cuando de del donde el ella en era es esta este la las lo los mas mi muy no o para pero por porque
    que quien se sin sobre son su sus un una y ya
"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


def clean_question(text: str) -> str:
    """The question as it was typed, less control and invisible characters, trimmed.

    Raises:
        UsageError: nothing in it can be asked about (empty, only quotes, signs or controls), or it is longer than
            20,000 characters.
    """
    if len(text) > LONGEST_QUESTION:
        raise UsageError(
            f"the question has {len(text):,} characters; at most {LONGEST_QUESTION:,} can be asked at once",
            "put long material into a file and pass it with --docs",
        )
    question = clean_text(text).replace("\ufffd", "").strip()
    if not any(_says_something(c) for c in question):
        raise UsageError("there is no question: it holds no word and no number", "ask something in words")
    return question


def search_query(text: str, limit: int = LONGEST_QUERY) -> str:
    """What to put to a search engine for this text: one line of at most `limit` characters, without operators.

    A short text stays as it is. Of a long one the words that its questions are made of come first, then those that
    the rest of it turns on: weighted by how often they occur in distinct sentences and by where (the first and last
    sentences say what is wanted). The order is that of the text.
    """
    line = one_line(_OPERATOR.sub("", one_line(text)))
    if len(line) <= limit:
        return line
    sentences = list(dict.fromkeys(s for s in map(one_line, _SENTENCE_END.split(clean_text(text))) if s))
    query = "" if len(_UNSPACED.findall(line)) * 2 > len(line) else _key_words(sentences, limit)
    query = query or _phrases(sentences, limit)
    if line.startswith(query):  # nothing stood out: both ends say more than the beginning
        half = limit // 2 - 1
        query = one_line(f"{line[-half:]} {line[:half]}")
    return query


def _says_something(c: str) -> bool:
    return unicodedata.category(c)[0] in "LN" or unicodedata.category(c) == "So"


def _key_words(sentences: list[str], limit: int) -> str:
    """The best words, each once, in the order of the text. Half of the room is enough for any engine."""
    weight: Counter[str] = Counter()
    first: dict[str, tuple[int, str]] = {}
    for number, sentence in enumerate(sentences):
        asks = sentence.rstrip("\"')").endswith(("?", "？", "؟"))
        at_an_end = number in (0, len(sentences) - 1)
        found = _WORD.findall(sentence)
        for word in dict.fromkeys(w.casefold() for w in found):
            if word not in _STOP_WORDS and (len(word) > 2 or not word.isalpha()):
                weight[word] += 8 if asks else 2 if at_an_end else 1
        for word in found:
            first.setdefault(word.casefold(), (len(first), word))
    chosen: list[str] = []
    room = max(limit // 2, min(limit, 60))
    for word, _ in sorted(weight.items(), key=lambda item: (-item[1], -len(item[0]), first[item[0]][0])):
        if len(word) <= 60 and room > len(word):
            chosen.append(word)
            room -= len(word) + 1
    chosen.sort(key=lambda word: first[word][0])
    return " ".join(first[word][1] for word in chosen)


def _phrases(sentences: list[str], limit: int) -> str:
    """For scripts without word spaces: its questions, else the beginning and the end, as phrases set apart."""
    asks = [s for s in sentences if s.endswith(("?", "？", "؟"))]
    picked = asks or [sentences[0], sentences[-1]]
    room = limit // (2 * min(len(picked), 4))
    phrases = [" ".join(_WORD.findall(s))[:room].strip() for s in reversed(picked[-4:])]
    return " ".join(p for p in dict.fromkeys(phrases) if p)[:limit]
