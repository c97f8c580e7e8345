"""docs/guides/aws.md on the real engine: its blocks run in their order with doubles in the place of the clouds.

Blocks `sh doubles` run in one shell; `fails` means that the last command has to fail. What a block `text shown` holds
stands in the output of the block before it, line after line; `…` stands for what was left out. Blocks `sh account` are
not run: the page says so above each, and their commands are compared with AWS's models and with Pulumi's help.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any

import botocore.loaders  # type: ignore[import-untyped]
import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore import xform_name

from fleet.cloud.costs import pool_cost
from fleet.prices import bundled
from infra.stack_file import config_of
from tests.pulumi.checkout import Checkout
from tests.pulumi.engine import DOUBLES, ENGINE, ROOT

GUIDE = ROOT / "docs" / "guides" / "aws.md"
BLOCK = re.compile(r"^```(sh \w+(?: \w+)?|text shown)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE_DOCUMENT = re.compile(r"<<EOF\n(.*?)^EOF$", re.MULTILINE | re.DOTALL)
NOT_RUN = "*Not run in CI:*"
DEADLINE_SECONDS = 600
INVENTED_DIGEST = f"sha256:{'0' * 64}"
STAND_INS: Mapping[str, str] = {
    "infra.fill_versions": """
        words=()
        for key in system_nodes.release 'pools[0].image.release' 'pools[1].image.release'; do
          words+=(--plaintext "enginehouse:stack.$key=1.34.0-20300101")
        done
        for name in coredns eks-pod-identity-agent kube-proxy metrics-server vpc-cni; do
          words+=(--plaintext "enginehouse:stack.versions.addons.$name=v1.99.0-eksbuild.1")
        done
        pulumi config set-all --path "${words[@]}"
    """,
    "DIGEST=": f"DIGEST={INVENTED_DIGEST}",
}
"""What a block that is not run gives to later ones -> the same with invented values."""
HIGH_LEVEL = {("configure", "set"), ("s3", "cp")}
"""Commands of the AWS command line that are no operation of an API."""
OF_EVERY_COMMAND = {"query", "output", "region"}


@dataclass(frozen=True)
class Block:
    """A fenced block of the guide, with the line above it."""

    kind: str
    body: str
    above: str


@dataclass(frozen=True)
class Ran:
    """A block that was run."""

    block: Block
    code: int
    output: str


def blocks(text: str) -> list[Block]:
    """The blocks with commands, and what they are said to print."""
    return [
        Block(found[1], found[2], text[: found.start()].rstrip().rpartition("\n")[2]) for found in BLOCK.finditer(text)
    ]


PAGE = GUIDE.read_text(encoding="utf-8")
BLOCKS = blocks(PAGE)


def commands(program: str) -> Iterator[list[str]]:
    """Every call of a program in the blocks that are not run, in words."""
    for block in BLOCKS:
        if block.kind != "sh account":
            continue
        plain = HERE_DOCUMENT.sub("<<EOF", block.body).replace("\\\n", " ")
        for line in plain.splitlines():
            for found in re.finditer(rf"(?:^|\$\()({program} [^)]*?(?:\([^)]*\)[^)]*?)*)(?:\)$|$)", line):
                yield shlex.split(found[1], comments=True)


def script() -> str:
    """One shell program: each block, then its number and exit code on a line of their own."""
    parts = ["exec 2>&1", "shopt -s expand_aliases"]
    for number, block in enumerate(BLOCKS):
        if block.kind == "sh account":
            parts += [text for sign, text in STAND_INS.items() if sign in block.body]
        elif block.kind.startswith("sh doubles"):
            parts.append(f"set -e\n{block.body}")
            if block.kind.endswith("fails"):
                parts[-1] = f"set +e\n{block.body}"
            parts.append(f"code=$?; echo; echo '::{number}::'$code")
    return "\n".join(parts)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout; its environments and its stack's file are its own."""
    folder = Checkout.copied(tmp_path_factory.mktemp("guide"), {}).folder
    shutil.copytree(ROOT / "cli", folder / "cli")
    shutil.copy(ROOT / "Pulumi.dev.yaml", folder)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.fixture(scope="module")
def ran(engine: Path, clone: Path, surroundings: dict[str, str]) -> list[Ran]:
    """All blocks, run once."""
    done = subprocess.run(
        ["bash", "-c", script()],
        cwd=clone,
        env=environment(clone.parent, clone) | surroundings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    found, rest = [], done.stdout
    for number, block in enumerate(BLOCKS):
        if block.kind.startswith("sh doubles"):
            output, sign, rest = rest.partition(f"::{number}::")
            assert sign, f"this block stopped the guide:\n{block.body}\n{output[-4000:]}"
            code, _, rest = rest.partition("\n")
            found.append(Ran(block, int(code), output))
    return found


def environment(home: Path, clone: Path) -> dict[str, str]:
    """What the section "Without an account" sets, with folders of the test."""
    (home / "state").mkdir(exist_ok=True)
    path = [str(DOUBLES), str(ENGINE.parent), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "AWS_"))}
    return {
        **kept,
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(clone),
        "PULUMI_BACKEND_URL": f"file://{home / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "try",
        "PULUMI_HOME": str(home / "pulumi"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "true",
        "NO_COLOR": "1",
        "DOUBLES_JOURNAL": str(home / "journal.jsonl"),
    }


def words(text: str) -> str:
    return " ".join(text.split())


def holds(printed: str, shown: str) -> bool:
    """Whether a printed line has the parts of a shown one, in their order."""
    for part in filter(None, (part.strip() for part in shown.split("…"))):
        _, found, printed = printed.partition(part)
        if not found:
            return False
    return True


@pytest.mark.pulumi
@pytest.mark.timeout(900)
def test_the_blocks_of_the_guide_run_in_their_order(ran: list[Ran]) -> None:
    assert len(ran) >= 8
    for item in ran:
        expected = item.block.kind.endswith("fails")
        assert (item.code != 0) == expected, f"{item.block.body}\nended with {item.code}:\n{item.output[-4000:]}"


@pytest.mark.pulumi
@pytest.mark.timeout(900)
def test_the_blocks_print_what_the_guide_shows(ran: list[Ran]) -> None:
    outputs = {item.block.body: item.output for item in ran}
    checked = 0
    for before, block in pairwise(BLOCKS):
        if block.kind != "text shown":
            continue
        printed = iter([words(line) for line in outputs[before.body].splitlines()])
        for line in filter(None, (words(line) for line in block.body.splitlines())):
            assert any(holds(found, line) for found in printed), f"not printed, or not in this order: {line}"
            checked += 1
    assert checked >= 8


@pytest.mark.pulumi
@pytest.mark.timeout(900)
def test_the_role_of_the_guide_may_make_the_roles_of_the_program(ran: list[Ran], clone: Path) -> None:
    journal = (clone.parent / "journal.jsonl").read_text(encoding="utf-8")
    made = [json.loads(line) for line in journal.splitlines()]
    names = {
        kind: [item for item in made if item["type"] == f"aws:iam/{kind}"] for kind in ("role:Role", "policy:Policy")
    }
    allowed = [statement["Resource"].rpartition("/")[2] for statement in roles_document()["Statement"]]
    assert len(names["role:Role"]) > 3
    assert names["policy:Policy"]
    for item in (*names["role:Role"], *names["policy:Policy"]):
        name = item["id"].rpartition("/")[2]
        assert any(fnmatch(name, pattern) for pattern in allowed), name


@pytest.mark.pulumi
@pytest.mark.timeout(900)
def test_the_pulumi_commands_that_are_not_run_have_their_options(engine: Path) -> None:
    found = list(commands("pulumi"))
    assert found
    for command in found:
        path = [word for word in command[1:3] if word.isalpha()]
        known = [word for word in path if word in {"stack", "state", "config"}]
        call = path if known else path[:1]
        done = subprocess.run([engine, *call, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, command
        for option in (word.partition("=")[0] for word in command if word.startswith("--")):
            assert re.search(rf"{re.escape(option)}\b", done.stdout), f"{' '.join(call)} has no {option}"


def roles_document() -> dict[str, list[dict[str, Any]]]:
    """The inline policy of the guide's roles."""
    return next(
        json.loads(text) for block in BLOCKS for text in HERE_DOCUMENT.findall(block.body) if '"Sid": "Roles"' in text
    )


def test_every_block_that_is_not_run_says_so_above_it() -> None:
    kinds = {block.kind for block in BLOCKS}
    assert kinds == {"sh account", "sh doubles", "sh doubles fails", "text shown"}
    unmarked = [block.body for block in BLOCKS if (block.kind == "sh account") != block.above.startswith(NOT_RUN)]
    assert not unmarked
    assert PAGE.count("```sh") == sum(block.kind.startswith("sh") for block in BLOCKS)


def test_every_stand_in_belongs_to_one_block() -> None:
    for sign in STAND_INS:
        assert sum(sign in block.body for block in BLOCKS if block.kind == "sh account") == 1, sign


def test_the_aws_commands_exist_with_their_options() -> None:
    session = botocore.session.get_session()
    found = list(commands("aws"))
    assert len(found) > 15
    for command in found:
        _, service, operation, *rest = command
        if (service, operation) in HIGH_LEVEL:
            continue
        model = session.get_service_model(service.removesuffix("api"))
        operations = {xform_name(name, "-"): name for name in model.operation_names}
        assert operation in operations, f"{service} has no {operation}"
        shape = model.operation_model(operations[operation]).input_shape
        known = {xform_name(name, "-") for name in (shape.members if shape else {})} | OF_EVERY_COMMAND
        options = {word.removeprefix("--") for word in rest if word.startswith("--")}
        assert options <= known, f"{service} {operation} has no {options - known}"
        required = {xform_name(name, "-") for name in (shape.required_members if shape else ())}
        assert required <= options, f"{service} {operation} needs {required - options}"


def test_a_mistyped_aws_command_would_be_noticed() -> None:
    model = botocore.session.get_session().get_service_model("kms")
    assert "create-keys" not in {xform_name(name, "-") for name in model.operation_names}


def test_the_documents_of_the_guide_are_json_with_actions_that_exist() -> None:
    documents = [text for block in BLOCKS for text in HERE_DOCUMENT.findall(block.body) if text.startswith("{")]
    assert len(documents) == 3
    iam = botocore.session.get_session().get_service_model("iam")
    for text in documents:
        for statement in json.loads(text)["Statement"]:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            named = [action.partition(":")[2] for action in actions if action.startswith("iam:")]
            assert set(named) - set(iam.operation_names) <= {"PassRole"}


def test_the_costs_of_the_guide_are_those_of_the_examples() -> None:
    rows = re.findall(r"^\| (\w+) \| ([\w-]+): `([\w.-]+)` \| (\S+) \| (\S+) \| (\S+) \| (.*?) \|$", PAGE, re.MULTILINE)
    expected = []
    for name in ("dev", "staging", "prod"):
        config = config_of((ROOT / f"Pulumi.{name}.yaml").read_text(encoding="utf-8"))
        for pool in config.pools:
            cost = pool_cost(pool, nodes=1, region=config.region, prices=bundled())
            price = bundled().price(pool.instance_type, pool.purchase)
            of = "-" if price is None else f"{price.as_of}, {price.region or 'no region'}"
            each, most = cost.usd_per_node_hour, cost.most_usd_per_hour
            expected.append((name, pool.name, pool.instance_type, pool.purchase, money(each), money(most), of))
    assert rows == expected


def money(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
