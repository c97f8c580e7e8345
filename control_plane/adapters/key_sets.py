"""Reads public keys of token issuers: https alone, no redirects, bounded in size and time."""

import ssl
import time
from functools import cached_property
from pathlib import Path

import httpx2

from control_plane.errors import SettingsError
from control_plane.ports import KeySetError

LONGEST_SECONDS = 10.0
MOST_BYTES = 256 * 1024


class HttpsKeySets:
    """Key sets over HTTPS, whose certificates are checked."""

    def __init__(self, ca_file: Path | None = None) -> None:
        try:
            self._verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=ca_file) if ca_file else True
        except OSError as error:
            raise SettingsError(f"jwks_ca_file {ca_file} can't be used: {error.strerror or error}") from error

    @cached_property
    def _client(self) -> httpx2.Client:
        """Made for the first address: most houses have none, and the public authorities take 50 ms to read."""
        return httpx2.Client(
            timeout=LONGEST_SECONDS, trust_env=False, follow_redirects=False, verify=self._verify,
            headers={"accept": "application/json"},
        )  # fmt: skip

    def close(self) -> None:
        """Give the connections back."""
        if "_client" in self.__dict__:
            self._client.close()

    def read(self, url: str) -> bytes:
        """What stands at an address; raises `KeySetError`."""
        if not url.startswith("https://"):
            raise KeySetError("its address is not https")
        try:
            with self._client.stream("GET", url) as response:
                if response.status_code != httpx2.codes.OK:
                    raise KeySetError(f"its address answers {response.status_code}; 200 would be right")
                return _whole(response)
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            raise KeySetError(f"its address can't be read: {type(error).__name__}") from None


def _whole(response: httpx2.Response) -> bytes:
    until, size, chunks = time.monotonic() + LONGEST_SECONDS, 0, []
    for chunk in response.iter_bytes():
        size += len(chunk)
        if size > MOST_BYTES:
            raise KeySetError(f"it is larger than {MOST_BYTES} bytes")
        if time.monotonic() > until:
            raise KeySetError(f"it was not whole within {LONGEST_SECONDS:g} s")
        chunks.append(chunk)
    return b"".join(chunks)
