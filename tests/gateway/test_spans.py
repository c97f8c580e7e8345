"""Spans through real Envoy: one per request with its names and numbers, the engine's own below it, and no content."""

import http.server
import threading
import time

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import CollectorRegistry

from gateway.asked import Request
from gateway.decision import DecisionCore
from gateway.index import index_of
from gateway.passage import End, Ending
from gateway.spans import Spans
from gateway.token_usage import TokenUsage
from gateway.tracing_settings import TracingSettings

CHAT = "/v1/chat/completions"
TRACE, PARENT = "1" * 32, "2" * 16
SECRETS = (b"the-secret-prompt", b"eh-acme", b"secret-answer")


class Collector:
    """Takes spans over OTLP/HTTP."""

    def __init__(self):
        self.bodies = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                collector.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    @property
    def spans(self):
        found = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                found += [span for scope in resource.scope_spans for span in scope.spans]
        return found


@pytest.fixture(scope="module")
def collector():
    made = Collector()
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.thread.join(10)


def attributes(span):
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}


def chat(**members):
    return {"model": "acme-chat", "messages": [{"role": "user", "content": "the-secret-prompt"}], **members}


def test_a_request_is_a_span_between_the_client_s_and_the_engine_s(gateway_maker, world, collector, until):
    own = gateway_maker()
    own.settings["tracing"] = {"endpoint": collector.endpoint, "ratio": 1.0}
    own.start_decision()
    own.start_envoy()
    own.one.first = b'data: {"choices":[{"index":0,"delta":{"content":"secret-answer"}}]}\n\n'
    own.one.last = b'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3}}\n\ndata: [DONE]\n\n'
    own.one.go_on.set()
    headers = {
        "authorization": f"Bearer {world.acme_key}",
        "traceparent": f"00-{TRACE}-{PARENT}-00",
        "x-request-id": "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f",
    }
    answer = httpx2.post(own.url + CHAT, json=chat(stream=True), headers=headers, timeout=10)
    assert answer.status_code == 200
    refused = httpx2.post(own.url + CHAT, json=chat(model="none"), headers=headers, timeout=10)
    assert refused.status_code == 404
    until(lambda: len(collector.spans) == 2, "two spans")
    served = next(span for span in collector.spans if span.name == "chat acme-chat")
    assert served.trace_id.hex() == TRACE
    assert served.parent_span_id.hex() == PARENT
    assert f"traceparent: 00-{TRACE}-{served.span_id.hex()}-01" in own.one.heads[-1].lower().split("\r\n")
    request_id = answer.headers["x-request-id"]
    assert f"x-request-id: {request_id}" in own.one.heads[-1].lower().split("\r\n")
    until(lambda: any(line.get("request_id") == request_id for line in own.access_log), "its line in the access log")
    found = attributes(served)
    assert (
        found.items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "acme-chat",
            "gen_ai.response.model": "acme-chat",
            "gen_ai.usage.input_tokens": 11,
            "gen_ai.usage.output_tokens": 3,
            "server.address": "127.0.0.1",
            "server.port": own.one.port,
            "enginehouse.tenant": "acme",
            "enginehouse.request_id": request_id,
            "enginehouse.end": "whole",
        }.items()
    )
    assert "error.type" not in found
    assert 0 < found["gen_ai.response.time_to_first_chunk"] < 10
    other = next(span for span in collector.spans if span is not served and span.name == "chat")
    assert attributes(other)["error.type"] == "model_not_found"
    assert not any(secret in body for secret in SECRETS for body in collector.bodies)


class Kept(SpanExporter):
    """Keeps spans, or hangs until it may go on."""

    def __init__(self):
        self.spans = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def export(self, spans):
        self.may_go_on.wait(10)
        self.spans += spans
        return SpanExportResult.SUCCESS

    def shutdown(self):
        pass


def traced(world, exporter, **settings):
    core = DecisionCore()
    core.replace(index_of(world.snapshot()), world.now)
    chosen = TracingSettings(endpoint="http://127.0.0.1:1/v1/traces", **{"ratio": 1.0} | settings)
    return core, Spans(chosen, CollectorRegistry(), exporter)


def decided(world, core, key=None):
    headers = {"authorization": f"Bearer {key or world.acme_key}"}
    return core.decide(Request("POST", CHAT, headers, b'{"model":"acme-chat","messages":[]}'), world.now)


@pytest.mark.parametrize("ratio", [0.0, 0.3])
def test_a_client_can_not_ask_for_more_traces_than_the_ratio(world, ratio):
    kept = Kept()
    core, spans = traced(world, kept, ratio=ratio)
    asked = 0
    for number in range(200):
        decision = decided(world, core)
        trace = f"{number * 0x147AE147AE147AE:032x}" if number else TRACE
        asked += bool(spans.begin({"traceparent": f"00-{trace}-{PARENT}-01"}, CHAT, decision))
        decision.admitted.end(Ending(End.CLIENT_LEFT, 0, None))
    spans.close()
    assert len(kept.spans) == asked
    assert asked <= 200 * ratio * 1.5


@pytest.mark.parametrize("parent", ["", "nonsense", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{PARENT}-01,x", "\x00"])
def test_a_traceparent_that_is_none_begins_a_trace(world, parent):
    kept = Kept()
    core, spans = traced(world, kept)
    decision = decided(world, core)
    ((name, value),) = spans.begin({"traceparent": parent}, CHAT, decision)
    assert name == "traceparent"
    assert TRACE not in value
    decision.admitted.sent_to("127.0.0.1:9001")
    decision.admitted.end(Ending(End.ENGINE_LOST, 200, TokenUsage(5, 2, 1)))
    spans.close()
    (span,) = kept.spans
    assert span.parent is None
    assert span.attributes["error.type"] == "engine_lost"
    assert span.attributes["gen_ai.usage.cache_read.input_tokens"] == 2


def test_a_collector_that_hangs_holds_nobody_up_and_the_queue_is_bounded(world):
    kept = Kept()
    kept.may_go_on.clear()
    core, spans = traced(world, kept, max_waiting_spans=16)
    started = time.monotonic()
    for _ in range(500):
        decision = decided(world, core)
        spans.begin({}, CHAT, decision)
        decision.admitted.end(Ending(End.CLIENT_LEFT, 0, None))
    assert time.monotonic() - started < 10
    kept.may_go_on.set()
    spans.close()
    assert 16 <= len(kept.spans) <= 100
