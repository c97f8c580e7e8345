"""Which environment manifests belong to: the folder in which they lie says it, else ``--env``, else ``local``."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cli.exits import UsageError
from cli.output import tell

DEFAULT = "local"
PARENT = Path("environments")
"""Where the folders of environments stand, seen from a working tree."""
MARKS = ("pools.yaml", "images.yaml")
"""Files that only the folder of an environment holds."""


@dataclass(frozen=True, slots=True)
class EnvironmentPlace:
    """An environment and the folder in which its own folder stands."""

    name: str
    parent: Path = PARENT


def environment_of(files: Iterable[Path], asked: str | None, *, is_bundled: bool = False) -> EnvironmentPlace:
    """The environment of manifests; ``is_bundled`` says that its files come from elsewhere and none is looked for.

    Raises:
        UsageError: files of different environments, or an ``--env`` that is not the one of the files.
    """
    found: dict[tuple[str, Path], Path] = {}
    outside = []
    for file in files:
        folder = file.resolve().parent
        if _is_environment(folder):
            found.setdefault((folder.name, folder.parent), file)
        else:
            outside.append(file)
    if len(found) > 1:
        (one, other), (first, second) = list(found.values())[:2], list(found)[:2]
        raise UsageError(
            f"{one} belongs to environment '{first[0]}' and {other} to '{second[0]}'; judge one environment at a time"
        )
    if not found:
        return _asked(asked, is_bundled=is_bundled)
    ((name, parent), file) = next(iter(found.items()))
    if asked not in (None, name):
        raise UsageError(
            f"--env is '{asked}', but {file} lies in the folder of environment '{name}'; leave --env out, or give a "
            f"file of {PARENT / str(asked)}"
        )
    if outside and asked is None:
        raise UsageError(
            f"{file} belongs to environment '{name}' and {outside[0]} to none; judge them one after the other, or say "
            f"--env {name} for both"
        )
    return EnvironmentPlace(name, parent)


def _is_environment(folder: Path) -> bool:
    return folder.parent.name == PARENT.name or any((folder / mark).is_file() for mark in MARKS)


def _asked(asked: str | None, *, is_bundled: bool) -> EnvironmentPlace:
    if asked is None:
        return EnvironmentPlace(DEFAULT)
    if not is_bundled and not (PARENT / asked).is_dir():
        tell(f"{PARENT / asked} does not exist here: no pools, images, waivers, triage or prices of '{asked}' count")
    return EnvironmentPlace(asked)
