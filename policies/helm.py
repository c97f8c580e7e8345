"""Charts of a stack by name, however they are written down."""

from collections.abc import Iterator

from policies.adapter import Seen, Stack
from policies.reading import text

RELEASE = "kubernetes:helm.sh/v3:Release"
CHART = "kubernetes:helm.sh/v4:Chart"


def chart_name(seen: Seen) -> str:
    """The chart's own name, without repository, address or archive's ending."""
    return (text(seen.props, "chart") or "").rstrip("/").rpartition("/")[2].removesuffix(".tgz")


def charts(stack: Stack, *names: str) -> Iterator[Seen]:
    """The releases of some charts."""
    return (seen for seen in stack.of(RELEASE, CHART) if chart_name(seen) in names)


def has_chart(stack: Stack, name: str) -> bool:
    """Whether a chart is installed."""
    return any(charts(stack, name))
