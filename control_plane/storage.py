"""The part of the composition root that needs no server: the database, and what makes tokens in it."""

from control_plane.adapters.clock import SystemClock
from control_plane.adapters.migrating import migrate
from control_plane.adapters.sql import SqlStore, connect
from control_plane.services.tokens import TokenService
from control_plane.settings import Settings


def open_store(settings: Settings) -> SqlStore:
    """The database at its newest schema."""
    engine = connect(settings.database_url)
    migrate(engine)
    return SqlStore(engine)


def token_service(settings: Settings) -> TokenService:
    """What makes tokens, without the rest of the house."""
    return TokenService(store=open_store(settings), clock=SystemClock())
