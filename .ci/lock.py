"""Makes the three locks again from pyproject.toml, with the pinned uv and without any host name in them.

`--upgrade` takes the newest releases that are older than COOLDOWN; without it the present pins stay where they fit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import install

COMMON = (
    "--quiet",
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--custom-compile-command=make lock",
)
LOCKS = {
    "requirements-uv.lock": ("--group=bootstrap",),
    "requirements.lock": ("--all-extras", "pyproject.toml"),
    "requirements-dev.lock": ("--all-extras", "--group=dev", "pyproject.toml"),
}


def main(arguments: Sequence[str]) -> int:
    """Writes every lock; the development lock takes the versions that the runtime lock has."""
    uv, environment = install.install_uv()
    cooldown = os.environ.get("COOLDOWN")
    options = (*COMMON, *(["--exclude-newer=" + cooldown] if cooldown else ()), *arguments)
    for lock, what in LOCKS.items():
        constraint = ("--constraint=requirements.lock",) if lock == "requirements-dev.lock" else ()
        install.run(uv, "pip", "compile", *options, *constraint, *what, "--output-file", lock, environment=environment)
        print(f"wrote {lock}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except install.InstallError as error:
        sys.exit(f"make lock stopped: {error}")
