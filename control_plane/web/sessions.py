"""Sessions of the pages: a random id in the browser, the token that opened it in this process's memory."""

import hashlib
import secrets
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from control_plane.errors import Unauthenticated
from control_plane.ports import Clock
from control_plane.records import Scope
from control_plane.services.tokens import TokenService

LASTS = timedelta(hours=8)
"""A working day; it does not get longer by use, since pages refresh themselves."""
MOST = 1_000
"""Sessions at a time; one more ends the oldest."""


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who signed in."""

    actor: str
    token: str = field(repr=False)
    """Looked at again for every page, so that a replaced token ends its sessions."""
    ends: datetime


class Sessions:
    """Who is signed in; forgotten when the process ends."""

    def __init__(self, *, tokens: TokenService, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, Session] = {}

    def open(self, token: str) -> str:
        """A new session by a token of any scope of people; gives its secret. Raises `Unauthenticated`."""
        known = self._tokens.recognise(token)
        if not known.scope.holds(Scope.READER):
            raise Unauthenticated(f"the token '{known.name}' is a {known.scope}'s, which reads no pages")
        now = self._clock.now()
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._open = {key: session for key, session in self._open.items() if session.ends > now}
            while len(self._open) >= MOST:
                del self._open[next(iter(self._open))]
            self._open[_key(secret)] = Session(known.name, token, now + LASTS)
        return secret

    def find(self, secret: str | None) -> Session | None:
        """The session of a secret, or ``None`` when it never was, has ended, or its token is not valid any more."""
        if not secret:
            return None
        with self._lock:
            session = self._open.get(_key(secret))
        if session is None:
            return None
        if session.ends <= self._clock.now() or not self._is_valid(session.token):
            self.close(secret)
            return None
        return session

    def close(self, secret: str | None) -> None:
        """End a session; nothing happens when there is none."""
        with self._lock:
            self._open.pop(_key(secret or ""), None)

    def _is_valid(self, token: str) -> bool:
        try:
            self._tokens.recognise(token)
        except Unauthenticated:
            return False
        return True


def _key(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "backslashreplace")).hexdigest()
