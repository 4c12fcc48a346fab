"""Keys are taken out of what is written."""

from __future__ import annotations

import logging
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.api.keys import new_key
from marg_ray.masking import mask_logs, masked

TEXT, ROW = new_key("ann")
SECRET = TEXT.rsplit("_", 1)[1]


def test_of_a_key_its_id_is_left() -> None:
    assert masked(f"Bearer {TEXT}, and {TEXT}!") == f"Bearer marg_{ROW.id}_..., and marg_{ROW.id}_...!"
    assert masked(TEXT[:40]) == f"marg_{ROW.id}_..."  # a part of one
    assert masked(TEXT.replace("_", "%5F")) == f"marg%5F{ROW.id}%5F..."
    assert masked(TEXT.upper()) == f"MARG_{ROW.id.upper()}_..."


@given(st.text())
def test_other_text_stays_as_it_is(text: str) -> None:
    assert masked(f"marg_ray {text} marg_0123") == f"marg_ray {text} marg_0123"


class Odd:
    def __str__(self) -> str:
        return f"<{TEXT}>"


@pytest.mark.parametrize(
    ("message", "args"),
    [
        (TEXT, ()),
        ("GET %s", (f"/v1/research?key={TEXT}",)),
        ("%(path)s", ({"path": TEXT},)),
        ("%s: %s %d %s", (Odd(), ValueError(TEXT), 3, None)),
        (ValueError(TEXT), ()),
        ('%s - "%s %s HTTP/%s" %d', ("127.0.0.1:5", "GET", f"/?{TEXT}", "1.1", 200)),  # as uvicorn's access log
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_log_record_holds_a_key(message: object, args: tuple[object, ...], caplog: pytest.LogCaptureFixture) -> None:
    mask_logs()
    mask_logs()  # twice is once
    logging.getLogger("somebody.else").error(message, *args)
    (record,) = caplog.records
    assert ROW.id in caplog.text
    assert SECRET[:8] not in caplog.text
    assert SECRET[:8] not in f"{record.__dict__}"
    assert len(record.args or ()) == len(args)


def test_no_traceback_holds_a_key(caplog: pytest.LogCaptureFixture) -> None:
    mask_logs()
    try:
        raise ValueError(f"{TEXT} is no number")
    except ValueError:
        logging.getLogger("somebody.else").exception("failed")
    assert "Traceback" in caplog.text
    assert f"marg_{ROW.id}_..." in caplog.text
    assert SECRET[:8] not in caplog.text


def test_what_the_store_keeps_does_not_hold_the_secret() -> None:
    assert SECRET.encode() not in pickle.dumps(ROW.model_dump())
