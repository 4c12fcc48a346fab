"""Pages that came with status 200 and are no document: walls, checks, shells, excuses.

Words alone decide nothing, for a page may be about log-in walls. A wall is short, and its heading or its controls
say what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from marg_ray.sources.parse.blocks import Block

SHORT = 120  # words; a wall has fewer
VERY_SHORT = 40

_NOT_FOUND = re.compile(
    r"(?i)\b404\b|\bnot found\b|we can.?t find (?:that|the|this) page"
    r"|(?:page|file|site|article|url|content|document)s?\b.{0,30}\b(?:not (?:be )?found"
    r"|(?:does not|doesn.t|no longer) exists?"
    r"|(?:is|are|was) (?:gone|missing|no longer available|unavailable|not available))"
    r"|seite (?:wurde )?nicht gefunden|page (?:introuvable|non trouv)|p[aá]gina no (?:encontrada|existe)"
    r"|pagina non trovata|页面不存在|找不到(?:页面|网页)|ページが見つかりません|страница не найдена"
)
_ROBOT = re.compile(
    r"(?i)\b(?:not a (?:ro)?bot|are you (?:a )?human|you are (?:a )?human|verify(?:ing)? (?:that )?you"
    r"|prove (?:that )?you|human verification|security check|captcha|unusual traffic"
    r"|checking (?:your browser|that you|if the site)|just a moment|attention required|ddos protection"
    r"|access (?:to this page )?(?:has been |is )?denied|you have been blocked|bot (?:check|detection)"
    r"|pardon our interruption|request blocked|ray id)"
)
_SIGN_IN = re.compile(
    r"(?i)\b(?:sign|log)[ -]?in\b|\blogin\b|\banmelden\b|\bse connecter\b|\biniciar sesi[oó]n\b|\baccedi\b"
    r"|登录|登入|ログイン|войти|\b(?:members|subscribers) only\b|subscribe to (?:continue|read)"
    r"|create (?:a free )?account"
)
_CONSENT = re.compile(
    r"(?i)\bcookies?\b|\bconsent\b|\bprivacy\b|\bpartners?\b.{0,60}\b(?:store|access|read|process)"
    r"|datenschutz|vie privée|privacidad"
)
_CONSENT_BUTTON = re.compile(
    r"(?i)\b(?:accept|agree|reject|allow|consent|got it|manage (?:options|preferences)|alle akzeptieren|ablehnen"
    r"|tout accepter|aceptar|accetta)\b"
)
_SCRIPTED = re.compile(
    r"(?i)\b(?:enable|requires?|need|turn on|activate|without|support)\b.{0,40}\bjavascript\b"
    r"|javascript\b.{0,40}\b(?:is )?(?:disabled|required|enabled|turned off|not (?:enabled|supported))"
)
_PREVIEW = re.compile(r"(?i)\b(?:preview|download|view(?:er|ing)?|open)\b")


def wall(body: Any, title: str, blocks: Sequence[Block], *, promised_pdf: bool = False) -> str:
    """Why the page is no document, "" if it may be one."""
    words = sum(_count(b.text) for b in blocks)
    headings = " ".join([title, *(b.text for b in blocks if b.kind == "heading")])
    text = " ".join(b.text for b in blocks)
    if promised_pdf and words < SHORT:
        return "not a PDF: a web page stands in its place"
    if words >= SHORT:
        return ""
    controls = " ".join(_label(e) for e in body.iter("button", "input", "a"))
    everything = f"{headings} {text}"
    if _ROBOT.search(headings) or (_ROBOT.search(text) and words < 2 * VERY_SHORT):
        return "blocked: the site asks for a robot check or denies access"
    if _has_password(body) or (_SIGN_IN.search(headings) and words < VERY_SHORT):
        return "behind a log-in"
    if _NOT_FOUND.search(headings) or (words < VERY_SHORT and _NOT_FOUND.search(text) and not _figures(text)):
        return "page not found"
    if _CONSENT.search(everything) and _CONSENT_BUTTON.search(controls) and not _prose_apart_from(_CONSENT, blocks):
        return "behind a consent wall"
    if _is_shell(body, text, words):
        return "needs JavaScript: the page has no text of its own"
    if _PREVIEW.search(text) and re.search(r"(?i)\.pdf\b", text) and words < VERY_SHORT // 2:
        return "not a document: a viewer's page without the text"
    return ""


def _is_shell(body: Any, text: str, words: int) -> bool:
    """Nothing to read but a script that would write it, or a request to allow scripts."""
    noscript = " ".join(e.text_content() for e in body.iter("noscript"))
    scripts = body.find(".//script") is not None or body.getroottree().getroot().find(".//head/script") is not None
    if words < 5 and (scripts or noscript.strip()):
        return True
    if words < VERY_SHORT and _SCRIPTED.search(text) and (scripts or noscript.strip() or words < VERY_SHORT // 2):
        return True
    return words < VERY_SHORT // 4 and bool(_SCRIPTED.search(noscript))


def _has_password(body: Any) -> bool:
    return any((e.get("type") or "").lower() == "password" for e in body.iter("input"))


def _prose_apart_from(pattern: re.Pattern[str], blocks: Sequence[Block]) -> bool:
    """Whether a sentence's worth of text has nothing to do with the pattern."""
    return sum(_count(b.text) for b in blocks if b.kind != "heading" and not pattern.search(b.text)) > 15


def _figures(text: str) -> bool:
    return bool(re.search(r"\d+[.,:]\d+", text))


def _label(element: Any) -> str:
    return f"{element.text_content()} {element.get('value') or ''} {element.get('aria-label') or ''}"


def _count(text: str) -> int:
    """Words; two East Asian letters count as one."""
    if text.isascii():
        return len(text.split())
    wide = sum("\u3040" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7a3" for c in text)
    return len(text.split()) + wide // 2
