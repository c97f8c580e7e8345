"""Which programs are started; a missing one is named with what to do."""

import subprocess
import sys

import pytest

from local.errors import LocalFleetError
from local.layout import Layout
from local.programs import find
from local.settings import Ports, rooms


@pytest.fixture
def bare_python(tmp_path):
    """A Python with nothing beside it."""
    (tmp_path / "bin").mkdir()
    return str(tmp_path / "bin" / "python")


def test_the_simulated_engines_speak_the_pinned_version():
    programs = find(sys.executable, "simulated", environment={"PATH": ""})
    assert programs.envoy.endswith("/envoy")
    assert programs.launch["sglang"][-1] == "{version}"
    assert set(programs.launch) == {"vllm", "sglang"}


def test_a_missing_vllm_is_named(bare_python):
    with pytest.raises(LocalFleetError, match=r"--engine vllm needs the program 'vllm'.*use --engine simulated"):
        find(bare_python, "vllm", environment={"PATH": ""})


def test_an_installed_vllm_gets_the_engines_own_command_line(tmp_path):
    vllm = tmp_path / "vllm"
    vllm.write_text('#!/bin/sh\necho "$@"\n')
    vllm.chmod(0o755)
    launch = find(sys.executable, "vllm", environment={"PATH": str(tmp_path)}).launch["vllm"]
    argv = [*launch, "--", "vllm", "serve", "org/model", "--port", "1"]
    assert subprocess.run(argv, capture_output=True, text=True).stdout == "serve org/model --port 1\n"


def test_the_vllm_of_the_checkout_gets_a_model_that_is_made_here(tmp_path):
    python = tmp_path / ".venv" / "bin" / "python"
    vllm = tmp_path / ".tools" / "vllm" / "bin" / "vllm"
    vllm.parent.mkdir(parents=True)
    vllm.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("local.programs._envoy", lambda *_: "envoy")
        launch = find(str(python), "vllm", environment={"PATH": ""}).launch
    assert launch["vllm"][3:] == ("local.vllm_on_cpu", str(vllm), str(tmp_path / ".tools" / "tiny-model"), "{version}")
    assert launch["sglang"][3] == "simulator.engine"


def test_the_rooms_start_below_the_gateway_upwards(tmp_path):
    programs = find(sys.executable, "simulated", environment={"PATH": ""})
    found = rooms(Layout(tmp_path), Ports(1, 2, 3, 4, 5), programs)
    assert [room.name for room in found] == ["control-plane", "gateway", "envoy"]
    assert {port for room in found for port in room.ports} == {1, 2, 3, 4, 5}
    assert "--disable-hot-restart" in found[2].argv
