"""The audit of our own lock never calls clean what it could not ask about."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCK = """\
# made by: make lock
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:00
Jinja2==3.1.2 \\
    --hash=sha256:01
ruamel-yaml==0.19.1 \\
    --hash=sha256:02
    # via enginehouse
"""
CLEAN = {"name": "ruamel.yaml", "version": "0.19.1", "vulns": []}
FOUND = {"name": "jinja2", "version": "3.1.2", "vulns": [{"id": "PYSEC-0000-1", "fix_versions": ["3.1.6"]}]}
SKIPPED = {"name": "jinja2", "skip_reason": "not found"}


@pytest.fixture(scope="module")
def audit(ci_script: Callable[[str], ModuleType]) -> ModuleType:
    return ci_script("audit")


def answer(*entries: dict[str, object]) -> str:
    return json.dumps({"dependencies": entries, "fixes": []})


def test_every_pin_of_the_lock_is_seen(audit: ModuleType) -> None:
    assert audit.pins(LOCK) == {"colorama": "0.4.6", "jinja2": "3.1.2", "ruamel-yaml": "0.19.1"}


def test_a_vulnerability_is_named_with_its_fix(audit: ModuleType) -> None:
    result = audit.conclude(LOCK, answer(CLEAN, FOUND), "")
    assert result.vulnerable == ("jinja2 3.1.2: PYSEC-0000-1 (fixed in 3.1.6)",)
    assert "VULNERABLE: jinja2 3.1.2: PYSEC-0000-1 (fixed in 3.1.6)" in audit.report(result)


def test_a_skipped_package_is_not_audited(audit: ModuleType) -> None:
    lines = audit.report(audit.conclude(LOCK, answer(CLEAN, SKIPPED), ""))
    assert "NOT AUDITED: jinja2 3.1.2: not found" in lines
    assert "NOT AUDITED: colorama 0.4.6: not for this platform" in lines
    assert any(line.startswith("ATTENTION") for line in lines)


@pytest.mark.parametrize("text", ["", "Traceback", "[]", "{}", '{"dependencies": [{}]}'])
def test_an_answer_that_cannot_be_read_audits_nothing(audit: ModuleType, text: str) -> None:
    result = audit.conclude(LOCK, text, "pip-audit gave no answer: no route to host")
    assert result.audited == ()
    assert len(result.not_audited) == 3
    assert "NOT AUDITED: jinja2 3.1.2: pip-audit gave no answer: no route to host" in audit.report(result)


def run(audit: ModuleType, monkeypatch: pytest.MonkeyPatch, lock: Path, text: str, *, strict_answers: bool) -> int:
    """Runs the script on answers that are given instead of asked for."""

    def ask(_lock: Path, *options: str) -> tuple[str, str]:
        return ("", "stopped at the first") if options and not strict_answers else (text, "")

    monkeypatch.setattr(audit, "ask", ask)
    code = audit.main([str(lock)])
    assert isinstance(code, int)
    return code


def test_only_a_vulnerability_fails(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(LOCK, encoding="utf-8")
    assert run(audit, monkeypatch, lock, answer(CLEAN, FOUND), strict_answers=True) == 1
    assert run(audit, monkeypatch, lock, answer(FOUND, CLEAN), strict_answers=False) == 1
    assert run(audit, monkeypatch, lock, answer(CLEAN, SKIPPED), strict_answers=False) == 0
    assert "this is not a clean result" in capsys.readouterr().out


def test_an_empty_lock_is_no_clean_lock(audit: ModuleType, tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("# nothing\n", encoding="utf-8")
    assert audit.main([str(lock)]) == 1
