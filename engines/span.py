"""A range of versions, as the data states it."""

from functools import cached_property

from packaging.version import Version

from fleet.value import Value
from fleet.versions import public


class Span(Value):
    """Versions from ``since`` on and before ``before``; open where it is left out."""

    since: str | None = None
    before: str | None = None

    def covers(self, version: Version | None) -> bool:
        """Whether a version lies inside; one that can't be read does."""
        if version is None:
            return True
        since, before = self._bounds
        bare = public(version)
        return (since is None or bare >= since) and (before is None or bare < before)

    @cached_property
    def _bounds(self) -> tuple[Version | None, Version | None]:
        return (Version(self.since) if self.since else None, Version(self.before) if self.before else None)
