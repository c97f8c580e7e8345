"""The reference pages are those that the code gives; what they show can be read again by the program."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema_rs  # comes with schemathesis
from pydantic import TypeAdapter

from cli.main import Commands
from engines.catalogue import load
from fleet.codepath import KNOWN_PATHS
from fleet.manifest import AnyManifest, from_document, parse
from fleet.policy import Policy
from fleet.rules import RULES
from sources import policy_file

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
GENERATOR = ROOT / ".ci" / "reference"


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run what `make reference` runs."""
    command = [sys.executable, "-B", str(GENERATOR), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return [part.split("\n```")[0] for part in text.split(f"```{language}\n")[1:]]


def test_every_page_is_as_the_code_gives_it_and_a_changed_one_is_noticed(tmp_path: Path) -> None:
    copies = shutil.copytree(REFERENCE, tmp_path / "reference")
    changed = copies / "rules.md"
    changed.write_text(changed.read_text(encoding="utf-8").replace("mandatory", "advisory", 1), encoding="utf-8")
    checked = make("--root", str(copies), "--check")
    assert checked.returncode == 1
    differing = [line.split()[0] for line in checked.stderr.splitlines() if "differs from the code" in line]
    assert differing == ["rules.md"], "run 'make reference'"


def test_every_rule_has_a_section_with_a_message() -> None:
    text = page("rules.md")
    for rule in RULES:
        section = text.partition(f"\n## {rule.id}\n")[2].partition("\n## ")[0]
        assert "- Message: " in section, rule.id


def test_every_noun_of_the_command_line_is_described() -> None:
    text = page("commands.md")
    missing = [name for name in Commands.table if f"# enginehouse {name}" not in text]
    assert not missing


def test_every_metric_of_the_gateway_is_described() -> None:
    """Also of what stands in a registry only where something is shared, filtered or watched."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "gateway").rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'"(enginehouse_gateway_[a-z_]+)"', source)}
    text = page("operations.md")
    assert sorted(name for name in named if not re.search(rf"`{name}(_total)?`", text)) == []


def test_every_code_path_and_engine_is_described() -> None:
    paths, engines = page("code-paths.md"), page("engines.md")
    assert [path for path in KNOWN_PATHS if f"| `{path}` |" not in paths] == []
    assert [name for name in load().names if f"\n## {name}\n" not in engines] == []


def test_the_schema_is_that_of_the_models() -> None:
    document = json.loads(page("manifest.schema.json"))
    assert document["anyOf"] == TypeAdapter(AnyManifest).json_schema()["anyOf"]


def test_the_schema_takes_the_manifests_of_the_examples() -> None:
    validator = jsonschema_rs.validator_for(json.loads(page("manifest.schema.json")))
    examples = sorted((ROOT / "examples").rglob("*.yaml"))
    assert examples
    for path in examples:
        manifest = parse(path.read_text(encoding="utf-8"), source=path.name)
        document = manifest.model_dump(mode="json", exclude_none=True)
        errors = list(validator.iter_errors(document))
        assert not errors, f"{path.name}: {errors[0].message}"
        assert not validator.is_valid(document | {"specc": {}}), "an unknown field is an error"


def test_the_manifest_of_the_page_is_one() -> None:
    examples = blocks(page("manifest.md"), "yaml")
    assert examples
    for text in examples:
        assert from_document(parse(text).model_dump(mode="json", exclude_none=True)) == parse(text)


def test_the_policy_of_the_page_is_one() -> None:
    examples = blocks(page("policy.md"), "yaml")
    assert examples
    for text in examples:
        assert policy_file.parse(text, source="policy.md").default.denials
    assert [key for key in Policy.model_fields if f"| `{key}` |" not in page("policy.md")] == []
