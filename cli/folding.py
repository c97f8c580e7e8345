"""Text folded to a width: between words, and inside a word only where it is wider than the whole line."""

from collections.abc import Iterator


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """The text with blanks behind it."""
    return text + " " * (width - width_of(text))


def folded(text: str, width: int) -> list[str]:
    """The lines of a text; at least one."""
    lines = [""]
    for word in _words(text, width):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if width_of(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _words(text: str, width: int) -> Iterator[str]:
    for word in text.split():
        rest = word
        while width_of(rest) > width:
            taken = _fitting(rest, width)
            yield rest[:taken]
            rest = rest[taken:]
        if rest:
            yield rest


def _fitting(word: str, width: int) -> int:
    """How many signs fit; at least one, so that folding ends."""
    taken = 1
    while taken < len(word) and width_of(word[: taken + 1]) <= width:
        taken += 1
    return taken
