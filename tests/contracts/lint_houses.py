"""``lint_houses.py FOLDER…`` runs the import linter on several trees, each in a fork of one process that has loaded it.

A tree's folder gets what was printed in `lint.txt` and the exit code in `lint.code`.
"""

import os
import sys
from pathlib import Path

from importlinter.cli import lint_imports_command


def lint(folder: Path) -> int:
    """What the command does in a folder whose packages come first; its exit code."""
    with (folder / "lint.txt").open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        lint_imports_command(["--no-cache"])
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stdout.flush()
    return 0


def main(folders: list[str]) -> None:
    for name in folders:
        folder = Path(name)
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = lint(folder)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        (folder / "lint.code").write_text(str(os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    main(sys.argv[1:])
