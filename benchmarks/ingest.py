"""How long 10,000 OSV records take to read and merge, and how much memory: ``python benchmarks/ingest.py``.

The records are made up from the shapes of the bundled snapshot, each with a text of a few kilobytes, as feeds have.
Budget: under 10 s and under 300 MB of peak resident memory, in a process that does nothing else.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fleet.advisory import Advisory
from sources import osv_folder, snapshot


def main() -> None:
    """Make the folder, read it in a fresh process, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        measure(options.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        size_bytes = fill(Path(folder), options.records)
        print(f"{options.records} records, {size_bytes / 1e6:.1f} MB of JSON")
        subprocess.run([sys.executable, __file__, "--read", folder], check=True)  # noqa: S603 - this file itself


def fill(folder: Path, records: int) -> int:
    """Write records whose ids and packages differ; returns the bytes written."""
    chance = random.Random(20261129)  # noqa: S311 - reproducible test data
    shapes = snapshot.bundled().advisories
    size_bytes = 0
    for number in range(records):
        text = json.dumps(record(shapes[number % len(shapes)], number, chance)).encode()
        package = folder / f"package-{number % 500}"
        package.mkdir(exist_ok=True)
        (package / f"TEST-{number}.json").write_bytes(text)
        size_bytes += len(text)
    return size_bytes


def record(shape: Advisory, number: int, chance: random.Random) -> dict[str, object]:
    """One OSV record with the ranges, versions and links of a bundled one."""
    source = shape.records[0]
    affected = [
        {
            "package": {"ecosystem": "PyPI", "name": f"package-{number % 500}"},
            "ranges": [
                {"type": item.type, "events": [{event.kind.value: event.version} for event in item.events]}
                for item in entry.ranges
            ],
            "versions": list(entry.versions),
        }
        for entry in source.affected
    ]
    return {
        "schema_version": "1.7.3",
        "id": f"TEST-{number}",
        "aliases": [f"TEST-ALIAS-{number // 2}"],
        "modified": source.modified,
        "summary": "a made-up record",
        "details": "made-up text " * chance.randrange(50, 700),
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N"}],
        "affected": affected,
        "references": [{"type": link.type, "url": f"{link.url}#{number}"} for link in source.references],
    }


def measure(folder: Path) -> None:
    """Read the folder once and print what it took."""
    start, cpu_start = time.perf_counter(), time.process_time()
    data = osv_folder.read([folder])
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    records = sum(len(advisory.records) for advisory in data.advisories)
    print(f"read {records} records into {len(data.advisories)} advisories, {len(data.quarantined)} quarantined")
    print(
        f"{seconds:.2f} s (budget 10 s; {cpu_seconds:.2f} s of it on the CPU), "
        f"peak {peak_mb:.0f} MB resident (budget 300 MB)"
    )


if __name__ == "__main__":
    main()
