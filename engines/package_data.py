"""The catalogue's own data, read once from the package, and the digest over it."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from fleet.canonical import digest, sha256_hex
from fleet.spec import EngineName

_NAMES = tuple(EngineName)
_PATHS = (
    "releases.toml",
    "data/models.toml",
    "data/hosted.toml",
    *(f"data/engines/{name}.toml" for name in _NAMES),
    *(f"data/flags/{name}.json" for name in _NAMES),
)


@dataclass(frozen=True, slots=True)
class PackageData:
    """Every file of the catalogue by its path in the package."""

    texts: Mapping[str, str]

    @property
    def digest(self) -> str:
        """The digest over names and contents."""
        return digest({path: sha256_hex(text.encode()) for path, text in self.texts.items()})

    def toml(self, path: str) -> dict[str, Any]:
        """A parsed TOML file."""
        return tomllib.loads(self.texts[path])

    def json(self, path: str) -> dict[str, Any]:
        """A parsed JSON file."""
        document: dict[str, Any] = json.loads(self.texts[path])
        return document


@lru_cache(maxsize=1)
def read() -> PackageData:
    """The data as it is installed."""
    root = files("engines")
    return PackageData(texts={path: root.joinpath(path).read_text(encoding="utf-8") for path in _PATHS})
