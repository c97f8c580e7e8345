"""Closings that the control plane proposes, and what a route gets when somebody takes them."""

from collections.abc import Sequence

from cli.client import Api, Document
from cli.exits import CommandError, Exit

MOST_ADVISORY_CHARACTERS = 200
"""What a route keeps as the advisory of a closed path."""


def proposed(api: Api, model: str | None) -> list[Document]:
    """The proposals, of one public model or of all; those that the rules refuse for come first."""
    found = api.every("/v1/proposed-closings", model=model)
    return sorted(found, key=lambda item: (not item["refused"], item["model"], item["path"]))


def chosen_proposals(found: Sequence[Document], model: str, paths: Sequence[str]) -> list[Document]:
    """Those of the named paths, or all.

    Raises:
        CommandError: none is proposed, or one of the paths is not.
    """
    known = [str(item["path"]) for item in found]
    if not known:
        raise CommandError(f"no closing is proposed for {model!r}", Exit.NOT_FOUND_OR_CONFLICT)
    missing = [path for path in paths if path not in known]
    if missing:
        message = f"'{missing[0]}' is not proposed for {model!r}; proposed are: {', '.join(known)}"
        raise CommandError(message, Exit.NOT_FOUND_OR_CONFLICT)
    return [item for item in found if not paths or item["path"] in paths]


def closed_path(item: Document, reference: str, owner: str, reason: str | None) -> Document:
    """A proposal as the closed path of a route."""
    why = f"proposed: {', '.join(item['advisories'])} in {', '.join(item['deployments'])}"
    return {
        "path": item["path"],
        "reference": reference,
        "owner": owner,
        "reason": (reason or why)[:2000],
        "advisory": _fitting(item["advisories"]),
    }


def _fitting(advisories: Sequence[str]) -> str:
    """As many of them as a route keeps, and how many more there are."""
    for count in range(len(advisories), 0, -1):
        more = f" and {len(advisories) - count} more" if count < len(advisories) else ""
        text = ", ".join(advisories[:count]) + more
        if len(text) <= MOST_ADVISORY_CHARACTERS:
            return text
    return advisories[0][:MOST_ADVISORY_CHARACTERS]
