"""Character sets: what the bytes are, whatever header and page say."""

from __future__ import annotations

import json

import pytest

from marg_ray.errors import Unreadable
from marg_ray.sources.parse import parse
from marg_ray.sources.parse.charset import decode
from tests.shared import case_file

TEXTS = {
    "cp1251": "Приливная электростанция вырабатывает энергию из разницы уровней воды во время прилива и отлива.",
    "koi8-r": "Приливная электростанция вырабатывает энергию из разницы уровней воды во время прилива и отлива.",
    "cp1253": "Η παλιρροϊκή ενέργεια παράγεται από την κίνηση του νερού κατά τις παλίρροιες.",
    "shift_jis": "潮汐発電所の出力は二百四十メガワットです。海の水位は月の引力により変化します。",
    "euc_jp": "潮汐発電所の出力は二百四十メガワットです。海の水位は月の引力により変化します。",
    "iso2022_jp": "潮汐発電所の出力は二百四十メガワットです。",
    "gb2312": "潮汐能是一种可再生能源，由海水的涨落产生，中国的电站在一九八零年建成。",
    "big5": "潮汐能是一種可再生能源，由海水的漲落產生，臺灣的電站在一九八零年建成。",
    "euc_kr": "조력 발전은 밀물과 썰물의 차이를 이용하여 전기를 생산하는 방식이다.",
    "cp1256": "طاقة المد والجزر هي نوع من الطاقة المتجددة",
    "cp1252": "Der Schlüssel für die Südtür ist „nicht“ aufzufinden – das kostet 5 € und viel Mühe, sagte der Wärter.",
    "cp1250": "Energia pływów jest źródłem odnawialnym, którego wartość zależy od różnicy poziomów wody; żółw śpi.",
}


def test_pages_with_wrong_or_missing_declarations() -> None:
    served = json.loads(case_file("PAR-01", "served-as.json").read_text("utf-8"))
    for name, case in served.items():
        body = case_file("PAR-01", name).read_bytes()
        media_type, _, charset = case["content_type"].partition("; charset=")
        texts = []
        for kind, declared in ((media_type, charset), ("", "")):
            document = parse(body, name=name, media_type=kind, charset=declared)
            texts.append(document.text)
            assert all(s in document.text for s in case["must_contain"]), name
            assert (document.text + document.title).count("\ufffd") <= (name == "bad-byte-in-utf8.html"), name
        assert texts[0] == texts[1], name


def test_titles_are_decoded_like_bodies() -> None:
    document = parse(case_file("PAR-01", "gbk-meta-late.html").read_bytes(), name="x.html")
    assert document.title == "潮汐电站"


@pytest.mark.parametrize("charset", TEXTS)
@pytest.mark.parametrize("declared", ["", "iso-8859-1", "utf-8", "no-such-set", "right"])
def test_declared_wrongly_or_not_at_all(charset: str, declared: str) -> None:
    text = TEXTS[charset]
    decoded = decode(text.encode(charset), charset if declared == "right" else declared)
    assert decoded.text == text


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_wide_letters_without_a_mark(charset: str) -> None:
    text = "<html><body><p>Gate number nine is open until noon.</p></body></html>"
    assert decode(text.encode(charset), html=True).text == text


def test_a_page_knows_itself_better_than_the_servers_default() -> None:
    body = '<html><head><meta charset="windows-1251"></head><body>Прилив и отлив</body></html>'.encode("cp1251")
    assert "Прилив и отлив" in decode(body, "ISO-8859-1", html=True).text


def test_language_of_the_page_decides_between_sets() -> None:
    body = '<html lang="tr"><body>Gelgit enerjisi ışık ve şehir</body></html>'.encode("cp1254")
    assert "ışık ve şehir" in decode(body, html=True).text


def test_guesses_are_marked() -> None:
    assert decode(TEXTS["shift_jis"].encode("shift_jis")).guessed
    assert not decode(b"plain").guessed


@pytest.mark.parametrize("label", ["hex", "idna", "unicode_escape", "utf-7", "base64", "", "\x00", "x" * 500])
def test_labels_that_are_no_character_sets(label: str) -> None:
    assert decode("Größe".encode("latin-1"), label).text == "Größe"


def test_nul_letters_in_a_page_are_left_out() -> None:
    text = parse(case_file("PAR-06", "page-with-nul.html").read_bytes(), name="page-with-nul.html").text
    assert "specific gates" in text
    assert "6.4 m 🌊" in text


def test_numeric_entities_of_windows_letters() -> None:
    page = b"<html><body><p>The keeper said &#147;low water&#148; &#150; and left for good.</p></body></html>"
    assert "“low water” – and" in parse(page, name="x.html").text


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(Unreadable, match="binary"):
        parse(bytes(range(256)) * 20, name="x.bin")
