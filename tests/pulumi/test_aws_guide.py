"""docs/guides/aws.md on the real engine: its blocks run in their order with doubles in the place of the clouds.

Blocks `sh doubles` run in one shell, as they stand; `fails` means that the last command has to fail. What a block
`text shown` holds stands in the output of the block before it, line after line; `…` stands for what was left out.
Blocks `sh account` are not run: the page says so above each, and their commands are compared with AWS's models and
Pulumi's help.
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
import jmespath  # type: ignore[import-untyped]
import pytest
from botocore import xform_name

from fleet.cloud.costs import pool_cost
from fleet.prices import bundled
from infra.providers import own_tags
from infra.stack_file import config_of
from infra.versions import AUTOSCALER_IMAGES, STANDARD_SUPPORT_ENDS
from tests.pulumi.checkout import Checkout
from tests.pulumi.doubles.account import Entry, living_of
from tests.pulumi.engine import ENGINE, ROOT

GUIDE = ROOT / "docs" / "guides" / "aws.md"
BLOCK = re.compile(r"^```(sh \w+(?: \w+)?|text shown)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE_DOCUMENT = re.compile(r"<<EOF\n(.*?)^EOF$", re.MULTILINE | re.DOTALL)
NOT_RUN = "*Not run in CI:*"
ONLY_DOUBLES = "*Only without an account.*"
DEADLINE_SECONDS = 1200
HIGH_LEVEL = {("configure", "set"), ("s3", "cp")}
"""Commands of the AWS command line that are no operation of an API."""
OF_EVERY_COMMAND = {"query", "output", "region"}
RETAINED = {
    "aws:kms/key:Key", "aws:kms/keyPolicy:KeyPolicy", "aws:s3/bucket:Bucket", "aws:s3/bucketPolicy:BucketPolicy",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "aws:s3/bucketVersioning:BucketVersioning",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
}  # fmt: skip
"""What the page says stays: the bucket of weights, its settings and its key."""
ACCOUNT = "111122223333"
LINKED = "role/aws-service-role"
OF_ROLES = {
    "CreateRole", "GetRole", "UpdateRole", "UpdateRoleDescription", "UpdateAssumeRolePolicy", "DeleteRole", "TagRole",
    "UntagRole", "ListRoleTags", "ListRolePolicies", "ListAttachedRolePolicies", "ListInstanceProfilesForRole",
    "PassRole",
}  # fmt: skip
NEEDED: Mapping[str, set[str]] = {
    "role/Role": OF_ROLES,
    "rolePolicy/RolePolicy": {"PutRolePolicy", "GetRolePolicy", "DeleteRolePolicy"},
    "rolePolicyAttachment/RolePolicyAttachment": {"AttachRolePolicy", "DetachRolePolicy", "ListAttachedRolePolicies"},
    "policy/Policy": {
        "CreatePolicy", "GetPolicy", "GetPolicyVersion", "DeletePolicy", "TagPolicy", "UntagPolicy", "ListPolicyTags",
        "ListPolicyVersions", "CreatePolicyVersion", "DeletePolicyVersion",
    },
}  # fmt: skip
"""Type of a resource of IAM -> what its provider calls in its life."""
QUOTAS = {
    "Running On-Demand G and VT instances", "All G and VT Spot Instance Requests", "Running On-Demand P instances",
    "All P4, P3 and P2 Spot Instance Requests", "All P5 Spot Instance Requests",
    "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
}  # fmt: skip
"""Names in Service Quotas that count for the examples."""
QUOTA_OF_G = {
    "on-demand": "Running On-Demand G and VT instances", "spot": "All G and VT Spot Instance Requests",
}  # fmt: skip
SYSTEM_QUOTA = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
SYSTEM_VCPUS = 4
"""Of m7i.xlarge (EC2 instance types)."""


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
            for found in re.finditer(rf"(?:^\s*|\$\()({program} [^)]*?(?:\([^)]*\)[^)]*?)*)(?:\)$|$)", line):
                yield shlex.split(found[1], comments=True)


def script() -> str:
    """One shell program: each block, then its number and exit code on a line of their own."""
    parts = ["exec 2>&1", "make() { :; }  # the engine is built already"]
    for number, block in enumerate(BLOCKS):
        if block.kind.startswith("sh doubles"):
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
    for name, place in ((".venv", Path(sys.prefix)), (".tools", ENGINE.parents[1]), ("tests", ROOT / "tests")):
        (folder / name).symlink_to(place)
    return folder


@pytest.fixture(scope="module")
def ran(engine: Path, clone: Path, surroundings: dict[str, str]) -> list[Ran]:
    """All blocks, run once."""
    done = subprocess.run(
        ["bash", "-c", script()],
        cwd=clone,
        env=environment(clone.parent, clone) | {"DOUBLES_TYPES": surroundings["DOUBLES_TYPES"]},
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
    """What the section "Without an account" finds; the rest keeps the engine quick and in this folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "AWS_"))}
    return {
        **kept,
        "TMPDIR": str(home),
        "PYTHONPATH": str(clone),
        "PULUMI_HOME": str(home / "pulumi"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        "PULUMI_SKIP_CHECKPOINTS": "true",
        "NO_COLOR": "1",
    }


def journal(clone: Path) -> list[dict[str, Any]]:
    """What the doubles keep beside the state, in the folder that the page made."""
    (found,) = clone.parent.glob("tmp.*/doubles.jsonl")
    return [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]


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
@pytest.mark.timeout(1500)
def test_the_blocks_of_the_guide_run_in_their_order(ran: list[Ran]) -> None:
    assert len(ran) >= 8
    for item in ran:
        expected = item.block.kind.endswith("fails")
        assert (item.code != 0) == expected, f"{item.block.body}\nended with {item.code}:\n{item.output[-4000:]}"


@pytest.mark.pulumi
@pytest.mark.timeout(1500)
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
@pytest.mark.timeout(1500)
def test_the_role_of_the_guide_may_make_the_roles_of_the_program(ran: list[Ran], clone: Path) -> None:
    kinds = set()
    for item in journal(clone):
        if item["type"].startswith("aws:iam/"):
            kind = item["type"].removeprefix("aws:iam/").replace(":", "/")
            kinds.add(kind)
            name = item["id"].rpartition("/")[2]
            own = f"policy/{name}" if kind == "policy/Policy" else f"role/{name}"
            wrong = {action for action in NEEDED[kind] if not allows(action, own)}
            assert not wrong, f"{item['id']}: {wrong}"
    assert kinds == set(NEEDED)


@pytest.mark.pulumi
@pytest.mark.timeout(1500)
def test_after_the_guide_the_same_stack_can_begin_again(ran: list[Ran], clone: Path) -> None:
    living = living_of([Entry(**item) for item in journal(clone)]).values()
    assert {entry.type for entry in living} == RETAINED
    bucket = next(entry for entry in living if entry.type == "aws:s3/bucket:Bucket")
    assert {entry.unique for entry in living} <= {"", bucket.unique}, "a name that the next `up` needs is taken"
    assert re.fullmatch(r"enginehouse-dev-weights-bucket-[0-9a-f]+", bucket.unique or bucket.id)
    text = (clone / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    assert "endpoint: public\n" in text
    assert config_of(text).cluster.endpoint == "public"


@pytest.mark.pulumi
@pytest.mark.timeout(1500)
def test_the_first_preview_and_the_stack_are_as_large_as_the_page_says(ran: list[Ran], clone: Path) -> None:
    first = next(item.output for item in ran if item.block.body == "pulumi preview --policy-pack policies\n")
    (lines,) = map(int, re.findall(r"About (\d+) such lines", PAGE))
    assert abs(first.count("not judged yet") - lines) <= 5
    made = [item["type"] for item in journal(clone) if item["op"] == "create"]
    (keys,) = map(int, re.findall(r"1 for the state, (\d+) of the stack", PAGE))
    assert made.count("aws:kms/key:Key") == keys
    assert made.count("aws:ec2/natGateway:NatGateway") == 1
    (services, zones) = map(int, *re.findall(r"(\d+) services in (\d+) zones", PAGE))
    assert made.count("aws:ec2/vpcEndpoint:VpcEndpoint") == services + 1  # the one of S3 is no interface
    assert zones == len(config_of((clone / "Pulumi.dev.yaml").read_text(encoding="utf-8")).network.zones)


@pytest.mark.pulumi
def test_the_commands_that_close_the_endpoint_leave_a_file_that_is_right(engine: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    (tmp_path / "infra").mkdir()
    text = (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    opened = text.replace("endpoint: private\n", "endpoint: public\n      public_cidrs: [198.51.100.7/32]\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(opened, encoding="utf-8")
    assert config_of(opened).cluster.public_cidrs
    (closing,) = (block.body for block in BLOCKS if "cluster.endpoint' private" in block.body)
    own = {
        "PATH": f"{engine.parent}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_BACKEND_URL": f"file://{tmp_path}",
        "PULUMI_CONFIG_PASSPHRASE": "try",
    }
    words = ["bash", "-ec", f"pulumi stack init dev\n{closing}"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment(tmp_path, tmp_path) | own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    closed = (tmp_path / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    assert config_of(closed) == config_of(text)


@pytest.mark.pulumi
@pytest.mark.timeout(1500)
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


def allows(action: str, resource: str) -> bool:
    """Whether the guide's roles may do this with a resource of the account, such as ``role/nodes``."""
    arn = f"arn:aws:iam::{ACCOUNT}:{resource}"
    found = [item for item in roles_document()["Statement"] if f"iam:{action}" in item["Action"]]
    return any(fnmatch(arn, item["Resource"].replace("$ACCOUNT", ACCOUNT)) for item in found)


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


def test_what_is_invented_is_said_to_be() -> None:
    invented = [block for block in BLOCKS if "# invented" in block.body]
    assert len(invented) == 3
    assert all(block.kind == "sh doubles" and block.above.startswith(ONLY_DOUBLES) for block in invented)


def test_the_roles_may_what_the_services_do_in_their_name() -> None:
    nodes = f"{LINKED}/eks-nodegroup.amazonaws.com/AWSServiceRoleForAmazonEKSNodegroup"
    bucket = f"{LINKED}/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-0123456789abcdef0"
    assert allows("GetRole", nodes)
    assert allows("CreateServiceLinkedRole", nodes)
    for action in ("CreateServiceLinkedRole", "GetRole", "AttachRolePolicy", "PutRolePolicy"):
        assert allows(action, bucket), action
    assert not allows("AttachRolePolicy", nodes)
    assert not allows("CreateRole", "role/platform-admins")
    assert not allows("PassRole", nodes)


def test_administrators_make_the_roles_before_one_is_taken_on() -> None:
    bodies = [block.body for block in BLOCKS]
    taken = next(place for place, body in enumerate(bodies) if "export AWS_PROFILE" in body)
    made = [place for place, body in enumerate(bodies) if "aws iam create-" in body]
    assert len(made) == 2
    assert max(made) < taken


def test_the_quotas_are_found_by_their_names() -> None:
    (asked,) = re.findall(r'^ASKED="(.*)"$', PAGE, re.MULTILINE)
    listed = (*QUOTAS, "Running Dedicated p5 Hosts")
    answer = {"Quotas": [{"QuotaName": name, "QuotaCode": "L-0", "Value": 0} for name in listed]}
    assert {name for name, _, _ in jmespath.search(asked, answer)} == QUOTAS


def test_the_quotas_of_dev_are_those_of_its_largest_size() -> None:
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) (?:nodes of `([\w-]+)`|system nodes) \|$", PAGE, re.MULTILINE)
    config = config_of((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
    expected = {
        (SYSTEM_QUOTA, str(config.system_nodes.max_nodes * SYSTEM_VCPUS), str(config.system_nodes.max_nodes), "")
    }
    for pool in config.pools:
        assert pool.max_nodes is not None
        quota = QUOTA_OF_G[pool.purchase]
        expected.add((quota, str(pool.max_nodes * pool.instance.vcpus), str(pool.max_nodes), pool.name))
    assert config.system_nodes.instance_types == ("m7i.xlarge",)
    assert set(rows) == expected
    assert {quota for quota, *_ in rows} <= QUOTAS


def test_all_versions_of_a_bucket_are_found_and_an_empty_one_has_none() -> None:
    (command,) = (words for words in commands("aws") if words[2] == "list-object-versions")
    asked = command[command.index("--query") + 1]
    version, marker = {"Key": "a", "VersionId": "1", "Size": 1}, {"Key": "b", "VersionId": "2"}
    found = jmespath.search(asked, {"Versions": [version], "DeleteMarkers": [marker], "Name": "x"})
    assert found == {"Objects": [{"Key": "a", "VersionId": "1"}, marker]}
    assert jmespath.search(asked, {"Versions": [version]}) == {"Objects": [{"Key": "a", "VersionId": "1"}]}
    assert jmespath.search(asked, {"Name": "x"}) == {"Objects": []}


def test_what_stayed_is_looked_for_by_the_tags_of_the_program() -> None:
    (command,) = (words for words in commands("aws") if words[1] == "resourcegroupstaggingapi")
    own = own_tags(config_of((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")))
    asked = dict(re.findall(r"Key=([\w-]+),Values=(\S+)", " ".join(command)))
    assert asked == {"project": own["project"], "environment": "$PULUMI_STACK"}
    assert own["environment"] == "dev"


def test_files_that_the_guide_writes_on_its_way_are_ignored() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    written = {name for block in BLOCKS for name in re.findall(r"> ([\w.]+)(?: <<EOF)?$", block.body, re.MULTILINE)}
    folders = {name for block in BLOCKS for name in re.findall(r"--cache-dir (\w+)", block.body)}
    assert len(written) == 6
    assert {f"/{name}" for name in written} | {f"/{name}/" for name in folders} <= set(ignored)


def test_the_aws_commands_exist_with_their_options() -> None:
    session = botocore.session.get_session()
    found = list(commands("aws"))
    assert len(found) > 15
    for command in found:
        _, service, operation, *rest = command
        if (service, operation) in HIGH_LEVEL:
            continue
        model = session.get_service_model({"s3api": "s3"}.get(service, service))
        operations = {xform_name(name, "-"): name for name in model.operation_names}
        assert operation in operations, f"{service} has no {operation}"
        shape = model.operation_model(operations[operation]).input_shape
        known = {xform_name(name, "-") for name in (shape.members if shape else {})} | OF_EVERY_COMMAND
        for query in (rest[place + 1] for place, word in enumerate(rest) if word == "--query"):
            assert query.startswith("$") or jmespath.compile(query)
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


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_the_kubernetes_of_the_examples_is_known(name: str) -> None:
    kubernetes = config_of((ROOT / f"Pulumi.{name}.yaml").read_text(encoding="utf-8")).cluster.kubernetes
    assert kubernetes in STANDARD_SUPPORT_ENDS
    assert kubernetes in AUTOSCALER_IMAGES


def money(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
