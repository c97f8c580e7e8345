"""What happens inside an engine, in words that no dialect owns; each dialect names them its own way."""

from enum import StrEnum
from typing import Protocol


class Count(StrEnum):
    """Things that are counted."""

    PROMPT_TOKENS = "prompt_tokens"
    GENERATED_TOKENS = "generated_tokens"
    CACHE_QUERIES = "cache_queries"
    CACHE_HITS = "cache_hits"
    COMPUTED_TOKENS = "computed_tokens"
    PREEMPTIONS = "preemptions"
    REQUESTS = "requests"
    FINISHED_STOP = "finished_stop"
    FINISHED_LENGTH = "finished_length"
    ABORTED = "aborted"
    REFUSED_REQUESTS = "refused_requests"
    REFUSED_TOKENS = "refused_tokens"


class Measure(StrEnum):
    """Things that are measured once each."""

    TIME_TO_FIRST_TOKEN = "time_to_first_token"
    INTER_TOKEN = "inter_token"
    TIME_PER_OUTPUT_TOKEN = "time_per_output_token"
    END_TO_END = "end_to_end"
    QUEUE = "queue"
    PREFILL = "prefill"
    DECODE = "decode"
    INFERENCE = "inference"
    PROMPT_LENGTH = "prompt_length"
    UNCACHED_PROMPT_LENGTH = "uncached_prompt_length"
    ANSWER_LENGTH = "answer_length"
    STEP_TOKENS = "step_tokens"
    ASKED_TOKENS = "asked_tokens"
    ASKED_CHOICES = "asked_choices"
    PREEMPTIONS = "preemptions_of_request"


class Recorder(Protocol):
    """Takes what happens; `streams` tells whether the request is a stream."""

    def count(self, what: Count, amount: float = 1, *, streams: bool = False) -> None:
        """Add to a count."""

    def measure(self, what: Measure, value: float, *, streams: bool = False) -> None:
        """Note one measurement."""
