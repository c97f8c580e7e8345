"""The proposed pin replaces the old one while a stream goes on."""

import time
from threading import Thread

from cli.exits import CommandError
from cli.tour.evidence import Evidence, StepFailed
from cli.tour.steps.tenants import MODEL, chat, sentence
from cli.tour.stream import ChatStream, StreamCut
from cli.tour.world import Document, Journey, World

FIRST_CHUNK_SECONDS = 10.0
SWITCH_SECONDS = 25.0
DRAIN_SECONDS = 20.0
NOTICE_SECONDS = 1.0
CUT = "the stream that began before the change did not complete: {}"


class _Reader:
    """Reads a stream beside the rollout."""

    def __init__(self, stream: ChatStream) -> None:
        self.stream = stream
        self.error: str | None = None
        self.ended_at: float | None = None
        self._thread = Thread(target=self._read, name="tour-stream", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self.stream.finish()
        except (StreamCut, RuntimeError) as error:  # RuntimeError: the step gave up and closed the stream
            self.error = str(error)
        self.ended_at = time.monotonic()


def proposal_is_rolled_out(world: World, journey: Journey) -> Evidence:
    """PUT the proposal; the stream that started before completes on the old engine, new requests go to the new one."""
    path = f"/v1/deployments/{journey.exercised}"
    question = f"Roll {journey.exercised} from {journey.version_before} to {journey.version_after}?"
    if not world.agree(question):
        return Evidence(("not rolled out: nobody said yes (--yes says it)",), {"rolled_out": False})
    key = journey.keys["acme"]
    with world.chat(key, MODEL, "Tell me a long story.", max_tokens=journey.pace.long_stream_tokens) as stream:
        reader = _reading(world, stream)
        old = _addresses(world.api.get(path))
        begin = time.monotonic()
        identity = _put_proposal(world, path)
        after = _first_answer_of_the_new_engine(world, journey, key, reader)
        switched_at = time.monotonic()
        was_open = reader.ended_at is None
        if world.until(lambda: reader.ended_at, seconds=(patience := journey.pace.stream_seconds)) is None:
            raise StepFailed(f"the stream that began before the change did not end within {patience:g} s")
    _check_stream(reader, journey, was_open=was_open)
    drained = world.until(lambda: _is_replaced(world.api.get(path), identity, old), seconds=DRAIN_SECONDS)
    if drained is None:
        raise StepFailed(
            f"the old engine at {', '.join(old)} is still an endpoint {DRAIN_SECONDS:g} s after its stream"
        )
    new = _addresses(world.api.get(path))
    return Evidence(
        lines=(
            f"new engine at {', '.join(new)}, first answer from {after.fingerprint} "
            f"{switched_at - begin:.1f} s after the change",
            f"the stream that began before went on and completed on {stream.fingerprint}: {sentence(stream)}",
            f"the old engine at {', '.join(old)} has ended",
        ),
        figures={
            "rolled_out": True,
            "identity": identity,
            "seconds_to_switch": round(switched_at - begin, 2),
            "stream_chunks": stream.chunks,
            "stream_completed": stream.is_complete,
            "fingerprints": [stream.fingerprint, after.fingerprint],
        },
    )


def _reading(world: World, stream: ChatStream) -> _Reader:
    """A reader whose stream flows."""
    reader = _Reader(stream)
    if world.until(lambda: stream.chunks >= 2 or reader.error, seconds=FIRST_CHUNK_SECONDS) is None:
        raise StepFailed(f"the long stream brought nothing within {FIRST_CHUNK_SECONDS:g} s")
    return reader


def _replacement(world: World, path: str, identity: str, old: list[str]) -> list[str]:
    """The addresses of the new engines, when the old ones have ended."""
    drained = world.until(lambda: _is_replaced(world.api.get(path), identity, old), seconds=DRAIN_SECONDS)
    if drained is None:
        raise StepFailed(
            f"the old engine at {', '.join(old)} is still an endpoint {DRAIN_SECONDS:g} s after its stream"
        )
    return _addresses(world.api.get(path))


def _put_proposal(world: World, path: str) -> str:
    document, etag = world.api.get_with_etag(path)
    try:
        changed = world.api.put(path, document["status"]["proposal"]["manifest"], etag=etag)
    except CommandError as error:
        raise StepFailed(f"the control plane does not take its own proposal: {error}") from None
    return str(changed["status"]["identity"])


def _first_answer_of_the_new_engine(world: World, journey: Journey, key: str, reader: _Reader) -> ChatStream:
    """Chat until an answer comes from the new version, or until the long stream is cut."""
    answers: list[ChatStream] = []

    def is_new() -> bool:
        answers.append(chat(world, key, MODEL, "Which version are you?", max_tokens=2))
        return reader.error is not None or journey.version_after in answers[-1].fingerprint

    try:
        seconds = world.until(is_new, seconds=SWITCH_SECONDS)
    except StepFailed:
        # When the old engine died, the cut stream says more than the refused chat.
        if world.until(lambda: reader.error, seconds=NOTICE_SECONDS) is None:
            raise
    if reader.error is not None:
        raise StepFailed(CUT.format(reader.error))
    if seconds is None:
        seen = answers[-1].fingerprint if answers else "nobody"
        raise StepFailed(f"{SWITCH_SECONDS:g} s after the change {seen} answers; expected {journey.version_after}")
    return answers[-1]


def _check_stream(reader: _Reader, journey: Journey, *, was_open: bool) -> None:
    stream = reader.stream
    if reader.error:
        raise StepFailed(CUT.format(reader.error))
    if not was_open:
        raise StepFailed("the stream ended before the new engine answered, so it shows nothing; it was too short")
    if journey.version_before not in stream.fingerprint:
        raise StepFailed(f"the stream ended on {stream.fingerprint}; it began on {journey.version_before}")


def _addresses(deployment: Document) -> list[str]:
    return [str(endpoint["address"]) for endpoint in deployment["status"]["endpoints"]]


def _is_replaced(deployment: Document, identity: str, old: list[str]) -> bool:
    status = deployment["status"]
    gone = set(old).isdisjoint(_addresses(deployment))
    return bool(gone and status["phase"] == "Running" and status["identity"] == identity)
