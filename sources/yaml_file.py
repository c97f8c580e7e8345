"""YAML files of an environment: read with a size limit, checked against a closed model, errors by pointer."""

import stat
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from fleet.manifest import MAX_MANIFEST_BYTES, ManifestError, Problem, load_yaml, problems_of, what_it_is
from fleet.value import Value
from sources.errors import SourceError

V = TypeVar("V", bound=Value)


class FileError(SourceError):
    """A file whose content is wrong, with every problem found."""

    def __init__(self, source: str, problems: tuple[Problem, ...]) -> None:
        self.source = source
        self.problems = problems
        super().__init__(
            f"{source}: " + "; ".join(f"{problem.pointer or '/'}: {problem.message}" for problem in problems)
        )


def read_text(path: Path, *, limit_bytes: int = MAX_MANIFEST_BYTES) -> str:
    """The UTF-8 text of a regular file that is not too large; the size is looked at before reading.

    Raises:
        SourceError: no such file, not a regular file, too large, or not UTF-8 with the byte where reading stopped.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{path}: not a regular file; expected a text file")
        with path.open("rb") as handle:
            data = handle.read(limit_bytes + 1)
    except OSError as error:
        raise SourceError(f"{path}: can't be read ({error.strerror or error})") from error
    if len(data) > limit_bytes:
        raise SourceError(f"{path}: {max(status.st_size, len(data))} bytes; at most {limit_bytes} are read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 text (byte {error.start}: {error.reason})") from None


def read_mapping(path: Path) -> dict[str, object]:
    """The mapping that a YAML file holds; raises `SourceError`."""
    return mapping_of(read_text(path), source=str(path))


def mapping_of(text: str, *, source: str) -> dict[str, object]:
    """The mapping that YAML text holds; raises `SourceError`."""
    try:
        document = load_yaml(text, source=source)
    except ManifestError as error:
        raise FileError(source, error.problems) from None
    if not isinstance(document, dict):
        raise FileError(source, (Problem("", f"expected a mapping, found {what_it_is(document)}"),))
    return {str(key): value for key, value in document.items()}


def validated(model: type[V], document: object, *, source: str, pointer: str = "") -> V:
    """The closed value of a part of a file; ``pointer`` says where the part stands. Raises `FileError`."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems = problems_of(error, model)
        raise FileError(source, tuple(Problem(pointer + item.pointer, item.message) for item in problems)) from None
