"""Files and functions stay small, and the tree keeps its manners.

A file that outgrows its budget hides a noun that wants a file of its own.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/py.typed"))
FILE_LINES = 300
TEST_FILE_LINES = 500
FUNCTION_LINES = 40
EMPTY_WORDS = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "shared"}
SELF = "tests/contracts/test_budgets_and_manners.py"
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".lock",
    ".cfg",
    ".ini",
    ".html",
    ".css",
    ".js",
    ".sh",
    ".mako",
    ".txt",
    "",
}

# Machine paths, and the hosts of package registries, which belong to the machine that installs.
FOREIGN = re.compile(
    r"""(?<![\w.])/(?:work|Users)/\w|(?<![\w.])/home/\w+/|/root/\.pyenv
    |\bpypi\.org/simple|files\.pythonhosted\.org|registry\.npmjs\.org|\b(?:proxy|sum)\.golang\.org
    |\bindex\.crates\.io|\bstatic\.crates\.io|\bdeb\.debian\.org|repo1?\.maven\.org|\.pkg\.dev\b""",
    re.VERBOSE,
)
PROMISES = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|pragma:\s*no cover|#\s*type:\s*ignore(?!\[)|#\s*noqa(?!:)")


@cache
def tracked() -> list[Path]:
    """The files of the repository: what git knows or would add; without git, what is no build left-over."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        names = [path for path in ROOT.rglob("*") if not any(p.startswith(".") for p in path.relative_to(ROOT).parts)]
    return sorted(path for path in set(names) if path.is_file() and path.suffix in TEXT)


def python_of(*folders: str) -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@cache
def read(path: Path) -> tuple[bool, tuple[str, ...]]:
    """Whether a module opens with a sentence, and its functions that are too long: it is parsed once, and not kept."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return bool(ast.get_docstring(tree)), tuple(long_functions(tree, FUNCTION_LINES))


def is_migration(path: Path) -> bool:
    return "migrations" in path.parts


def long_functions(tree: ast.Module, limit: int) -> Iterator[str]:
    """The functions longer than the limit, as `name (lines)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > limit:
                yield f"{node.name} ({lines} lines)"


def lines_of(path: Path) -> int:
    return len(text_of(path).splitlines())


def lines_with(pattern: re.Pattern[str], path: Path) -> list[tuple[int, str]]:
    """The lines in which it is found, with their numbers; most files have none, which one search tells."""
    text = text_of(path)
    if not pattern.search(text):
        return []
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


def test_a_file_of_a_room_has_at_most_300_lines() -> None:
    files = [path for path in python_of(*ROOMS, "benchmarks", ".ci") if not is_migration(path)]
    over = {str(path.relative_to(ROOT)): lines_of(path) for path in files if lines_of(path) > FILE_LINES}
    assert not over, over


def test_a_file_of_tests_has_at_most_500_lines() -> None:
    over = {str(p.relative_to(ROOT)): lines_of(p) for p in python_of("tests") if lines_of(p) > TEST_FILE_LINES}
    assert not over, over


def test_a_function_has_at_most_40_lines() -> None:
    over = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in python_of(*ROOMS, "benchmarks", ".ci")
        if not is_migration(path)
        for name in read(path)[1]
    ]
    assert not over, "\n".join(over)


def test_a_function_of_41_lines_is_found() -> None:
    assert list(long_functions(ast.parse("async def f():\n" + "    x = 1\n" * 40), 40)) == ["f (41 lines)"]
    assert not list(long_functions(ast.parse("def f():\n" + "    x = 1\n" * 39), 40))


def test_every_module_is_named_by_its_noun() -> None:
    named = [str(path.relative_to(ROOT)) for path in python_of(*ROOMS) if EMPTY_WORDS & set(path.stem.split("_"))]
    assert not named, named


def test_no_module_of_a_room_shadows_the_standard_library() -> None:
    """`python -m infra` style starts put a room's folder first on sys.path."""
    shadows = [
        str(path.relative_to(ROOT))
        for path in python_of(*ROOMS)
        if path.parent.name in ROOMS and path.stem in sys.stdlib_module_names
    ]
    assert not shadows, shadows


def test_every_module_opens_with_a_sentence() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in python_of(*ROOMS, ".ci", "benchmarks")
        if text_of(path).strip() and not read(path)[0]
    ]
    assert not silent, silent


def test_every_room_says_what_it_is_for_and_is_typed() -> None:
    assert len(ROOMS) == 11
    assert all(read(ROOT / room / "__init__.py")[0] for room in ROOMS)


def test_nothing_is_promised_or_silenced() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in python_of(*ROOMS, "tests", ".ci", "benchmarks", "examples")
        if str(path.relative_to(ROOT)) != SELF
        for number, line in lines_with(PROMISES, path)
    ]
    assert not found, "\n".join(found)


def test_no_file_names_a_machine_path_or_a_registry_host() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:160]}"
        for path in tracked()
        if str(path.relative_to(ROOT)) != SELF
        for number, line in lines_with(FOREIGN, path)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    ["cd /work/somewhere", "/home/fred/x", "--index-url https://pypi.org/simple", "https://x-python.pkg.dev/a/simple"],
)
def test_a_foreign_path_or_host_is_found(line: str) -> None:
    assert FOREIGN.search(line)


@pytest.mark.parametrize(
    "line", ["../shared/advisories", "https://example.org/work/a", "network/work", "pypi.org/project/vllm"]
)
def test_a_harmless_line_is_not_found(line: str) -> None:
    assert not FOREIGN.search(line)


@pytest.mark.parametrize(
    "line", ["x = 1  # TODO", "x()  # type: ignore", "x()  # noqa", "def f():  # pragma: no cover"]
)
def test_a_promise_is_found(line: str) -> None:
    assert PROMISES.search(line)
