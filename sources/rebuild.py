"""Rebuilds the bundled snapshot from folders of OSV JSON, labels and versions."""

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from fleet.facts import AdvisoryData
from sources.assemble import assemble
from sources.companions import Published
from sources.errors import SourceError
from sources.osv_folder import scan
from sources.snapshot import DIGEST_FILE, SNAPSHOT_FILE, SOURCE, digest_line
from sources.whole_file import write_whole

DEFAULT_OUTPUT = Path(__file__).parent / "data" / SNAPSHOT_FILE


def build(folders: Sequence[Path], *, retrieved: date) -> AdvisoryData:
    """The snapshot of folders; labels and versions are theirs alone.

    Raises:
        SourceError: a folder that can't be read, or a record that can't: a snapshot is complete or not made.
    """
    found = scan(folders)
    if found.quarantined:
        first = found.quarantined[0]
        raise SourceError(
            f"{len(found.quarantined)} records can't be read, the first is {first.source}: {first.reason}"
        )
    labels = {key: label.model_copy(update={"source": "labels.json"}) for key, label in found.labels.items()}
    return assemble(
        found.records,
        labels=labels,
        published=found.published or Published({}, ""),
        unknown_keys_ignored=found.unknown_keys,
        retrieved=retrieved,
        source=SOURCE,
    )


def as_bytes(data: AdvisoryData) -> bytes:
    """One advisory a line, so that a change of the snapshot can be read as a change."""
    plain = data.model_copy(update={"advisories": ()}).model_dump_json(exclude_defaults=True)
    lines = ",\n".join(item.model_dump_json(exclude_defaults=True) for item in data.advisories)
    return f'{plain[:-1]},"advisories":[\n{lines}\n]}}\n'.encode()


def main(arguments: Sequence[str]) -> int:
    """``build FOLDER... --retrieved DAY [--out FILE]`` or ``digest [--out FILE]``; 0 = written, 1 = not."""
    options = _parser().parse_args(arguments)
    try:
        told = options.run(options)
    except (SourceError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stderr.write(f"{options.out}: {told}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sources.snapshot", description=__doc__)
    commands = parser.add_subparsers(required=True)
    building = commands.add_parser("build", help="rebuild the bundled snapshot")
    building.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    building.add_argument("--retrieved", required=True, type=date.fromisoformat, help="day on which the data was read")
    building.set_defaults(run=_build)
    digesting = commands.add_parser("digest", help="write the digest beside the snapshot again")
    digesting.set_defaults(run=_digest)
    for command in (building, digesting):
        command.add_argument("--out", type=Path, default=DEFAULT_OUTPUT, metavar="FILE")
    return parser


def _build(options: argparse.Namespace) -> str:
    data = build(options.folders, retrieved=options.retrieved)
    write_whole(options.out, as_bytes(data))
    _digest(options)
    records = sum(len(advisory.records) for advisory in data.advisories)
    return f"{records} records, {len(data.advisories)} advisories, as of {data.as_of}"


def _digest(options: argparse.Namespace) -> str:
    """For a change of the code that gives the same file another digest."""
    line = digest_line(options.out.read_bytes())
    write_whole(options.out.with_suffix(Path(DIGEST_FILE).suffix), line.encode("ascii"))
    return line.strip()
