"""Where the program ``enginehouse`` begins: with the kernel installed alone, it says which extra the command needs."""

import sys

ROOMS = frozenset({"cli", "engines", "fleet", "local", "simulator", "sources", "workloads"})


def run() -> None:
    """Run the command; a library that is not installed ends it with the name of the extra."""
    try:
        from cli.main import run as run_command
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ROOMS:
            raise
        sys.exit(
            f"error: {library} is not installed: the command needs the extra 'cli'; install enginehouse[cli], or "
            "enginehouse[all] for the local fleet as well"
        )
    run_command()
