"""The platform on the real engine: every kind of stack is previewed, applied, and then stays as it is."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from infra.stack_config import StackConfig
from tests.infra.manifest_folders import put, written
from tests.infra.stacks import DEV, L4, VARIANTS, config_of
from tests.policies.unknown_places import SEEN_AT_UPDATE
from tests.pulumi.checkout import Checkout
from tests.pulumi.engine import Outcome, Stack
from tests.workloads.invented import VERSIONS

pytestmark = [pytest.mark.pulumi, pytest.mark.timeout(900)]

JUDGED = "prod"
"""The variant that is previewed and applied with the policy pack."""
NEWER = L4.image.model_copy(update={"release": "1.36.1-20300202"})  # invented
MAP = "kubernetes:core/v1:ConfigMap"
GROUP = "aws:eks/nodeGroup:NodeGroup"
PROTECTED = {
    "aws:ec2/vpc:Vpc",
    "aws:eks/cluster:Cluster",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:kms/key:Key",
    "aws:s3/bucket:Bucket",
}


@dataclass(frozen=True)
class Life:
    """What happened to a stack so far."""

    stack: Stack
    preview: Outcome
    made: Outcome
    journal: list[dict[str, Any]]
    again: Outcome


def life(checkout: Checkout, name: str) -> Life:
    stack = checkout.stack(name, VARIANTS[name])
    judged = checkout.judged if name == JUDGED else ()
    preview = stack.preview(*judged).ok()
    assert stack.journal == []
    made = stack.up(*judged).ok()
    return Life(stack, preview, made, stack.journal, stack.up().ok())


Lives = Callable[[str], Life]


@pytest.fixture(scope="module")
def lives(request: pytest.FixtureRequest, checkout: Checkout, two_at_once: ThreadPoolExecutor) -> Lives:
    """Gives the life of a variant's stack; those of the tests that will run begin at once, two side by side."""
    here = [item for item in request.session.items if item.path == request.path]
    wanted = {name: None for item in here if hasattr(item, "callspec") for name in item.callspec.params.values()}
    begun = {name: two_at_once.submit(life, checkout, name) for name in wanted}

    def of(name: str) -> Life:
        if name not in begun:
            begun[name] = two_at_once.submit(life, checkout, name)
        return begun[name].result()

    return of


def with_pool(config: StackConfig, name: str, **fields: Any) -> StackConfig:
    """The configuration with other fields of one pool."""
    pools = tuple(item.model_copy(update=fields) if item.name == name else item for item in config.pools)
    return config.model_copy(update={"pools": pools})


@pytest.mark.parametrize("name", VARIANTS)
def test_a_stack_is_previewed_applied_and_then_stays_as_it_is(name: str, lives: Lives) -> None:
    found = lives(name)
    assert set(found.preview.changes()) == {"create"}
    assert found.made.changes() == found.preview.changes()
    assert {entry["op"] for entry in found.journal} == {"create"}
    assert found.again.changes() == {}


def test_the_policies_mind_nothing_and_leave_only_what_other_resources_compute_to_the_update(lives: Lives) -> None:
    found = lives(JUDGED)
    assert [item for item in found.preview.violations if item.policy not in found.preview.later] == []
    assert found.preview.later <= SEEN_AT_UPDATE
    assert found.made.violations == ()


def test_a_newer_image_updates_its_node_group_in_place_and_nothing_else(lives: Lives) -> None:
    stack = lives("dev").stack
    before = len(stack.journal)
    stack.configure(config_of(with_pool(DEV, "l4", image=NEWER)))
    (change,) = [step for step in stack.up().ok().steps if step.op != "same"]
    assert (change.op, change.type, change.changed) == ("update", GROUP, ("releaseVersion",))
    assert "l4" in change.name
    assert [entry["op"] for entry in stack.journal[before:]] == ["update"]


def test_another_purchase_replaces_its_node_group_and_nothing_else(lives: Lives) -> None:
    stack = lives("dev").stack
    before = len(stack.journal)
    stack.configure(config_of(with_pool(DEV, "l4", image=NEWER, purchase="on-demand")))
    done = stack.up().ok()
    (group,) = {f"{step.type} {step.name}" for step in done.steps if step.op != "same"}
    assert group.startswith(GROUP)
    assert group.endswith("-l4-nodes")
    assert done.changes() == {op: [group] for op in ("create-replacement", "replace", "delete-replaced")}
    assert {step.replacing for step in done.steps if step.op == "replace"} == {("capacityType",)}
    since = [(entry["op"], entry["type"]) for entry in stack.journal[before:]]
    assert since == [("create", GROUP), ("delete", GROUP)]


def served(checkout: Checkout, **parts: Any) -> None:
    """Writes a manifest with its pin, and the record of its image."""
    image = f"example.invalid/vllm@sha256:{'1' * 64}"
    engine = {"name": "vllm", "version": VERSIONS["vllm"], "image": image}
    put(checkout.environments / "dev", written(engine=engine, **parts))
    checkout.record_image("dev", image)


def test_a_changed_manifest_updates_its_config_map_and_deletes_nothing(checkout: Checkout, lives: Lives) -> None:
    stack = lives("dev").stack
    stack.configure({**config_of(DEV), **checkout.harmless_advisories()})
    served(checkout)
    added = stack.up().ok().changes()
    assert any(name.startswith(MAP) for name in added["create"])
    before = len(stack.journal)
    served(checkout, batch={"max_model_len": 4096})
    stack.up().ok()
    since = [(entry["op"], entry["type"]) for entry in stack.journal[before:]]
    assert ("update", MAP) in since
    assert {op for op, _ in since} == {"update"}


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_what_hurts_to_lose_is_not_destroyed(name: str, lives: Lives) -> None:
    stack = lives(name).stack
    before = len(stack.journal)
    assert stack.protected() >= PROTECTED
    assert "protect" in stack.destroy().refused().errors
    assert stack.journal[before:] == []


def test_a_dev_stack_is_destroyed_in_an_order_that_the_cloud_allows(lives: Lives) -> None:
    stack = lives("dev").stack
    stack.destroy().ok()
