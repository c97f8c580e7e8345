"""Charts of a stack by name, however they are written down."""

import re
from collections.abc import Iterator

from policies.adapter import Props, Seen, Stack
from policies.reading import at, text

RELEASE = "kubernetes:helm.sh/v3:Release"
CHARTS = (RELEASE, "kubernetes:helm.sh/v3:Chart", "kubernetes:helm.sh/v4:Chart")
_VERSION = re.compile(r"[:@].*$|-v?\d+\.\d+.*$")
"""Behind a chart's name: the tag or digest of an address, the version of an archive."""


def chart_name(seen: Seen) -> str:
    """The chart's own name, without repository, address, version or archive's ending."""
    last = (text(seen.props, "chart") or "").strip().rstrip("/").rpartition("/")[2]
    return _VERSION.sub("", last.removesuffix(".tgz").removesuffix(".tar.gz"))


def charts(stack: Stack, *names: str) -> Iterator[Seen]:
    """The releases of some charts."""
    return (seen for seen in stack.of(*CHARTS) if chart_name(seen) in names)


def has_chart(stack: Stack, name: str) -> bool:
    """Whether a chart is installed."""
    return any(charts(stack, name))


def is_off(props: Props, *path: str) -> bool:
    """Whether a switch that is on by default is turned off; values may write it as text."""
    value = at(props, *path)
    return value is False or (isinstance(value, str) and value.strip().casefold() == "false")
