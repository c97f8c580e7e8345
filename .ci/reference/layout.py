"""What every generated page is made of: tables, cells, and the texts that stand below attributes in code."""

import ast
import inspect
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from types import ModuleType

MADE = "*Made by `make reference` from {source}; a test compares it. Change the source, not this page.*"


def page(title: str, source: str, *parts: str) -> str:
    """A page with its title, where it comes from, and its parts."""
    text = "\n\n".join([f"# {title}", MADE.format(source=source), *(part.strip("\n") for part in parts if part)])
    return text + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; blanks and lines inside a cell become one blank."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return "\n".join(lines)


def cell(value: object) -> str:
    """One cell: a hyphen where there is nothing."""
    text = " ".join(str(value).split()) if value is not None else ""
    return text.replace("|", "\\|") or "-"


def code(text: object) -> str:
    """A piece of code; nothing stays nothing."""
    plain = str(text)
    return f"`{plain}`" if plain else ""


def codes(texts: Iterable[object]) -> str:
    """Several pieces of code."""
    return ", ".join(map(code, texts))


def plain(docstring: str) -> str:
    """A docstring as Markdown: doubled backticks become single ones."""
    return " ".join(docstring.replace("``", "`").split())


@lru_cache(maxsize=16)
def attribute_texts(module: ModuleType) -> dict[str, str]:
    """``Class.attribute`` -> the text below it, for every class of a module."""
    found: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}": text for name, text in _texts_of(node.body)}
    return found


def _texts_of(body: Sequence[ast.stmt]) -> Iterable[tuple[str, str]]:
    for statement, below in pairwise(body):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield statement.target.id, plain(str(below.value.value))
