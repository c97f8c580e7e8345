"""The bundled snapshot of advisories: facts only, rebuilt from a folder by ``python -m sources.snapshot build``."""

import sys
from functools import cache
from importlib.resources import files

from fleet.advisory import Label
from fleet.facts import AdvisoryData
from sources.assemble import labels_of

SNAPSHOT_FILE = "advisories.json"
SOURCE = "bundled snapshot"


@cache
def bundled() -> AdvisoryData:
    """The snapshot that came with the program."""
    return AdvisoryData.model_validate_json(files("sources").joinpath("data", SNAPSHOT_FILE).read_bytes())


@cache
def bundled_labels() -> dict[str, Label]:
    """``package/ID`` -> label, for every id of every labelled advisory of the snapshot."""
    return labels_of(bundled())


if __name__ == "__main__":
    from sources.rebuild import main

    sys.exit(main(sys.argv[1:]))
