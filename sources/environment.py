"""What people write down for an environment: waivers, triage, images, adopted identities, node pools and prices.

``environments/<env>/{waivers,triage}/*.yaml`` hold one entry each (its name is the file's unless it gives one) or a
list under the folder's name; ``images.yaml``, ``adopted.yaml``, ``pools.yaml`` and ``prices.yaml`` hold lists under
``images``, ``adopted``, ``pools`` and ``prices``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, StringConstraints

from fleet.hardware import UnknownHardware, instance
from fleet.images import ImageRecord
from fleet.manifest import Problem
from fleet.node_pools import NodePool
from fleet.prices import Price
from fleet.value import Value
from fleet.waiver import Triage, Waiver
from sources import model_configs
from sources.errors import SourceError
from sources.yaml_file import FileError, read_mapping, validated

V = TypeVar("V", bound=Value)
_SUFFIXES = frozenset({".yaml", ".yml"})
_LISTS = ("images", "adopted", "pools", "prices")
_FOLDERS = ("waivers", "triage", "models")
_ENDINGS = ("", ".yaml", ".yml", ".json")
"""What people call such files; only some are read, and the others must not be passed over."""
_MARK = "invented"
"""Marks fixtures of tests: digests and exceptions that nobody made."""


class Adopted(Value):
    """An identity that runs in the environment by a reviewed decision."""

    name: str
    identity: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class Environment(Value):
    """What an environment's folder says."""

    waivers: tuple[Waiver, ...] = ()
    triage: tuple[Triage, ...] = ()
    images: tuple[ImageRecord, ...] = ()
    adopted: tuple[Adopted, ...] = ()
    pools: tuple[NodePool, ...] = ()
    prices: tuple[Price, ...] = ()
    """They count before the bundled ones."""
    model_configs: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Model id -> its ``config.json``."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a file and where it stands."""

    path: Path
    pointer: str
    content: dict[str, object]


def read(folder: Path, *, allow_invented: bool = False) -> Environment:
    """The environment of a folder; parts that are not there are empty, and so is a folder that is not there.

    ``allow_invented`` lets tests read entries marked ``invented: true``; everywhere else they are refused.

    Raises:
        SourceError: a file that can't be read or would be passed over, a wrong field with its pointer, a name that
            two entries share.
    """
    _check_places(folder)
    waivers = _named(folder / "waivers", Waiver, allow_invented=allow_invented)
    triage = _named(folder / "triage", Triage, allow_invented=allow_invented)
    images = _listed(folder / "images.yaml", ImageRecord, allow_invented=allow_invented)
    adopted = _listed(folder / "adopted.yaml", Adopted, allow_invented=allow_invented)
    pools = _listed(folder / "pools.yaml", NodePool, allow_invented=allow_invented)
    _check_names(folder / "pools.yaml", pools)
    prices = _prices(folder / "prices.yaml", allow_invented=allow_invented)
    configs = model_configs.read(folder / "models")
    return Environment(
        waivers=waivers,
        triage=triage,
        images=images,
        adopted=adopted,
        pools=pools,
        prices=prices,
        model_configs=configs,
    )


def read_adopted(path: Path) -> tuple[Adopted, ...]:
    """The identities of a file as ``adopted.yaml`` holds them, none where there is no file; raises `SourceError`."""
    return _listed(path, Adopted, allow_invented=False, key="adopted")


def read_prices(path: Path) -> tuple[Price, ...]:
    """The prices of a file as ``prices.yaml`` holds them; raises `SourceError`, also where there is no such file."""
    if not path.exists():
        raise SourceError(f"{path}: no such file; it holds a list under 'prices'")
    return _prices(path, allow_invented=False)


def _check_places(folder: Path) -> None:
    """Refuse what somebody wrote down and nobody would read."""
    if folder.is_symlink() or folder.exists():
        _check_folder(folder)
    for path in sorted(folder.glob("*")):
        name, ending = path.stem.lower(), path.suffix.lower()
        _check_link(path)
        if name in _LISTS and ending in _ENDINGS and path.name != f"{name}.yaml":
            raise SourceError(f"{path}: it is not read under this name; call it {name}.yaml")
        if name in _FOLDERS and ending in _ENDINGS:
            _check_entries(folder, path, name)


def _check_entries(folder: Path, path: Path, name: str) -> None:
    """A folder of entries; its files have an ending that is read, and none is deeper."""
    if path.name != name or not path.is_dir():
        raise SourceError(f"{path}: it is not read; {name} stand one a file in the folder {folder / name}")
    if name == "models":
        return
    for item in sorted(path.rglob("*")):
        _check_link(item)
        is_entry = not item.name.startswith(".") and item.suffix.lower() in _ENDINGS[1:] and item.is_file()
        if is_entry and (item.parent != path or item.suffix not in _SUFFIXES):
            raise SourceError(f"{item}: it is not read; put it into {path}, with a name that ends in .yaml")


def _check_folder(folder: Path) -> None:
    _check_link(folder)
    if not folder.is_dir():
        raise SourceError(f"{folder}: expected a folder, found a file; an environment is a folder of files")


def _check_link(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise SourceError(f"{path}: the link leads nowhere ({path.readlink()}); correct or remove it")


def _named(folder: Path, model: type[V], *, allow_invented: bool) -> tuple[V, ...]:
    paths = sorted(path for path in folder.glob("*") if path.suffix in _SUFFIXES and not path.name.startswith("."))
    taken: dict[object, Path] = {}
    values = []
    for path in paths:
        for entry in _entries(path, folder.name, allow_invented=allow_invented):
            content = entry.content if entry.pointer else {"name": path.stem} | entry.content
            values.append(validated(model, content, source=str(path), pointer=entry.pointer))
            name = content["name"]
            if name in taken:
                raise SourceError(f"{path}: the name '{name}' is taken by {taken[name]}; names are ids")
            taken[name] = path
    return tuple(values)


def _listed(path: Path, model: type[V], *, allow_invented: bool, key: str = "") -> tuple[V, ...]:
    if not path.exists():
        return ()
    key = key or path.stem
    entries = list(_entries(path, key, allow_invented=allow_invented))
    if any(not entry.pointer for entry in entries):
        raise FileError(str(path), (Problem("", f"expected a list under '{key}'"),))
    return tuple(validated(model, entry.content, source=str(path), pointer=entry.pointer) for entry in entries)


def _prices(path: Path, *, allow_invented: bool) -> tuple[Price, ...]:
    prices = _listed(path, Price, allow_invented=allow_invented, key="prices")
    for index, price in enumerate(prices):
        try:
            sold = instance(price.instance_type).purchase_classes
        except UnknownHardware as error:
            raise FileError(str(path), (Problem(f"/prices/{index}/instance_type", str(error)),)) from None
        if price.purchase not in sold:
            message = f"{price.instance_type} is not sold as '{price.purchase}'; it is sold as {', '.join(sold)}"
            raise FileError(str(path), (Problem(f"/prices/{index}/purchase", message),))
    return prices


def _check_names(path: Path, pools: tuple[NodePool, ...]) -> None:
    names = [pool.name for pool in pools]
    for index, name in enumerate(names):
        if name in names[:index]:
            first = f"/pools/{names.index(name)}"
            raise FileError(
                str(path), (Problem(f"/pools/{index}/name", f"'{name}' is taken by {first}; names are ids"),)
            )


def _entries(path: Path, key: str, *, allow_invented: bool) -> Iterator[_Entry]:
    document = read_mapping(path)
    _check_mark(document, path, "", allow_invented=allow_invented)
    content = {name: value for name, value in document.items() if name != _MARK}
    if key not in content:
        yield _Entry(path, "", content)
        return
    listed = content.pop(key)
    if content:
        raise FileError(str(path), (Problem(f"/{next(iter(content))}", f"a file with '{key}' has no other key"),))
    if not isinstance(listed, list):
        raise FileError(str(path), (Problem(f"/{key}", f"expected a list, found {type(listed).__name__}"),))
    for index, item in enumerate(listed):
        pointer = f"/{key}/{index}"
        if not isinstance(item, dict):
            raise FileError(str(path), (Problem(pointer, f"expected a mapping, found {type(item).__name__}"),))
        _check_mark(item, path, pointer, allow_invented=allow_invented)
        yield _Entry(path, pointer, {str(name): value for name, value in item.items() if name != _MARK})


def _check_mark(content: dict[str, object], path: Path, pointer: str, *, allow_invented: bool) -> None:
    mark = content.get(_MARK, False)
    if not isinstance(mark, bool):
        raise FileError(str(path), (Problem(f"{pointer}/{_MARK}", "expected true or false"),))
    if mark and not allow_invented:
        message = "invented entries are for tests alone; write down what was really decided, or remove them"
        raise FileError(str(path), (Problem(f"{pointer}/{_MARK}", message),))
