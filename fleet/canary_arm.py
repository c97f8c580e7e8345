"""The second arm of a rollout as a manifest of its own: the same wishes on the canary's engine, under its own name."""

from fleet.manifest import Manifest

SUFFIX = "-canary"
LONGEST_HEAD = 56
"""Of the first arm's name, so that both together are a name."""


def canary_arm(written: Manifest) -> Manifest:
    """What the canary of a written manifest asks; requests name both arms alike.

    Its pin is made from the manifest that has the canary, so that one's digest is the source of both pins.
    """
    wish = written.spec.canary
    update = {"engine": wish.engine if wish else None, "canary": None, "served_name": written.served_name}
    return Manifest(
        metadata=written.metadata.model_copy(update={"name": f"{written.name[:LONGEST_HEAD]}{SUFFIX}"}),
        spec=written.spec.model_copy(update=update),
    )
