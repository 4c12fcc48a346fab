"""Language that praises, takes a side, or judges in nobody's name. English; each list is bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from marg_ray.grounding.critique.prose import Flag, Line
from marg_ray.records import IssueKind

_PROMOTIONAL = re.compile(
    r"\b(?:world-?class|best-in-class|cutting-edge|state-of-the-art|ground-?breaking|game-?chang(?:er|ing)|"
    r"industry-leading|market-leading|unparalleled|unrivall?ed|unmatched|unbeatable|second to none|"
    r"must-(?:have|see|read|visit)|breath-?taking|stunning|jaw-dropping|awe-inspiring|mind-blowing|amazing|awesome|"
    r"incredibl[ey]|fantastic|wonderful(?:ly)?|magnificent|spectacular(?:ly)?|phenomenal|superb|"
    r"seamless(?:ly)?|effortless(?:ly)?|hassle-free|once-in-a-lifetime|unforgettable|"
    r"look no further|perfect (?:choice|solution|destination|place|for)|ideal (?:choice|destination)|"
    r"rich (?:cultural )?heritage|nestled|hidden gem|vibrant (?:city|community|culture|scene)|boast(?:s|ing)|"
    r"revolutionary (?:product|technology|solution|approach|design|new)|visionary|"
    r"truly (?:unique|remarkable|exceptional|great)|one of the (?:most (?:exciting|beautiful|amazing)|finest|best)|"
    r"(?:the )?(?:trusted|premier|go-to) (?:provider|partner|destination|choice|brand)|don['’]t miss)\b",
    re.IGNORECASE,
)
_ONE_SIDED = re.compile(
    r"\b(?:obviously|undoubtedly|undeniabl[ey]|unquestionabl[ey]|indisputabl[ey]|needless to say|"
    r"(?:it is|it['’]s) (?:clear|obvious|evident|beyond doubt) that|of course|without (?:a |any )?(?:doubt|question)|"
    r"everyone (?:knows|agrees)|no one can deny|nobody can deny|no (?:serious|reasonable) (?:person|observer|expert)|"
    r"there is no doubt|the only (?:sensible|reasonable|viable|real|true) (?:way|option|choice|solution|answer)|"
    r"shameful(?:ly)?|disgrace(?:ful(?:ly)?)?|outrageous(?:ly)?|ridiculous(?:ly)?|absurd(?:ly)?|laughabl[ey]|"
    r"idiotic|stupid(?:ly|ity)?|hysteri(?:a|cal)|so-called experts?|sheer (?:folly|greed|stupidity)|"
    r"nonsens(?:e|ical)|pathetic(?:ally)?|despicable|scandalous(?:ly)?|propagandists?)\b",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"\b(?:unfortunately|fortunately|sadly|thankfully|regrettably|luckily|hopefully|"
    r"in (?:my|our) (?:opinion|view)|(?:I|we) (?:think|believe|feel|hope|recommend|suggest|argue)\b|"
    r"it is (?:a pity|a shame|sad|unfortunate|tragic|time) that|"
    r"(?:is|are|was|were|remains?) (?:by far |arguably |simply |clearly |certainly |easily )?(?:the )?"
    r"(?:best|worst|greatest|finest|most (?:beautiful|impressive|exciting|important|disastrous|terrible|wonderful))\b"
    r"(?!-| (?:known|documented|studied|available|described|preserved|understood|suited|seen|used|of \d|on record))|"
    r"ought to (?:be|have)|deserves? (?:to be|better|more|praise)|(?:far|much) too (?:little|much|slow|late)|"
    r"(?:clearly|surely|certainly) (?:a|an|the) (?:mistake|failure|success|triumph|disaster)|"
    r"(?:a|an) (?:huge|complete|total|utter) (?:success|failure|disaster|triumph|mistake))\b",
    re.IGNORECASE,
)
# Somebody is named who says so, or it is quoted: it is reported, not said.
_ATTRIBUTED = re.compile(
    r"\b(?:according to|said|says?|stat(?:ed|es|ing)|argu(?:ed?|es|ing)|claim(?:ed|s|ing)?|wr(?:ote|ites?|iting)|"
    r"written|call(?:ed|s|ing)|describ(?:ed?|es|ing)|deem(?:ed|s)?|prais(?:ed?|es|ing)|criticis(?:ed?|es|ing|m)|"
    r"criticiz(?:ed?|es|ing)|critics?|review(?:ed|s|ers?)?|rat(?:ed|ing|ings)|named|rank(?:ed|ings?)|voted|"
    r"consider(?:ed|s)?|regard(?:ed|s)?|believ(?:ed?|es|ing)|thought|felt|noted|comment(?:ed|s)?|credited|hail(?:ed|s)|"
    r"dubbed|labell?ed|poll(?:ed|s)?|survey(?:ed|s)?|respondents?|opinions?|view(?:ed|s)|judg(?:ed|es)|express(?:ed|es|ing)|"
    r"accus(?:ed|es|ing)|denounc(?:ed|es|ing)|condemn(?:ed|s|ing)|think|thinks|told|ask(?:ed|s)|award(?:s|ed)?|prize|"
    r"titled|entitled|nominated|nominations?|won|win)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“„«][^\"”“»]*[\"”»]|(?<!\w)['‘][^'’]{2,200}['’](?!\w)")
_TITLES = re.compile(r"(?<=[a-z,] )(?:[A-Z][\w'’-]*(?: (?:of|the|and|in|for|a|to) (?=[A-Z]))? ?){2,}")  # names of works

_KINDS = (
    ("promotional", _PROMOTIONAL, "praises instead of stating", "State what is the case without praise"),
    ("one_sided", _ONE_SIDED, "takes a side", "Say it without the loaded words, and what others hold"),
    ("unattributed_opinion", _OPINION, "judges in nobody's name", "Name whose judgement this is, or leave it out"),
)


def flags(lines: Iterable[Line]) -> Iterator[Flag]:
    for line in lines:
        if not line.is_prose:
            continue
        for kind, words in _leaning(line.text):
            signal, _, what, instruction = _KINDS[kind]
            yield Flag(
                signal=signal,
                line=line,
                kind=IssueKind.BIAS,
                words=words,
                detail=f'"{words}" {what}',
                instruction=f'{instruction} ("{words}"): {line.text}',
            )


@lru_cache(maxsize=4096)  # a line that no revision touched is judged again
def _leaning(text: str) -> tuple[tuple[int, str], ...]:
    """The kinds of lean that a line shows, each with its words."""
    own = _TITLES.sub(" ", _QUOTED.sub(" ", text))
    attributed = bool(_ATTRIBUTED.search(own))
    return tuple(
        (n, found.group())
        for n, (signal, pattern, _, _) in enumerate(_KINDS)
        if (found := pattern.search(own)) is not None
        and not (attributed and (signal != "promotional" or _near(own, found)))
    )


def _near(text: str, found: re.Match[str]) -> bool:
    """Whether somebody is named who says so just before or after."""
    return bool(_ATTRIBUTED.search(text[max(0, found.start() - 60) : found.end() + 60]))
