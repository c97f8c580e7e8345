"""A manifest's schedule as KEDA's cron triggers: each has a beginning and an end.

An entry holds from its time to the next entry's of the same days and timezone, else to the end of the day.
"""

import re
from collections.abc import Iterator, Sequence

from fleet.manifest import PinnedManifest
from fleet.spec import Schedule
from workloads.names import KubernetesObject
from workloads.refusal import Reason, RenderRefused

_CRON_FIELDS = 5
_CLOCK = re.compile(r"\d{1,2}")
_END_OF_DAY = (23, 59)


def schedule_triggers(pinned: PinnedManifest) -> Iterator[KubernetesObject]:
    """One trigger for each entry.

    Raises:
        RenderRefused: an expression without five fields, or a floor above the maximum.
    """
    entries, most = pinned.spec.scaling.schedule, pinned.spec.scaling.max
    for index, entry in enumerate(entries):
        _check(pinned, index, entry, most)
    for index, entry in enumerate(entries):
        yield {
            "type": "cron",
            "name": f"schedule-{index}",
            "metadata": {
                "timezone": entry.timezone,
                "start": " ".join(entry.cron.split()),
                "end": _end(entry, entries),
                "desiredReplicas": str(entry.min),
            },
        }


def _check(pinned: PinnedManifest, index: int, entry: Schedule, most: int) -> None:
    where = f"scaling.schedule[{index}]"
    if len(entry.cron.split()) != _CRON_FIELDS:
        message = f"{where}.cron is '{entry.cron}', which has {len(entry.cron.split())} fields"
        remedy = "give minute, hour, day of the month, month and day of the week"
        raise RenderRefused(pinned.name, Reason.SCHEDULE, message, remedy)
    if entry.min > most:
        message = f"{where}.min is {entry.min}, above scaling.max {most}"
        raise RenderRefused(pinned.name, Reason.SCHEDULE, message, f"give at most {most}, or a larger max")
    if _clock(entry) == _END_OF_DAY:
        message = f"{where}.cron is '{entry.cron}', the minute in which its day ends"
        raise RenderRefused(pinned.name, Reason.SCHEDULE, message, "begin at another minute")


def _end(entry: Schedule, entries: Sequence[Schedule]) -> str:
    """The clock of the next entry of the day on the same days, so that the end never falls on a day without a start."""
    own = _clock(entry)
    later = [
        clock
        for other in entries
        if _days(other) == _days(entry) and own is not None and (clock := _clock(other)) is not None and clock > own
    ]
    hour, minute = min(later, default=_END_OF_DAY)
    return f"{minute} {hour} {_days(entry)[0]}"


def _days(entry: Schedule) -> tuple[str, str]:
    return " ".join(entry.cron.split()[2:]), entry.timezone


def _clock(entry: Schedule) -> tuple[int, int] | None:
    """Hour and minute, where the expression names one of each."""
    minute, hour = entry.cron.split()[:2]
    return (int(hour), int(minute)) if _CLOCK.fullmatch(minute) and _CLOCK.fullmatch(hour) else None
