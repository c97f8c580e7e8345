"""How moments are written: ISO 8601 in UTC with microseconds, so that their text sorts like their time."""

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """``2030-01-01T00:00:00.000000Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
