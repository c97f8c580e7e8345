"""The whole program's recordings: each kind of stack is built once in a run of the tests, whoever asks for it.

A recording is frozen, and tests only read it; they compare it with another where something has changed.
"""

from collections.abc import Callable

import pulumi

from infra import program
from infra.outputs import outputs_of
from infra.program_inputs import NOTHING, Inputs
from infra.stack_config import StackConfig
from sources.environment import Environment
from tests.infra.recording import Recording, record

NO_FOLDER = Inputs(Environment(), NOTHING, None)
_RECORDED: dict[tuple[str, bool], Recording] = {}


def built(config: StackConfig, *, preview: bool = False) -> Recording:
    """What the program registers for a stack without a folder of its own, with its outputs."""
    key = config.model_dump_json(), preview
    if key not in _RECORDED:
        _RECORDED[key] = record(the_program(config, NO_FOLDER), preview=preview)
    return _RECORDED[key]


def the_program(config: StackConfig, inputs: Inputs) -> Callable[[], None]:
    """Builds and exports, without asking whether the configuration is right."""

    def run() -> None:
        platform = program.build(config, inputs)
        for name, value in outputs_of(config, platform, inputs.environment.prices).items():
            pulumi.export(name, value)

    return run
