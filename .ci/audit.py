"""Asks pip-audit about every package of a lock, and says plainly what it could not ask about.

`pip-audit --strict` stops at the first package that its service doesn't answer for, and without `--strict` it calls
such a run clean. Here a found vulnerability fails, and whatever was skipped, unreachable or meant for another platform
is printed as NOT AUDITED.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)


@dataclass(frozen=True)
class Audit:
    """What is known about a lock after asking."""

    audited: tuple[str, ...]
    vulnerable: tuple[str, ...]
    not_audited: tuple[tuple[str, str], ...]


def normal(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: str) -> dict[str, str]:
    """Name and version of every package of a lock."""
    return {normal(match["name"]): match["version"] for match in PIN.finditer(lock)}


def conclude(lock: str, answer: str, trouble: str) -> Audit:
    """Compares what the lock holds with what pip-audit answered; an answer that can't be read audits nothing."""
    try:
        entries = {normal(entry["name"]): entry for entry in json.loads(answer)["dependencies"]}
    except (ValueError, KeyError, TypeError):
        entries = {}
    audited, vulnerable, not_audited = [], [], []
    for name, version in pins(lock).items():
        entry = entries.get(name)
        if entry is None:
            not_audited.append((f"{name} {version}", trouble or "not for this platform"))
        elif "skip_reason" in entry:
            not_audited.append((f"{name} {version}", str(entry["skip_reason"])))
        else:
            audited.append(f"{name} {version}")
            vulnerable += [
                f"{name} {version}: {found['id']} (fixed in {', '.join(found['fix_versions']) or 'no version'})"
                for found in entry["vulns"]
            ]
    return Audit(tuple(audited), tuple(vulnerable), tuple(not_audited))


def report(audit: Audit) -> list[str]:
    """The lines that a person reads."""
    lines = [f"VULNERABLE: {line}" for line in audit.vulnerable]
    lines += [f"NOT AUDITED: {package}: {reason}" for package, reason in audit.not_audited]
    total = len(audit.audited) + len(audit.not_audited)
    lines.append(f"audited {len(audit.audited)} of {total} packages, {len(audit.vulnerable)} known vulnerabilities")
    if audit.not_audited:
        lines.append(f"ATTENTION: nothing is known about {len(audit.not_audited)} packages; this is not a clean result")
    return lines


def ask(lock: Path, *options: str) -> tuple[str, str]:
    """What pip-audit answered as JSON, and the last thing it complained about."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
    command += ["--cache-dir", ".cache/pip-audit", "--format", "json", "--requirement", str(lock), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    complaints = done.stderr.strip().splitlines() or [""]
    return done.stdout, "" if done.stdout.strip() else f"pip-audit gave no answer: {complaints[-1][:200]}"


def main(arguments: list[str]) -> int:
    """Audits one lock; 1 when a package is known to be vulnerable or the lock is empty."""
    lock = Path(arguments[0])
    text = lock.read_text(encoding="utf-8")
    if not pins(text):
        print(f"{lock} pins nothing; make it with `make lock`", file=sys.stderr)
        return 1
    answer, trouble = ask(lock, "--strict")
    if trouble:
        answer, trouble = ask(lock)
    audit = conclude(text, answer, trouble)
    print("\n".join(report(audit)))
    return 1 if audit.vulnerable else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
