"""How a person types our command: by its name where the shell finds it, else by its path."""

import shlex
import shutil
import sys
from pathlib import Path


def own_command() -> str:
    """``enginehouse``, or the quoted path of the program beside the running Python."""
    return (
        "enginehouse" if shutil.which("enginehouse") else shlex.quote(str(Path(sys.executable).parent / "enginehouse"))
    )
