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
from sources.snapshot import SNAPSHOT_FILE, SOURCE
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
    """``build FOLDER... --retrieved DAY [--out FILE]``; 0 = written, 1 = not."""
    parser = argparse.ArgumentParser(prog="python -m sources.snapshot", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("build", help="rebuild the bundled snapshot")
    command.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    command.add_argument("--retrieved", required=True, type=date.fromisoformat, help="day on which the data was read")
    command.add_argument("--out", type=Path, default=DEFAULT_OUTPUT, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        data = build(options.folders, retrieved=options.retrieved)
        write_whole(options.out, as_bytes(data))
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    records = sum(len(advisory.records) for advisory in data.advisories)
    sys.stderr.write(f"{options.out}: {records} records, {len(data.advisories)} advisories, as of {data.as_of}\n")
    return 0
