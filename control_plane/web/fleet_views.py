"""Deployments as the pages show them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from control_plane.errors import NotFound
from control_plane.records import Condition, ConditionType, Document, Phase, Truth
from control_plane.services.deployments import View
from control_plane.services.house import House
from fleet.violation import Enforcement

Shown = Literal["all", "refused", "not-running"]
SORTS: tuple[Shown, ...] = ("all", "refused", "not-running")
Tone = Literal["good", "note", "bad", "unknown"]
PAGE = 50
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Mark:
    """A word with its colour: the word alone says it too."""

    word: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the overview."""

    name: str
    model: str
    engine: str
    phase: Mark
    compliant: Mark
    identity: str
    proposal: str | None
    """The version that is proposed."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many deployments there are, of each sort."""

    all: int
    compliant: int
    refused: int
    running: int

    @property
    def not_running(self) -> int:
        """Those in any other phase."""
        return self.all - self.running


@dataclass(frozen=True, slots=True)
class Overview:
    """One page of deployments, and what all of them sum up to."""

    tally: Tally
    rows: tuple[Row, ...]
    next_after: str | None


def overview(house: House, *, shown: Shown, after: str) -> Overview:
    """The deployments above a name, of the wanted sort."""
    summaries = list(_summaries(house))
    names = [item.stored.name for item in summaries if _is_shown(item, shown) and item.stored.name > after]
    found = house.deployments.page(after=after, limit=PAGE) if shown == "all" else _views(house, names[:PAGE])
    return Overview(_tally(summaries), tuple(map(row_of, found)), names[PAGE - 1] if len(names) > PAGE else None)


def row_of(view: View) -> Row:
    """One deployment in a line."""
    stored = view.stored
    return Row(
        name=stored.name,
        model=stored.document["spec"]["model"]["id"],
        engine=engine_of(stored.document),
        phase=phase_mark(stored.phase),
        compliant=compliance_mark(compliance_of(view)),
        identity=stored.identity,
        proposal=proposed_version(view),
    )


def engine_of(document: Document) -> str:
    """The engine and its version, or the hosted one."""
    spec: dict[str, Any] = document["spec"]
    if hosted := spec.get("hosted"):
        return f"{hosted['name']} (hosted)"
    engine = spec["engine"]
    return f"{engine['name']} {engine['version']}"


def proposed_version(view: View) -> str | None:
    """The engine's version in the proposal."""
    if view.review is None or view.review.proposal is None:
        return None
    return engine_of(view.review.proposal)


def compliance_of(view: View) -> Condition | None:
    """The condition Compliant."""
    return next((item for item in view.stored.conditions if item.type is ConditionType.COMPLIANT), None)


def compliance_mark(condition: Condition | None) -> Mark:
    """Whether the rules accept it, in a word."""
    if condition is None or condition.status is Truth.UNKNOWN:
        return Mark("not reviewed", "unknown")
    if condition.status is Truth.FALSE:
        return Mark("refused", "bad")
    return Mark("yes, with residuals", "note") if condition.reason.endswith("Residuals") else Mark("yes", "good")


def phase_mark(phase: Phase) -> Mark:
    """A phase with its colour."""
    tone: Tone
    match phase:
        case Phase.RUNNING:
            tone = "good"
        case Phase.PENDING | Phase.STARTING:
            tone = "unknown"
        case Phase.DEGRADED:
            tone = "note"
        case Phase.FAILED:
            tone = "bad"
        case _:
            assert_never(phase)
    return Mark(phase.value, tone)


def condition_mark(condition: Condition) -> Mark:
    """A condition's status with its colour."""
    tones: dict[Truth, Tone] = {Truth.TRUE: "good", Truth.FALSE: "bad", Truth.UNKNOWN: "unknown"}
    return Mark(condition.status.value, tones[condition.status])


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything about one deployment."""

    row: Row
    view: View
    conditions: tuple[tuple[Condition, Mark], ...]
    violations: tuple[Document, ...]
    residuals: tuple[Document, ...]
    pins: tuple[tuple[str, str], ...]


def detail(house: House, name: str) -> Detail:
    """One deployment; raises `NotFound`."""
    view = house.deployments.get(name)
    found = view.review.violations if view.review else ()
    return Detail(
        row=row_of(view),
        view=view,
        conditions=tuple((item, condition_mark(item)) for item in view.stored.conditions),
        violations=tuple(item for item in found if item["severity"] == Enforcement.MANDATORY),
        residuals=tuple(item for item in found if item["severity"] != Enforcement.MANDATORY),
        pins=tuple(_pins(view.stored.document["spec"])),
    )


def _pins(spec: Document) -> Iterator[tuple[str, str]]:
    """The pinned parts of a spec as (word, values); a manifest never holds a secret."""
    model = spec["model"]
    yield "Model", f"{model['id']} @ {model['revision']}"
    if engine := spec.get("engine"):
        yield "Image", engine.get("image") or f"none: it runs as a {engine.get('runtime') or 'process'}"
    for word in ("batch", "hardware", "parallelism", "features"):
        if values := spec.get(word):
            yield word.capitalize(), ", ".join(f"{name} {_plain(value)}" for name, value in values.items())


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_plain, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _summaries(house: House) -> Iterator[View]:
    after = ""
    while found := house.deployments.summaries(after=after, limit=_BATCH):
        yield from found
        after = found[-1].stored.name


def _views(house: House, names: Iterable[str]) -> Iterator[View]:
    for name in names:
        try:
            yield house.deployments.get(name)
        except NotFound:  # deleted since the summaries were read
            continue


def _is_shown(view: View, shown: Shown) -> bool:
    match shown:
        case "all":
            return True
        case "refused":
            return compliance_mark(compliance_of(view)).tone == "bad"
        case "not-running":
            return view.stored.phase is not Phase.RUNNING
        case _:
            assert_never(shown)


def _tally(summaries: list[View]) -> Tally:
    tones = Counter(compliance_mark(compliance_of(view)).tone for view in summaries)
    running = sum(view.stored.phase is Phase.RUNNING for view in summaries)
    return Tally(len(summaries), tones["good"] + tones["note"], tones["bad"], running)
