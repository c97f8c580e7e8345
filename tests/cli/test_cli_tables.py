"""Tables: one whole line per record for programs; nothing that people copy is broken on a terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from hypothesis import given
from hypothesis import strategies as st

from cli.columns import Shortened, columns_of, fitted, lines
from cli.folding import folded, width_of
from cli.table import drawn

ROWS = [
    {
        "id": "CVE-2026-105757",
        "severity": "medium",
        "paths": ["speculative", "structured-output"],
        "reason": "in every version before 0.30.0, and a longer sentence that has to give way",
        "identity": Shortened("0123456789abcdef0123456789abcdef", "0123456789ab"),
    },
    {"id": "PYSEC-2026-4349", "severity": None, "paths": [], "reason": "listed", "identity": Shortened("f" * 32, "f")},
]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
WHOLE = ("CVE-2026-105757", "PYSEC-2026-4349", "0123456789ab", "structured-output", "medium")


@given(st.lists(st.fixed_dictionaries({"a": TEXTS, "b": st.none() | TEXTS, "c": st.lists(TEXTS)}), min_size=1))
def test_every_record_is_one_line_whatever_it_holds(rows):
    printed = lines(rows)
    assert len(printed) == len(rows) + 1
    assert all(line.isprintable() for line in printed)
    assert all(line == line.rstrip() for line in printed)


def test_a_program_gets_cells_in_full_between_two_blanks():
    head, first, second = lines(ROWS)
    assert head.split() == ["ID", "SEVERITY", "PATHS", "REASON", "IDENTITY"]
    assert first.split("  ")[0] == "CVE-2026-105757"
    assert first.endswith("0123456789abcdef0123456789abcdef")
    assert ROWS[0]["reason"] in first
    assert second.split()[1:3] == ["-", "-"]


def test_what_steers_a_terminal_is_shown_and_breaks_no_line():
    assert lines([{"name": "a\nb\tc\x1b[31m"}])[1] == "a b c\\x1b[31m"


@given(st.integers(20, 200))
def test_no_line_of_a_terminal_is_longer_than_it_is_wide(width):
    assert all(width_of(line) <= width for line in drawn(ROWS, width))


@given(st.integers(30, 200))
def test_names_and_ids_stay_whole_on_a_terminal(width):
    printed = list(drawn(ROWS, width))
    for word in WHOLE:
        assert any(word in line for line in printed), (word, width)


def test_sentences_give_way_then_stand_below_their_row_then_the_widest_do_then_records_are_blocks():
    assert next(drawn(ROWS, 110)).split() == ["ID", "SEVERITY", "PATHS", "REASON", "IDENTITY"]
    below = list(drawn(ROWS, 72))
    assert below[0].split() == ["ID", "SEVERITY", "PATHS", "IDENTITY"]
    assert below[-1] == "    listed"
    narrow = list(drawn(ROWS, 50))
    assert narrow[0].split() == ["ID", "SEVERITY", "IDENTITY"]
    assert "    paths: speculative, structured-output" in narrow
    assert narrow[-1] == "    reason: listed"
    many = {name: f"CVE-2026-10575{number}" for number, name in enumerate(("a", "b", "c", "d", "e"))}
    assert next(drawn([many], 40)).split() == ["A", "CVE-2026-105750"]


def test_columns_of_all_rows_are_shown_where_the_first_one_lacks_some():
    assert [column.head for column in columns_of([{"a": 1}, {"a": 2, "b": 3}], is_short=True)] == ["A", "B"]


def test_no_width_fits_what_may_not_be_broken():
    assert fitted(columns_of([{"id": "x" * 50}], is_short=True), 40) is None


@given(TEXTS, st.integers(2, 80))
def test_folding_keeps_every_word_and_the_width(text, width):
    parts = folded(text, width)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(width_of(part) <= width for part in parts)


def on_a_terminal(columns, *arguments):
    """What a person sees."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES"}}
    program = [sys.executable, "-c", "from cli.main import run; run()", *arguments]
    with subprocess.Popen(
        program, stdout=child, stderr=subprocess.DEVNULL, env=environment | {"NO_COLOR": "1"}
    ) as done:
        os.close(child)
        seen = bytearray()
        try:
            while chunk := os.read(parent, 65536):
                seen += chunk
        except OSError:  # how the end of a terminal reads
            pass
        done.wait(timeout=60)
    os.close(parent)
    return seen.decode().splitlines()


def test_a_terminal_of_80_columns_shows_ids_whole_and_each_remedy_once(checkout):
    file = checkout / "examples" / "runbook-2026" / "sglang-text-only-0.4.3.yaml"
    seen = on_a_terminal(80, "review", os.path.relpath(file))
    assert all(len(line) <= 80 for line in seen[1:])
    assert any("CVE-2026-112266" in line for line in seen)
    assert " ".join(" ".join(seen).split()).count("take sglang 0.5.23, the newest published version") == 1
