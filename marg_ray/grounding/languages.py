"""Whether a text is English: only there are negation, direction and roles checked. Cheap: it looks at small words."""

from __future__ import annotations

import re
from functools import lru_cache

from marg_ray.grounding.terms import STOP_WORDS, words

_FOREIGN = frozenset(
    words(
        """
        der die das und ist nicht von mit für auf ein eine einen einem einer den dem des im wurde werden sind zu zum
        zur sich auch als nach bei aus durch über um wird haben hat
        le la les une est et dans pour sur pas qui que du au aux sont été avec par plus ce cette ses il elle ont
        el los las una del por con para es en y se su fue sus como más pero al ha han lo
        di che della nel è per gli delle alla sono dei nella dal stato i il
        os um uma do da em não com dos das foi ao são na
        het een van niet op voor met zijn werd aan dat
        och att det som för är av till med på inte den og af til ikke
        w z nie na się jest do że przez oraz był
        ve bir bu için ile olarak
        dan yang di untuk dengan
        và của là các được
        """
    )
) - (STOP_WORDS | {"due", "at", "per", "do"})
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
_LETTER = re.compile(r"[^\W\d_]")


@lru_cache(maxsize=4096)
def language_checked(text: str) -> bool:
    """Whether all rules apply to `text`. False: it is in another language than English, and only figures, dates,
    names and quotations are checked (and the plainest negations)."""
    letters = len(_LETTER.findall(text))
    if not letters:
        return True
    latin = len(_LATIN.findall(text))
    if latin < 0.7 * letters:
        return False
    found = words(text)
    english = sum(w in STOP_WORDS for w in found)
    foreign = sum(w in _FOREIGN for w in found)
    if english or foreign:
        return english >= foreign and (english > foreign or english * 6 >= len(found))
    accented = latin - sum(c.isascii() and c.isalpha() for c in text)
    return accented <= 0.05 * letters
