"""Which sentences may be quoted, and which may open a quotation. Word lists are English, the rest is for all."""

from __future__ import annotations

import re

from marg_ray.grounding.abbreviations import NEVER_LAST
from marg_ray.models.extractive.words import word_count

_PRONOUN_START = re.compile(
    r"""(?:He|She|It|They|This|That|These|Those|His|Her|Its|Their|Him|Them|Such|Both|Another|Neither|Either|
    Others|Some\ others|Each\ of\ (?:these|them|those)|All\ of\ (?:these|this|them|those)|
    (?:One|Some|Many|Most|Several|Two|Three|Few|None|Part|Half)\ of\ (?:these|those|them|which)|
    The\ (?:former|latter|other|others|two|three|first|second|third|last|next|same|above|following|rest|
    remaining|resulting|aforementioned|said|couple|pair|duo)
    |The\ (?:decision|move|incident|announcement|agreement|deal|proposal|ruling|verdict|statement|letter|post|tweet|
    video|interview|meeting|debate|vote|bill|change|changes|results?|episode|sentence|idea|claim|claims|news|measure|
    measures|latest|attempt|comments?|remarks?|policy|trial|suspects?|victims?|perpetrators?|couple|pair
    |trio)(?!\ (?:of|to|by|for|in|from|who)\b))\b""",
    re.X,
)
_IT_EXCEPTION = re.compile(
    r"""It\ (?:is|was|has\ been|may\ be|can\ be|would\ be)\ (?:also\ )?(?:not\ )?(?:widely\ |generally[ ]
    |highly\ |often\ )?
    (?:possible|impossible|recommended|important|estimated|advisable|essential|necessary|common|customary|likely|
    unlikely|unclear|unknown|useful|difficult|easy|hard|worth|best|believed|thought|known\ that|reported\ that|
    expected\ that|suggested|claimed|said\ that|clear\ that|true\ that)\b|That\ said
    |This\ (?:is\ the\ )?(?:document|manual|article|report|paper|study|guide)\b""",
    re.X,
)
_CONNECTIVE = re.compile(
    r"""(?:However|But|Also|Therefore|Then|Thus|Hence|And|Or|So|Yet|Nor|Still|Though|Instead|Otherwise|Finally|
    Later|Meanwhile|Moreover|Furthermore|Nevertheless|Nonetheless|Additionally|Similarly|Likewise|Conversely|
    Consequently|Accordingly|Subsequently|Afterwards?|Eventually|Again|Besides|Indeed|Namely|Overall,\ this|
    Alternatively|Next|Once\ (?:there|again|this)|Soon|Here|There(?:after|fore|by|upon)|Earlier|Previously|Shortly
    |Let['’]s|Let\ us|Suppose|Say,|Imagine|Assume
    |Lastly|First(?:ly)?,|Second(?:ly)?,|Third(?:ly)?,|Fourth(?:ly)?,
    |In\ (?:addition|contrast|response|turn|return|fact|short|other\ words|particular|effect|total|this|that|these|
      such|which|both|either|any\ case|the\ (?:meantime|process|end|latter|former|same|following|past\ two))
    |For\ (?:example|instance|this|that|these|those|such|the\ same)|As\ (?:a\ result|such|well|before|above|
      mentioned|noted|stated|described|discussed|said|already|usual)|On\ (?:the\ other\ hand|the\ contrary|that|this|
      the\ same|the\ following)|At\ (?:this|that|the\ same|the\ time|first|last|which|the\ moment)|
    By\ (?:this|that|contrast|then|comparison|doing|the\ same|now)|Because\ of\ (?:this|that|these)
    |Due\ to\ (?:this|that|these|its|his|her|their)|
    Despite\ (?:this|that|these|its|his|her|their)|After\ (?:this|that|these|which|a\ while|his|her|its|their|doing)|
    Before\ (?:this|that|these|his|her|its|their|doing)|Since\ (?:then|this|that)|Until\ (?:then|this|that)|
    Apart\ from\ (?:this|that|these)|With\ (?:this|that|these)|From\ (?:this|that|these|there|then)
    |To\ (?:this|that)\ (?:end|day)|
    Even\ (?:so|then|though|this)|Not\ only|Only\ then|If\ (?:so|not|this|that|these|it|they|he|she)|
    (?:When|Where|While|Although|Unless|Whether|Because|As|Once|After|Before|Since|If|Until|Though|Among
    |Unlike|Like|Of)[ ](?:this|that|these|those|they|it|he|she|them|his|her|its|their|him|doing\ so)\b|
    The\ (?:next|following|same|previous|other)\ (?:day|days|month|week|year|morning|evening|night|time
    |years)|That\ (?:same\ )?(?:day|year|night|month)|
    (?:One|Two|Three|Four|Five|Six|Several|Some|A\ few|Many)\ (?:day|days|week|weeks|month|months|year|years
    |hours|minutes)\ (?:later|after|earlier|before)|
    (?:See|Cf|Compare|Note|Notice|Remember|Recall)\b)(?!\w)""",
    re.X,
)
_FIRST_CLAUSE_REFERENCE = re.compile(
    r"\b(?:these|those|this|such) (?:things?|cases?|events?|problems?|reasons?|changes?|fields?|packages?|files?|"
    r"methods?|options?|steps?|situations?|circumstances|results?|findings?|claims?|measures?|efforts?|points?|"
    r"moves?|decisions?|process|approach|incident|attacks?|command|example|way|kind|sort|purpose|rules?|"
    r"requirements?|values?|figures?|numbers?|issues?|conditions?|areas?|groups?|people)\b|"
    r"\bthe (?:former|latter)\b|"
    r"\b(?:can|could|may|might|must|will|would|to) (?:also )?do (?:it|so|this|that)\b|"
    r"\b(?:used|did|does|do|doing|done) (?:this|so)\b"
)
_DEICTIC = re.compile(
    r"\b(?:as follows|the following|the (?:above|preceding|foregoing)|see below|see above|(?:described|"
    r"mentioned|listed|shown|explained|discussed|given|"
    r"noted|defined|outlined|specified) (?:above|below|earlier|later|here|in (?:section|chapter|table|"
    r"figure|appendix))|"
    r"(?:above|below)[,.)]|in this (?:chapter|section|article|page|document|table|figure|appendix)|"
    r"this (?:chapter|section|page|review|survey)|"
    r"(?:table|figure|fig\.|chapter|appendix) \d|these instructions|click here|next section|previous section)\b",
    re.I,
)
_POINTER = re.compile(
    r"\b(?:can be found (?:at|in|on|under|here)|(?:is|are) (?:described|documented|explained|available|"
    r"listed|discussed|"
    r"covered|defined) (?:at|in|on|by) (?:the )?(?:[A-Z]|http|section|chapter|page|file|manual|web|following)|"
    r"for (?:more |further |full |additional )?(?:details?|information|examples?|documentation)\b|"
    r"please (?:see|refer|read|consult|visit)|"
    r"refer to|see also|more information|read more|(?:see|consult) (?:the |section|chapter|man)|https?://|www\.)",
    re.I,
)
_IMPERATIVE_POINTER = re.compile(
    r"^(?:See|Click|Read|Visit|Consult|Refer|Please|Note that this|Here (?:is|are))\b"
    r"|(?:,|\b(?:also|please|first)) (?:read|see|consult) (?:[A-Z]|the\b)"
)
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I've|we|we're|our|us|my|me)\b")
_CROSS_REFERENCE = re.compile(r"\((?:see|cf\.?|compare)\b[^)]*\)|\bsee (?:section|chapter|below|above)\b|§", re.I)
_VERB = re.compile(
    r"""\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|may|might|must|should|will|would|shall|
    cannot|isn't|aren't|doesn't|don't|won't|can't|became|becomes?|made|makes?|gave|gives?|took|takes?|went|goes|
    came|comes?|said|says?|led|leads?|held|holds?|won|wins?|lost|saw|sees?|set|sets|put|puts|ran|runs?|began|
    begins?|got|gets?|kept|keeps?|left|leaves?|let|lets|met|meets?|paid|sent|sends?|sold|told|tells?|found|finds?|
    stood|stands?|thought|wrote|writes?|grew|fell|rose|built|bought|brought|broke|chose|cut|hit|hurt|knew|lay|lies|
    spent|struck|swept|uses?|needs?|means?|contains?|allows?|provides?|requires?|includes?|needs|works?|
    use|install|run|add|remove|create|make|check|edit|start|stop|give|set|take|keep|avoid|ensure|\w{3,}ed|\w{2,}(?:ises?|izes?|ates?|ifies|ides?|uces?|ains?|ends?|ents|ows|orts|ures|ires|ects))\b""",
    re.X | re.I,
)
_CODE_LIKE = re.compile(r"[=/\\|<>{}$#@~^_]|^-{1,2}\w|\(\)|\w\.\w+\.\w")
_ENDINGS = (".", "!", '."', ".”", ".'", ".’", ".)", "!)", "。", "！", "।", "؟", ".»", "」", "）", "…", ".]")


# Ends where an abbreviation's stop was taken for the end: "a loan for approx", "to and from L.F".
_ABBREVIATED = "|".join(sorted(map(re.escape, NEVER_LAST)))
_CUT = re.compile(rf"(?:\b(?:(?i:{_ABBREVIATED}|al|rs)|[A-Z](?:\.[A-Z])*)|[₨$€£₹₱¥])$")


# The commonest words that refer back, in German, French, Spanish, Italian and Portuguese.
_OTHER_START = re.compile(
    r"(?:Er|Sie|Es|Dies|Diese[rsnm]?|Jene[rs]?|Dadurch|Dabei|Damit|Dazu|Daher|Deshalb|Danach|Dann|Auch|Aber|Jedoch|Außerdem|"
    r"Zudem|Dennoch|Trotzdem|Allerdings|Ihre?|Seine?|Hierbei|Hierzu|Und|Oder|Denn|Il|Ils|Elle|Elles|Cela|Ceci|Cet|Cette|Ces|"
    r"Cependant|Mais|Donc|Ainsi|Aussi|Toutefois|Pourtant|Puis|Ensuite|Él|Ella|Ellos|Ellas|Esto|Este|Esta|Estos|Estas|Ese|Esa|"
    r"Pero|También|Además|Luego|Entonces|Questo|Questa|Questi|Queste|Egli|Essi|Ma|Però|Inoltre|Anche|Ele|Ela|Eles|Elas|Isto|"
    r"Isso|Mas|Também|Além disso)\b|(?:Sin embargo|Por lo tanto|En outre|De plus|Par conséquent)\b"
)
_AMOUNT = re.compile(r"\d[\d.,]*\s(?:billion|million|trillion)\s*\(")


_NAMED_BEFORE = re.compile(r"\b(?:described|called|dubbed|labell?ed|termed|deemed) (?:it|this|them|him|her)\b")
_ABSENT_SUBJECT = re.compile(
    r"(?:In|On|At|By|For|From|Except|Since|During|Until|With|Without|Under|Throughout|Despite|Unlike|As of|Aside|Apart|"
    r"Besides|Following|Within|Upon)\b[^,]{1,70},\s(?:they|it|he|she|these|those|his|her|their|its)\b"
    r"|(?:In|On|At|By|For|From|Since|During|Until|After|Before|Within)\s(?:[\w-]+\s){1,4}(?:it|they|he|she)\s"
)

# Where the first clause ends: what is named before that can be meant by what comes after it.
_CLAUSE_END = re.compile(
    r"[,;:–—(]|\b(?:and|but|or|that|which|who|when|while|because|if|where|although|though|after|before|so|until|since)\b"
)
_REFERENCE_INSIDE = re.compile(
    r"\bthis(?= (?:as|to|for|in|on|by|with|from|at|into|through|is|was|would|will|can|has|had)\b|[.,;)]|$)"
    r"|\b(?:these|those)(?=[.,;)]|$)"
    r"|\b(?!said)\w+(?:ed|ade|ound|aw|alled|eld|aken|iven|ought) (?:it|them)\b"
    r"(?! (?:\w+ly )?[\w-]+ (?:to|for|that|if)\b)"
    r"|^There (?:is|are|was|were|should|must|may|can|will)\b.*\b(?:to|for|of|in|on|with|from) (?:them|it)\b"
    r"|\b(?:that|the same) (?:day|night|week|month|year|season|summer|winter|spring|autumn|evening|morning|time)\b"
    r"|\b(?:do|does|did|doing|done) (?:so|this)\b|\bthe (?:former|latter|aforementioned)\b"
)
_BARE_FIGURE = re.compile(  # "12 were injured", "Another 30 others", "The total was 240": of what?
    r"(?:(?:About|Around|Nearly|Almost|Over|Another|A further|An additional|At least|More than|Some|Only) )?"
    r"(?!(?:1[5-9]|20)\d\d\b)\d[\d,.]*\s?%? (?:were|was|are|is|had|have|others?|more|of (?:them|these|those))\b"
    r"|(?:The|A) (?:figure|number|total|amount|rate|share|price|cost|value|score|toll|estimate|average)s? "
    r"(?:is|was|are|were|has|had|rose|fell|grew|increased|decreased|reached|stood|amounted|dropped)\b"
)
_PERSON = re.compile(r"\b(?:he|she|him|his|her|hers)\b")
_SOMEBODY = re.compile(r"\b(?:an?|the|every|each|any|no|some|one|someone|anyone|whoever)\b", re.I)


_OPENING = """in on at by for from during after before since until when while as with without despite under over if
    although though because to of among between following throughout upon within"""
_OPENERS = frozenset(_OPENING.split())
_DATES = """January February March April May June July August September October November December Monday Tuesday
    Wednesday Thursday Friday Saturday Sunday"""
_MONTHS = frozenset(_DATES.split())


def stands_alone(sentence: str, english: bool = True) -> bool:
    """Whether a reader who sees no sentence before this one understands what it speaks of."""
    text = sentence.strip()
    if not text:
        return False
    first = text[0]
    if first in "\"'“”‘’«»([{,;:)]}–—-•*" or (first.islower() and not _brand(text)):
        return False
    if _AMOUNT.match(text):
        return False  # the rest of a sentence that was cut after a currency sign
    if not english:
        return not _OTHER_START.match(text)
    if _IT_EXCEPTION.match(text):
        return not _FIRST_CLAUSE_REFERENCE.search(text.split(",")[0])
    if _PRONOUN_START.match(text) or _CONNECTIVE.match(text) or _ABSENT_SUBJECT.match(text):
        return False
    if _FIRST_CLAUSE_REFERENCE.search(text[:60].split(",")[0]) or _NAMED_BEFORE.search(text[:80]):
        return False
    return not (_BARE_FIGURE.match(text) or _refers_inside(text))


def _refers_inside(text: str) -> bool:
    """Whether the first clause holds a word for something before the sentence: "Rehman used this as an example"."""
    end = _CLAUSE_END.search(text)
    if _REFERENCE_INSIDE.search((text[: end.start()] if end else text).rstrip()):
        return True
    person = _PERSON.search(text)
    return bool(person and not _names_somebody(text[: person.start()]))


def _names_somebody(before: str) -> bool:
    """Whether there is anybody whom "he" or "her" can mean: a name, or a person named by what he is."""
    words = before.split()
    return bool(words) and (
        any(w[:1].isupper() and w.strip(",") not in _MONTHS for w in words[1:])
        or (words[0][:1].isupper() and words[0].lower() not in _OPENERS)
        or bool(_SOMEBODY.search(before))
    )


def _brand(text: str) -> bool:
    """`iPhone`, `pH`, `dpkg-source`: words that keep their small letter at the start of a sentence."""
    word = text.split()[0]
    return any(c.isupper() for c in word[1:3])


def is_pointer(sentence: str) -> bool:
    """Whether it tells where to read on instead of saying something."""
    return bool(_POINTER.search(sentence) or _IMPERATIVE_POINTER.search(sentence))


def is_deictic(sentence: str) -> bool:
    """Whether it points into the page it was taken from."""
    return bool(_DEICTIC.search(re.sub(r"\([^)]*\)", "", sentence)))


def is_anecdote(sentence: str) -> bool:
    """Whether the author speaks of himself: "I usually edit"."""
    return bool(re.search(r"\b(?:I|I['’](?:m|ve|d|ll)|my)\b", re.sub(r"[\"“][^\"”]*[\"”]", "", sentence)))


def is_personal(sentence: str) -> bool:
    unquoted = re.sub(r"[\"“][^\"”]*[\"”]", "", sentence)
    return bool(_FIRST_PERSON.search(unquoted))


def has_cross_reference(sentence: str) -> bool:
    return bool(_CROSS_REFERENCE.search(sentence))


def balanced(text: str) -> bool:
    return (
        text.count("(") == text.count(")")
        and text.count("[") == text.count("]")
        and text.count("“") == text.count("”")
        and text.count('"') % 2 == 0
    )


def is_code(text: str) -> bool:
    """Whether too many of its words are commands, paths or signs."""
    tokens = text.split()
    return sum(bool(_CODE_LIKE.search(t)) for t in tokens) > 0.15 * len(tokens)


_SHOWN_NEXT = re.compile(
    r"\b(?:run|use|type|enter|execute|with|by|issue) (?:the|this|these) (?:following )?(?:commands?|lines?)\W*$", re.I
)


def is_junk(sentence: str, *, english: bool = True, labelled: bool = False, inside: bool = False) -> bool:
    """Whether it is no sentence of prose: a fragment, a heading, code, a question, a lead-in.

    Args:
        labelled: a term stands before it, so that it may be short.
        inside: it continues a quotation, so that it may be short or long.
    """
    text = sentence.strip()
    count = word_count(text)
    least = 3 if inside else 4 if labelled else 6
    if not (least <= count <= (80 if inside else 60)):
        return True
    if text.endswith(("?", ":", ",", ";", "？", "：")) or not balanced(text):
        return True
    if english and _SHOWN_NEXT.search(text):
        return True  # and what was shown is not there
    visible = [c for c in text if not c.isspace()]
    if sum(c.isalpha() for c in visible) < 0.7 * len(visible):
        return True
    if is_code(text):
        return True
    if not text.endswith(_ENDINGS) and _CUT.search(text):
        return True
    if not text.endswith(_ENDINGS) and (count < 8 or not english or not _VERB.search(text)):
        return True
    return english and (count <= 8 or not ends_properly(text)) and not labelled and not inside and not has_verb(text)


def has_verb(text: str) -> bool:
    return bool(_VERB.search(text))


def ends_properly(sentence: str) -> bool:
    return sentence.rstrip().endswith(_ENDINGS)
