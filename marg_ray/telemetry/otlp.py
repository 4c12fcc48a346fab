"""Traces for an OpenTelemetry collector, over OTLP/HTTP. Blocking: call it off the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from marg_ray.telemetry.spans import Span, Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

PATH = "/v1/traces"
SERVICE = "marg-ray"
TIMEOUT_S = 10.0  # for one trace, with the exporter's own retries
AT_ONCE = 512  # spans in one request
_CLIENT = frozenset({"model", "search", "fetch"})


def address_of(endpoint: str) -> str:
    """Where traces go: `http://collector:4318` means its usual path; an address with a path is taken as it is."""
    return endpoint.rstrip("/") + PATH if urlsplit(endpoint).path.strip("/") == "" else endpoint


def exporter(endpoint: str, *, timeout_s: float = TIMEOUT_S) -> Callable[[Trace], bool]:
    """Sends a trace to the collector at `endpoint`; says whether it arrived. Does not raise.

    Headers come from the usual OTEL_EXPORTER_OTLP_HEADERS.
    """

    @lru_cache(maxsize=1)
    def sender() -> Any:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)  # what failed is said once, by us
        return OTLPSpanExporter(endpoint=address_of(endpoint), timeout=timeout_s)

    def send(trace: Trace) -> bool:
        from opentelemetry.sdk.trace.export import SpanExportResult

        spans = readable(trace)
        parts = [spans[n : n + AT_ONCE] for n in range(0, len(spans), AT_ONCE)]
        try:
            return all(sender().export(part) is SpanExportResult.SUCCESS for part in parts)
        except Exception:
            return False

    return send


def readable(trace: Trace) -> Sequence[ReadableSpan]:
    """A trace as the SDK's spans. The owner's texts (`about`, `said`) stay here."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    resource = Resource({"service.name": SERVICE, "service.version": _version()})
    scope = InstrumentationScope(SERVICE, _version())
    return [_readable(trace, span, resource, scope) for span in trace.spans]


def _readable(trace: Trace, span: Span, resource: Any, scope: Any) -> ReadableSpan:
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(hexadecimal: str) -> SpanContext:
        return SpanContext(int(trace.id, 16), int(hexadecimal, 16), is_remote=False, trace_flags=TraceFlags(1))

    codes = {"ok": StatusCode.OK, "error": StatusCode.ERROR, "unset": StatusCode.UNSET}
    events = [Event(e.name, dict(e.attributes), _nanoseconds(e.at)) for e in span.events]
    return ReadableSpan(
        name=span.name,
        context=context(span.id),
        parent=context(span.parent) if span.parent else None,
        kind=SpanKind.CLIENT if span.kind in _CLIENT else SpanKind.INTERNAL,
        start_time=_nanoseconds(span.start),
        end_time=_nanoseconds(span.end),
        attributes=dict(span.attributes),
        events=events,
        status=Status(codes[span.status], span.error if span.status == "error" else None),
        resource=resource,
        instrumentation_scope=scope,
    )


def _nanoseconds(at: datetime) -> int:
    return round(at.timestamp() * 1e6) * 1000


def _version() -> str:
    try:
        return version("marg-ray")
    except PackageNotFoundError:
        return "0"
