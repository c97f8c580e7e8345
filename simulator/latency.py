"""How long one engine step takes: a seeded model of prefill rate, decode time and a little noise.

The defaults are the reference model of the routing simulation: 10,000 prefill tokens a second, 0.03 s a token.
"""

import random

from simulator.settings import Pace

NOISE = 0.05
"""The largest share by which a step is slower or faster than the model says."""

SLOWDOWN_PER_SEQUENCE = 0.004
"""How much longer a decode step takes for each further sequence in the batch."""


class LatencyModel:
    """Turns the work of a step into seconds."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._noise = random.Random(pace.seed)  # noqa: S311 - a simulation, nothing secret

    def step_seconds(self, prefill_tokens: int, decode_sequences: int) -> float:
        """Return the seconds of a step that prefills and decodes together."""
        prefill = prefill_tokens / self._pace.prefill_tokens_per_second
        decode = 0.0
        if decode_sequences:
            decode = self._pace.decode_seconds * (1 + SLOWDOWN_PER_SEQUENCE * (decode_sequences - 1))
        noise = 1 + self._noise.uniform(-NOISE, NOISE)
        return (prefill + decode) * noise * self._pace.time_scale / self._pace.speed
