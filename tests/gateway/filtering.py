"""Filters, planted values and judges for tests of the output filter in the path."""

import json
from collections import Counter
from dataclasses import dataclass, field

from fleet.output_policy import FilterPolicy
from gateway.answer_filter import AnswerFilter, RouteFilter
from gateway.output_filter.channel import CompiledPolicy

VALUES = {
    "email": "jane.doe@example.com",
    "phone": "+1 415 555 0134",
    "card": "4111 1111 1111 1111",
    "iban": "DE89 3704 0044 0532 0130 00",
    "us_ssn": "078-05-1120",
    "ip": "192.168.10.254",
    "api_key": "AKIAIOSFODNN7EXAMPLE",
}
TEXT = " ".join(f"the {name} is {value}, so" for name, value in VALUES.items()) + " that is all"
MASKED = " ".join(f"the {name} is [{name.upper()}], so" for name in VALUES) + " that is all"
MASKED = MASKED.replace("[US_SSN]", "[SSN]")


def is_clean(data: bytes) -> bool:
    """Whether no planted value, and no longer part of one, stands in the bytes."""
    text = data.decode()
    return not any(value[start : start + 8] in text for value in VALUES.values() for start in range(len(value) - 7))


@dataclass
class Watch:
    """What was counted."""

    answers: list[tuple[str, Counter, str | None, str | None]] = field(default_factory=list)
    requests: list[tuple[str, Counter, str | None]] = field(default_factory=list)

    def answered(self, model, counts, blocked, failure) -> None:
        self.answers.append((model, Counter(counts), blocked, failure))

    def asked(self, model, counts, blocked) -> None:
        self.requests.append((model, Counter(counts), blocked))


def filter_of(watch: Watch | None = None, judge: object = None, **policy: object) -> AnswerFilter:
    """The filter of one request to the model `m`."""
    route = RouteFilter(CompiledPolicy(FilterPolicy(**policy)), watch or Watch(), b"s" * 32, judge)
    return route.of("acme", "m", {"messages": [{"role": "user", "content": "hello"}]})


def contents(stream: bytes) -> str:
    """The text that a client of a chat reads."""
    events = [line.removeprefix(b"data: ") for line in stream.split(b"\n") if line.startswith(b"data: {")]
    documents = [json.loads(event) for event in events]
    return "".join(
        choice["delta"].get("content", "") for document in documents for choice in document.get("choices", ())
    )
