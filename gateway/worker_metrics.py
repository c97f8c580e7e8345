"""The metrics of all workers on one page: every series of a worker gets a label that names it. Pure."""

import re
from collections.abc import Mapping

_ABOUT = re.compile(r"# (HELP|TYPE) (\S+)")
_SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: \S+)?")


def joined_pages(pages: Mapping[str, str]) -> str:
    """One page from the pages of workers, by their names; families stay together, as the format asks."""
    families: dict[str, tuple[list[str], list[str]]] = {}
    for worker, page in pages.items():
        series: list[str] = []
        for line in page.splitlines():
            about = _ABOUT.match(line)
            if about is not None:
                said, series = families.setdefault(about[2], ([], []))
                if line not in said:
                    said.append(line)
            elif (one := _SERIES.fullmatch(line)) is not None:
                labels = f'worker="{worker}"' + (f",{one[2]}" if one[2] else "")
                series.append(f"{one[1]}{{{labels}}} {one[3]}")
    lines = (line for said, series in families.values() for line in (*said, *series))
    return "".join(f"{line}\n" for line in lines)
