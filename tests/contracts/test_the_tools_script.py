"""What `make tools` decides before it builds anything, and that its list and its hashes agree."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tools(ci_script: Callable[[str], ModuleType]) -> ModuleType:
    return ci_script("tools")


def test_every_tool_has_the_hash_of_its_own_version(tools: ModuleType) -> None:
    listed = tools.read_tools()
    assert listed
    for tool in listed:
        hashes = tool.sums.read_text(encoding="utf-8")
        assert f"{tool.module} v{tool.version} h1:" in hashes
        for new in tool.replace.values():
            assert f"{new} h1:" in hashes
        for module, _ in tool.files.values():
            assert f"{module} v" in hashes


def test_a_go_that_will_do_gets_no_complaint(tools: ModuleType) -> None:
    (tool,) = (tool for tool in tools.read_tools() if tool.name == "pulumi")
    assert tools.go_complaint(tool, f"go{tool.go}") is None
    assert tools.go_complaint(tool, "go1.999") is None
    assert tools.go_complaint(tool, f"go{tool.go} X:experiment") is None


@pytest.mark.parametrize("found", ["go1.9", "go1.20.14", "devel +abc", ""])
def test_an_old_or_unknown_go_is_named_with_what_is_needed(tools: ModuleType, found: str) -> None:
    tool = tools.read_tools()[0]
    complaint = tools.go_complaint(tool, found)
    assert repr(found) in complaint
    assert tool.go in complaint


def test_a_machine_without_go_is_told_so_in_one_line(tools: ModuleType, monkeypatch, capsys) -> None:
    monkeypatch.setattr(tools, "installed_go", lambda: None)
    assert tools.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"tier {t.tier} is left out" for t in tools.read_tools()]
    assert all("no Go on this machine" in line for line in lines)


def test_a_built_tool_is_left_alone_until_something_changes(tools: ModuleType, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(tools, "TOOLS", tmp_path)
    tool = tools.read_tools()[0]
    digest = tools.digest_of(tool, "go1.26.6")
    assert not tools.is_built(tool, digest)
    tool.folder.mkdir()
    for name in (tool.name, *tool.files):
        (tool.folder / name).touch()
    (tool.folder / ".installed").write_text(digest)
    assert tools.is_built(tool, digest)
    assert not tools.is_built(tool, tools.digest_of(replace(tool, version="0.0.1"), "go1.26.6"))
    assert not tools.is_built(tool, tools.digest_of(tool, "go1.27.0"))
    (tool.folder / tool.name).unlink()
    assert not tools.is_built(tool, digest)


def test_a_failed_build_fails_with_the_command(tools: ModuleType, monkeypatch, capsys) -> None:
    def broken(tool: object, _: str) -> None:
        raise tools.ToolError("this failed in x: go build")

    monkeypatch.setattr(tools, "installed_go", lambda: "go1.999")
    monkeypatch.setattr(tools, "install", broken)
    assert tools.main([]) == 1
    assert "go build" in capsys.readouterr().err


def test_the_module_that_a_tool_is_built_in_names_exact_versions(tools: ModuleType) -> None:
    (tool,) = (tool for tool in tools.read_tools() if tool.name == "pulumi")
    assert f"require {tool.module} v{tool.version}" in tool.go_mod
    assert "latest" not in tool.go_mod
    assert all(f"replace {old} => {new}" in tool.go_mod for old, new in tool.replace.items())
