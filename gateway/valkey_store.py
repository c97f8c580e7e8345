"""Budgets that gateways share, on a Valkey or Redis server: one small round for many wishes, never a long wait."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.exceptions import NoScriptError, RedisError

from fleet.budget import PICODOLLARS_PER_USD
from gateway.budget_lines import Unit
from gateway.budget_scripts import GATEWAY_SECONDS, JOIN, LEAVE, TAKE
from gateway.budget_store import Wish
from gateway.errors import GatewayError
from gateway.lease_store import Joined, StoreLostError
from gateway.token_file import read_token
from gateway.token_lease import Share
from gateway.valkey_settings import SharedStateSettings

PICODOLLARS = PICODOLLARS_PER_USD // 10**9
"""In a nanodollar: Lua counts exactly below 2**53, which are nine million dollars of them."""
MOST_CONNECTIONS = 4
_LISTEN_SECONDS = 1.0
_OTHER_MEMORY = b"epoch"
_LOST = (RedisError, OSError, TimeoutError, GatewayError)


class _PasswordFile(CredentialProvider):
    """Reads the password for every connection, so that it can be changed while the gateway runs."""

    def __init__(self, username: str | None, file: Path) -> None:
        self._username = username
        self._file = file

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """What the server is told."""
        password = read_token(self._file)
        return (password,) if self._username is None else (self._username, password)


def connect(settings: SharedStateSettings) -> "Redis":
    """A client that tries nothing twice: who has the wishes tries again, with what it knows by then."""
    options: dict[str, Any] = {"username": settings.username}
    if settings.password_file is not None:
        options = {"credential_provider": _PasswordFile(settings.username, settings.password_file)}
    if settings.ca_file is not None:
        options["ssl_ca_certs"] = str(settings.ca_file)
    return Redis.from_url(
        settings.url,
        socket_timeout=settings.timeout_seconds,
        socket_connect_timeout=settings.timeout_seconds,
        max_connections=MOST_CONNECTIONS,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        **options,
    )


class ValkeyNotes:
    """Messages to all gateways of one prefix, by publish and subscribe."""

    def __init__(self, client: "Redis", settings: SharedStateSettings) -> None:
        self._client = client
        self._channel = f"{settings.prefix}:notes"
        self._patience = 2 * settings.timeout_seconds

    async def send(self, message: bytes) -> None:
        """To whoever listens now."""
        try:
            async with asyncio.timeout(self._patience):
                await self._client.publish(self._channel, message)
        except _LOST as error:
            raise StoreLostError(f"the server of the shared state is lost: {type(error).__name__}") from None

    async def messages(self) -> AsyncIterator[bytes]:
        """What is sent from now on."""
        try:
            async with self._client.pubsub(ignore_subscribe_messages=True) as listening:
                await listening.subscribe(self._channel)
                while True:
                    message = await listening.get_message(timeout=_LISTEN_SECONDS)
                    if message is not None:
                        yield message["data"]
        except _LOST as error:
            raise StoreLostError(f"the server of the shared state is lost: {type(error).__name__}") from None

    async def close(self) -> None:
        """The connection belongs to this alone."""
        await self._client.aclose()


class ValkeyStore:
    """The store, as one gateway sees it."""

    def __init__(self, client: "Redis", settings: SharedStateSettings, gateway: str, take_script: str = TAKE) -> None:
        self._client = client
        self._gateway = gateway
        self._prefix = settings.prefix
        self._patience = 2 * settings.timeout_seconds
        self._take_script = take_script
        self._digest: str | None = None
        self._joins = 0
        self._one_at_a_time = asyncio.Semaphore(MOST_CONNECTIONS)

    async def join(self) -> Joined:
        """Say that this gateway is there."""
        keys = (self._key("state"), self._key("gateways"))
        self._joins += 1
        memory = f"{self._gateway}-{self._joins}"
        answer = await self._ask("EVAL", JOIN, 2, *keys, self._gateway, memory, GATEWAY_SECONDS)
        try:
            epoch, age, gateways, position = (bytes(part).decode() for part in answer)
            return Joined(epoch, float(age), Share(int(gateways), int(position)))
        except (TypeError, ValueError):
            raise StoreLostError("the server of the shared state gave another answer than expected") from None

    async def take(self, wishes: Sequence[Wish], epoch: str) -> Sequence[int | None]:
        """All wishes in one round."""
        try:
            async with asyncio.timeout(self._patience), self._one_at_a_time:
                answers = await self._round(wishes, epoch)
                if any(isinstance(answer, NoScriptError) for answer in answers):
                    self._digest = None  # it started again; what it did serve it answers as before
                    answers = await self._round(wishes, epoch)
            return [_granted(wish, answer) for wish, answer in zip(wishes, answers, strict=True)]
        except _LOST as error:
            raise StoreLostError(f"the server of the shared state is lost: {type(error).__name__}") from None

    async def leave(self) -> None:
        """This gateway ends; a server that is lost forgets it by itself."""
        try:
            await self._ask("EVAL", LEAVE, 1, self._key("gateways"), self._gateway)
        except StoreLostError:
            return
        finally:
            await self._client.aclose()

    async def _round(self, wishes: Sequence[Wish], epoch: str) -> list[Any]:
        if self._digest is None:
            self._digest = await self._client.script_load(self._take_script)
        pipeline = self._client.pipeline(transaction=False)
        for wish in wishes:
            keys = (self._key(f"budget/{wish.key}"), self._key("state"))
            pipeline.execute_command("EVALSHA", self._digest, 2, *keys, *_words(wish), epoch)
        return list(await pipeline.execute(raise_on_error=False))

    async def _ask(self, *words: str | float) -> Any:  # noqa: ANN401 - whatever the server says
        try:
            async with asyncio.timeout(self._patience):
                return await self._client.execute_command(*words)  # type: ignore[no-untyped-call]
        except _LOST as error:
            raise StoreLostError(f"the server of the shared state is lost: {type(error).__name__}") from None

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"


def _is_money(wish: Wish) -> bool:
    return wish.key.split("/", 2)[1:2] == [Unit.USD_PER_MONTH.name.lower()]


def _words(wish: Wish) -> tuple[str, ...]:
    """The wish for the script; of money in nanodollars, rounded so that a gateway never gains by it."""
    scale = PICODOLLARS if _is_money(wish) else 1
    down = wish.limit // scale, wish.give_back // scale
    take, least, owed = (-(-amount // scale) for amount in (wish.take, wish.least, wish.owed))
    amounts = (take, least, down[1], owed, wish.held)
    return (wish.kind.value, str(down[0]), wish.gateway, str(wish.serial), *map(str, amounts))


def _granted(wish: Wish, answer: object) -> int | None:
    if isinstance(answer, RedisError):
        raise answer
    if answer == _OTHER_MEMORY:
        return None
    if not isinstance(answer, bytes) or not answer.isdigit():
        raise RedisError("another answer than expected")
    return int(answer) * (PICODOLLARS if _is_money(wish) else 1)
