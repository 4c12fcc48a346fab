"""The report as PDF: the print template, laid out by WeasyPrint. Nothing is read from disk or network on the way.

Everything here blocks for as long as the layout takes (seconds for a long report): call it from a process or a
thread of its own, never from an event loop.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import re
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from marg_ray.errors import FormatUnavailable
from marg_ray.report import wording
from marg_ray.report.html import asset, back, body, environment, front
from marg_ray.report.labels import labels
from marg_ray.report.model import Report, Spent, to_json
from marg_ray.report.print_views import PrintViews
from marg_ray.report.remarks import SIGNS
from marg_ray.report.scripts import Script, scripts_of
from marg_ray.report.text import direction, text_direction

if TYPE_CHECKING:
    from weasyprint.urls import URLFetcher

PACKAGES = ("libpango-1.0-0", "libpangoft2-1.0-0", "libharfbuzz-subset0")  # Debian's, beside a font
MAX_LETTERS = 600_000  # of the printed page's HTML: about 35,000 words, or a minute of layout
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_ENDLESS = re.compile(r"(?:&[#\w]+;|[^\s<>&]){500}")  # letters without a blank: laying them out takes their square
_LONG_WORD = re.compile(r"\S{29}")
_RUNNING = 90  # letters of the title above each page


@dataclass(frozen=True)
class Printed:
    """A PDF, and the scripts in it that no font of this machine could draw."""

    content: bytes
    lacking: tuple[Script, ...] = ()


def to_pdf(report: Report) -> bytes:
    """The report as a tagged PDF (PDF/UA-1) with bookmarks and links.

    Raises:
        FormatUnavailable: WeasyPrint or a library it stands on is missing, or the report is too large to lay out.
    """
    return print_pdf(report).content


def print_pdf(report: Report) -> Printed:
    """As `to_pdf`, with what the fonts of this machine lack; the PDF says so on its first page."""
    _weasyprint()
    page, pictures = print_html(report)
    lacking = scripts_of(lacking_letters(page))
    if lacking:
        page, pictures = print_html(report, lacking)
    return Printed(_lay_out(page, pictures, identifier=hashlib.sha256(to_json(report).encode()).hexdigest()), lacking)


# ---- the page


def print_html(report: Report, lacking: tuple[Script, ...] = ()) -> tuple[str, frozenset[str]]:
    """The page for paper, and the addresses of the pictures on it: data, drawn by ourselves."""
    views = PrintViews(report)
    t, way = labels(report.language), direction(report.language)
    text, remarks, behind = body(report, views), views.remarks.all, back(report, views)
    context = {
        "report": report,
        "refused": wording.is_refusal(report),
        "t": t,
        "way": way,
        "dir": lambda shown: text_direction(Markup(escape(shown)).striptags(), way),
        "tight": lambda cells: bool(_LONG_WORD.search(" ".join(Markup(escape(c)).striptags() for c in cells))),
        "lang": report.language if _TAG.fullmatch(report.language) else "und",
        "css": Markup(asset("print.css")),
        "running": Markup(_running(t["page_of"], way)),
        "short": _short(report.title),
        "remarks": remarks,
        "signed": views.signed,
        "legend": [(sign, t[v.value]) for v, sign in SIGNS.items() if any(r.verdict is v for r in remarks)],
        "lacking": t["glyphs"].format(scripts=", ".join(s.name for s in lacking)) if lacking else "",
        **front(report),
        **text,
        **behind,
        "score_row": tuple(f"{value:.2f}" for _, value in behind["scores"]),
        "role_rows": [_role_row(role, spent) for role, spent in behind["by_role"]],
    }
    page = _UNPRINTABLE.sub("\ufffd", environment().get_template("print.html.j2").render(context))
    page = re.sub(r">[^<]{500,}", lambda m: _ENDLESS.sub("\\g<0>\u200b", m.group()), page)
    return page, frozenset(c.picture for s in text["sections"] for c in s.charts if c.picture)


def _role_row(role: str, spent: Spent) -> tuple[str, ...]:
    tokens = (f"{spent.tokens_in:,}", f"{spent.tokens_out:,}")
    return (role, f"{spent.calls:,}", *tokens, f"{spent.seconds:.1f}", wording.money(spent.cost))


def _running(page_of: str, way: str) -> str:
    """What stands on every page: the title above, the page's number below."""
    before, rest = page_of.split("{page}")
    between, after = rest.split("{pages}")
    number = f"{_quoted(before)} counter(page) {_quoted(between)} counter(pages) {_quoted(after)}"
    start, end = ("right", "left") if way == "rtl" else ("left", "right")
    return (
        f"@page {{ @top-{start} {{ content: string(short); text-align: {start}; width: 100%; }}"
        f" @bottom-{end} {{ content: {number}; }} @bottom-{start} {{ content: string(origin); }} }}"
    )


def _quoted(text: str) -> str:
    return '"' + "".join(f"\\{ord(c):06x}" if c in '"\\<\n' else c for c in text) + '"'


def _short(title: str) -> str:
    return title if len(title) <= _RUNNING else title[: _RUNNING - 1].rstrip() + "…"


# ---- WeasyPrint


def _weasyprint() -> Any:
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints advice of its own there
            import weasyprint
    except (ImportError, OSError) as exc:
        why = f"a library is missing ({' '.join(str(exc).split())[:100]})"
        raise FormatUnavailable("PDF", why, f"`apt-get install {' '.join(PACKAGES)}` brings it") from None
    logging.getLogger(
        "weasyprint"
    ).propagate = False  # its remarks on letters and links are for us, not for a service's log
    return weasyprint


def _lay_out(page: str, pictures: frozenset[str], **options: Any) -> bytes:
    if len(page) - sum(map(len, pictures)) > MAX_LETTERS:
        raise FormatUnavailable("PDF", f"the report is too large to lay out ({len(page):,} letters)", "export HTML")
    weasyprint = _weasyprint()
    identifier = options.pop("identifier").encode()
    document = weasyprint.HTML(string=page, url_fetcher=_fetcher(pictures))
    content: bytes = document.write_pdf(pdf_variant="pdf/ua-1", pdf_identifier=identifier)
    return content


def _fetcher(pictures: frozenset[str]) -> URLFetcher:
    from weasyprint.urls import URLFetcher

    class OwnPicturesOnly(URLFetcher):  # type: ignore[misc]
        """Hands out the pictures that this report's own page holds; no file, no network, no other data."""

        def fetch(self, url: str, headers: dict[str, str] | None = None) -> Any:
            if url not in pictures:
                raise PermissionError(f"a report loads nothing, and so not {url[:100]}")
            return super().fetch(url, headers)

    return OwnPicturesOnly(allowed_protocols={"data"})


# ---- letters that no font has


def lacking_scripts(report: Report) -> tuple[Script, ...]:
    """What `to_pdf` cannot draw of the report on this machine.

    Raises:
        FormatUnavailable: WeasyPrint or a library it stands on is missing.
    """
    _weasyprint()
    return scripts_of(lacking_letters(print_html(report)[0]))


def lacking_letters(page: str) -> str:
    """Those of the page's letters that no font of this machine can draw."""
    letters = sorted(c for c in set(page) if ord(c) > 0xFF and unicodedata.category(c)[0] not in "CMZ")
    return _undrawable("".join(letters))


@lru_cache(maxsize=32)
def _undrawable(letters: str) -> str:
    """Found by drawing each of them once."""
    if not letters:
        return ""
    page = f'<html lang="und"><style>{asset("print.css")}</style><p>{escape(" ".join(letters))}</p></html>'
    with _notdef() as found:
        _lay_out(page, frozenset(), identifier="letters")
    return "".join(sorted(found))


@contextlib.contextmanager
def _notdef() -> Iterator[set[str]]:
    """The letters for which WeasyPrint logs, in this thread, that it draws an empty box."""
    found: set[str] = set()
    thread = threading.get_ident()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread and ".notdef" in str(record.msg) and isinstance(record.args, tuple):
                found.add(str(record.args[0]))

    logger, listener = logging.getLogger("weasyprint"), Listener(logging.WARNING)
    logger.addHandler(listener)
    try:
        yield found
    finally:
        logger.removeHandler(listener)
