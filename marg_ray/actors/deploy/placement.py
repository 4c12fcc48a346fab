"""Where actors may run: what the settings ask of a node, and whether there is a node that has it.

A pool is a custom resource, or a label, that some nodes are started with. `runtime.placement` names the resources that
the actors of a kind take up, `runtime.labels` what their node must be labelled; `all` stands for every kind, and what a
kind has of its own comes before it. Ray itself waits in silence for a node that never comes; `check` does not.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from marg_ray.errors import RuntimeUnavailable, UsageError
from marg_ray.settings import Place, RuntimeSettings

log = logging.getLogger(__name__)

V = TypeVar("V")

OWN_OPTIONS = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}  # what Ray has an option of its own for


class NoPlace(RuntimeUnavailable):
    """No node of the Ray can hold an actor. The reason names the actor, and the resource or label."""

    retryable = False

    def __str__(self) -> str:
        return f"the Ray at {self.address} has no place for {self.reason}"

    @property
    def hint(self) -> str:
        return (
            "start a node with it, or change runtime.placement and runtime.labels; where nodes start on demand, set "
            "MARG_RUNTIME__AUTOSCALED=true"
        )


@dataclass(frozen=True)
class Node:
    """What Ray says of a node that takes work."""

    id: str
    host: str
    resources: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Needs:
    """What an actor asks of its node. Labels map a key to `value`, `!value`, `in(a, b)` or `!in(a, b)`."""

    resources: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.resources or self.labels)

    def options(self) -> dict[str, Any]:
        """The same as options of `ray.remote`."""
        given: dict[str, Any] = {OWN_OPTIONS[r]: n for r, n in self.resources.items() if r in OWN_OPTIONS}
        own = {r: n for r, n in self.resources.items() if r not in OWN_OPTIONS}
        return (
            given | ({"resources": own} if own else {}) | ({"label_selector": dict(self.labels)} if self.labels else {})
        )

    def fit(self, node: Node) -> bool:
        return not self._short(node) and all(_matches(rule, node.labels.get(k)) for k, rule in self.labels.items())

    def lacking(self, nodes: Sequence[Node]) -> str:
        """Why none of the nodes will do, with the resource or label by its name; empty if one does."""
        if any(self.fit(node) for node in nodes):
            return ""
        for name, amount in self.resources.items():
            most = max((node.resources.get(name, 0) for node in nodes), default=0)
            if most < amount:
                largest = f"the largest has {most:g}" if most else "none has any"
                return f"no node has {amount:g} of the resource {name!r} ({largest})"
        for key, rule in self.labels.items():
            if not any(_matches(rule, node.labels.get(key)) for node in nodes):
                there = sorted({node.labels[key] for node in nodes if key in node.labels})
                return f"no node has the label {key}={rule} (there is {', '.join(there) or 'none'})"
        wanted = [
            *(f"the resource {r!r}" for r in self.resources),
            *(f"the label {k}={r}" for k, r in self.labels.items()),
        ]
        return f"no node has {' and '.join(wanted)} at once"

    def _short(self, node: Node) -> bool:
        return any(node.resources.get(name, 0) < amount for name, amount in self.resources.items())


def kind_of(actor: str) -> str:
    """`worker:1` is a worker, `agent:critic` a critic."""
    head, _, rest = actor.partition(":")
    return rest if head == "agent" else head


def needs_of(runtime: RuntimeSettings, actor: str) -> Needs:
    """What the actor of a name asks of its node.

    Raises:
        UsageError: Ray could not read it.
    """
    kind = kind_of(actor)
    resources, rules = _of(runtime.placement, kind), _of(runtime.labels, kind)
    for name, amount in resources.items():
        if amount < 0 or (amount > 1 and amount != int(amount)):
            raise UsageError(
                f"setting runtime.placement.{kind}: {amount:g} of {name!r} cannot be had",
                "give a whole number, or a part of one",
            )
    for key, rule in rules.items():
        if not _readable(key, rule):
            raise UsageError(
                f"setting runtime.labels.{kind}: {key}={rule} is not a label rule",
                "write value, !value, in(a, b) or !in(a, b)",
            )
    tight = {key: re.sub(r",\s+", ",", rule) for key, rule in rules.items()}  # Ray takes a blank for part of the value
    return Needs({n: a for n, a in resources.items() if a}, tight)


def _of(by_kind: Mapping[Place, Mapping[str, V]], kind: str) -> dict[str, V]:
    return {name: v for k in ("all", kind) for own, values in by_kind.items() if own == k for name, v in values.items()}


def check(runtime: RuntimeSettings, actors: Iterable[str], nodes: Sequence[Node]) -> None:
    """See to it that every actor can be placed; where nodes start on demand, only say what is missing now.

    Raises:
        NoPlace: no node can hold one of them.
    """
    needs = {actor: needs_of(runtime, actor) for actor in actors}
    for actor, wanted in needs.items():
        if reason := wanted.lacking(nodes):
            if not runtime.autoscaled:
                raise NoPlace(runtime.ray_address, f"{actor}: {reason}")
            log.warning("%s waits for a node: %s", actor, reason)
    for name in {name for wanted in needs.values() for name in wanted.resources}:
        asked = sum(wanted.resources.get(name, 0) for wanted in needs.values())
        there = sum(node.resources.get(name, 0) for node in nodes)
        if asked > there > 0 and not runtime.autoscaled:
            log.warning(
                "all actors ask for %g of the resource %r, all nodes have %g: some will wait", asked, name, there
            )


def options_of(runtime: RuntimeSettings, actor: str, nodes: Sequence[Node], together: str = "") -> dict[str, Any]:
    """Options of `ray.remote` that say where the actor of a name runs.

    Workers go to one fitting node after the other, and elsewhere when theirs takes no more work. `together` is the node
    that actors stay on which have no place of their own; empty lets them go anywhere.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    needs = needs_of(runtime, actor)
    if together and not needs:
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(together, soft=False)}
    options, kind = needs.options(), kind_of(actor)
    if runtime.spread and kind == "worker":
        seats = seats_of(needs, nodes)
        number = int(actor.rpartition(":")[2])
        options[
            "scheduling_strategy"
        ] = (  # Ray's own "SPREAD" may put two actors on one node although others are empty
            NodeAffinitySchedulingStrategy(seats[number % len(seats)].id, soft=True, _spill_on_unavailable=True)
            if seats
            else "SPREAD"
        )
    return options


def seats_of(needs: Needs, nodes: Sequence[Node]) -> list[Node]:
    """The nodes to spread over: that fit; of these, such as take tasks; of these, such as keep no GPU busy."""
    fit = [node for node in nodes if needs.fit(node)]
    working = [node for node in fit if node.resources.get("CPU")] or fit
    plain = [node for node in working if not node.resources.get("GPU")] or working
    return sorted(plain, key=lambda node: node.id)


def nodes_here() -> list[Node]:
    """The nodes of the Ray that this process is connected to, but for those that are being drained."""
    import ray

    leaving: Mapping[str, int] = ray._private.state.state.get_draining_nodes()
    return [
        Node(n["NodeID"], n["NodeManagerHostname"], n["Resources"], n.get("Labels") or {})
        for n in ray.nodes()
        if n["Alive"] and n["NodeID"] not in leaving
    ]


class Lookout:
    """Watches over the places of a runtime's actors.

    Says once of each actor that waits for a node what it waits for, and that it waits no longer. Actors on a node that
    is cordoned (Ray calls it draining: it takes no more work and will go) are started again elsewhere before it goes.
    """

    def __init__(self, runtime: RuntimeSettings) -> None:
        self._runtime = runtime
        self._said: dict[str, str] = {}

    def watch(self, namespace: str, left: threading.Event) -> None:
        """Look every `runtime.probe_s` seconds, until `left` is set."""
        while not left.wait(self._runtime.probe_s):
            try:
                nodes = nodes_here()
                self.look(waiting_here(namespace), nodes, rooms_here())
                for actor in self.leaving(placed_here(namespace), nodes):
                    log.warning("%s leaves its node, which is cordoned", actor)
                    move(actor, namespace)
            except Exception as exc:  # Ray's head is away, or this process is leaving
                log.debug("the actors' places cannot be looked at: %s", exc)

    def look(self, waiting: Iterable[str], nodes: Sequence[Node], rooms: Mapping[str, Mapping[str, float]]) -> None:
        """`rooms` are the resources that are free, by node."""
        free = [replace(node, resources=rooms.get(node.id, {})) for node in nodes]
        found = {}
        for actor in waiting:
            needs = needs_of(self._runtime, actor)
            if reason := needs.lacking(nodes):
                found[actor] = reason
            elif reason := needs.lacking(free):
                found[actor] = f"all are in use: {reason}"
        for actor, reason in found.items():
            if actor not in self._said:
                log.warning("%s waits for a node: %s", actor, reason)
        for actor in self._said.keys() - found.keys():
            log.warning("%s waits no longer", actor)
        self._said = found

    def leaving(self, placed: Mapping[str, str], nodes: Sequence[Node]) -> list[str]:
        """The actors that can go elsewhere from a node that takes no more work; `placed` is each one's node."""
        stay = {node.id for node in nodes}
        return [a for a, node in placed.items() if node not in stay and not needs_of(self._runtime, a).lacking(nodes)]


def placed_here(namespace: str) -> dict[str, str]:
    """Our actors that run on a node that is being drained, with that node's id."""
    import ray._private.state as state

    leaving = state.state.get_draining_nodes()
    if not leaving:
        return {}
    return {name: node for name, node in _ours(namespace, "ALIVE") if node in leaving}


def move(actor: str, namespace: str) -> None:
    """Start an actor again, where Ray finds a place for it; calls that it has in hand are made again there."""
    import ray

    with contextlib.suppress(ValueError):  # it is gone by itself
        ray.kill(ray.get_actor(actor, namespace), no_restart=False)


def waiting_here(namespace: str) -> list[str]:
    """Our actors that were created and run nowhere."""
    return [name for state in ("PENDING_CREATION", "RESTARTING") for name, _ in _ours(namespace, state)]


def _ours(namespace: str, in_state: str) -> Iterator[tuple[str, str]]:
    """The names and nodes of actors in a state; the table of actors does not say in which namespace they are."""
    import ray
    import ray._private.state as state

    for actor in state.actors(actor_state_name=in_state).values():
        with contextlib.suppress(ValueError):  # nobody in this namespace has the name
            if actor["Name"] and ray.get_actor(actor["Name"], namespace)._actor_id.hex() == actor["ActorID"]:
                yield actor["Name"], actor["Address"]["NodeID"]


def rooms_here() -> dict[str, Mapping[str, float]]:
    import ray._private.state as state

    return dict(state.available_resources_per_node())


_RULE = re.compile(r"(?P<no>!?)(?:in\((?P<several>[^()]*)\)|(?P<one>[^!()]*))")


def _matches(rule: str, label: str | None) -> bool:
    found = _RULE.fullmatch(rule)
    if found is None:
        return False
    several = found["several"]
    values = [found["one"]] if several is None else [v.strip() for v in several.split(",")]
    return (label in values) != bool(found["no"])


def _readable(key: str, rule: str) -> bool:
    from ray._private.label_utils import validate_label_selector

    return validate_label_selector({key: rule}) is None
