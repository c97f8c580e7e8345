"""Known images of engine versions, as people wrote them down: digests are never invented."""

import datetime

from fleet.spec import EngineName, ImageDigest
from fleet.value import Value


class ImageRecord(Value):
    """One image of an engine version for a platform."""

    engine: EngineName
    version: str
    platform: str = "linux/amd64"
    digest: ImageDigest
    """``repository@sha256:...``."""
    date: datetime.date
    who: str
    cuda: str | None = None
    """The CUDA version of the image, where it was looked up: a node's driver has to be new enough for it."""
