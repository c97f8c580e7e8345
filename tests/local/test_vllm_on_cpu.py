"""vLLM on a CPU: what stays of an engine's command line, and what takes the place of another version."""

import subprocess
import sys
from pathlib import Path

import pytest

from local import vllm_on_cpu
from local.vllm_on_cpu import command, installed_version

ASKED = (
    "vllm serve Qwen/Qwen3-32B --revision abc --host 127.0.0.1 --port=8001 --tensor-parallel-size 2 "
    "--quantization fp8 --gpu-memory-utilization 0.9 --enable-prefix-caching --max-model-len {} {}"
)


def line(length="32768", more=""):
    return command("/x/vllm", Path("/m/tiny"), ASKED.format(length, more).split())


def test_of_the_command_line_stays_what_clients_notice():
    made = line(more="--served-model-name a b --enable-auto-tool-choice --tool-call-parser hermes")
    assert made[:3] == ["/x/vllm", "serve", "/m/tiny"]
    assert " ".join(made[3:]).startswith(
        "--host 127.0.0.1 --port 8001 --enable-prefix-caching --served-model-name a b --enable-auto-tool-choice "
        "--tool-call-parser hermes --max-model-len 8192 --enforce-eager"
    )
    assert not {"--revision", "--tensor-parallel-size", "--quantization", "--gpu-memory-utilization"} & set(made)


def test_without_a_name_it_is_served_as_the_model_that_was_asked_for():
    made = line()
    assert made[made.index("--served-model-name") + 1] == "Qwen/Qwen3-32B"


@pytest.mark.parametrize(("asked", "length"), [("1024", "1024"), ("32768", "8192"), ("auto", "8192")])
def test_the_length_is_what_was_asked_for_and_fits(asked, length):
    made = line(asked)
    assert made[made.index("--max-model-len") + 1] == length


def test_the_version_is_that_of_the_distribution_beside_the_program(tmp_path):
    program = installed(tmp_path, "0.32.0+cpu")
    assert installed_version(program) == "0.32.0"
    assert installed_version(tmp_path / "other" / "bin" / "vllm") is None


def test_the_installed_version_is_started_with_the_tiny_model_and_nothing_leaves_the_machine(tmp_path):
    said = started(tmp_path, "0.32.0")
    assert said.startswith(f"1 nobind serve {tmp_path}/model --port 1 --served-model-name org/model")
    assert (tmp_path / "model" / "model.safetensors").is_file()


def test_another_version_is_simulated_and_the_log_says_so(tmp_path, monkeypatch):
    became = []
    monkeypatch.setattr(vllm_on_cpu.os, "execv", lambda path, argv: became.append(argv) or sys.exit(0))
    with pytest.raises(SystemExit):
        vllm_on_cpu.main([str(installed(tmp_path, "0.32.0+cpu")), "m", "0.33.0", "--", "vllm", "serve", "org/model"])
    (argv,) = became
    assert argv[1:] == (
        *("-P", "-m", "simulator.engine", "--dialect", "vllm", "--engine-version", "0.33.0"),
        *("--", "vllm", "serve", "org/model"),
    )


def installed(folder, version):
    (folder / "lib" / "python3.11" / "site-packages" / f"vllm-{version}.dist-info").mkdir(parents=True)
    program = folder / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$HF_HUB_OFFLINE $VLLM_CPU_OMP_THREADS_BIND $@"\n')
    program.chmod(0o755)
    return program


def started(folder, version):
    program = installed(folder, "0.32.0+cpu")
    argv = [sys.executable, "-P", "-m", "local.vllm_on_cpu", str(program), str(folder / "model"), version]
    argv += ["--", "vllm", "serve", "org/model", "--port", "1"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
