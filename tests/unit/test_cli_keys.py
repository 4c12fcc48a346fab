"""`marg keys`: a key is made, shown once, listed without its secret, and ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marg_ray.actors.assembly import Places
from marg_ray.masking import KEY
from tests.unit.test_cli import marg

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def listed(monkeypatch: pytest.MonkeyPatch, printed: Printed, *args: str) -> list[dict[str, object]]:
    assert marg(monkeypatch, "keys", *args, "--json") == 0
    return [json.loads(line) for line in printed.readouterr().out.splitlines()]


def test_a_key_s_life(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    assert marg(monkeypatch, "keys") == 0
    assert "marg keys add" in capsys.readouterr().err
    assert marg(monkeypatch, "keys", "add", "--owner", "ann", "--name", "laptop", "--expires", "90d") == 0
    shown = capsys.readouterr()
    found = KEY.fullmatch(shown.out.strip())
    assert found is not None
    key_id, secret = found.groups()
    assert key_id in shown.err
    assert secret not in shown.err
    (row,) = listed(monkeypatch, capsys)
    assert (row["id"], row["owner"], row["name"], row["scopes"], row["revoked_at"]) == (
        key_id,
        "ann",
        "laptop",
        ["read", "research", "library"],
        None,
    )
    assert "digest" not in row
    assert marg(monkeypatch, "keys", "list") == 0
    line = capsys.readouterr().out
    assert line.split("\t")[0] == key_id
    assert line.split("\t")[1].startswith("until ")
    assert marg(monkeypatch, "keys", "revoke", key_id) == 0
    assert marg(monkeypatch, "keys", "revoke", f"marg_{key_id}_{secret}") == 0
    capsys.readouterr()
    (row,) = listed(monkeypatch, capsys, "list")
    assert row["revoked_at"]
    marg(monkeypatch, "keys")
    assert capsys.readouterr().out.split("\t")[1] == "revoked"
    for path in home.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_keys_of_an_owner(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    for owner in ("ann", "bob", "ann"):
        marg(monkeypatch, "keys", "add", "--owner", owner, "--scope", "read", "--scope", "admin")
    capsys.readouterr()
    assert [row["owner"] for row in listed(monkeypatch, capsys)] == ["ann", "bob", "ann"]
    rows = listed(monkeypatch, capsys, "list", "--owner", "ann")
    assert [row["scopes"] for row in rows] == [["read", "admin"]] * 2
    assert len(listed(monkeypatch, capsys, "--owner", "bob")) == 1


@pytest.mark.parametrize(
    "args",
    [
        ("add",),
        ("add", "--owner", " "),
        ("add", "--owner", "ann", "--scope", "all"),
        ("add", "--owner", "ann", "--expires", "soon"),
        ("add", "--owner", "ann", "--expires", "2020-01-01"),
        ("add", "--owner", "ann", "--name", "a\x1b[0m"),
        ("revoke", "0123456789ab"),
        ("revoke",),
        ("nothing",),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_said(
    home: Path, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    assert marg(monkeypatch, "keys", *args) == 2
    assert "Traceback" not in capsys.readouterr().err
    if Places(home).database.exists():
        assert listed(monkeypatch, capsys) == []
