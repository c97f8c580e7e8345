"""The words in properties: ids and names that somebody wrote down, and how much of a property is not known yet."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pulumi_policy.proxy import UnknownValueError

Props: TypeAlias = Mapping[str, Any]


def names_of(props: Props) -> frozenset[str]:
    """The words by which others may call a resource, as far as they are known."""
    found = set()
    for key in ("id", "name"):
        try:
            found.add(props.get(key))
        except UnknownValueError:
            continue
    return frozenset(word for word in found if isinstance(word, str) and word)


def is_list(props: Props, key: str) -> bool:
    """Whether a property is a list, as far as that is known."""
    try:
        return isinstance(props.get(key), Sequence) and not isinstance(props[key], str)
    except UnknownValueError:
        return False


def words_in(props: Props, key: str) -> tuple[frozenset[str], list[UnknownValueError]]:
    """The texts in a property, at any depth, and what of it is unknown."""
    words: set[str] = set()
    unknown: list[UnknownValueError] = []
    _read_words(props, key, words, unknown)
    return frozenset(words), unknown


def _read_words(holder: Any, key: Any, words: set[str], unknown: list[UnknownValueError]) -> None:  # noqa: ANN401
    try:
        value = holder.get(key) if isinstance(holder, Mapping) else holder[key]
    except UnknownValueError as error:
        unknown.append(error)
        return
    if isinstance(value, str):
        words.add(value)
    elif isinstance(value, Mapping):
        for name in value:
            _read_words(value, name, words, unknown)
    elif isinstance(value, Sequence):
        for index in range(len(value)):
            _read_words(value, index, words, unknown)
