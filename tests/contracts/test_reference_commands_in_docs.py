"""Commands that the pages show run as shown: blocks marked `sh runnable`, in the order of their page.

A block may name the exit code of its last command (`exit=3`). A block `text output` after it shows what was printed:
each of its lines stands in a line of the output, in this order; `…` stands for what was left out.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleet.images import ImageRecord
from fleet.node_pools import NodePool
from fleet.waiver import Triage, Waiver
from sources import environment

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(sh runnable(?: exit=(\d))?|text output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED_YAML = re.compile(r"^`(environments/[\w./-]+\.yaml)`:?\n+```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "…"


@dataclass(frozen=True)
class Shown:
    """One block of commands, and what the page says that they print."""

    command: str
    exit_code: int
    output: str = ""


def shown_on(text: str) -> list[Shown]:
    """The runnable blocks of a page with their output."""
    found: list[Shown] = []
    for kind, code, body in FENCE.findall(text):
        if kind == "text output":
            last = found.pop()
            found.append(Shown(last.command, last.exit_code, body))
        else:
            found.append(Shown(body, int(code or 0)))
    return found


PAGES = {
    str(page.relative_to(ROOT)): shown
    for page in sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
    if (shown := shown_on(page.read_text(encoding="utf-8")))
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that looks like a clone to the commands of a page."""
    folder = tmp_path / "clone"
    for name in ("examples", "policies", "tests/data/osv"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def run(shown: Shown, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a block as a person would paste it, with talk and data in one stream."""
    environment_of_person = {
        "PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder.parent),
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        ["bash", "-ec", shown.command],
        cwd=folder,
        env=environment_of_person,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def words(text: str) -> str:
    return " ".join(text.split())


def first_missing(shown: str, printed: str) -> str | None:
    """The first line of a page that was not printed as one line, or not in this order."""
    rest = iter([words(line) for line in printed.splitlines()])
    for line in (words(line) for line in shown.splitlines()):
        if line and line != LEFT_OUT and not any(holds(candidate, line) for candidate in rest):
            return line
    return None


def holds(printed: str, shown: str) -> bool:
    """Whether a printed line has the parts of a shown one, in their order."""
    rest = printed
    for part in filter(None, (part.strip() for part in shown.split(LEFT_OUT))):
        _, found, rest = rest.partition(part)
        if not found:
            return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_commands_of_a_page_run_and_print_what_it_shows(page: str, clone: Path) -> None:
    for shown in PAGES[page]:
        done = run(shown, clone)
        assert done.returncode == shown.exit_code, f"{shown.command}{done.stdout[-2000:]}"
        missing = first_missing(shown.output, done.stdout)
        assert missing is None, f"{shown.command}did not print: {missing}\n{done.stdout[-4000:]}"


def test_the_pages_that_a_newcomer_meets_have_commands_that_run() -> None:
    assert {"README.md", "docs/tutorials/first-fleet.md"} <= set(PAGES)


@pytest.mark.parametrize(
    ("shown", "printed", "missing"),
    [
        ("a\nb\n", "a\n  b\n", None),
        ("b\na\n", "a\nb\n", "a"),
        ("a\n…\nc\n", "a\nb\nc\n", None),
        ("a … c\n", "a b c\n", None),
        ("a … c\n", "a b\nc\n", "a … c"),
        ("a\nx\n", "a\nb\n", "x"),
    ],
)
def test_a_line_that_was_not_printed_is_noticed(shown: str, printed: str, missing: str | None) -> None:
    assert first_missing(shown, printed) == missing


def test_blocks_are_read_with_their_exit_code_and_output() -> None:
    page = "```sh runnable exit=3\nfalse\n```\n\n```text output\nx\n```\n\n```sh\nnever\n```\n"
    assert shown_on(page) == [Shown("false\n", 3, "x\n")]


def test_the_files_of_an_environment_are_read_as_the_reference_shows_them(tmp_path: Path) -> None:
    text = (DOCS / "reference" / "files.md").read_text(encoding="utf-8")
    files = dict(NAMED_YAML.findall(text))
    for name, content in files.items():
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    folder = tmp_path / "environments" / "prod"
    read = environment.read(folder)
    assert {type(item) for item in (*read.waivers, *read.triage, *read.images)} == {Waiver, Triage, ImageRecord}
    assert read.adopted
    assert read.pools
    assert len(files) == sum(1 for path in folder.rglob("*.yaml"))
    for model in (Waiver, Triage, ImageRecord, environment.Adopted, NodePool):
        section = text.partition(f"({model.__name__})")[2].partition("\n## ")[0]
        undescribed = [field for field in model.model_fields if f"| `{field}` |" not in section]
        assert section, model.__name__
        assert not undescribed, f"{model.__name__}: {undescribed}"
