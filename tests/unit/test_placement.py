"""Where actors may run, worked out from settings and from what Ray says of its nodes."""

from __future__ import annotations

import copy
import logging
import pickle
from pathlib import Path

import pytest

from marg_ray.actors.deploy.machines import is_file, shared_folders, stays_together, together_warning
from marg_ray.actors.deploy.placement import Lookout, Needs, Node, NoPlace, check, kind_of, needs_of, options_of
from marg_ray.errors import RuntimeUnavailable, UsageError
from marg_ray.settings import RuntimeSettings, load

HEAD = Node("h", "one", {"CPU": 2})
CREW = Node("c", "one", {"CPU": 4, "crew": 2}, {"pool": "cpu"})
SPOT = Node("s", "two", {"CPU": 4, "crew": 1}, {"pool": "spot"})
NODES = [HEAD, CREW, SPOT]


def runtime(**fields: object) -> RuntimeSettings:
    return RuntimeSettings.model_validate({"ray_address": "head:6379", **fields})


@pytest.mark.parametrize(
    ("actor", "kind"),
    [("worker:3", "worker"), ("agent:critic", "critic"), ("coordinator:0", "coordinator"), ("ledger", "ledger")],
)
def test_an_actors_name_tells_its_kind(actor: str, kind: str) -> None:
    assert kind_of(actor) == kind


def test_a_kinds_own_place_comes_before_that_of_all() -> None:
    given = runtime(
        placement={"all": {"crew": 0.01, "disk": 1}, "worker": {"crew": 1, "disk": 0}},
        labels={"all": {"pool": "cpu"}, "critic": {"pool": "!spot"}},
    )
    assert needs_of(given, "worker:0") == Needs({"crew": 1}, {"pool": "cpu"})
    assert needs_of(given, "agent:critic") == Needs({"crew": 0.01, "disk": 1}, {"pool": "!spot"})
    assert not needs_of(runtime(), "worker:0")


def test_what_ray_has_an_option_of_its_own_for_is_given_there() -> None:
    needs = Needs({"CPU": 0.5, "GPU": 1, "memory": 1024, "crew": 1}, {"pool": "cpu"})
    expected = {"num_cpus": 0.5, "num_gpus": 1, "memory": 1024, "resources": {"crew": 1}}
    assert needs.options() == {**expected, "label_selector": {"pool": "cpu"}}
    assert Needs().options() == {}


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("placement", {"worker": {"crew": -1}}, "crew"),
        ("placement", {"all": {"crew": 1.5}}, "crew"),
        ("labels", {"worker": {"pool": "in(a"}}, "pool"),
        ("labels", {"worker": {"po ol": "a"}}, "po ol"),
        ("labels", {"worker": {"pool": "not in(a)"}}, "pool"),
    ],
)
def test_what_ray_could_not_read_is_the_callers_mistake(field: str, value: object, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        needs_of(runtime(**{field: value}), "worker:0")


def test_a_blank_between_values_is_none_of_a_value() -> None:
    assert needs_of(runtime(labels={"all": {"pool": "in(cpu, spot)"}}), "ledger").labels == {"pool": "in(cpu,spot)"}


@pytest.mark.parametrize(
    ("needs", "fit"),
    [
        (Needs(), "hcs"),
        (Needs({"crew": 1}), "cs"),
        (Needs({"crew": 2}), "c"),
        (Needs(labels={"pool": "spot"}), "s"),
        (Needs(labels={"pool": "!spot"}), "hc"),
        (Needs(labels={"pool": "in(cpu, spot)"}), "cs"),
        (Needs(labels={"pool": "!in(cpu,spot)"}), "h"),
        (Needs({"crew": 1}, {"pool": "!cpu"}), "s"),
        (Needs({"crew": 3}), ""),
    ],
)
def test_which_nodes_fit(needs: Needs, fit: str) -> None:
    assert "".join(node.id for node in NODES if needs.fit(node)) == fit


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        (Needs({"crew": 1}), ""),
        (Needs({"crews": 1}), "no node has 1 of the resource 'crews' (none has any)"),
        (Needs({"crew": 3}), "no node has 3 of the resource 'crew' (the largest has 2)"),
        (Needs(labels={"pool": "gpu"}), "no node has the label pool=gpu (there is cpu, spot)"),
        (Needs(labels={"zone": "a"}), "no node has the label zone=a (there is none)"),
        (Needs({"crew": 2}, {"pool": "spot"}), "no node has the resource 'crew' and the label pool=spot at once"),
    ],
)
def test_what_no_node_has_is_named(needs: Needs, said: str) -> None:
    assert needs.lacking(NODES) == said


def test_an_actor_that_no_node_can_hold_is_refused() -> None:
    with pytest.raises(NoPlace) as refused:
        check(runtime(placement={"worker": {"crews": 1}}), ["coordinator:0", "worker:0"], NODES)
    error = refused.value
    assert isinstance(error, RuntimeUnavailable)
    assert (error.exit_code, error.retryable) == (5, False)
    assert str(error) == (
        "the Ray at head:6379 has no place for worker:0: no node has 1 of the resource 'crews' (none has any)"
    )
    assert "MARG_RUNTIME__AUTOSCALED" in error.hint
    again = pickle.loads(pickle.dumps(copy.copy(error)))
    assert (type(again), str(again)) == (NoPlace, str(error))


def test_where_nodes_start_on_demand_a_missing_one_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    check(runtime(placement={"worker": {"crews": 1}}, autoscaled=True), ["worker:0"], NODES)
    assert "worker:0 waits for a node: no node has 1 of the resource 'crews'" in caplog.text


def test_more_actors_than_a_pool_can_hold_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    check(runtime(placement={"worker": {"crew": 1}}), ["worker:0", "worker:1", "worker:2"], NODES)
    assert caplog.text == ""
    check(runtime(placement={"worker": {"crew": 1}}), [f"worker:{n}" for n in range(4)], NODES)
    assert "all actors ask for 4 of the resource 'crew', all nodes have 3" in caplog.text


def test_workers_spread_over_a_ray_that_is_attached_to() -> None:
    ids = [f"{n:056x}" for n in range(4)]
    gpu = Node(ids[0], "one", {"CPU": 8, "GPU": 1, "crew": 1})
    idle = Node(ids[1], "one", {"crew": 1})
    plain = [Node(id, "two", {"CPU": 2, "crew": 1}) for id in ids[2:]]
    nodes = [gpu, idle, *plain]

    def seat(actor: str, nodes: list[Node], **fields: object) -> str:
        strategy = options_of(runtime(**fields), actor, nodes)["scheduling_strategy"]
        assert strategy.soft  # it may go elsewhere
        return str(strategy.node_id)

    assert [seat(f"worker:{n}", nodes) for n in range(3)] == [ids[2], ids[3], ids[2]]
    assert seat("worker:1", [gpu, idle]) == ids[0]  # tasks run there
    assert seat("worker:1", [idle]) == ids[1]
    assert seat("worker:1", nodes, placement={"worker": {"GPU": 1}}) == ids[0]
    assert options_of(runtime(spread=False), "worker:0", nodes) == {}
    assert options_of(runtime(), "ledger", nodes) == {}


def test_a_worker_whose_nodes_are_still_to_come_is_spread_by_ray() -> None:
    both = options_of(runtime(placement={"all": {"crew": 1}}), "worker:0", [HEAD])
    assert both == {"resources": {"crew": 1}, "scheduling_strategy": "SPREAD"}


def test_actors_beside_a_databases_file_stay_with_it_unless_they_are_placed() -> None:
    kept = options_of(runtime(), "worker:0", NODES, "ab" * 28)["scheduling_strategy"]
    assert (kept.node_id, kept.soft) == ("ab" * 28, False)
    placed = options_of(runtime(placement={"ledger": {"crew": 1}}), "ledger", NODES, "ab" * 28)
    assert placed == {"resources": {"crew": 1}}


# ---- actors that wait


def test_an_actor_that_waits_is_told_of_once_and_when_it_waits_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    lookout = Lookout(runtime(placement={"worker": {"crew": 1}}))
    free = {"c": {"CPU": 4.0}, "s": {"CPU": 4.0}}
    for _ in range(2):
        lookout.look(["worker:1"], NODES, free)
    assert [r.getMessage() for r in caplog.records] == [
        "worker:1 waits for a node: all are in use: no node has 1 of the resource 'crew' (none has any)"
    ]
    lookout.look([], NODES, free)
    assert caplog.records[-1].getMessage() == "worker:1 waits no longer"


def test_an_actor_whose_pool_is_gone_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    Lookout(runtime(labels={"critic": {"pool": "spot"}})).look(["agent:critic", "ledger"], [HEAD, CREW], {})
    (record,) = caplog.records
    assert record.getMessage() == "agent:critic waits for a node: no node has the label pool=spot (there is cpu)"
    assert record.levelno == logging.WARNING


def test_an_actor_leaves_a_cordoned_node_if_it_can_go_elsewhere() -> None:
    lookout = Lookout(runtime(placement={"worker": {"crew": 2}, "critic": {"crew": 1}}))
    placed = {"worker:0": "c", "agent:critic": "c", "ledger": "c"}  # and c takes no more work
    assert lookout.leaving(placed, [HEAD, SPOT]) == ["agent:critic", "ledger"]
    assert lookout.leaving(placed, NODES) == []


# ---- several machines


@pytest.mark.parametrize(
    ("url", "file"), [("", True), ("sqlite+aiosqlite:////srv/marg.db", True), ("postgresql+asyncpg://db/marg", False)]
)
def test_a_database_in_a_file_holds_the_actors_together_on_several_machines(
    url: str, file: bool, tmp_path: Path
) -> None:
    settings = load(home=tmp_path, store={"url": url})
    assert is_file(url) is file
    assert stays_together(settings, NODES) is file
    assert not stays_together(settings, [HEAD, CREW])  # two nodes of one machine
    growing = load(home=tmp_path, store={"url": url}, runtime={"autoscaled": True})
    assert stays_together(growing, [HEAD, CREW]) is file


def test_the_warning_says_what_to_set(tmp_path: Path) -> None:
    said = together_warning(load(home=tmp_path))
    assert str(tmp_path / "marg.db") in said
    assert "MARG_STORE__URL" in said
    assert "MARG_STORE__FILES" in said


@pytest.mark.parametrize(("files", "folders"), [("", ["home"]), ("s3://b/x", ["home"]), ("shared", ["home", "shared"])])
def test_folders_that_every_machine_needs(files: str, folders: list[str], tmp_path: Path) -> None:
    where = files if "://" in files or not files else str(tmp_path / files)
    settings = load(home=tmp_path / "home", store={"files": where})
    assert shared_folders(settings) == [tmp_path / name for name in folders]
