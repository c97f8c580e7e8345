"""What the pages say about the platform is what the code has: policies, keys of a stack, the example of a policy."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.cloud.interfaces import efa_layout
from fleet.cloud.registry import RULES
from fleet.hardware import instance
from fleet.node_pools import NodePool
from fleet.value import Value
from infra import stack_config
from infra.stack_config import StackConfig
from infra.stack_file import config_of
from policies import pack

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
STACKS = ("dev", "staging", "prod")


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_every_policy_leads_to_its_section() -> None:
    text = (ROOT / pack.DOCS).read_text(encoding="utf-8")
    assert [rule.id for rule in RULES if f"\n### {rule.id}\n" not in text] == []


def test_every_key_of_a_stack_is_described() -> None:
    text = text_of("reference/stack-config.md")
    models = [kind for kind in vars(stack_config).values() if isinstance(kind, type) and issubclass(kind, Value)]
    described = {
        f"{kind.__name__}.{name}"
        for kind in models
        for name in kind.model_fields
        if f"| `{name}` |" in text.partition(f"\n## {kind.__name__}\n")[2].partition("\n## ")[0]
    }
    known = {f"{kind.__name__}.{name}" for kind in models for name in kind.model_fields}
    assert StackConfig in models
    assert known - described - {f"NodePool.{name}" for name in NodePool.model_fields} == set()


def test_the_page_of_stacks_is_made_without_pulumi() -> None:
    program = (
        "import json, sys; import stack_config_page as page; page.render(); print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=ROOT / ".ci" / "reference",
        capture_output=True,
        text=True,
        check=True,
    )
    assert not [name for name in json.loads(done.stdout) if name.partition(".")[0].startswith("pulumi")]


@pytest.mark.parametrize("name", STACKS)
def test_the_example_stacks_are_read(name: str) -> None:
    assert config_of((ROOT / f"Pulumi.{name}.yaml").read_text(encoding="utf-8")).environment == name


def test_the_example_of_the_guide_to_policies_is_code_of_the_house() -> None:
    code = {
        words(path.read_text(encoding="utf-8"))
        for folder in ("fleet/cloud", "policies", "tests/policies")
        for path in (ROOT / folder).glob("*.py")
    }
    pieces = re.findall(r"```python\n(.*?)```", text_of("guides/write-a-policy.md"), re.DOTALL)
    parts = [words(part) for piece in pieces for part in piece.split("\n\n\n")]
    assert len(parts) >= 4
    assert [part for part in parts if not any(part in file for file in code)] == []


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_interfaces_of_the_page_are_those_of_the_rule() -> None:
    rows = re.findall(
        r"^\| `([\w.-]+)` \| (\d+)[^|]*\| 1 plain, (\d+) `efa-only` \|$", text_of("explanation/platform.md"), re.M
    )
    assert len(rows) == 3
    for name, cards, efa in rows:
        shape = instance(name)
        layout = [item.type for item in efa_layout(shape)]
        assert (len(shape.network_cards), layout.count("efa-only"), layout.count("interface")) == (
            int(cards),
            int(efa),
            1,
        )
