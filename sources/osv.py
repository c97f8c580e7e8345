"""OSV 1.7 records as they arrive: models at the border. Unknown keys are let through and counted, wrong types are not.

The schema is https://ossf.github.io/osv-schema/. Free-form objects (``database_specific``, ``ecosystem_specific``)
may hold anything, so their keys do not count as unknown.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from fleet.advisory import EventKind
from sources.errors import BadRecord

MAX_REASON_CHARACTERS = 300


def _absent_is_empty(value: object) -> object:
    return () if value is None else value


def _utc(value: object) -> object:
    """RFC 3339 in one spelling (UTC, whole seconds), so that text order is time order."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value.strip())
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"'{value[:40]}' is not a timestamp; expected one like 2026-01-31T12:00:00Z") from None
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


Moment = Annotated[str, BeforeValidator(_utc)]
FreeForm = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]


class OsvPart(BaseModel):
    """A typed part of a record; keys that it does not know stay in ``model_extra`` to be counted."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    def unknown_keys(self) -> int:
        """How many keys of this part and the parts inside are not in the schema."""
        return len(self.model_extra or ()) + sum(part.unknown_keys() for part in self._parts())

    def _parts(self) -> "Iterable[OsvPart]":
        """The typed parts inside this one."""
        return ()


class OsvSeverity(OsvPart):
    """A rating: a CVSS vector, or a word for the types that use words."""

    type: str | None = None
    score: str


class OsvPackage(OsvPart):
    """A package by ecosystem and name, by purl, or by both."""

    ecosystem: str | None = None
    name: str | None = None
    purl: str | None = None


class OsvEvent(BaseModel):
    """One bound of a range; some producers write several kinds into one object. An unknown kind is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None
    limit: str | None = None

    def bounds(self) -> list[tuple[EventKind, str]]:
        """(kind, version) for each kind that is given."""
        given = (
            (EventKind.INTRODUCED, self.introduced),
            (EventKind.FIXED, self.fixed),
            (EventKind.LAST_AFFECTED, self.last_affected),
            (EventKind.LIMIT, self.limit),
        )
        return [(kind, version) for kind, version in given if version is not None]


class OsvRange(OsvPart):
    """A range of versions or commits."""

    type: Literal["ECOSYSTEM", "SEMVER", "GIT"]
    repo: str | None = None
    events: tuple[OsvEvent, ...]
    database_specific: dict[str, Any] | None = None

    def bounds(self) -> list[tuple[EventKind, str]]:
        """(kind, version) of every event, in order.

        Raises:
            BadRecord: an event without a version.
        """
        found = []
        for event in self.events:
            bounds = event.bounds()
            if not bounds:
                raise BadRecord(f"an event without a version; expected one of {', '.join(EventKind)}")
            found += bounds
        return found


class OsvAffected(OsvPart):
    """What the record says about one package."""

    package: OsvPackage | None = None
    severity: Annotated[tuple[OsvSeverity, ...], BeforeValidator(_absent_is_empty)] = ()
    ranges: Annotated[tuple[OsvRange, ...], BeforeValidator(_absent_is_empty)] = ()
    versions: Annotated[tuple[str, ...], BeforeValidator(_absent_is_empty)] = ()
    ecosystem_specific: FreeForm = Field(default_factory=dict)
    database_specific: FreeForm = Field(default_factory=dict)

    def _parts(self) -> Iterable[OsvPart]:
        return (*self.ranges, *self.severity, *((self.package,) if self.package else ()))


class OsvReference(OsvPart):
    """A link."""

    type: str | None = None
    url: str


class OsvRecord(OsvPart):
    """One record. ``affected`` may be missing where it is withdrawn or only links other records by its aliases."""

    schema_version: str | None = None
    id: Annotated[str, Field(min_length=1, max_length=200)]
    modified: Moment | None = None
    published: Moment | None = None
    withdrawn: Moment | None = None
    aliases: Annotated[tuple[str, ...], BeforeValidator(_absent_is_empty)] = ()
    related: Annotated[tuple[str, ...], BeforeValidator(_absent_is_empty)] = ()
    upstream: Annotated[tuple[str, ...], BeforeValidator(_absent_is_empty)] = ()
    summary: str | None = None
    details: str | None = None
    severity: Annotated[tuple[OsvSeverity, ...], BeforeValidator(_absent_is_empty)] = ()
    affected: tuple[OsvAffected, ...] | None = None
    references: Annotated[tuple[OsvReference, ...], BeforeValidator(_absent_is_empty)] = ()
    credits: Any = None
    database_specific: FreeForm = Field(default_factory=dict)

    def _parts(self) -> Iterable[OsvPart]:
        return (*(self.affected or ()), *self.severity, *self.references)

    @model_validator(mode="after")
    def _names_what_it_affects(self) -> Self:
        if not (self.affected or self.withdrawn or self.aliases):
            raise ValueError("'affected' is missing or empty; expected a list of packages")
        return self


def read_document(document: object) -> OsvRecord:
    """The typed record of a parsed JSON document.

    Raises:
        BadRecord: with every field that has a wrong type or value, shortened.
    """
    if not isinstance(document, dict):
        raise BadRecord(f"expected a JSON object, found {_json_name(document)}")
    if "id" not in document and "affected" not in document:
        raise BadRecord("not an OSV record: it has neither 'id' nor 'affected'")
    try:
        return OsvRecord.model_validate(document)
    except ValidationError as error:
        raise BadRecord(_reason(error)) from None


def _reason(error: ValidationError) -> str:
    sentences = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        pointer = "".join(f"/{part}" for part in detail["loc"]) or "/"
        sentences.append(f"{pointer}: {_sentence(detail['type'], detail['msg'])}")
    text = "; ".join(sentences)
    return text if len(text) <= MAX_REASON_CHARACTERS else text[: MAX_REASON_CHARACTERS - 1] + "…"


def _sentence(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return f"unknown kind of event; expected one of {', '.join(EventKind)}"
    return message.removeprefix("Value error, ")


def _json_name(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
