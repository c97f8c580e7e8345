"""The text of ``adopted.yaml`` with other identities: comments, order and writing of what stays are kept."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from sources.environment import Adopted

HEAD = "# What runs here; written after 'pulumi up' by 'python -m infra.adopted'.\n"
_KEY = "adopted"
_WIDE = 4096


def changes(before: Iterable[Adopted], identities: Mapping[str, str]) -> Iterator[str]:
    """How a file differs from what a stack runs, a line for each deployment."""
    known: dict[str, list[str]] = {}
    for entry in before:
        known.setdefault(entry.name, []).append(entry.identity)
    for name in sorted({*known, *identities}):
        there, wanted = known.get(name, []), identities.get(name)
        if wanted is None:
            yield f"{name}: {', '.join(there)} -> nothing; the stack has no such deployment"
        elif there != [wanted]:
            yield f"{name}: {', '.join(there) or 'nothing'} -> {wanted}"


def rewritten(text: str, identities: Mapping[str, str]) -> str:
    """The file with these identities, each name once; one that is empty gets a head that says where it comes from."""
    if not text.strip():
        text = HEAD + text
    yaml = _yaml(text)
    content = yaml.load(text)
    document: MutableMapping[str, Any] = {_KEY: []} if content is None else content
    entries = document.get(_KEY)
    if not entries:
        document[_KEY] = [_entry(*item) for item in identities.items()]
    else:
        _update(entries, identities)
    out = StringIO()
    yaml.dump(document, out)
    return (text if content is None else "") + out.getvalue()


def _update(entries: MutableSequence[MutableMapping[str, Any]], identities: Mapping[str, str]) -> None:
    seen: set[str] = set()
    for index in range(len(entries)):
        name = str(entries[index]["name"])
        if name in identities and name not in seen:
            entries[index]["identity"] = identities[name]
            seen.add(name)
    for index in reversed(range(len(entries))):
        if str(entries[index]["name"]) not in identities or _is_again(entries, index):
            del entries[index]
    entries.extend(_entry(name, identity) for name, identity in identities.items() if name not in seen)


def _is_again(entries: MutableSequence[MutableMapping[str, Any]], index: int) -> bool:
    return any(entries[place]["name"] == entries[index]["name"] for place in range(index))


def _entry(name: str, identity: str) -> dict[str, str]:
    return {"name": name, "identity": identity}


def _yaml(text: str) -> YAML:
    """Lists are written as far in as the file has them."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _WIDE
    first = next((line for line in text.splitlines() if line.lstrip().startswith("- ")), "  - ")
    offset = len(first) - len(first.lstrip())
    yaml.indent(mapping=2, sequence=offset + 2, offset=offset)
    return yaml
