"""Output filters on the generated configuration, through real Envoy: chosen by the body, and nothing leaks."""

import asyncio
import itertools
import json
import re
from dataclasses import dataclass, field

import httpx2
import pytest

from fleet.output_policy import FilterPolicy, Mode, Moderation, NamedFilter, OwnPattern
from tests.gateway.conftest import WholeGateway, answer, chunk, end_gateway, make_gateway, read_request
from tests.gateway.filtering import MASKED, TEXT, VALUES, is_clean

CHAT = "/v1/chat/completions"
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
HEAD = {"id": "c"}
LABELS = {name: "SSN" if name == "us_ssn" else name.upper() for name in VALUES}


def line(*choices: dict, **more: object) -> bytes:
    return b"data: " + json.dumps({**HEAD, "choices": choices, **more}, separators=(",", ":")).encode() + b"\n\n"


def streamed(texts: list[str], arguments: str) -> bytes:
    """A chat with several choices, character by character in turn, of which the last ends with a tool's arguments."""
    lines = [
        line({"index": index, "delta": {"content": char}, "finish_reason": None})
        for chars in itertools.zip_longest(*texts)
        for index, char in enumerate(chars)
        if char is not None
    ]
    last = len(texts) - 1
    for char in arguments:
        call = {"index": 0, "function": {"arguments": char}}
        lines.append(line({"index": last, "delta": {"tool_calls": [call]}, "finish_reason": None}))
    lines += [line({"index": index, "delta": {}, "finish_reason": "stop"}) for index in range(len(texts))]
    return b"".join([*lines, line(usage=USAGE), b"data: [DONE]\n\n"])


def read(stream: bytes) -> dict[tuple, str]:
    """The texts that a client reads, by choice and by tool."""
    texts: dict[tuple, str] = {}
    for data in re.findall(rb"^data: (\{.*\})$", stream, re.MULTILINE):
        for choice in json.loads(data)["choices"]:
            delta = choice["delta"]
            for call in delta.get("tool_calls", ()):
                key = (choice["index"], "tool")
                texts[key] = texts.get(key, "") + call["function"]["arguments"]
            key = (choice["index"],)
            texts[key] = texts.get(key, "") + delta.get("content", "")
    return texts


ARGUMENTS = json.dumps({"to": VALUES["email"], "pay": {"card": VALUES["card"], "iban": VALUES["iban"]}, "n": 7})
FINISH = line({"index": 0, "delta": {}, "finish_reason": "stop"})
STREAM = streamed([TEXT, TEXT.replace("the", "an")], ARGUMENTS)


@dataclass
class SayingEngine:
    """Says what it is told to say, in chunks of a size."""

    stream: bytes = STREAM
    text: str = TEXT
    size: int = 1_000_000
    without_end: bytes = b""
    """What comes after the stream, again and again."""
    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    left: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            if request[0].startswith("GET"):
                await answer(writer, 404, b"")
                continue
            self.bodies.append(request[1])
            if not json.loads(request[1]).get("stream"):
                message = {"role": "assistant", "content": self.text}
                whole = {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}
                await answer(writer, 200, json.dumps(whole).encode(), "content-type: application/json\r\n")
                continue
            writer.write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            try:
                for start in range(0, len(self.stream), self.size):
                    writer.write(chunk(self.stream[start : start + self.size]))
                    await writer.drain()
                while self.without_end:
                    writer.write(chunk(self.without_end))
                    await writer.drain()
                    await asyncio.sleep(0)
                writer.write(b"0\r\n\r\n")
                await writer.drain()
            except ConnectionError:
                self.left += 1
                raise


@dataclass
class FakeModeration:
    """Flags sentences with a word in them, late or never."""

    port: int = 0
    seconds: float = 0.0
    status: int = 200
    heads: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            self.heads.append(request[0])
            texts = json.loads(request[1])["input"]
            self.texts += texts
            await asyncio.sleep(self.seconds)
            results = [{"flagged": "wicked" in text} for text in texts]
            await answer(writer, self.status, json.dumps({"results": results}).encode())


@dataclass
class Filtering:
    """A gateway whose route `acme-chat` is filtered and whose `both-chat` is not."""

    gateway: WholeGateway
    engine: SayingEngine
    moderation: FakeModeration
    world: object
    until: object

    def use(self, name: str, **policy: object) -> None:
        """The filter of `acme-chat` from now on; it is there once it is asked through."""
        snapshot = self.world.snapshot(self.engine.address, output_filter=name)
        filters = (NamedFilter(name=name, policy=FilterPolicy(**policy)),) if policy else ()
        self.gateway.publish(snapshot.model_copy(update={"output_filters": filters}))
        etag = self.gateway.control_plane.snapshot.etag
        self.until(lambda: json.dumps(etag) in self._last_taken(), "the snapshot is in use")

    def _last_taken(self) -> str:
        return [entry for entry in self.gateway.gateway_log.splitlines() if "snapshot.in_use" in entry][-1]

    def post(self, model: str = "acme-chat", text: str = "hello", **members: object) -> httpx2.Response:
        messages = [{"role": "user", "content": text}]
        headers = {"authorization": f"Bearer {self.world.acme_key}"}
        body = {"model": model, "messages": messages, **members}
        return httpx2.post(f"{self.gateway.url}{CHAT}", json=body, headers=headers, timeout=20)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, world, until):
    folder = tmp_path_factory.mktemp("filtered")
    made = make_gateway(folder, world)
    engine, moderation = SayingEngine(), FakeModeration()
    try:
        made.servers.start(engine)
        made.servers.start(moderation)
        token = folder / "moderation-token"
        token.write_text("the-moderation-token\n")
        service = {"url": f"http://127.0.0.1:{moderation.port}/v1/moderations", "token_file": str(token)}
        made.settings["moderation_services"] = {
            "default": service,
            "dead": {"url": "http://127.0.0.1:1/v1/moderations"},
        }
        made.publish(world.snapshot(engine.address, output_filter="pii"))
        made.start_decision()
        made.start_envoy()
        yield Filtering(made, engine, moderation, world, until)
    finally:
        end_gateway(made)


@pytest.fixture
def filtering(whole):
    """As it was made."""
    whole.engine.stream, whole.engine.text, whole.engine.size = STREAM, TEXT, 1_000_000
    whole.engine.without_end = b""
    whole.moderation.seconds, whole.moderation.status = 0.0, 200
    yield whole
    assert not any(value in whole.gateway.gateway_log for value in VALUES.values())


@pytest.mark.parametrize("size", [1, 61, 1_000_000])
def test_of_two_routes_on_one_listener_the_body_chooses_and_the_filtered_one_leaks_nothing(filtering, size):
    filtering.use("pii")
    filtering.engine.size = size
    options = {"stream": True, "n": 2, "stream_options": {"include_usage": True}}
    plain = filtering.post("both-chat", **options)
    assert plain.content == STREAM
    filtered = filtering.post(**options)
    assert filtered.status_code == 200
    texts = read(filtered.content)
    assert texts[0,] == MASKED
    assert texts[1,] == MASKED.replace("the", "an")
    assert json.loads(texts[1, "tool"]) == {"to": "[EMAIL]", "pay": {"card": "[CARD]", "iban": "[IBAN]"}, "n": 7}
    assert is_clean(filtered.content)
    assert filtered.content.endswith(line(usage=USAGE) + b"data: [DONE]\n\n")


def test_usage_that_the_client_did_not_ask_for_is_taken_out_of_a_filtered_stream(filtering):
    filtering.use("pii")
    asked = filtering.post(stream=True, n=2, stream_options={"include_usage": True}).content
    assert filtering.post(stream=True, n=2).content == asked.replace(line(usage=USAGE), b"")
    assert json.loads(filtering.engine.bodies[-1])["stream_options"] == {"include_usage": True}


def test_a_whole_answer_is_filtered_and_found_values_are_counted_by_class(filtering):
    filtering.use("pii")
    metric = 'enginehouse_gateway_filtered_values_total{class="card",model="acme-chat"}'
    before = filtering.gateway.metric(metric)
    assert filtering.post().json()["choices"][0]["message"]["content"] == MASKED
    assert filtering.gateway.metric(metric) == before + 1
    assert filtering.post("both-chat").json()["choices"][0]["message"]["content"] == TEXT
    assert filtering.gateway.metric(metric) == before + 1


def test_hashes_stay_the_same_in_a_conversation_and_differ_between_conversations(filtering):
    filtering.use("letters", classes={"email": Mode.HASH})
    first, again, other = (filtering.post(text=text).json() for text in ("one", "one", "two"))
    assert first == again != other
    assert re.search(r"\[EMAIL:[a-p]{12}\]", first["choices"][0]["message"]["content"])


def test_a_request_is_filtered_where_its_policy_asks_for_it(filtering):
    filtering.use("both-ways", classes={"email": Mode.MASK, "card": Mode.BLOCK}, filters_requests=True)
    filtering.engine.text = "It is done."
    written = filtering.post(text=f"write to {VALUES['email']}", user=VALUES["email"])
    assert written.status_code == 200
    sent = json.loads(filtering.engine.bodies[-1])
    assert sent["messages"][0]["content"] == "write to [EMAIL]"
    count = len(filtering.engine.bodies)
    refused = filtering.post(text=f"pay with {VALUES['card']}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "content_filter")
    ids = filtering.post(prompt=[1, 2, 3])
    assert ids.status_code == 400
    assert len(filtering.engine.bodies) == count


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("unbounded", {"patterns": (OwnPattern(name="own", pattern="the-secret-pattern.*"),)}),
        ("classless", {"classes": {"nobody-knows": Mode.MASK}}),
        ("judged", {"moderation": Moderation(service="nobody")}),
        ("undefined", {}),
    ],
)
def test_a_filter_that_can_not_be_made_refuses_its_route_alone_and_is_said_once(filtering, name, policy):
    filtering.use(name, **policy)
    refused = filtering.post(stream=True)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "output_filter_unavailable")
    assert filtering.post("both-chat").status_code == 200
    assert filtering.gateway.metric("enginehouse_gateway_filters_unusable") == 1
    lines = [entry for entry in filtering.gateway.gateway_log.splitlines() if "filter_unusable" in entry]
    assert [name in entry for entry in lines].count(True) == 1
    filtering.use("pii")
    assert filtering.gateway.metric("enginehouse_gateway_filters_unusable") == 0
    assert filtering.post().status_code == 200


SAID = "All is well today. You are wicked indeed. And more of it. "


def test_a_sentence_that_the_moderation_service_flags_ends_the_answer_and_the_engine(filtering, until):
    filtering.use("judged", classes={"email": Mode.MASK}, moderation=Moderation())
    filtering.engine.stream = streamed([f"Ask {VALUES['email']} now. {SAID}"], "").partition(FINISH)[0]
    filtering.engine.without_end = 100 * line({"index": 0, "delta": {"content": "And so on. "}})
    left = filtering.engine.left
    answer = filtering.post(stream=True)
    assert answer.content.endswith(b'"finish_reason":"content_filter"}]}\n\ndata: [DONE]\n\n')
    assert read(answer.content)[0,] == "Ask [EMAIL] now. All is well today. "
    assert {"Ask [EMAIL] now. ", "All is well today. "} <= set(filtering.moderation.texts)
    assert is_clean("".join(filtering.moderation.texts).encode())
    assert "authorization: Bearer the-moderation-token" in filtering.moderation.heads[-1]
    until(lambda: filtering.engine.left > left, "the engine sees that its client is gone")


@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("service", ["default", "dead"])
@pytest.mark.parametrize("mode", ["closed", "open"])
def test_a_moderation_service_that_is_slow_or_dead_does_what_the_policy_says(filtering, mode, service, is_streamed):
    moderation = Moderation(service=service, wait_seconds=0.3, failure_mode=mode)
    filtering.use("judged", classes={}, moderation=moderation)
    filtering.moderation.seconds = 1.0
    filtering.engine.text = "All is well. "
    filtering.engine.stream = streamed([filtering.engine.text], "")
    failures = 'enginehouse_gateway_filter_failures_total{error="NoVerdict",model="acme-chat"}'
    before = filtering.gateway.metric(failures)
    answer = filtering.post(stream=is_streamed)
    if mode == "open":
        said = read(answer.content)[0,] if is_streamed else answer.json()["choices"][0]["message"]["content"]
        assert said == "All is well. "
    else:
        assert b"well" not in answer.content
        assert (
            b"output_filter_failed" in answer.content or answer.json()["error"]["code"] == "output_filter_unavailable"
        )
    assert filtering.gateway.metric(failures) == before + 1


def test_a_whole_answer_with_a_flagged_sentence_is_withheld(filtering):
    filtering.use("judged", classes={}, moderation=Moderation())
    filtering.engine.text = SAID
    withheld = filtering.post()
    assert (withheld.status_code, withheld.json()["error"]["code"]) == (400, "content_filter")
    filtering.engine.text = "All is well. "
    assert filtering.post().status_code == 200
    filtering.moderation.status = 500
    assert filtering.post().status_code == 503
