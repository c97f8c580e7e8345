"""examples/placement: what is chosen is what the table expects, and it follows an advisory, a price and a pool."""

from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engines.catalogue import load
from fleet.advisory import AffectedPackage, AffectedRange, Event, EventKind, Record, merge
from fleet.facts import Facts
from fleet.fleet_plan import plan_fleet
from fleet.hardware import instance
from fleet.manifest import Manifest, PinnedManifest, dump, load_yaml, parse
from fleet.node_pools import NodePool
from fleet.placement import Choice, choose
from fleet.placement.fleet_wishes import deployment_of
from fleet.policy import Policy
from fleet.prices import bundled as bundled_prices
from fleet.rules import review, stale
from fleet.severity import Severity
from fleet.spec import EngineName
from fleet.violation import Enforcement, refuses
from sources.snapshot import bundled

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "placement"
CATALOGUE = load()
FACTS = Facts(
    today=date(2026, 11, 29),
    data=bundled(),
    policy=Policy(allow_runtime_process=True),
    catalogue_digest=CATALOGUE.digest,
)
INVENTED_COMMIT = "0" * 40
TEN_TIMES = 10
SMALL = ("small-chat.yaml", "small-code.yaml", "small-extract.yaml")


def table() -> list[dict[str, Any]]:
    document: Any = load_yaml((FOLDER / "expected.yml").read_text(encoding="utf-8"), source="expected.yml")
    rows: list[dict[str, Any]] = document["placements"]
    return rows


ROWS = table()
EACH = pytest.mark.parametrize("row", ROWS, ids=[row["manifest"] for row in ROWS])


@cache
def written(name: str) -> Manifest:
    manifest = parse((FOLDER / name).read_text(encoding="utf-8"), source=name)
    assert isinstance(manifest, Manifest)
    return manifest


@cache
def first_choice(name: str) -> Choice:
    return choose(written(name), FACTS, CATALOGUE)


def pool_of(name: str) -> NodePool:
    ways = instance(name).purchase_classes
    purchase = "on-demand" if "on-demand" in ways else ways[0]
    block = {"ends_on": date(2030, 12, 31), "max_nodes": 8} if purchase == "capacity-block" else {}
    return NodePool.model_validate({"name": "only", "instance_type": name, "purchase": purchase, **block})


def test_the_table_names_every_manifest_of_the_folder_once() -> None:
    names = [row["manifest"] for row in ROWS]
    assert sorted(names) == sorted(path.name for path in FOLDER.glob("*.yaml"))
    assert all(row["why"] for row in ROWS)


@EACH
def test_the_choice_is_one_of_those_that_are_expected(row: dict[str, Any]) -> None:
    choice = first_choice(row["manifest"])
    assert choice.chosen is not None, choice.would_fit
    assert choice.chosen.engine in row["engines"]
    assert choice.chosen.instance_type in row["instances"]
    assert choice.chosen.plan is not None
    assert choice.chosen.estimate is not None
    assert all(item.rule and item.reason for item in choice.rejections)
    assert {item.engine for item in choice.rejections} | {choice.chosen.engine} >= (
        {choice.chosen.engine} if written(row["manifest"]).spec.engine else set(EngineName)
    )


@EACH
def test_a_pin_is_written_that_reads_back_equal_and_whatever_it_lacks_is_named(row: dict[str, Any]) -> None:
    manifest, choice = written(row["manifest"]), first_choice(row["manifest"])
    refusing = [item.pointer for item in choice.violations if item.severity is Enforcement.MANDATORY]
    assert refusing == row.get("without", [])
    assert (choice.pinned is None) == bool(refusing)
    if refusing:
        model = manifest.spec.model.model_copy(update={"revision": INVENTED_COMMIT})
        manifest = manifest.model_copy(update={"spec": manifest.spec.model_copy(update={"model": model})})
        choice = choose(manifest, FACTS, CATALOGUE)
    assert choice.pinned is not None
    assert choice.chosen is not None
    assert choice.chosen.plan is not None
    again = parse(dump(choice.pinned))
    assert isinstance(again, PinnedManifest)
    assert (again.spec, again.identity) == (choice.pinned.spec, choice.pinned.identity)
    assert not refuses(review(again, FACTS, CATALOGUE))
    assert stale(manifest, again) == []
    assert again.spec.hardware is not None
    assert again.spec.hardware.gpus == choice.chosen.plan.gpus
    assert again.spec.batch is not None


@EACH
def test_no_plan_is_possible_where_the_table_says_never(row: dict[str, Any]) -> None:
    for name in row.get("never", []):
        choice = choose(written(row["manifest"]), FACTS.model_copy(update={"pools": (pool_of(name),)}), CATALOGUE)
        assert choice.chosen is None, (name, choice.chosen)
        assert {item.rule for item in choice.rejections if item.instance_type == name}


def affected(engine: EngineName) -> Facts:
    """The facts of the day on which a critical advisory hits every version of an engine."""
    package = CATALOGUE.package(engine)
    ranges = (AffectedRange(type="ECOSYSTEM", events=(Event(kind=EventKind.INTRODUCED, version="0"),)),)
    record = Record(
        id="CVE-2030-00001",  # invented
        modified="2030-01-01T00:00:00Z",
        severity=Severity.CRITICAL,
        affected=(AffectedPackage(ecosystem="PyPI", package=package, ranges=ranges),),
    )
    advisories = (*FACTS.data.advisories, *merge([record], {}))
    return FACTS.model_copy(update={"data": FACTS.data.model_copy(update={"advisories": advisories})})


@EACH
def test_a_critical_advisory_on_the_chosen_engine_changes_the_choice_as_predicted(row: dict[str, Any]) -> None:
    before = first_choice(row["manifest"]).chosen
    assert before is not None
    expected = row["then"].get("advisory", {"engines": []})["engines"]
    after = choose(written(row["manifest"]), affected(before.engine), CATALOGUE)
    hit = [item for item in after.rejections if item.engine is before.engine and item.rule == "advisory-affected"]
    assert hit
    assert "CVE-2030-00001" in " ".join(item.reason for item in hit) or len(hit) > 1
    if not expected:
        assert after.chosen is None
    else:
        assert after.chosen is not None
        assert after.chosen.engine in expected
        assert after.chosen.engine is not before.engine


@EACH
def test_a_dearer_instance_changes_the_choice_as_predicted(row: dict[str, Any]) -> None:
    before = first_choice(row["manifest"]).chosen
    assert before is not None
    prices = bundled_prices()
    dearer = tuple(
        item.model_copy(update={"usd_per_hour": item.usd_per_hour * TEN_TIMES})
        if item.instance_type == before.instance_type
        else item
        for item in prices.prices
    )
    facts = FACTS.model_copy(update={"prices": prices.model_copy(update={"prices": dearer})})
    after = choose(written(row["manifest"]), facts, CATALOGUE).chosen
    assert after is not None
    expected = row["then"].get("price", {"instances": row["instances"]})["instances"]
    assert after.instance_type in expected
    is_open = written(row["manifest"]).spec.hardware is None
    assert (after.instance_type != before.instance_type) == is_open


@EACH
def test_the_only_pool_is_taken_as_predicted(row: dict[str, Any]) -> None:
    wanted = row["then"].get("pool")
    if wanted is None:
        return
    facts = FACTS.model_copy(update={"pools": (pool_of(wanted["instance_type"]),)})
    chosen = choose(written(row["manifest"]), facts, CATALOGUE).chosen
    assert chosen is not None
    assert (chosen.pool, chosen.instance_type) == ("only", wanted["instance_type"])
    assert chosen.engine in wanted["engines"]


def test_the_two_nodes_are_split_with_tensor_parallelism_inside_and_stages_across() -> None:
    chosen = first_choice("two-nodes-405b.yaml").chosen
    assert chosen is not None
    assert chosen.plan is not None
    assert (chosen.nodes, chosen.plan.tensor, chosen.plan.pipeline) == (2, 8, 2)


def test_the_small_models_share_one_l4_and_each_is_told_its_part_of_the_memory() -> None:
    pool = NodePool(name="small", instance_type="g6.xlarge", sharing="time-slicing")
    facts = FACTS.model_copy(update={"pools": (pool,)})
    deployments = [deployment_of(written(name), facts, CATALOGUE) for name in SMALL]
    assert all(item.options for item in deployments), [item.reasons for item in deployments]
    answer = plan_fleet(deployments, (pool,), prices=bundled_prices(), today=facts.today)
    assert answer.unplaced == ()
    assert sum(use.nodes for use in answer.pools) == 1
    shares = []
    for name in SMALL:
        chosen = choose(written(name), facts, CATALOGUE).ranked[0]
        assert chosen.sharing == "time-slicing"
        assert chosen.replica_bytes is not None
        shares.append(chosen.replica_bytes or 0)
    memory = pool.gpu.memory_bytes
    assert memory is not None
    assert sum(shares) < memory
