"""What the shell offers, and that offering it costs help nothing."""

import os
import subprocess
import sys

import pytest

PROGRAM = "from cli.main import run; run()"


def offered(*words):
    """What bash offers for the last of the words."""
    asked = {
        "_ENGINEHOUSE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("enginehouse", *words)),
        "COMP_CWORD": str(len(words)),
    }
    program = "import sys; sys.argv[0] = 'enginehouse'; " + PROGRAM
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("advisories", "check", "vl"), ["vllm=="]),
        (("advisories", "check", "vllm==0.33"), ["vllm==0.33.0"]),
        (("advisories", "check", "vllm==0.33.0", "--path", "multim"), ["multimodal"]),
        (("advisories", "pins", "--engine", "sg"), ["sglang"]),
        (("advisories", "show", "CVE-2026-4874"), ["CVE-2026-48746"]),
        (("engines", "show", "tensor"), ["tensorrt-llm"]),
    ],
)
def test_names_that_exist_are_offered(words, some):
    assert offered(*words) == some


def test_help_imports_none_of_what_completion_and_answers_need():
    heavy = ("pydantic", "rich", "httpx2", "fleet.facts", "sources", "engines", "ruamel")
    program = (
        "import sys, cli.main\n"
        "try:\n    cli.main.app(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.split("\n")[-2] == "[]"
