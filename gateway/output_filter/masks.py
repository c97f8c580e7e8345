"""What stands in a text instead of a value."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.output_policy import Mode

_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_KEY_BYTES = 64


@dataclass(frozen=True, slots=True)
class Masks:
    """The modes of a policy, with the key of a conversation for the hashes."""

    modes: Mapping[str, Mode]
    key: bytes = field(default=b"", repr=False)
    """Secret, and the same for every answer of a conversation, so that a value keeps its letters there alone."""

    def mode(self, name: str) -> Mode:
        """What happens to a class; one that isn't named is masked."""
        return self.modes.get(name, Mode.MASK)

    def text(self, name: str, label: str, value: str) -> str:
        """What stands instead of a value; it is written in capitals and letters, so that it matches nothing itself."""
        if self.mode(name) is not Mode.HASH:
            return f"[{label}]"
        kept = "".join(char for char in value.casefold() if char.isalnum() or char == "@")
        digest = hashlib.blake2b(f"{name}:{kept}".encode("utf-8", "replace"), key=self._bounded_key(), digest_size=6)
        return f"[{label}:{digest.hexdigest().translate(_LETTERS)}]"

    def _bounded_key(self) -> bytes:
        return self.key if len(self.key) <= _KEY_BYTES else hashlib.sha512(self.key).digest()
