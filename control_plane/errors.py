"""Everything that can go wrong in the control plane, as one tree.

ControlPlaneError
 ├─ SettingsError            the settings can't be read
 ├─ Invalid                  the request's content is wrong (problems with pointers)
 ├─ Refused                  rules refuse it (violations)
 ├─ NotFound                 no such object
 ├─ Conflict                 the object's state does not allow it
 ├─ StaleVersion             another version than the caller saw
 ├─ VersionRequired          the caller has to say which version it saw
 ├─ Unauthenticated          no valid token
 ├─ Forbidden                the token's scope is too narrow
 ├─ BadRequest               the request can't be read at all
 ├─ TooLarge                 the body is above the limit
 ├─ TooSlow                  the body did not arrive in time
 └─ StorageError             the database can't do it now
     ├─ StorageFull
     ├─ StorageUnreadable    the file is damaged, or no database of ours
     └─ StorageReadOnly
Only ``api.problems`` turns these into HTTP codes.
"""

from collections.abc import Iterable

from fleet.manifest import Problem
from fleet.violation import Violation


class ControlPlaneError(Exception):
    """The base of the room's errors; its text is written for people."""


class SettingsError(ControlPlaneError):
    """The settings can't be used."""


class StartError(ControlPlaneError):
    """The server can't start: a port in use, a folder that can't be written."""


class Invalid(ControlPlaneError):
    """The content is wrong, with a pointer for each problem."""

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__(message)


class Refused(ControlPlaneError):
    """The rules refuse it."""

    def __init__(self, name: str, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__(f"the review refuses '{name}'; 'violations' says why and what would be right")


class NotFound(ControlPlaneError):
    """No object of this kind has the name."""

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        super().__init__(f"no {kind} is named '{name}'{hint}")


class Conflict(ControlPlaneError):
    """The state of the object, or of one that depends on it, does not allow the change."""


class StaleVersion(ControlPlaneError):
    """The caller saw another version of the object."""

    def __init__(self, kind: str, name: str, message: str) -> None:
        super().__init__(f"{kind} '{name}' {message}")


class VersionRequired(ControlPlaneError):
    """The object exists: the caller has to say which version it replaces or deletes."""

    def __init__(self, kind: str, name: str, generation: int) -> None:
        super().__init__(
            f"{kind} '{name}' exists at version \"{generation}\"; read it and send its ETag in If-Match, "
            "so that nobody's change is lost"
        )


class Unauthenticated(ControlPlaneError):
    """There is no valid token."""


class Forbidden(ControlPlaneError):
    """The token is valid, but its scope is too narrow."""


class BadRequest(ControlPlaneError):
    """The request can't be read at all."""


class TooLarge(ControlPlaneError):
    """The body is above the limit."""


class TooSlow(ControlPlaneError):
    """The body did not arrive in time."""


class StorageError(ControlPlaneError):
    """The database can't do it now; nothing was stored."""


class StorageFull(StorageError):
    """No room is left where the database lies."""


class StorageUnreadable(StorageError):
    """What lies there is damaged, of a newer release, or something else; it is left as it is."""


class StorageReadOnly(StorageError):
    """The database can be read but not written."""
