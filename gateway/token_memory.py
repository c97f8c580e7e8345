"""What is remembered of tokens, by their hashes, and how many unknown ones are checked. Bounded; it has no clock."""

from collections import OrderedDict
from typing import Generic, TypeVar

Known = TypeVar("Known")


class TokenMemory(Generic[Known]):
    """What was found out about tokens; the one that was not asked for the longest time is forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[bytes, Known] = OrderedDict()

    def __len__(self) -> int:
        """How many are known."""
        return len(self._known)

    def get(self, digest: bytes) -> Known | None:
        """What is known of a token."""
        known = self._known.get(digest)
        if known is not None:
            self._known.move_to_end(digest)
        return known

    def put(self, digest: bytes, known: Known) -> None:
        """Remember it."""
        self._known[digest] = known
        self._known.move_to_end(digest)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


class ChecksLeft:
    """How many tokens of one issuer may be checked in vain: a check costs more than all the rest of a request."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left = burst
        self._seen_unix_seconds = 0.0

    def take(self, now_unix_seconds: float) -> bool:
        """Whether one more may be checked now."""
        passed = max(0.0, now_unix_seconds - self._seen_unix_seconds)
        self._left = min(self._burst, self._left + passed * self._per_second)
        self._seen_unix_seconds = now_unix_seconds
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def give_back(self) -> None:
        """It was not in vain."""
        self._left = min(self._burst, self._left + 1)
