"""``python -m infra.adopted prod --outputs outputs.json --write``: after ``pulumi up``, what runs is what is adopted.

The outputs are those of ``pulumi stack output --json``. It prints how ``environments/<env>/adopted.yaml`` differs from
the identities of the stack, and with ``--write`` puts them into the file; comments stay. It exits with 0 when the file
says what runs, with 1 when it does not or can't be written, with 2 when a file can't be read.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from infra.adopted_file import changes, rewritten
from sources.environment import Adopted, read_adopted
from sources.errors import SourceError
from sources.whole_file import write_whole
from sources.yaml_file import read_text

FILE = "adopted.yaml"
_REMEDY = "write them with: pulumi stack output --json"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the exit code."""
    asked = _parser().parse_args(arguments)
    folder: Path = asked.environments / asked.environment
    path = folder / FILE
    try:
        identities = _identities(read_text(asked.outputs), asked.outputs)
        if not folder.is_dir():
            raise SourceError(f"{folder}: no such folder; name an environment, and run it where environments stand")
        before = read_adopted(path)
        text = read_text(path) if path.exists() else ""
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    found = list(changes(before, identities))
    sys.stdout.writelines(f"{change}\n" for change in found)
    if not found or not asked.write:
        return 1 if found else 0
    try:
        write_whole(path, rewritten(text, identities).encode())
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.adopted", description="Adopts what a stack runs.")
    parser.add_argument("environment", help="the folder below environments")
    parser.add_argument("--outputs", type=Path, required=True, help="what `pulumi stack output --json` wrote")
    parser.add_argument("--write", action="store_true", help="put the identities into the file")
    parser.add_argument("--environments", type=Path, default=Path("environments"), help="where environments stand")
    return parser


def _identities(text: str, source: Path) -> Mapping[str, str]:
    """Name -> identity, of the stack's outputs; raises `SourceError`."""
    try:
        outputs = json.loads(text)
    except ValueError as error:
        raise SourceError(f"{source}: it is no JSON ({error}); {_REMEDY}") from None
    found = outputs.get("identities") if isinstance(outputs, Mapping) else None
    if not isinstance(found, Mapping):
        raise SourceError(f"{source}: the output identities is missing; {_REMEDY}, after 'pulumi up'")
    try:
        entries = [Adopted(name=name, identity=identity) for name, identity in found.items()]
    except ValidationError:
        raise SourceError(f"{source}: identities hold what is none ({found}); {_REMEDY}") from None
    return {item.name: item.identity for item in sorted(entries, key=lambda item: item.name)}


if __name__ == "__main__":
    sys.exit(main())
