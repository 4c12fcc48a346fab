"""Figures of several processes as Prometheus reads them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING

from marg_ray.telemetry.figures import METRICS, Labels, Metric, Spread, Taken

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OWNER = "actor"
"""The label that names the process. A sum over processes would fall when one starts again, and `rate` would take the
rest for new."""


def exposition(taken: Mapping[str, Taken]) -> bytes:
    """All figures in Prometheus text format, by the name of the process that counted them."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class _Of(Collector):
        def collect(self) -> Iterator[Family]:
            return families(taken)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Of())
    return generate_latest(registry)


def families(taken: Mapping[str, Taken]) -> Iterator[Family]:
    """Every metric of the table that somebody has a value of."""
    seen: dict[str, list[tuple[Labels, float | Spread]]] = defaultdict(list)
    for actor, figures in sorted(taken.items()):
        for (name, labels), value in sorted(figures.values.items()):
            seen[name].append(((actor, *labels), value))
        for (name, labels), spread in sorted(figures.spreads.items(), key=itemgetter(0)):
            seen[name].append(((actor, *labels), spread))
    for metric in METRICS.values():
        if metric.name in seen:
            yield _family(metric, seen[metric.name])


def _family(metric: Metric, seen: Sequence[tuple[Labels, float | Spread]]) -> Family:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    labels = [OWNER, *metric.labels]
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=labels)
        bounds = [*map(_bound, metric.buckets), "+Inf"]
        for place, spread in seen:
            assert isinstance(spread, Spread)
            buckets = list(zip(bounds, map(float, accumulate(spread.counts)), strict=True))
            histogram.add_metric(place, buckets, spread.total)
        return histogram
    made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = made(metric.name, metric.help, labels=labels)
    for place, value in seen:
        assert isinstance(value, float | int)
        family.add_metric(place, value)
    return family


def _bound(value: float) -> str:
    return f"{value:g}" if value != int(value) else f"{value:.1f}"
