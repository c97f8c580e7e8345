"""What a route asks of its output filter: classes with their modes, own patterns, denied words, how it fails."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fleet.spec import Name
from fleet.value import Value

CLASSES = (
    "email", "iban", "card", "ip", "us_ssn", "in_aadhaar", "ca_sin", "br_cpf", "pl_pesel", "fr_nir", "es_dni",
    "it_fiscal_code", "uk_nino", "in_pan", "api_key", "phone",
)  # fmt: skip
"""What is known without a tenant's own patterns."""
NO_FILTER = "none"
PII_FILTER = "pii"
"""The filter that is there without being defined: every class is masked, and it fails closed."""
MAX_TERM = 100

ClassName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,30}$")]


class Mode(StrEnum):
    """What happens to a value."""

    MASK = "mask"
    """`[EMAIL]` stands in its place."""
    HASH = "hash"
    """`[EMAIL:abcdefgh]`: the same letters for the same value within a conversation."""
    BLOCK = "block"
    """The answer ends before it."""


class FailureMode(StrEnum):
    """What happens to an answer when the filter itself cannot go on."""

    CLOSED = "closed"
    """It ends with an error."""
    OPEN = "open"
    """It passes unfiltered from there on."""


class OwnPattern(Value):
    """A tenant's own class of values, as an RE2 pattern that can't match without end."""

    name: ClassName
    pattern: str
    mode: Mode = Mode.MASK
    ignore_case: bool = False


class Moderation(Value):
    """Sentences wait for the verdict of a service."""

    service: Name = "default"
    """One of the services in the gateway's settings, which know its address and its token."""
    window: Annotated[int, Field(ge=40, le=4_000)] = 400
    """The most characters of a sentence."""
    wait_seconds: Annotated[float, Field(gt=0, le=60)] = 5.0
    failure_mode: FailureMode = FailureMode.CLOSED
    """What happens where no verdict comes."""


class FilterPolicy(Value):
    """The filter of a route."""

    classes: Mapping[str, Mode] = Field(default_factory=lambda: dict.fromkeys(CLASSES, Mode.MASK))
    """Absent = not looked for."""
    patterns: tuple[OwnPattern, ...] = ()
    denied: tuple[Annotated[str, Field(min_length=1, max_length=MAX_TERM)], ...] = ()
    """Words and phrases that never stand in an answer, in any case of letters."""
    denied_mode: Mode = Mode.BLOCK
    failure_mode: FailureMode = FailureMode.CLOSED
    moderation: Moderation | None = None
    """None = nobody is asked."""
    hold_seconds: Annotated[float, Field(gt=0, le=60)] = 2.0
    """How long the end of a text may be held while nothing comes after it."""
    filters_requests: bool = False
    """Whether the texts of a request are filtered too, before an engine reads them."""


class NamedFilter(Value):
    """A filter that routes can name."""

    name: Name
    policy: FilterPolicy
