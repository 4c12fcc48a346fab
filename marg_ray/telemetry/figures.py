"""Figures for Prometheus: numbers in a dictionary of this process, and the table of all there are.

Each process counts what it sees; `Taken` is what another one gets of it. prometheus_client is not needed to count: it
would cost every process its import, and it keeps locks that one event loop has no use for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Labels: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[str, Labels]  # a metric's name, and the values of its labels in the table's order

CALLS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TASKS_S = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
SESSIONS_S = (3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
REQUESTS_S = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Metric:
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: Labels = ()
    buckets: tuple[float, ...] = ()  # upper bounds of a histogram, rising


def _counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "counter", help, labels)


def _gauge(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "gauge", help, labels)


def _histogram(name: str, buckets: tuple[float, ...], help: str, *labels: str) -> Metric:
    return Metric(name, "histogram", help, labels, buckets)


_ALL = (
    _gauge("marg_sessions", "Sessions in the store.", "status"),
    _counter("marg_sessions_started_total", "Sessions that were accepted.", "priority"),
    _counter("marg_sessions_ended_total", "Sessions that came to an end, or a halt.", "status"),
    _histogram("marg_session_seconds", SESSIONS_S, "Work on a session, without waiting for its owner.", "status"),
    _gauge("marg_places", "Sessions at the desk: those that run, and those that wait for a place.", "state"),
    _gauge("marg_places_limit", "Sessions that may run now."),
    _counter("marg_takeovers_total", "Sessions that were taken up from a log, after a crash or by a resume."),
    _counter("marg_tasks_total", "Tasks that agents answered.", "role", "kind", "outcome"),
    _histogram("marg_task_seconds", TASKS_S, "From handing a task out to its answer.", "role", "kind"),
    _gauge("marg_tasks_running", "Tasks that agents have in hand.", "role", "kind"),
    _counter("marg_tasks_again_total", "Tasks that were handed out again.", "kind", "reason"),
    _counter("marg_sentences_total", "Sentences that were checked.", "verdict"),
    _histogram("marg_review_scores", SCORES, "The critic's scores, of every round.", "score"),
    _counter("marg_model_calls_total", "Tries at a model.", "tier", "model", "outcome"),
    _counter("marg_model_tokens_total", "Tokens that models read and wrote.", "tier", "model", "direction"),
    _counter("marg_model_cost_dollars_total", "US dollars that models cost.", "tier", "model"),
    _histogram("marg_model_seconds", CALLS_S, "One task at a model, with its retries.", "model"),
    _counter("marg_model_throttled_total", "Answers that said too many requests.", "model"),
    _counter("marg_escalations_total", "Tasks that were raised to the strong tier.", "outcome"),
    _counter("marg_searches_total", "Web searches, by the engine that was asked.", "engine", "outcome"),
    _histogram("marg_search_seconds", CALLS_S, "One web search, with its retries.", "engine"),
    _counter("marg_fetches_total", "Pages that were fetched.", "outcome"),
    _histogram("marg_fetch_seconds", CALLS_S, "One page, from its address to its frozen text."),
    _counter("marg_cache_lookups_total", "Looks into the caches.", "space", "outcome"),
    _gauge("marg_cache_entries", "Values in the caches.", "space"),
    _counter("marg_ledger_calls_total", "Calls that the ledger was asked for.", "kind", "outcome"),
    _counter("marg_ledger_refusals_total", "Calls that a session's limit left no room for.", "limit"),
    _counter("marg_http_requests_total", "Requests that the service answered.", "method", "route", "status"),
    _histogram("marg_http_request_seconds", REQUESTS_S, "Requests, without those that stream.", "route"),
    _gauge("marg_http_streams", "Event streams that are being read.", "route"),
    _counter("marg_traces_total", "Traces for the collector.", "outcome"),
    _gauge("marg_actor_up", "Whether a process answered when it was asked for its figures."),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}


@dataclass
class Spread:
    """A histogram's content: how many values fell into each bucket (the last one has no upper bound), and their sum."""

    counts: list[int]
    total: float = 0.0


@dataclass(frozen=True)
class Taken:
    """The figures of a process at one moment; goes from process to process."""

    values: dict[Place, float] = field(default_factory=dict)
    spreads: dict[Place, Spread] = field(default_factory=dict)


class Figures:
    """What one process has counted since it started. Labels are given by value, in the order of the table."""

    def __init__(self) -> None:
        self._values: dict[Place, float] = {}
        self._spreads: dict[Place, Spread] = {}

    def count(self, name: str, *labels: str, by: float = 1.0) -> None:
        place = (name, labels)
        self._values[place] = self._values.get(place, 0.0) + by

    def set(self, name: str, value: float, *labels: str) -> None:
        self._values[name, labels] = value

    def observe(self, name: str, value: float, *labels: str) -> None:
        place, buckets = (name, labels), METRICS[name].buckets
        spread = self._spreads.get(place)
        if spread is None:
            spread = self._spreads[place] = Spread([0] * (len(buckets) + 1))
        spread.counts[bisect_left(buckets, value)] += 1
        spread.total += value

    def get(self, name: str, *labels: str) -> float:
        """A counter's or a gauge's value; of a histogram how many values it has seen."""
        if (spread := self._spreads.get((name, labels))) is not None:
            return sum(spread.counts)
        return self._values.get((name, labels), 0.0)

    def clear(self, name: str) -> None:
        """Set a gauge to nothing under every label it has, before it is set anew."""
        for place in [p for p in self._values if p[0] == name]:
            self._values[place] = 0.0

    def taken(self) -> Taken:
        spreads = {place: Spread(list(s.counts), s.total) for place, s in list(self._spreads.items())}
        return Taken(dict(self._values), spreads)


FIGURES = Figures()
"""This process's."""
