"""A total order of engine versions, read from the many spellings that records and people use.

The order is PEP 440's (`packaging.version.Version`), compared on the public part: a wheel ``2.6.0+cu124`` is release
2.6.0 with other kernels inside, so a bound on 2.6.0 covers it. Specifier sets are never used: they leave out the
pre-releases of an excluded bound, which would clear a vulnerable release candidate.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from packaging.version import InvalidVersion, Version

MAX_VERSION_CHARACTERS = 200
_PREFIX = re.compile(r"^[vr](?=\d)", re.IGNORECASE)
_BLANKS_AROUND_TAG = re.compile(r"\s*(?<![a-z])(a|b|c|rc|alpha|beta|post|dev)\s*(?=\d|$)", re.IGNORECASE)
_BUILD_SUFFIX = re.compile(
    r"(?<=\d)(?:-(?:cu\d+|cuda[\d.]*|rocm[\d.]*|mi\d+x?|cpu|gpu|igpu|xpu|hpu|npu|tpu|amd64|arm64|aarch64|x86_64"
    r"|ubuntu[\d.]*|py\d+|python|pyt|vllm|trtllm|sdk|min|runtime|devel|slim))+$",
    re.IGNORECASE,
)
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_PRECOMPILED_LOCAL = re.compile(r"precompiled|nightly", re.IGNORECASE)


@lru_cache(maxsize=65536)
def parse_version(raw: str) -> Version | None:
    """The version that a spelling means, or ``None`` when it is not a version.

    Takes a leading ``v`` or ``r``, a blank before a pre-release tag (``1.3.0 rc17``) and an image tag's build suffix
    (``0.33.0-cu129`` is ``0.33.0+cu129``). ``latest``, ``nightly``, a commit and ``2.6.0-NA`` are not versions, nor is
    a text of more than 200 characters: its numbers could be longer than Python converts.
    """
    text = raw.strip()
    if len(text) > MAX_VERSION_CHARACTERS:
        return None
    text = _PREFIX.sub("", text)
    text = _BLANKS_AROUND_TAG.sub(r"\1", text)
    text = _BUILD_SUFFIX.sub(lambda found: f"+{found[0][1:].replace('-', '.').replace('_', '.')}", text)
    try:
        return Version(text)
    except InvalidVersion:
        return None


@lru_cache(maxsize=65536)
def parse_public(raw: str) -> Version | None:
    """The public part of the version that a spelling means, or ``None`` when it is not a version."""
    version = parse_version(raw)
    return None if version is None else public(version)


@lru_cache(maxsize=65536)
def shown(raw: str) -> str:
    """A spelling that `parse_version` reads, for people: a release number keeps its zeros (``26.06``)."""
    plain = _PREFIX.sub("", raw.strip())
    return plain if _PLAIN_NUMBER.fullmatch(plain) else str(parse_version(raw))


def public(version: Version) -> Version:
    """The version without its local part: what bounds are compared with.

    Not remembered by version: 0.28 equals 0.28.0, so a memory would answer one in the spelling of the other.
    """
    return Version(version.public) if version.local else version


def is_unreleased_build(version: Version) -> bool:
    """True for development, nightly and precompiled builds: their number says nothing about the commits inside."""
    return version.is_devrelease or bool(version.local and _PRECOMPILED_LOCAL.search(version.local))


def is_final(version: Version) -> bool:
    """True for a release that is neither a pre-release nor a development release; post-releases are final."""
    return not version.is_prerelease


@dataclass(frozen=True, slots=True)
class PublishedVersions:
    """What an index has of one package, in ascending order and without yanked versions."""

    ascending: tuple[Version, ...]
    newest_first: tuple[Version, ...]
    """The order to choose in: final versions from the newest down, then pre-releases; no development build."""
    retrieved: str
    """The day on which the index was read, ISO 8601."""

    @classmethod
    def read(cls, raw: Iterable[str], *, retrieved: str) -> "PublishedVersions":
        """Sort what an index lists; a spelling that is not a version is left out, since nobody can pin it."""
        parsed = {version for version in map(parse_version, raw) if version is not None}
        candidates = (version for version in parsed if not version.is_devrelease)
        preferred = sorted(candidates, key=lambda version: (is_final(version), version), reverse=True)
        return cls(ascending=tuple(sorted(parsed)), newest_first=tuple(preferred), retrieved=retrieved)

    def has(self, version: Version) -> bool:
        """Whether the public part of a version was published."""
        wanted = public(version)
        place = bisect_left(self.ascending, wanted)
        return place < len(self.ascending) and self.ascending[place] == wanted

    def finals_above(self, version: Version) -> tuple[Version, ...]:
        """Published final versions that are newer, ascending."""
        return tuple(other for other in self.ascending if other > public(version) and is_final(other))

    def near(self, version: Version) -> tuple[Version, ...]:
        """The published neighbours below and above, the few that exist."""
        return near(version, self.ascending)


def near(version: Version, ascending: Sequence[Version]) -> tuple[Version, ...]:
    """The neighbours of a version in an ascending list."""
    if not ascending:
        return ()
    if version <= ascending[0]:
        return (ascending[0],)
    for below, above in pairwise(ascending):
        if below < version < above:
            return (below, above)
    return (ascending[-1],)
