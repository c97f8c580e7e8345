"""How values are written for people."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")
_LABEL = re.compile(r"[a-z0-9.-]{1,253}")


def day_and_time(text: str | None) -> str:
    """A moment without its fraction: ``2030-01-01 12:00:00 UTC``; any other text stays as it is."""
    found = _MOMENT.fullmatch(text or "")
    return f"{found[1]} {found[2]} UTC" if found else (text or "not known")


def short(digest: str) -> str:
    """The first 12 characters of a digest or identity."""
    return digest.removeprefix("sha256:")[:12]


def age(days: int | None) -> str:
    """How old data is."""
    if days is None:
        return "age not known"
    if days <= 0:
        return "read today"
    return "1 day old" if days == 1 else f"{days} days old"


def https_links(urls: Iterable[str]) -> list[tuple[str, str]]:
    """(address, host) of the first plain https address of each host; other addresses are no links."""
    first: dict[str, str] = {}
    for url in urls:
        host = _https_host(url)
        if host is not None:
            first.setdefault(host, url)
    return [(url, host) for host, url in first.items()]


def _https_host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_plain = parts.scheme == "https" and parts.username is None and parts.password is None
    except ValueError:
        return None
    return host if is_plain and _LABEL.fullmatch(host) and url.isprintable() else None
