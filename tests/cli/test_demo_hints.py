"""What a running demo prints to try works as it is printed, and its secrets stay where they belong."""

import json
import os
import random
import shlex
from types import SimpleNamespace

import pytest

from cli.tour.hints import hints
from cli.tour.steps.exercise import ADVISORY, exercise_record
from cli.tour.world import Journey
from local.layout import Layout
from local.ports import pick
from local.settings import Ports, urls


@pytest.fixture
def lines(tmp_path):
    layout = Layout(tmp_path / "a state folder")
    layout.create()
    layout.token("operator").write_text("eh_secret")
    ports = Ports(*pick(5, chance=random.Random(1)))  # noqa: S311
    fleet = SimpleNamespace(layout=layout, urls=urls(ports))
    journey = Journey(keys={"acme": "ehk_key"}, exercised="support-chat")
    record = exercise_record("vllm", "0.32.0", "0.33.0", "2030-01-01T00:00:00Z")
    return layout, hints(fleet, journey, record, opens_browser=False, environment={})


def command(lines, number):
    (found,) = [line for line in lines if line.startswith(f"  {number}. ")]
    return shlex.split(found[5:])


def test_the_chat_is_a_whole_curl_command(lines):
    words = command(lines[1], 1)
    assert words[0] == "curl"
    assert "Authorization: Bearer ehk_key" in words
    assert json.loads(words[-1])["model"] == "support-chat"


def test_the_advisory_is_there_to_be_copied(lines):
    layout, said = lines
    copy, source, target = command(said, 3)
    assert copy == "cp"
    assert target == f"{layout.advisories}/"
    with open(source, encoding="utf-8") as file:
        assert json.load(file)["id"] == ADVISORY


def test_the_token_is_read_from_its_file_and_never_printed(lines):
    layout, said = lines
    assert not any("eh_secret" in line for line in said)
    (export,) = [line for line in said if "export " in line]
    assert shlex.quote(str(layout.token("operator"))) in export


def test_the_list_command_names_a_program_that_exists(lines):
    program = command(lines[1], 2)[0]
    assert program == "enginehouse" or os.access(program, os.X_OK)
