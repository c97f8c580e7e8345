"""The bundled snapshot of advisories: facts only, rebuilt from a folder by ``python -m sources.snapshot build``."""

import hashlib
import sys
from functools import cache
from importlib.resources import files

from fleet.advisory import Label
from fleet.facts import AdvisoryData
from sources.assemble import labels_of

SNAPSHOT_FILE = "advisories.json"
DIGEST_FILE = "advisories.digest"
"""The sha256 of the snapshot's file and the digest of what it holds: computing that costs more than reading both."""
SOURCE = "bundled snapshot"


@cache
def bundled() -> AdvisoryData:
    """The snapshot that came with the program."""
    folder = files("sources").joinpath("data")
    text = folder.joinpath(SNAPSHOT_FILE).read_bytes()
    data = AdvisoryData.model_validate_json(text)
    written_for, _, stored = folder.joinpath(DIGEST_FILE).read_text(encoding="ascii").strip().partition(" ")
    if written_for == hashlib.sha256(text).hexdigest():
        vars(data)["digest"] = stored  # where the property would remember what it computes
    return data


def digest_line(text: bytes) -> str:
    """What the file beside a snapshot says of it."""
    return f"{hashlib.sha256(text).hexdigest()} {AdvisoryData.model_validate_json(text).digest}\n"


@cache
def bundled_labels() -> dict[str, Label]:
    """``package/ID`` -> label, for every id of every labelled advisory of the snapshot."""
    return labels_of(bundled())


if __name__ == "__main__":
    from sources.rebuild import main

    sys.exit(main(sys.argv[1:]))
