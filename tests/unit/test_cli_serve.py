"""`marg serve` before anything is started: what is wrong is said in a sentence, with exit code 2."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marg_ray.cli.serve_run import Wanted, check_free, earlier_holders, run_service
from marg_ray.errors import UsageError
from marg_ray.settings import Settings


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


def refused(tmp_path: Path, *docs: Path, **service: Any) -> UsageError:
    settings = Settings.model_validate({"home": tmp_path / "home", "service": service})
    with pytest.raises(UsageError) as told:
        run_service(settings, Wanted(docs=docs, browser=False))
    assert told.value.exit_code == 2
    assert not (tmp_path / "home").exists(), "something was started"
    return told.value


def test_a_port_that_is_taken(tmp_path: Path, taken: int) -> None:
    assert str(refused(tmp_path, port=taken)) == f"port {taken} is taken on 127.0.0.1"


def test_an_address_that_is_not_this_machines(tmp_path: Path) -> None:
    assert "cannot be listened on" in str(refused(tmp_path, host="192.0.2.77", auth="on"))


def test_no_keys_where_others_reach_it(tmp_path: Path) -> None:
    assert "service.auth off" in str(refused(tmp_path, host="0.0.0.0", auth="off"))


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    assert "there is no folder" in str(refused(tmp_path, tmp_path / "papers"))


def test_a_port_is_free_again_at_once() -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), sock.accept()[0]:
            pass
    check_free("127.0.0.1", port)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"holders": 5}', '{"holders": "abc"}', '{"other": []}', '"x"'])
def test_a_note_that_cannot_be_read_names_nobody(tmp_path: Path, text: str) -> None:
    note = tmp_path / "service.json"
    note.write_text(text)
    assert earlier_holders(note) == []
    assert earlier_holders(tmp_path / "none.json") == []


def test_the_note_names_the_servers_before(tmp_path: Path) -> None:
    note = tmp_path / "service.json"
    note.write_text(json.dumps({"holders": ["vm/1/2/marg/a", 5, "vm/3/4/marg/b"]}))
    assert earlier_holders(note) == ["vm/1/2/marg/a", "vm/3/4/marg/b"]
