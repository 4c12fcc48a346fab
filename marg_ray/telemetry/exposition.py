"""Figures of several processes as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from marg_ray.telemetry.figures import METRICS, Metric, Taken

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
    for metric in METRICS.values():
        family = _family(metric)
        for actor, figures in sorted(taken.items()):
            _add(family, metric, actor, figures)
        if family.samples:
            yield family


def _family(metric: Metric) -> Family:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    labels = [OWNER, *metric.labels]
    match metric.kind:
        case "counter":
            return CounterMetricFamily(metric.name, metric.help, labels=labels)
        case "gauge":
            return GaugeMetricFamily(metric.name, metric.help, labels=labels)
        case "histogram":
            return HistogramMetricFamily(metric.name, metric.help, labels=labels)


def _add(family: Family, metric: Metric, actor: str, figures: Taken) -> None:
    from prometheus_client.core import HistogramMetricFamily

    if isinstance(family, HistogramMetricFamily):
        bounds = [*map(_bound, metric.buckets), "+Inf"]
        for (name, labels), spread in sorted(figures.spreads.items()):
            if name == metric.name:
                buckets = list(zip(bounds, map(float, accumulate(spread.counts)), strict=True))
                family.add_metric([actor, *labels], buckets, spread.total)
        return
    for (name, labels), value in sorted(figures.values.items()):
        if name == metric.name:
            family.add_metric([actor, *labels], value)  # type: ignore[attr-defined]


def _bound(value: float) -> str:
    return f"{value:g}" if value != int(value) else f"{value:.1f}"
