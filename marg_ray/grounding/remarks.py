"""Sentences that state nothing to check: questions, lead-ins, fragments, remarks on the report or its sources."""

from __future__ import annotations

import re

from marg_ray.grounding.names import names
from marg_ray.grounding.terms import content_terms

_SOURCES = (
    r"(?:provided |available |cited |given |retrieved |consulted |collected |supplied |present )*"
    r"(?:evidence|sources?|documents?|passages?|texts?|materials?|excerpts?|articles?|search results?|references)"
)
_GAP = re.compile(
    rf"(?:(?:the|these|those|this) )?{_SOURCES}(?: (?:here|cited|provided|available|found|consulted))* "
    r"(?:(?:do|does|did|can|could)(?: not|n[’']t)|cannot|(?:gives?|contains?|provides?|offers?|mentions?|says?|states?|"
    r"holds?) (?:no|nothing|none|little)|(?:remains?|is|are) silent|disagree\w*|differ|conflict)\b.{0,200}|"
    rf"(?:no|none of the|neither of the) {_SOURCES} "
    r"(?:says?|states?|mentions?|gives?|answers?|specif\w+|address\w*|contains?|provides?|covers?|reports?)\b.{0,200}",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    rf"(?:there (?:is|are|was|were) )?(?:no|not enough|insufficient|little) (?:direct |specific |further |reliable )*"
    rf"(?:information|evidence|data|details?|answer|figures?|mention|{_SOURCES})\b.{{0,60}}"
    rf"\b(?:found|available|in the {_SOURCES}|{_SOURCES}|given|provided|located)\b.{{0,80}}",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"(?:this|the (?:following|present|next|previous)|each|our) (?:section|report|chapter|summary|overview|analysis|"
    r"table|list|paragraph|part|points?|sections|figure)\b.{0,40}\b(?:describes?|covers?|presents?|summari[sz]es?|"
    r"examines?|explores?|discusses?|lists?|shows?|gives?|outlines?|reviews?|addresses|looks|focuses|turns|is based|"
    r"was written|draws|considers?|deals?|explains?|provides?|compares?)\b.{0,200}",
    re.IGNORECASE,
)
_OTHER_LANGUAGES = re.compile(
    r"(?:die|den|in den) (?:quellen|dokumente\w*|belege\w*|unterlagen)\b.{0,60}\b(?:nicht|keine\w*|nichts)\b.{0,80}|"
    r"(?:les|ces) (?:sources|documents|extraits)\b.{0,40}\b(?:ne|n')\b.{0,100}|"
    r"(?:las|los|estas|estos) (?:fuentes|documentos|textos)\b.{0,10}\bno\b.{0,100}|"
    r"(?:现有|所引|提供的|这些|所提供的|相关)*"
    r"(?:文献|资料|来源|文件|证据|材料)中?[均都并]?(?:未|没有|沒有|不).{0,60}|"
    r"(?:источники|документы)\b.{0,20}\bне\b.{0,100}|(?:lo|la)s fuentes no.{0,100}",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"\b(?:but|although|though|while|whereas|however|aber|obwohl|mais|pero|但|然而)\b|但|然而", re.IGNORECASE
)
_TRANSITION = re.compile(
    r"(?:in (?:summary|short|conclusion|other words|addition)|to (?:sum up|conclude|summari[sz]e)|"
    r"for example|for instance|"
    r"more on this below|see (?:below|above|also)|as (?:follows|noted above|shown below)|"
    r"the (?:main|key) (?:points|findings) are|"
    r"several (?:points|questions) (?:remain|stand out)|further research is needed|this matters|here is why|"
    r"(?:zusammenfassend|kurz gesagt|en résumé|en resumen|综上所述|总之))\W*",
    re.IGNORECASE,
)


def is_not_factual(text: str) -> bool:
    """Whether there is nothing in the sentence that a source could back or refute. In doubt there is something."""
    text = text.strip()
    if not any(c.isalpha() for c in text) and not any(c.isdigit() for c in text):
        return True
    if re.search(r"[?？؟]\W*\Z", text):
        return True
    has_figure = any(c.isdigit() for c in text)
    if _TRANSITION.fullmatch(text):
        return True
    if text.endswith((":", "：")):
        return not has_figure and len(names(text)) < 2
    if has_figure:
        return False
    if any(pattern.fullmatch(text) for pattern in (_OTHER_LANGUAGES, _OWN, _ABSENT, _GAP)):
        return not _TURN.search(text)
    return _is_fragment(text)


def _is_fragment(text: str) -> bool:
    """A heading or a name that stands alone: at most three content words and no closing stop."""
    return len(content_terms(text)) <= 3 and not re.search(r"[.!。！؟।۔…][\"'”’)]*\Z", text) and len(text) < 60
