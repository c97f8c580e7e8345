"""Seeded pseudo text: sentences of fleet words that echo some words of the prompt."""

import hashlib
import random
import re
from collections.abc import Iterator, Sequence

from simulator.tokens import pieces_of

_WORDS = (
    "the a this each every model engine replica cache token prefix batch queue request stream cluster region "
    "memory kernel tensor layer worker node route answer result plan check value limit signal metric version "
    "keeps holds reads writes moves fills drains starts stops serves waits measures shows returns needs finds "
    "small large warm cold stable recent simple shared local steady ready open first next last"
)
_VOCABULARY = tuple(_WORDS.split())
_PLAIN_WORD = re.compile(r"(?<![|\w])[A-Za-z]{3,10}(?![|\w])")
_ECHO_SHARE = 0.3
_SHORTEST, _LONGEST = 24, 160


def seed_of(*parts: object) -> int:
    """Return a number that depends on every part and is the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big")


def natural_length(seed: int) -> int:
    """Return how many tokens an answer has when nothing stops it earlier."""
    return random.Random(seed).randint(_SHORTEST, _LONGEST)  # noqa: S311 - a simulation, nothing secret


def text_pieces(seed: int, prompt: str) -> Iterator[str]:
    """Yield pieces of an endless text for a prompt."""
    source = random.Random(seed)  # noqa: S311 - a simulation, nothing secret
    echo = tuple(dict.fromkeys(_PLAIN_WORD.findall(prompt[-4_000:])))
    gap = ""
    while True:
        for word in _sentence(source, echo):
            yield from pieces_of(gap + word)
            gap = " "


def _sentence(source: random.Random, echo: Sequence[str]) -> list[str]:
    words = [
        source.choice(echo) if echo and source.random() < _ECHO_SHARE else source.choice(_VOCABULARY)
        for _ in range(source.randint(6, 14))
    ]
    words[0] = words[0].capitalize()
    words[-1] += source.choice((".", ".", ".", "!"))
    return words
