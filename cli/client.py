"""The admin API from the shell: one request at a time, problems turned into errors with an exit code."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import httpx2 as httpx
import typer

from cli.exits import CommandError, Exit
from cli.server_profile import Profile, profile

ServerOption = Annotated[str | None, typer.Option("--server", help="URL of the control plane.")]
TokenOption = Annotated[str | None, typer.Option("--token", help="Access token; better in ENGINEHOUSE_TOKEN.")]
ProfileOption = Annotated[str | None, typer.Option("--profile", help="A profile of the config file.")]
TIMEOUT_SECONDS = 30.0
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
        self._http = httpx.Client(
            base_url=target.server, headers=headers, timeout=TIMEOUT_SECONDS, transport=transport, trust_env=False
        )

    @classmethod
    def connect(cls, server: str | None, token: str | None, name: str | None = None) -> "Api":
        """An API for the options of a command."""
        return cls(profile(server, token, name))

    def close(self) -> None:
        """Give the connection back."""
        self._http.close()

    def get(self, path: str, **query: str | int | None) -> Document:
        """One document."""
        document: Document = self._send("GET", path, query=query).json()
        return document

    def get_with_etag(self, path: str) -> tuple[Document, str]:
        """One document and the ETag to change it with."""
        response = self._send("GET", path)
        return response.json(), response.headers.get("ETag", "")

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
            yield from page["items"]
            page_token = page.get("next_page_token")
            if not page_token:
                return

    def put(self, path: str, body: Document, *, etag: str | None = None, dry_run: bool = False) -> Document:
        """Create or replace; ``etag`` is needed for what exists."""
        headers = {"If-Match": etag} if etag else {}
        query = {"dry_run": "true"} if dry_run else {}
        document: Document = self._send("PUT", path, query=query, headers=headers, body=body).json()
        return document

    def post(self, path: str, body: Document) -> Document:
        """Do an action or create something whose name the server gives."""
        document: Document = self._send("POST", path, body=body).json()
        return document

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
        params = {key: value for key, value in (query or {}).items() if value is not None}
        try:
            response = self._http.request(method, path, params=params, headers=dict(headers or {}), json=body)
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise CommandError(
                f"{self._server} can't be reached ({kind}): is the control plane running there?"
            ) from None
        if response.status_code >= 400:
            raise problem_of(response)
        return response


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
    except ValueError:
        problem = {}
    title = problem.get("title") or f"HTTP {response.status_code}"
    detail = problem.get("detail") or ""
    message = f"{title}: {detail}" if detail else str(title)
    violations = problem.get("violations") or []
    if response.status_code == 422 and violations:
        lines = [f"{item.get('rule')}: {item.get('message')}" for item in violations]
        return Refused("\n  ".join([message, *lines]), violations)
    if response.status_code == 422:
        return CommandError(message, Exit.USAGE)
    return CommandError(message, _CODES.get(response.status_code, Exit.FAILED))
