"""Writes the reference pages of docs/ from the code: ``python .ci/reference [--check] [--root DIR]``."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import admin_api_page
import code_paths_page
import commands_page
import engines_page
import manifest_page
import operations_page
import policies_page
import policy_page
import rules_page
import stack_config_page

from control_plane.__main__ import openapi_text

ROOT = Path(__file__).resolve().parents[2]
PAGES: Mapping[str, Callable[[], str]] = {
    "rules.md": rules_page.render,
    "commands.md": commands_page.render,
    "manifest.md": manifest_page.render,
    "manifest.schema.json": manifest_page.schema,
    "policy.md": policy_page.render,
    "admin-api.md": admin_api_page.render,
    "operations.md": operations_page.render,
    "code-paths.md": code_paths_page.render,
    "engines.md": engines_page.render,
    "stack-config.md": stack_config_page.render,
    "policies.md": policies_page.render,
    "openapi.json": openapi_text,
}
"""File below docs/reference -> what makes it."""


def main(arguments: list[str]) -> int:
    """Write the pages, or say which of them differ from the code (exit 1)."""
    parser = argparse.ArgumentParser(prog="make reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page differs")
    parser.add_argument("--root", type=Path, default=ROOT / "docs" / "reference", help="the folder of the pages")
    options = parser.parse_args(arguments)
    stale = 0
    for name, render in PAGES.items():
        target: Path = options.root / name
        text = render()
        if target.exists() and target.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if options.check:
            print(f"{name} differs from the code; run 'make reference'", file=sys.stderr)
        else:
            target.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
