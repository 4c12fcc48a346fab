from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.sources.urls import (
    _PLAIN,
    _read,
    ascii_host,
    host_of,
    is_web_url,
    normalise_url,
    safe_href,
    split_web,
    web_url,
)
from tests.shared import case_file, needs_shared


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.test/x", "https://a.test/x"),
        ("https://a.test/x/", "https://a.test/x"),
        ("https://a.test", "https://a.test/"),
        ("https://A.TEST:443/x", "https://a.test/x"),
        ("https://www.a.test/x", "https://a.test/x"),
        ("https://m.a.test/x", "https://a.test/x"),
        ("https://en.m.wikipedia.org/wiki/Tide", "https://en.wikipedia.org/wiki/Tide"),
        ("https://a.test/x?utm_source=n&id=3&fbclid=9", "https://a.test/x?id=3"),
        ("https://a.test/x?b=2&a=1", "https://a.test/x?a=1&b=2"),
        ("https://a.test/x#part", "https://a.test/x"),
        ("https://a.test/%7Ejo/%c3%bc", "https://a.test/~jo/ü"),
        ("https://a.test/b/../x", "https://a.test/x"),
        ("https://MÜNCHEN.test/", "https://xn--mnchen-3ya.test"),
    ],
)
def test_the_same_page_has_one_key(one: str, other: str) -> None:
    assert normalise_url(one) == normalise_url(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.test/x", "https://a.test/X"),
        ("https://a.test/x?id=3", "https://a.test/x?id=4"),
        ("https://a.test:8080/x", "https://a.test/x"),
        ("https://m.co/x", "https://co/x"),
        ("https://www.com/x", "https://com/x"),
        ("https://app.test/#/one", "https://app.test/#/two"),
        ("https://a.test/x?p=1&p=2", "https://a.test/x?p=1"),
        ("https://media.a.test/x", "https://a.test/x"),
        ("https://a.test/a%2Fb", "https://a.test/a/b"),
    ],
)
def test_other_pages_have_other_keys(one: str, other: str) -> None:
    assert normalise_url(one) != normalise_url(other)


@given(st.text())
def test_any_text_has_a_stable_key(text: str) -> None:
    key = normalise_url(text)
    assert normalise_url(key) == key


@pytest.mark.parametrize(
    "spelling",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "127.0.0.1.",
    ],
)
def test_an_ipv4_address_has_one_spelling(spelling: str) -> None:
    assert ascii_host(spelling) == "127.0.0.1"


@pytest.mark.parametrize(
    "bad",
    [
        "", "/etc/hostname", "http://", "http:///path", "http://[::1", "http://exa mple.org/", "file:///etc/hostname",
        "javascript:alert(1)", "mailto:a@b.test", "data:text/html,x", "http:\\\\a.test/", "http://a.test\\@b.test/",
        "http://u:p@a.test/", "http://a.test:99999/", "http://1.2.3.4.5/", "http://256.1/", "http://0x1g.0.0.1/",
        "http://08.0.0.1/", "http://a..test/", "http://%31%32%37.0.0.1/", "http://a\tb.test/", "http://-/", "jar:http://x!/a",
    ],
)  # fmt: skip
def test_what_is_no_web_address(bad: str) -> None:
    assert not is_web_url(bad)
    assert safe_href(bad) == ""
    assert web_url(bad) == ""


def test_a_link_in_a_report_is_encoded() -> None:
    href = safe_href('https://a.test/x"><script>/ü?q=<b>"&r=1#frag"')
    assert href == "https://a.test/x%22%3E%3Cscript%3E/%C3%BC?q=%3Cb%3E%22&r=1#frag%22"
    assert safe_href("https://a.test/p%20q?x=%2B") == "https://a.test/p%20q?x=%2B"
    assert safe_href("https://a.test/p q") == "https://a.test/p%20q"


def test_parts() -> None:
    assert split_web("HTTP://Exam_ple.ORG.:80/a?b#c") == ("http", "exam_ple.org", 80, "/a", "b", "c")
    assert str(split_web("https://[2001:DB8::1]:8443/")) == "https://[2001:db8::1]:8443/"
    assert host_of("https://faß.de/") == "xn--fa-hia.de"


@needs_shared
def test_case_addresses_of_results() -> None:
    entries = json.loads(case_file("SEA-01", "results.json").read_text("utf-8"))
    found = [web_url(e.get("href") or e.get("link") or e.get("url")) for e in entries if isinstance(e, dict)]
    assert [u for u in found if u] == [
        f"https://{n}.test/{c}"
        for n, c in zip(["one", "two", "three", "four", "five", "six", "seven"], "abcdefg", strict=True)
    ]


@given(st.from_regex(_PLAIN, fullmatch=True))
def test_the_short_way_reads_an_address_as_the_long_one_does(url: str) -> None:
    assert split_web(url) == _read(url)
