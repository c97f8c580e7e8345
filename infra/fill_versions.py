"""``python -m infra.fill_versions --stack-file Pulumi.dev.yaml``: asks AWS for what the stack's file leaves open.

It prints what it found, one ``key: value`` a line, and with ``--write`` puts it into the file. What AWS does not know,
and what it says against the file, goes to standard error. It exits with 0 when nothing is left open or wrong, with 1
when something is, with 2 when the file can't be read.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from infra.cloud_client import CloudUnanswered
from infra.cloud_session import clients
from infra.open_values import (
    Clients,
    Fill,
    contradictions,
    fills,
    release_contradictions,
    version_contradictions,
)
from infra.problem import StackRefused
from infra.stack_file import config_of, filled
from sources.errors import SourceError
from sources.whole_file import write_whole


def connected(region: str) -> Clients:
    """Clients with the credentials of the environment; raises `CloudClosed`."""
    ec2, eks, ssm = clients(region, "ec2", "eks", "ssm")
    return Clients(ec2, eks, ssm)


def main(arguments: Sequence[str] | None = None, *, connect: Callable[[str], Clients] = connected) -> int:
    """The command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.fill_versions", description="Fills in what AWS knows.")
    parser.add_argument("--stack-file", type=Path, required=True, help="Pulumi.<stack>.yaml")
    parser.add_argument("--write", action="store_true", help="put the values into the file")
    asked = parser.parse_args(arguments)
    try:
        text = asked.stack_file.read_text(encoding="utf-8")
        config = config_of(text)
    except (OSError, UnicodeDecodeError, StackRefused) as error:
        _complain([f"{asked.stack_file}: {line}" for line in str(error).splitlines()])
        return 2
    try:
        cloud = connect(config.region)
        found = list(fills(config, cloud))
        against = [
            *contradictions(config, cloud.ec2),
            *version_contradictions(config, cloud.eks),
            *release_contradictions(config, cloud.ssm),
        ]
    except CloudUnanswered as error:
        _complain([str(error)])
        return 1
    _tell(found)
    if asked.write:
        try:
            write_whole(asked.stack_file, filled(text, found).encode())
        except SourceError as error:
            _complain([str(error)])
            return 1
    left = [f"{fill.key}: {fill.reason}" for fill in found if fill.value is None]
    _complain([*left, *(problem.sentence for problem in against)])
    return 1 if left or against else 0


def _tell(found: Iterable[Fill]) -> None:
    for fill in found:
        if fill.value is not None:
            sys.stdout.write(f"{fill.key}: {fill.value}\n")


def _complain(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
