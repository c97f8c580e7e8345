"""Side by side with public planners on the same models and placements, against what was measured.

Run it with ``python benchmarks/planner_peers.py --install`` once, then without. ``--install`` puts the planners, at the
versions below, into their own environment ``.tools/planner-peers`` by pip; the project's own environment and locks do
not know them. A cell says why a planner is not there or can't answer. ``--markdown`` prints tables for the docs.

Peers are asked as kindly as can be: measured memory of each GPU, ``torch_dtype`` in every configuration, the nearest
format where one is not known, and, for caches and verdicts, the sizes that they would fetch from a model hub.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner_facts import ROOT, facts_at_hand
from planner_peers_questions import Case, Questions

from fleet.hardware import BYTES_PER_GIB

PEERS = {
    "vllm-wizard": "vllm-wizard==0.2.0",
    "llm-d-planner": "llm-d-planner[estimation]==0.3.3",
    "vramscout": "vramscout==0.7.0",
    "llm-mem-planner": "llm-mem-planner==0.2.2",
}
ENVIRONMENT = ROOT / ".tools" / "planner-peers"
PYTHON = ENVIRONMENT / "bin" / "python"
PROBE = Path(__file__).with_name("planner_peers_probe.py")
OURS = "enginehouse"
INSTALL_SECONDS, ASK_SECONDS = 600, 300
RIGHT_PERCENT = 2.0
MXFP4_PERCENT = 6.0
NOT_INSTALLED = "not installed (--install)"
Answers = Mapping[str, Sequence[Mapping[str, Any]]]
Lines = list[list[str]]


def main() -> int:
    """Ask all, print; 1 when there is no peer to compare with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.install:
        install()
    show = print_markdown if options.markdown else print_plain
    facts = facts_at_hand()
    with tempfile.TemporaryDirectory() as folder:
        questions = Questions(Path(folder))
        notes: dict[str, str] = {}
        tables = (
            ("weights on one GPU, GiB", list(questions.weights()), gib_cell),
            ("KV cache, bytes that one more token takes in a long sequence, bf16", list(questions.caches(facts)), cell),
            ("does it start and hold 8,192 tokens", list(questions.named()), verdict_cell),
        )
        print(f"facts: {facts.name}; * = off by more than {RIGHT_PERCENT:g} % (mxfp4 {MXFP4_PERCENT:g} %), or wrong\n")
        for title, cases, shown in tables:
            show(title, table_of(cases, ask_all(cases), shown, notes))
        cases = list(questions.placements(facts))
        show("placements that were served or failed", scores_of(cases, ask_all(cases)))
    for reason, name in notes.items():
        print(f"({name}) {reason}")
    return 0 if any(version_of(name) for name in PEERS) else 1


def install() -> None:
    """Each planner by pip into the environment; one that can't be had leaves the others."""
    venv.create(ENVIRONMENT, with_pip=True)
    for name, requirement in PEERS.items():
        command = (str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement)
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)  # noqa: S603
        said = done.stderr.strip().splitlines()
        print(f"{name}: {'installed' if done.returncode == 0 else 'not installed: ' + (said[-1] if said else '')}")


def version_of(name: str) -> str | None:
    """The installed version of a planner."""
    found = sorted(ENVIRONMENT.glob(f"lib/python*/site-packages/{name.replace('-', '_')}-*.dist-info"))
    return found[-1].name.removesuffix(".dist-info").rpartition("-")[2] if found else None


def ask_all(cases: Sequence[Case]) -> Answers:
    """Ours first, then each peer's."""
    ours = [{"cannot": "unknown"} if case.ours is None else {"value": case.ours} for case in cases]
    return {OURS: ours, **{name: ask(name, cases) for name in PEERS}}


def ask(name: str, cases: Sequence[Case]) -> Sequence[Mapping[str, Any]]:
    """One process a planner, with all questions."""
    if version_of(name) is None:
        return [{"cannot": NOT_INSTALLED}] * len(cases)
    questions = json.dumps([case.question for case in cases])
    command = (str(PYTHON), "-I", str(PROBE), name)
    try:
        done = subprocess.run(  # noqa: S603
            command, input=questions, capture_output=True, text=True, timeout=ASK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return [{"cannot": f"no answer within {ASK_SECONDS} s"}] * len(cases)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return [{"cannot": said[-1] if said else f"exit {done.returncode}"}] * len(cases)
    answers: Sequence[Mapping[str, Any]] = json.loads(done.stdout)
    return answers


# --- Tables --------------------------------------------------------------------------------------------------------
def table_of(
    cases: Sequence[Case], answers: Answers, shown: Callable[[Case, Any], str], notes: dict[str, str]
) -> Lines:
    """One line a case, a column a planner; reasons become notes."""
    lines = [["", "measured", *answers, "source"]]
    for number, case in enumerate(cases):
        cells = [_answer_cell(case, given[number], shown, notes) for given in answers.values()]
        lines.append([case.title, shown(case, case.truth), *cells, case.source])
    return [*lines, ["right", "", *(_right(cases, given) for given in answers.values()), ""]]


def _is_there(given: Sequence[Mapping[str, Any]]) -> bool:
    """Whether anybody was asked: a planner that is not installed is neither right nor wrong."""
    return any(one.get("cannot") != NOT_INSTALLED for one in given)


def _right(cases: Sequence[Case], given: Sequence[Mapping[str, Any]]) -> str:
    if not _is_there(given):
        return "not installed"
    right = sum("value" in one and is_right(case, one["value"]) for case, one in zip(cases, given, strict=True))
    return f"{right} of {len(cases)}"


def _answer_cell(case: Case, given: Mapping[str, Any], shown: Callable[[Case, Any], str], notes: dict[str, str]) -> str:
    if "value" in given:
        return shown(case, given["value"]) + ("" if is_right(case, given["value"]) else " *")
    reason = " ".join(str(given["cannot"]).split()).replace(str(case.question["config"]), case.title.split()[0])
    return f"({notes.setdefault(reason[:200], f'{len(notes) + 1}')})"


def is_right(case: Case, value: float | str) -> bool:
    """The same verdict, or near enough; caches are exact."""
    if isinstance(value, str) or isinstance(case.truth, str):
        return value == case.truth
    allowed = MXFP4_PERCENT if case.question["precision"] == "mxfp4" else RIGHT_PERCENT
    return abs(value / case.truth - 1) * 100 <= (allowed if case.question["ask"] == "weights" else 0.01)


def gib_cell(_case: Case, value: float) -> str:
    """Bytes as GiB."""
    return f"{value / BYTES_PER_GIB:.2f}"


def cell(_case: Case, value: float) -> str:
    """Whole bytes."""
    return f"{value:,.0f}"


def verdict_cell(_case: Case, value: str) -> str:
    """As it is."""
    return value


def scores_of(cases: Sequence[Case], answers: Answers) -> Lines:
    """How often each planner is right on placements, and how often it has no answer."""
    counts = Counter(case.truth for case in cases)
    lines = [["", *answers]]
    for truth in ("yes", "no"):
        row = [f"{truth}, {counts[truth]} rows: right"]
        for given in answers.values():
            own = [one for case, one in zip(cases, given, strict=True) if case.truth == truth]
            row.append(str(sum(one.get("value") == truth for one in own)) if _is_there(given) else "not installed")
        lines.append(row)
    silent = (str(sum("value" not in one for one in given)) if _is_there(given) else "-" for given in answers.values())
    lines.append(["no answer", *silent])
    return lines


def print_plain(title: str, lines: Lines) -> None:
    """Columns of equal width."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    print(title)
    for line in lines:
        print("  " + "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip())
    print()


def print_markdown(title: str, lines: Lines) -> None:
    """A table for the documentation."""
    print(f"**{title}**\n")
    for line in (lines[0], ["---"] * len(lines[0]), *lines[1:]):
        print(f"| {' | '.join(line)} |")
    print()


if __name__ == "__main__":
    sys.exit(main())
