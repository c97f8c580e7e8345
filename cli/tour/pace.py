"""How long the tour waits for engines, and how long its long stream is: real ones start slowly and write quickly."""

from dataclasses import dataclass

from local.programs import EngineKind


@dataclass(frozen=True, slots=True)
class Pace:
    """The patience of a tour."""

    start_seconds: float
    """For every engine to answer after its manifest was applied."""
    long_stream_tokens: int
    """Of the stream that goes on while a new engine starts."""
    stream_seconds: float
    """For that stream to end."""


SIMULATED = Pace(start_seconds=20.0, long_stream_tokens=250, stream_seconds=30.0)
"""At 30 ms a token 7.5 s: more than twice what the new engine takes to start on a busy machine with two cores."""
REAL = Pace(start_seconds=420.0, long_stream_tokens=1_000, stream_seconds=60.0)
"""vLLM on a processor loads for half a minute, for minutes on a busy machine, and takes 6 to 30 ms a token; an engine
that is replaced may finish its streams for 30 s."""


def pace_of(engine: EngineKind) -> Pace:
    """The one for these engines."""
    return REAL if engine == "vllm" else SIMULATED
