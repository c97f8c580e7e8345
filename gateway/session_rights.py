"""Whether whoever opened a WebSocket may still have it: keys end, are taken back, and lose models meanwhile."""

from collections.abc import Iterable

from gateway.asked import Request, authorization_of
from gateway.authentication import authenticate
from gateway.index import SnapshotIndex
from gateway.jwt_tenants import Flaw
from gateway.realtime_asked import session_route
from gateway.refusals import Refused

_NO_KEY = "the key is not accepted any more"
_NO_MODEL = "the model is not open to the key any more"


class SessionRights:
    """Of one connection: what it was opened with is looked up anew in every snapshot, and its end is known between."""

    def __init__(self, headers: Iterable[tuple[str, str]], tenant: str, model: str | None = None) -> None:
        """``model``: of a session with an engine; turns of chats are decided about one by one."""
        named = {name.lower(): value for name, value in headers}
        self._authorization = authorization_of(Request("GET", "", named))
        self._tenant = tenant
        self._model = model
        self._index: SnapshotIndex | None = None
        self._expires_unix_seconds: int | None = None

    def lost(self, index: SnapshotIndex, now_unix_seconds: float) -> str | None:
        """Why the connection has to end; ``None`` = it may go on."""
        if index is not self._index:
            return self._looked_up(index, now_unix_seconds)
        end = self._expires_unix_seconds
        return None if end is None or now_unix_seconds < end else _NO_KEY

    def _looked_up(self, index: SnapshotIndex, now: float) -> str | None:
        caller = authenticate(index, self._authorization, now)
        if isinstance(caller, Refused):
            is_unknown = caller.credential == ("token", Flaw.UNCHECKED.value)
            return None if is_unknown else _NO_KEY  # what can't be checked now is looked up again
        if caller.tenant.name != self._tenant:
            return _NO_KEY
        if self._model is not None and isinstance(session_route(index, caller, self._model), Refused):
            return _NO_MODEL
        self._index, self._expires_unix_seconds = index, caller.key.expires_unix_seconds
        return None
