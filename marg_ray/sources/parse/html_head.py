"""What a page says about itself: title, language, date of publication."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from marg_ray.text import one_line

_DATE = re.compile(r"\b((?:19|20)\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_URL_DATE = re.compile(r"/((?:19|20)\d\d)[/-](0[1-9]|1[0-2])[/-](0[1-9]|[12]\d|3[01])(?=[/-])")
_META_DATES = (
    "article:published_time",
    "datepublished",
    "dc.date.issued",
    "dcterms.issued",
    "dc.date",
    "dcterms.date",
    "citation_publication_date",
    "citation_date",
    "date",
    "pubdate",
    "publish-date",
    "parsely-pub-date",
    "sailthru.date",
    "og:published_time",
    "article:modified_time",
)


@dataclass(frozen=True, slots=True)
class Head:
    title: str
    language: str
    published: str


def read_head(tree: Any, name: str) -> Head:
    metas: dict[str, str] = {}
    for meta in tree.iter("meta"):
        key = (meta.get("property") or meta.get("name") or meta.get("itemprop") or "").lower()
        if key and meta.get("content"):
            metas.setdefault(key, meta.get("content"))
    title_tag = tree.find(".//head/title")
    if title_tag is None:
        title_tag = tree.find(".//title")
    title = one_line(title_tag.text_content()) if title_tag is not None else ""
    title = title or one_line(metas.get("og:title", "") or metas.get("citation_title", ""))
    return Head(title, _language(tree, metas), _published(tree, metas, name))


def _language(tree: Any, metas: dict[str, str]) -> str:
    value = tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang") or tree.get("xml:lang")
    value = value or metas.get("content-language") or metas.get("og:locale") or ""
    m = re.match(r"[A-Za-z]{2}(?=$|[-_])", value.strip())
    return m[0].lower() if m else ""


def _published(tree: Any, metas: dict[str, str], name: str) -> str:
    for key in _META_DATES:
        if date := _iso(metas.get(key, "")):
            return date
    for script in tree.iter("script"):
        if "ld+json" in (script.get("type") or "") and (date := _linked_data(script.text or "")):
            return date
    for time in tree.iter("time"):
        said = time.get("pubdate") is not None or (time.get("itemprop") or "").lower() == "datepublished"
        if said and (date := _iso(time.get("datetime") or "")):
            return date
    m = _URL_DATE.search(name)
    return "-".join(m.groups()) if m else ""


def _iso(value: str) -> str:
    m = _DATE.search(value.replace("/", "-"))
    return "-".join(m.groups()) if m else ""


def _linked_data(text: str) -> str:
    """`datePublished` of the first thing that has one."""
    if "datePublished" not in text or len(text) > 1_000_000:
        return ""
    try:
        stack = [json.loads(text, strict=False)]
    except (ValueError, RecursionError):
        m = re.search(r'"datePublished"\s*:\s*"([^"]{8,40})"', text)
        return _iso(m[1]) if m else ""
    while stack:
        thing = stack.pop(0)
        if isinstance(thing, dict):
            if isinstance(thing.get("datePublished"), str) and (date := _iso(thing["datePublished"])):
                return date
            stack.extend(thing.values())
        elif isinstance(thing, list):
            stack.extend(thing)
    return ""
