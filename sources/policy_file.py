"""The policy: the file that is named, else the working tree's, else the one that came with the program."""

from importlib.resources import files
from pathlib import Path

from fleet.nearest import did_you_mean
from fleet.policy import PlatformPolicy, Policy, PolicyBook
from sources.errors import SourceError
from sources.yaml_file import mapping_of, read_text, validated

WORKING_TREE_FILE = Path("policies", "policy.yaml")
BUNDLED = "bundled policy"
LONGEST_SHOWN = 60
"""Letters of a name that a message repeats."""


def locate(path: Path | None = None, *, working_tree: Path = Path()) -> Path | None:
    """The file that counts, or ``None`` when it is the bundled one."""
    if path is not None:
        return path
    own = working_tree / WORKING_TREE_FILE
    return own if own.is_file() else None


def read(path: Path | None = None, *, working_tree: Path = Path()) -> PolicyBook:
    """The policy of every environment, checked in full.

    Raises:
        SourceError: no such file, not YAML, an unknown key or environment value, each with its pointer.
    """
    found = locate(path, working_tree=working_tree)
    if found is None:
        return parse(files("sources").joinpath("data", "policy.yaml").read_text(encoding="utf-8"), source=BUNDLED)
    return parse(read_text(found), source=str(found))


def parse(text: str, *, source: str) -> PolicyBook:
    """The policy in YAML text; raises `SourceError`."""
    book = validated(PolicyBook, mapping_of(text, source=source), source=source)
    for name, changes in book.environments.items():
        base = book.default.model_dump()
        validated(Policy, base | changes, source=source, pointer=f"/environments/{name}")
    for name, changes in book.platform.environments.items():
        pointer = f"/platform/environments/{name}"
        validated(PlatformPolicy, changes, source=source, pointer=pointer)
        unknown = unknown_environment(book, name)
        if unknown is not None:
            raise SourceError(f"{source}: {pointer}: {unknown}; {how_to_add(name)}, or correct the name here")
    return book


def policy_for(book: PolicyBook, environment: str) -> Policy:
    """The policy of an environment that the book names; a book without environments holds for every one.

    A mistyped name would get the milder default, so an unknown one is an error (`SourceError`).
    """
    _check_name(book, environment)
    return book.policy_for(environment)


def platform_for(book: PolicyBook, environment: str) -> PlatformPolicy:
    """What the cluster of an environment may be; an unknown environment is an error (`SourceError`)."""
    _check_name(book, environment)
    return book.platform_for(environment)


def unknown_environment(book: PolicyBook, environment: str) -> str | None:
    """Why the policy says nothing of an environment; ``None`` = it names it, or holds for every one."""
    if not book.environments or environment in book.environments:
        return None
    hint = did_you_mean(environment, book.environments).removeprefix("; ")
    shown = f"{environment[:LONGEST_SHOWN]}{'…' if len(environment) > LONGEST_SHOWN else ''}"
    known = f"it has: {', '.join(book.environments)}{f' - {hint}' if hint else ''}"
    return f"the policy has no environment '{shown}' ({known})"


def how_to_add(environment: str) -> str:
    """What makes an environment known: one line, and a second place where its cluster differs from the default."""
    return (
        f"add '{environment}: {{}}' under environments of {WORKING_TREE_FILE}, and under its platform.environments "
        "what this cluster may be where that differs from the default"
    )


def _check_name(book: PolicyBook, environment: str) -> None:
    unknown = unknown_environment(book, environment)
    if unknown is not None:
        raise SourceError(unknown)
