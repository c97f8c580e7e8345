"""An engine that publishes KV events over real ZeroMQ sockets, and repeats what was missed."""

import json
import time
from pathlib import Path

import msgspec
import zmq
import zmq.asyncio

CAPTURES = Path(__file__).parents[3] / "shared" / "engines" / "captures"
SIZE = 4
END = (-1).to_bytes(8, "big", signed=True)


class KvPublisher:
    """Numbers its messages as engines do; a new process begins with 0."""

    def __init__(
        self, context: zmq.Context, *, keeps: int = 1000, at: tuple[int, int] | None = None, rank: int = 0
    ) -> None:
        self.events = context.socket(zmq.XPUB)  # as PUB, and it knows its subscribers
        self.events.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.replays = context.socket(zmq.ROUTER)
        self.rank = rank
        self.sent: list[tuple[int, bytes]] = []
        self.next = 0
        self.keeps = keeps
        self.asked: list[int] = []
        self.port, self.replay_port = at or (0, 0)
        if at is None:
            self.port = self.events.bind_to_random_port("tcp://127.0.0.1")
            self.replay_port = self.replays.bind_to_random_port("tcp://127.0.0.1")
            return
        try:
            self.events.bind(f"tcp://127.0.0.1:{self.port}")
            self.replays.bind(f"tcp://127.0.0.1:{self.replay_port}")
        except zmq.ZMQError:
            self.close()
            raise

    @property
    def template(self) -> str:
        return f"tcp://{{host}}:{self.port},tcp://{{host}}:{self.replay_port}"

    def record(self, *events: dict[str, object]) -> bytes:
        """A message that happened, whoever hears of it."""
        return self.record_payload(msgspec.msgpack.encode([time.time(), list(events), self.rank]))

    def record_payload(self, payload: bytes) -> bytes:
        self.sent = [*self.sent, (self.next, payload)][-self.keeps :]
        self.next += 1
        return payload

    async def publish(self, *events: dict[str, object]) -> None:
        await self.publish_payload(self.record(*events))

    async def publish_payload(self, payload: bytes) -> None:
        await self.events.send_multipart([b"kv@one", (self.next - 1).to_bytes(8, "big"), payload])

    async def answer_replays(self) -> None:
        while True:
            client, _, first = await self.replays.recv_multipart()
            self.asked.append(int.from_bytes(first, "big"))
            for number, payload in list(self.sent):
                if number >= self.asked[-1]:
                    await self.replays.send_multipart([client, b"", b"kv@one", number.to_bytes(8, "big"), payload])
            await self.replays.send_multipart([client, b"", b"", END, b""])

    async def subscribed(self) -> None:
        """Until a subscription has come."""
        while await self.events.recv() != b"\x01":
            continue

    def restart(self) -> None:
        self.sent, self.next = [], 0

    def close(self) -> None:
        self.events.close(0)
        self.replays.close(0)


def stored(hashes: list[int], tokens: list[int], parent: int | None = None) -> dict[str, object]:
    """What an engine says when it has computed blocks."""
    return {
        "type": "BlockStored",
        "block_hashes": hashes,
        "parent_block_hash": parent,
        "token_ids": tokens,
        "block_size": SIZE,
        "medium": "GPU",
        "lora_name": None,
        "extra_keys": None,
        "group_idx": 0,
    }


def removed(hashes: list[int]) -> dict[str, object]:
    """What it says when it has given them up."""
    return {"type": "BlockRemoved", "block_hashes": hashes, "medium": "GPU", "group_idx": 0}


def captured(name: str) -> list[bytes]:
    """The messages of a real engine, if its captures are beside the checkout."""
    path = CAPTURES / f"{name}.jsonl"
    if not path.exists():
        return []
    messages = [json.loads(line) for line in path.read_text().splitlines()]
    return [bytes.fromhex(message["payload_hex"]) for message in messages if "payload_hex" in message]
