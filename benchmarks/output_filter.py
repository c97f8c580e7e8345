"""What the output filter costs per chunk, beside a pass-through in the same run.

Run: ``python benchmarks/output_filter.py [--chunks 70000] [--rounds 5]``. The text is invented English with planted
values, cut into pieces of the size of tokens; streams are written as vLLM writes them. Seconds are those of the thread
(CPU time), so that other work on the machine counts less; the least of the rounds is printed, and the median beside it.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable

from fleet.output_policy import FilterPolicy
from gateway.output_filter.channel import CompiledPolicy
from gateway.output_filter.masks import Masks
from gateway.output_filter.stream_filter import StreamFilter
from gateway.output_filter.text_filter import TextFilter
from gateway.sse import SseReader

BAR_MICROSECONDS = 10.0
BARRED = ("text: filter", "events: filter")
PLANTED_SHARE = 0.005
VALUES = (
    "jane.doe@example.com", "4111 1111 1111 1111", "+1 415 555 0134", "078-05-1120", "DE89 3704 0044 0532 0130 00",
    "192.168.10.254", "AKIAIOSFODNN7EXAMPLE",
)  # fmt: skip
_PROSE = """
the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one
you were all her she there would their we him been has when who will no more if out so said what up its about than
into them can only other time new some could these two may first then do any like my now over such our man me even
most made after also did many off before must well back through years much where your way down should because long
each just state those people too little good world make very year still see own work men day get however information
development government international experience particularly understanding
"""
WORDS = _PROSE.split()


def main() -> int:
    """Measure and print; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=70_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    chunks, planted = texts(options.chunks, random.Random(7))  # noqa: S311 (a text, the same in each run)
    policy = CompiledPolicy(FilterPolicy())
    events = [chat(chunk) for chunk in chunks]
    counted = [chat(chunk, number) for number, chunk in enumerate(chunks)]
    rows: dict[str, Callable[[], int]] = {
        "text: pass-through": lambda: passed(chunks),
        "text: filter": lambda: filtered_text(policy, chunks),
        "events: pass-through": lambda: passed(events),
        "events: reader alone": lambda: read(events),
        "events: filter": lambda: filtered_stream(policy, events),
        "events with usage in each: filter": lambda: filtered_stream(policy, counted),
    }
    print(f"{len(chunks)} chunks, {sum(map(len, chunks)) / len(chunks):.1f} characters each, {planted} values planted")
    least = table(rows, len(chunks), options.rounds, planted)
    missed = 0
    for name in BARRED:
        verdict = "reached" if least[name] <= BAR_MICROSECONDS else "MISSED"
        missed += verdict == "MISSED"
        print(f"bar: at most {BAR_MICROSECONDS:.0f} us per chunk, {name} {least[name]:.1f} us: {verdict}")
    return 1 if missed else 0


def table(rows: dict[str, Callable[[], int]], count: int, rounds: int, planted: int) -> dict[str, float]:
    """Runs every row in turn, round by round, and prints it; the least of each."""
    taken: dict[str, list[float]] = {name: [] for name in rows}
    found: dict[str, int] = {}
    for _ in range(rounds):
        for name, row in rows.items():
            started = time.thread_time()
            found[name] = row()
            taken[name].append((time.thread_time() - started) / count * 1e6)
    print(f"{'us per chunk':<36} {'min':>7} {'median':>7}   masked")
    for name, figures in taken.items():
        masked = f"{found[name]} of {planted}" if name.endswith("filter") else "-"
        print(f"{name:<36} {min(figures):>7.2f} {statistics.median(figures):>7.2f}   {masked}")
    return {name: min(figures) for name, figures in taken.items()}


def texts(count: int, chance: random.Random) -> tuple[list[str], int]:
    """Pieces of a text of words, some of which are values, and how many of those there are."""
    parts: list[str] = []
    length = planted = 0
    while length < count * 5:
        is_planted = chance.random() < PLANTED_SHARE
        planted += is_planted
        word = chance.choice(VALUES) if is_planted else chance.choice(WORDS)
        mark = chance.choices(("", ",", ".", ":", " (or", " 2024", "'s"), (80, 6, 7, 1, 1, 2, 2))[0]
        parts.append(f" {word}{mark}")
        length += len(parts[-1])
    text = "".join(parts)
    chunks: list[str] = []
    at = 0
    while at < len(text):
        chunks.append(text[at : at + chance.choice((2, 3, 4, 4, 5, 5, 6, 7))])
        at += len(chunks[-1])
    return chunks, planted


def chat(text: str, tokens: int | None = None) -> bytes:
    """A chunk of a chat as vLLM writes it, with the usage so far where it is asked for in every chunk."""
    choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None, "token_ids": None}
    document: dict[str, object] = {
        "id": "chatcmpl-b5ddf1086b664e7e", "object": "chat.completion.chunk", "created": 1795965912, "model": "tiny",
        "choices": [choice],
    }  # fmt: skip
    if tokens is not None:
        document["usage"] = {"prompt_tokens": 18, "total_tokens": 18 + tokens, "completion_tokens": tokens}
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"


def passed(chunks: list[str] | list[bytes]) -> int:
    """What a loop alone costs."""
    return sum(len(chunk) > 0 for chunk in chunks)


def read(events: list[bytes]) -> int:
    """What cutting the bytes into events costs."""
    reader = SseReader()
    return sum(len(event.data) > 0 for chunk in events for event in reader.feed(chunk))


def filtered_text(policy: CompiledPolicy, chunks: list[str]) -> int:
    """The text through the hold-back; the values found."""
    growing = TextFilter(policy.matcher, Masks(policy.modes))
    for chunk in chunks:
        growing.feed(chunk)
    growing.finish()
    return growing.counts.total()


def filtered_stream(policy: CompiledPolicy, events: list[bytes]) -> int:
    """The events through the filter, one at a time; the values found."""
    growing = StreamFilter(policy)
    for event in events:
        growing.feed(event, 0.0)
    growing.close(0.0)
    return growing.counts.total()


if __name__ == "__main__":
    sys.exit(main())
