"""The admin API from the shell: one request at a time, problems turned into errors with an exit code."""

import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import quote

import httpx2 as httpx
import typer

from cli.exits import CommandError, Exit, UsageError
from cli.output import tell
from cli.pin_hint import pin_hint
from cli.server_profile import Profile, profile

ServerOption = Annotated[str | None, typer.Option("--server", help="URL of the control plane.")]
TokenOption = Annotated[str | None, typer.Option("--token", help="Access token; better in ENGINEHOUSE_TOKEN.")]
ProfileOption = Annotated[str | None, typer.Option("--profile", help="A profile of the config file.")]
TIMEOUT_SECONDS = 30.0
ANSWER_SECONDS = 120.0
"""For a whole answer, however slowly its pieces come."""
MAX_ANSWER_BYTES = 256 * 1024 * 1024
Document = dict[str, Any]


class Refused(CommandError):
    """The rules refuse it; the violations are part of the message."""

    def __init__(self, message: str, violations: list[Document]) -> None:
        super().__init__(message, Exit.REFUSED)
        self.violations = violations


class Api:
    """The control plane's ``/v1``."""

    def __init__(self, target: Profile, transport: httpx.BaseTransport | None = None) -> None:
        headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
        self._server = target.server
        self._is_told = True
        try:
            self._http = httpx.Client(
                base_url=target.server, headers=headers, timeout=TIMEOUT_SECONDS, transport=transport, trust_env=False,
                verify=_trusted_by(target.server),
            )  # fmt: skip
        except (httpx.InvalidURL, ValueError) as error:
            raise UsageError(f"the server '{target.server}' is not a URL that can be used: {error}") from None

    @classmethod
    def connect(cls, server: str | None, token: str | None, name: str | None = None) -> "Api":
        """An API for the options of a command."""
        api = cls(profile(server, token, name))
        api._is_told = False
        return api

    def tell_target(self) -> None:
        """Say once on stderr which control plane a command is about to change."""
        if not self._is_told:
            self._is_told = True
            tell(f"control plane: {self._http.base_url.copy_with(userinfo=b'')}".rstrip("/"))

    def close(self) -> None:
        """Give the connection back."""
        self._http.close()

    def get(self, path: str, **query: str | int | None) -> Document:
        """One document."""
        return self._document(self._send("GET", path, query=query))

    def text(self, path: str, **query: str | int | None) -> str:
        """A text that is no document, such as a table."""
        return self._send("GET", path, query=query).text

    def get_with_etag(self, path: str) -> tuple[Document, str]:
        """One document and the ETag to change it with."""
        response = self._send("GET", path)
        return self._document(response), response.headers.get("ETag", "")

    def find(self, path: str) -> tuple[Document, str] | None:
        """One document and its ETag, or ``None`` when there is none."""
        try:
            return self.get_with_etag(path)
        except CommandError as error:
            if error.code is Exit.NOT_FOUND_OR_CONFLICT:
                return None
            raise

    def every(self, path: str, **query: str | int | None) -> Iterator[Document]:
        """All items of a list, page by page."""
        page_token: str | None = None
        while True:
            page = self.get(path, page_token=page_token, page_size=200, **query)
            items, before = page.get("items"), page_token
            if not (isinstance(items, list) and all(isinstance(item, dict) for item in items)):
                raise self._no_control_plane("a page without a list 'items'")
            yield from items
            page_token = page.get("next_page_token")
            if not page_token:
                return
            if page_token == before:
                raise self._no_control_plane("the same page again and again")

    def put(
        self, path: str, body: Document, *, etag: str | None = None, dry_run: bool = False, reason: str | None = None
    ) -> Document:
        """Create or replace; ``etag`` is needed for what exists."""
        headers = {"If-Match": etag} if etag else {}
        query = {"dry_run": "true" if dry_run else None, "reason": reason}
        return self._document(self._send("PUT", path, query=query, headers=headers, body=body))

    def post(self, path: str, body: Document, *, etag: str | None = None, reason: str | None = None) -> Document:
        """Do an action or create something whose name the server gives."""
        headers = {"If-Match": etag} if etag else {}
        return self._document(self._send("POST", path, query={"reason": reason}, headers=headers, body=body))

    def delete(self, path: str, *, etag: str | None = None, reason: str | None = None) -> None:
        """Remove; ``etag`` guards against a change in between."""
        self._send("DELETE", path, query={"reason": reason}, headers={"If-Match": etag} if etag else {})

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | None] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Document | None = None,
    ) -> httpx.Response:
        if method != "GET":
            self.tell_target()
        params = {key: value for key, value in (query or {}).items() if value is not None}
        try:
            with self._http.stream(method, path, params=params, headers=dict(headers or {}), json=body) as response:
                content = self._whole(response)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise UsageError(f"{self._server}{path} can't be asked for: {error}") from None
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise CommandError(
                f"{self._server} can't be reached ({kind}): is the control plane running there?"
            ) from None
        whole = httpx.Response(response.status_code, headers=_plain(response.headers), content=content)
        if whole.status_code >= 400:
            raise problem_of(whole)
        if whole.status_code >= 300:
            place = whole.headers.get("Location", "elsewhere")
            raise self._no_control_plane(f"a redirect ({whole.status_code}) to {place}")
        return whole

    def _whole(self, response: httpx.Response) -> bytes:
        """The body of an answer that ends in time and is not endless."""
        until, size, chunks = time.monotonic() + ANSWER_SECONDS, 0, []
        for chunk in response.iter_bytes():
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise self._no_control_plane(f"more than {MAX_ANSWER_BYTES} bytes")
            if time.monotonic() > until:
                raise self._no_control_plane(f"nothing whole within {ANSWER_SECONDS:g} s")
            chunks.append(chunk)
        return b"".join(chunks)

    def _document(self, response: httpx.Response) -> Document:
        try:
            document = response.json()
        except (ValueError, RecursionError):
            raise self._no_control_plane("no JSON") from None
        if not isinstance(document, dict):
            raise self._no_control_plane("no JSON object")
        return document

    def _no_control_plane(self, answer: str) -> CommandError:
        return CommandError(f"{self._server} answers with {answer}: give the URL of a control plane with --server")


def _trusted_by(server: str) -> ssl.SSLContext | bool:
    """The public authorities for https; without it nobody, as reading them takes 50 ms of each command."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if server.lower().startswith("http://") else True


def member(collection: str, name: str) -> str:
    """The path of one object, whatever its name holds.

    Raises:
        UsageError: a name that no object can have, because it would lead to another path.
    """
    if name in {"", ".", ".."}:
        raise UsageError(f"'{name}' is not a name; the 'list' command shows the names that are there")
    return f"/v1/{collection}/{quote(name, safe='', errors='backslashreplace')}"


def _plain(headers: httpx.Headers) -> dict[str, str]:
    """The headers that count, without those about how the body was sent."""
    return {name: headers[name] for name in ("ETag", "Location", "Content-Type") if name in headers}


_CODES = {
    404: Exit.NOT_FOUND_OR_CONFLICT,
    409: Exit.NOT_FOUND_OR_CONFLICT,
    412: Exit.NOT_FOUND_OR_CONFLICT,
    428: Exit.NOT_FOUND_OR_CONFLICT,
    400: Exit.USAGE,
}


def problem_of(response: httpx.Response) -> CommandError:
    """The error that an RFC 9457 problem means."""
    try:
        problem = response.json()
    except (ValueError, RecursionError):
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    title = problem.get("title") or f"HTTP {response.status_code}"
    detail = problem.get("detail") or ""
    message = f"{title}: {detail}" if detail else str(title)
    stated = problem.get("violations")
    violations = [item for item in stated if isinstance(item, dict)] if isinstance(stated, list) else []
    if response.status_code == 422 and violations:
        lines = [f"{item.get('rule')}: {item.get('message')}" for item in violations]
        return Refused("\n  ".join([message, *lines, *pin_hint(violations)]), violations)
    if response.status_code == 422:
        return CommandError(message, Exit.USAGE)
    return CommandError(message, _CODES.get(response.status_code, Exit.FAILED))
