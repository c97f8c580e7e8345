"""Words that help and messages list are those of the data and of the values that read them."""

import re

import pytest
import typer
from typer.main import get_command

from cli.commands.advisories import FailOn
from cli.commands.local import TokenScope
from cli.commands.nouns import triage
from cli.commands.plan import plan
from control_plane.records import Scope
from fleet.hardware import SharingMode, gpu_models, instance_types
from fleet.matching import Result
from fleet.spec import KV_CACHE_DTYPES, PURCHASES, QUANTIZATIONS, EngineName, Hardware
from fleet.waiver import TriageStatus


def help_of(command: typer.core.TyperCommand, option: str) -> str:
    return next(item.help for item in command.params if option in item.opts)


def one_command(function) -> typer.core.TyperCommand:
    app = typer.Typer()
    app.command()(function)
    return get_command(app)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--gpu", gpu_models()),
        ("--engine", EngineName),
        ("--quantization", QUANTIZATIONS),
        ("--kv-dtype", KV_CACHE_DTYPES),
        ("--purchase", PURCHASES),
    ],
)
def test_help_of_a_plan_names_every_word_that_it_takes(option, words):
    said = re.split(r"[;:,. ]+", help_of(one_command(plan), option))
    assert [str(word) for word in words if str(word) not in said] == []


def test_help_of_a_triage_entry_names_every_status():
    create = get_command(triage).commands["create"]
    assert set(re.findall(r"\w+", help_of(create, "--status"))) == {*TriageStatus, "or"}


def test_words_that_stand_in_two_rooms_are_the_same():
    assert set(FailOn) == set(Result) - {Result.NOT_AFFECTED}
    assert set(TokenScope) == set(Scope)
    assert set(SharingMode) == set(Hardware.model_fields["sharing"].annotation.__args__)


def test_instances_are_sold_in_the_ways_that_a_manifest_can_ask_for():
    assert {kind for item in instance_types().values() for kind in item.purchase_classes} == set(PURCHASES)
