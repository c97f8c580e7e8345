"""Which package a record means: by name and ecosystem, by purl, or by the repository of its commit ranges."""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from fleet.advisory import PACKAGE_ECOSYSTEMS, normalised_package

_PURL_ECOSYSTEMS = {"pypi": "PyPI", "github": "GitHub", "nvidia": "NVIDIA"}
_OUR_ECOSYSTEMS = {name.lower(): name for name in PACKAGE_ECOSYSTEMS}
_UNSAID = "PyPI"
_REPOSITORY = re.compile(r"github\.com[/:](?P<owner>[^/\s]+)/(?P<name>[^/\s?#]+)", re.IGNORECASE)
_REPOSITORY_PACKAGES = {"triton-inference-server/server": "triton-inference-server"}
"""Repositories whose name is not the package's."""

PackageKey = tuple[str, str]
"""(ecosystem, normalised name)."""


def package_key(
    ecosystem: str | None, name: str | None, purl: str | None, repositories: Iterable[str | None] = ()
) -> PackageKey | None:
    """The package, or ``None`` when nothing names one. The ecosystem is without its suffix (``Debian:12``).

    A name without an ecosystem may be ours, so it counts as PyPI's.
    """
    if ecosystem and name:
        plain = ecosystem.split(":", 1)[0].strip()
        return (_OUR_ECOSYSTEMS.get(plain.lower(), plain), normalised_package(name))
    found = _from_purl(purl) if purl else None
    if found is None and name:
        return (_UNSAID, normalised_package(name))
    return found or next((key for key in map(_from_repository, repositories) if key is not None), None)


def is_ours(key: PackageKey | None) -> bool:
    """Whether the package lies in an ecosystem that engines and images come from."""
    return key is not None and key[0] in PACKAGE_ECOSYSTEMS


def _from_purl(purl: str) -> PackageKey | None:
    """Read ``pkg:type/namespace/name@version?qualifiers#subpath``."""
    scheme, _, rest = purl.strip().partition(":")
    parts = re.split(r"[?#]", rest, maxsplit=1)[0].strip("/").split("/")
    if scheme.lower() != "pkg" or len(parts) < 2:
        return None
    kind = parts[0].lower()
    name = unquote(parts[-1].split("@", 1)[0])
    if not name:
        return None
    ecosystem = _PURL_ECOSYSTEMS.get(kind, kind)
    if ecosystem == "GitHub":
        return (ecosystem, _repository_package(unquote(parts[-2]), name))
    return (ecosystem, normalised_package(name))


def _from_repository(url: str | None) -> PackageKey | None:
    found = _REPOSITORY.search(url or "")
    if found is None:
        return None
    return ("GitHub", _repository_package(found["owner"], found["name"].removesuffix(".git")))


def _repository_package(owner: str, name: str) -> str:
    return _REPOSITORY_PACKAGES.get(f"{owner}/{name}".lower(), normalised_package(name))
