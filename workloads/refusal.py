"""Why a pinned manifest is not rendered."""

from enum import StrEnum


class Reason(StrEnum):
    """What stands in the way."""

    HOSTED = "hosted"
    DISAGGREGATED = "disaggregated"
    SEVERAL_NODES = "several-nodes"
    WITHOUT_IMAGE = "without-image"
    ENGINE_BUILD = "engine-build"
    ENGINE_REFUSED = "engine-refused"
    NO_POOL = "no-pool"
    MIG_PROFILE = "mig-profile"
    SCHEDULE = "schedule"
    WEIGHTS = "weights"


class RenderRefused(Exception):
    """A manifest that has no objects, with the reason and what would be right."""

    def __init__(self, name: str, reason: Reason, message: str, remedy: str) -> None:
        self.name = name
        self.reason = reason
        self.message = message
        self.remedy = remedy
        super().__init__(f"{name}: {message}; {remedy}")
