"""Tokens of the admin API: made on the server's machine, shown once, kept as a hash."""

import secrets

from control_plane.errors import Unauthenticated
from control_plane.ports import Clock, Store
from control_plane.records import Actor, Kind, Scope, StoredToken
from control_plane.services.audit import entry
from control_plane.services.moments import iso
from fleet.api_keys import RANDOM_BYTES, TOKEN_MARK, is_same, is_well_formed, mint, prefix_of

_CONSOLE = Actor(name="console", scope=Scope.SECURITY_ADMIN)


class TokenService:
    """Makes tokens and recognises them."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(self, name: str, scope: Scope) -> str:
        """A new token; one of the same name stops working."""
        minted = mint(TOKEN_MARK, secrets.token_bytes(RANDOM_BYTES))
        now = self._clock.now()
        token = StoredToken(name=name, prefix=minted.prefix, sha256=minted.sha256, scope=scope, created=iso(now))
        with self._store.write() as unit:
            before = unit.tokens.put(token)
            was = {"prefix": before.prefix, "scope": before.scope.value} if before else None
            after = {"prefix": token.prefix, "scope": scope.value}
            verb = "replace" if before else "create"
            unit.audit.append([entry(_CONSOLE, verb, Kind.TOKEN, name, at=now, before=was, after=after)])
        return minted.text

    def recognise(self, text: str) -> StoredToken:
        """The token that a text is; raises `Unauthenticated`."""
        if not is_well_formed(text, TOKEN_MARK):
            raise Unauthenticated("the token is not one of this control plane: its form or checksum is wrong")
        with self._store.read() as unit:
            token = unit.tokens.by_prefix(prefix_of(text, TOKEN_MARK))
        if token is None or not is_same(text, token.sha256):
            raise Unauthenticated("the token is not known here; it may have been replaced")
        return token
