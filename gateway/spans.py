"""Spans of requests in OpenTelemetry's words for generative AI: names and numbers, never content.

This is the only module that knows OpenTelemetry; without a setting that names a collector it is never imported.
"""

import threading
from collections.abc import Mapping, Sequence
from functools import partial

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue
from prometheus_client import CollectorRegistry, Counter

from gateway.admitted import Ended
from gateway.asked import Opened
from gateway.decision import Allowed, Answered, Decision
from gateway.passage import End
from gateway.rate_limit_headers import Header
from gateway.refusals import Refused
from gateway.tracing_settings import TracingSettings

CLOSE_SECONDS = 3.0
_MOST_ID_CHARS = 128
_EVERY_MILLISECONDS = 1000
_TRACE_CONTEXT = TraceContextTextMapPropagator()
_OPERATIONS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "chat",
    "/v1/messages": "chat",
    "/v1/completions": "text_completion",
    "/v1/embeddings": "embeddings",
}
_OTHER = "inference"


class Spans:
    """Begins a span when a request was decided about, and ends it with the request."""

    def __init__(
        self, settings: TracingSettings, registry: CollectorRegistry, exporter: SpanExporter | None = None
    ) -> None:
        real = exporter or OTLPSpanExporter(endpoint=settings.endpoint, timeout=settings.timeout_seconds)
        self._provider = TracerProvider(
            sampler=TraceIdRatioBased(settings.ratio),
            resource=Resource.create({"service.name": "enginehouse-gateway"}),
            shutdown_on_exit=False,
        )
        processor = BatchSpanProcessor(
            _Counted(real, registry),
            max_queue_size=settings.max_waiting_spans,
            schedule_delay_millis=_EVERY_MILLISECONDS,
            max_export_batch_size=min(512, settings.max_waiting_spans),
            export_timeout_millis=settings.timeout_seconds * 1000,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("enginehouse.gateway")

    def begin(self, headers: Mapping[str, str], target: str, decision: Decision) -> tuple[Header, ...]:
        """The headers by which the engine's own span becomes a child of this one; none where none is recorded."""
        if isinstance(decision, Answered | Opened):
            return ()
        operation = _OPERATIONS.get(target.partition("?")[0], _OTHER)
        span = self._tracer.start_span(
            f"{operation} {decision.model}" if decision.model else operation,
            context=_TRACE_CONTEXT.extract({name: headers[name] for name in _TRACE_CONTEXT.fields if name in headers}),
            kind=SpanKind.CLIENT,
            attributes={"gen_ai.operation.name": operation, "gen_ai.provider.name": "enginehouse"},
        )
        if not span.is_recording():
            return ()
        request_id = headers.get("x-request-id", "")[:_MOST_ID_CHARS]
        _set(span, {"enginehouse.tenant": decision.tenant, "enginehouse.request_id": request_id})
        if isinstance(decision, Refused):
            _refused(span, decision)
            return ()
        return self._admitted(span, decision)

    def close(self) -> None:
        """Export what is left, as long as that is possible soon."""
        thread = threading.Thread(target=self._provider.shutdown, name="spans-close", daemon=True)
        thread.start()
        thread.join(CLOSE_SECONDS)

    @staticmethod
    def _admitted(span: Span, allowed: Allowed) -> tuple[Header, ...]:
        allowed.admitted.tell = partial(_ended, span)
        context = span.get_span_context()
        return (("traceparent", f"00-{context.trace_id:032x}-{context.span_id:016x}-01"),)


class _Counted(SpanExporter):
    """Counts what became of spans."""

    def __init__(self, exporter: SpanExporter, registry: CollectorRegistry) -> None:
        self._exporter = exporter
        self._spans = Counter(
            "enginehouse_gateway_spans",
            "Recorded spans by whether the collector took them; those that found no room to wait are not among them.",
            ("outcome",),
            registry=registry,
        )

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send them."""
        result = self._exporter.export(spans)
        self._spans.labels("exported" if result is SpanExportResult.SUCCESS else "failed").inc(len(spans))
        return result

    def shutdown(self) -> None:
        """Send no more."""
        self._exporter.shutdown()


def _refused(span: Span, refused: Refused) -> None:
    _set(span, {"gen_ai.request.model": refused.model, "error.type": refused.reason.value})
    span.set_status(Status(StatusCode.ERROR, refused.reason.value))
    span.end()


def _ended(span: Span, ended: Ended) -> None:
    """What is known at the end; all words are names of the snapshot or of this code."""
    host, _, port = ended.address.rpartition(":")
    usage = ended.settled.usage if ended.settled else None
    first = ended.times.first_byte_seconds
    error = _error(ended)
    _set(
        span,
        {
            "gen_ai.request.model": ended.asked_model or ended.model,
            "gen_ai.response.model": ended.model,
            "gen_ai.request.stream": ended.is_stream,
            "gen_ai.usage.input_tokens": usage.input_tokens if usage else None,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens if usage else None,
            "gen_ai.usage.output_tokens": usage.output_tokens if usage else None,
            "gen_ai.response.time_to_first_chunk": first if ended.is_stream else None,
            "server.address": host or ended.address,
            "server.port": int(port) if host and port.isdecimal() else None,
            "http.response.status_code": ended.ending.status or None,
            "error.type": error,
            "enginehouse.deployment": ended.deployment,
            "enginehouse.identity": ended.identity,
            "enginehouse.end": ended.ending.end.value,
            "enginehouse.tokens_from": ended.settled.basis.value if ended.settled else None,
        },
    )
    if error:
        span.set_status(Status(StatusCode.ERROR, error))
    span.end()


def _error(ended: Ended) -> str | None:
    if ended.ending.end is not End.WHOLE:
        return ended.ending.end.value
    return str(ended.ending.status) if ended.ending.status >= 400 else None


def _set(span: Span, attributes: Mapping[str, AttributeValue | None]) -> None:
    span.set_attributes({name: value for name, value in attributes.items() if value is not None and value != ""})
