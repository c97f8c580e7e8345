"""Laws of placement: whatever the pools, prices and wishes, all is accounted for and nothing depends on order."""

from collections import Counter
from dataclasses import replace
from datetime import date
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.catalogue import Catalogue, load
from fleet.facts import Facts
from fleet.hardware import gpu, instance_types
from fleet.manifest import Manifest
from fleet.node_pools import NodePool
from fleet.placement import Candidate, Choice, choose
from fleet.placement.engine_walk import engines_of
from fleet.placement.ground import Origin
from fleet.policy import Policy
from fleet.prices import bundled as bundled_prices
from fleet.rules import review, stale
from fleet.violation import refuses
from sources.snapshot import bundled

CATALOGUE = load()
FACTS = Facts(
    today=date(2026, 11, 29),
    data=bundled(),
    policy=Policy(allow_runtime_process=True),
    catalogue_digest=CATALOGUE.digest,
)
COMMIT = "0" * 40
MODELS = ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-32B", "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-R1", "example/unknown")
WORKLOADS = ("chat", "structured-output", "latency-critical", "reasoning", "moe", "batch")
SHAPES = ("g6.xlarge", "g6.12xlarge", "g6f.xlarge", "g6e.12xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge")
OBJECTIVES = ("ttft_p95_seconds", "tpot_p95_seconds", "max_cost_per_hour")


def written(model: str = "Qwen/Qwen3-32B", workload: str = "chat", **spec: object) -> Manifest:
    alternatives = spec.pop("alternatives", ())
    whole = {"workload": workload, "model": {"id": model, "revision": COMMIT, "alternatives": alternatives}, **spec}
    return Manifest.model_validate({"metadata": {"name": "placed"}, "spec": whole})


def with_pools(pools: list[NodePool] | tuple[NodePool, ...]) -> Facts:
    return FACTS.model_copy(update={"pools": tuple(pools)})


@cache
def offers(shape: str) -> tuple[dict[str, object], ...]:
    """The ways in which nodes of a shape can be bought and cut."""
    item = instance_types()[shape]
    ways: list[dict[str, object]] = [
        {"purchase": kind} for kind in ("on-demand", "spot") if kind in item.purchase_classes
    ]
    if "capacity-block" in item.purchase_classes:
        block = {"purchase": "capacity-block", "max_nodes": 2}
        ways += [{**block, "ends_on": date(2027, 1, 1)}, {**block, "ends_on": date(2026, 1, 1)}]
    if item.gpu_fraction == 1 and gpu(item.gpu).mig_profiles:
        ways.append({"sharing": "mig", "mig_profile": gpu(item.gpu).mig_profiles[2].name})
    return tuple(ways)


@st.composite
def pool_lists(draw: st.DrawFn) -> list[NodePool]:
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
    pools = []
    for index, shape in enumerate(shapes):
        offer = {"max_nodes": draw(st.sampled_from([None, 0, 1, 2])), **draw(st.sampled_from(offers(shape)))}
        pools.append(NodePool.model_validate({"name": f"pool-{index}", "instance_type": shape, **offer}))
    return pools


WISHES = st.builds(
    lambda rate, tpot, ttft, cost: {
        name: value
        for name, value in {
            "requests_per_second": rate,
            "tpot_p95_seconds": tpot,
            "ttft_p95_seconds": ttft,
            "max_cost_per_hour": cost,
        }.items()
        if value is not None
    },
    st.sampled_from([None, 0.5, 4.0, 40.0]),
    st.sampled_from([None, 0.01, 0.03, 0.1]),
    st.sampled_from([None, 0.05, 0.3, 2.0]),
    st.sampled_from([None, 5.0, 50.0, 500.0]),
)
MANIFESTS = st.builds(
    lambda model, workload, wishes: written(model, workload, objectives=wishes, scaling={"max": 4}),
    st.sampled_from(MODELS),
    st.sampled_from(WORKLOADS),
    WISHES,
)


def place_of(item: Candidate) -> tuple[object, ...]:
    return item.engine, item.version, item.instance_type, item.pool, item.model_id, item.quantization


def left(choice: Choice) -> set[tuple[object, ...]]:
    return {place_of(item) for item in choice.ranked}


@settings(max_examples=40, deadline=None)
@given(MANIFESTS, pool_lists())
def test_every_candidate_is_chosen_or_rejected_once_with_a_rule(manifest: Manifest, pools: list[NodePool]) -> None:
    choice = choose(manifest, with_pools(pools), CATALOGUE)
    on_places = Counter(
        (item.engine, item.version, item.pool, item.model_id, item.quantization)
        for item in choice.rejections
        if item.instance_type
    )
    assert all(count == 1 for count in on_places.values()), on_places
    assert all(item.rule and item.reason for item in choice.rejections)
    if choice.chosen is not None and choice.chosen.plan is not None:
        taken = choice.chosen
        assert (taken.engine, taken.version, taken.pool, taken.model_id, taken.quantization) not in on_places
        assert choice.considered == sum(on_places.values()) + 1
    engines = {str(item.engine) for item in choice.rejections} | {str(item.engine) for item in choice.ranked}
    assert engines >= {str(name) for name in engines_of(manifest, CATALOGUE)}


@settings(max_examples=40, deadline=None)
@given(MANIFESTS, pool_lists())
def test_what_is_chosen_passes_its_own_review_and_stands_in_a_pool(manifest: Manifest, pools: list[NodePool]) -> None:
    facts = with_pools(pools)
    choice = choose(manifest, facts, CATALOGUE)
    if choice.chosen is None or choice.chosen.plan is None:
        return
    pool = next(item for item in pools if item.name == choice.chosen.pool)
    assert choice.pinned is not None, choice.violations
    assert not refuses(review(choice.pinned, facts, CATALOGUE))
    hardware, parallelism = choice.pinned.spec.hardware, choice.pinned.spec.parallelism
    assert hardware is not None
    assert (hardware.instance_type, hardware.purchase) == (pool.instance_type, pool.purchase)
    assert hardware.sharing == pool.sharing.mode
    assert hardware.gpus == parallelism.gpus == choice.chosen.plan.gpus
    assert not pool.has_ended(facts.today)
    if pool.max_nodes is not None and choice.chosen.estimate is not None and pool.sharing == "exclusive":
        gpus = hardware.gpus * choice.chosen.estimate.replicas
        assert gpus <= pool.max_nodes * pool.instance.gpus


@settings(max_examples=25, deadline=None)
@given(MANIFESTS, pool_lists(), st.randoms(use_true_random=False))
def test_neither_the_order_of_pools_nor_that_of_engines_decides(manifest, pools, random) -> None:  # type: ignore[no-untyped-def]
    shuffled = random.sample(pools, len(pools))
    tables = dict(reversed(CATALOGUE.tables.items()))
    turned: Catalogue = replace(CATALOGUE, tables=tables, _last=[], _drafted=[])
    first, second = choose(manifest, with_pools(pools), CATALOGUE), choose(manifest, with_pools(shuffled), turned)
    assert first.chosen == second.chosen
    assert first.ranked == second.ranked
    assert (first.pinned and first.pinned.identity) == (second.pinned and second.pinned.identity)


@settings(max_examples=25, deadline=None)
@given(MANIFESTS, pool_lists())
def test_without_the_chosen_pool_the_next_that_was_outscored_is_taken(
    manifest: Manifest, pools: list[NodePool]
) -> None:
    before = choose(manifest, with_pools(pools), CATALOGUE)
    others = [pool for pool in pools if before.chosen is None or pool.name != before.chosen.pool]
    if before.chosen is None or before.chosen.plan is None or not others:
        return
    after = choose(manifest, with_pools(others), CATALOGUE)
    remaining = {place_of(item) for item in before.ranked if item.pool != before.chosen.pool}
    assert left(after) == remaining
    assert (after.chosen is None) == (not remaining)
    outscored = {(item.engine, item.pool) for item in before.rejections if item.rule == "score"}
    assert after.chosen is None or (after.chosen.engine, after.chosen.pool) in outscored


@settings(max_examples=25, deadline=None)
@given(MANIFESTS, pool_lists(), st.sampled_from(OBJECTIVES))
def test_an_objective_that_is_loosened_never_removes_a_candidate(
    manifest: Manifest, pools: list[NodePool], name: str
) -> None:
    objectives = manifest.spec.objectives
    assert objectives is not None
    facts = with_pools(pools)
    for looser in (None, (getattr(objectives, name) or 0.0) * 3 or None):
        update = {"objectives": objectives.model_copy(update={name: looser})}
        spec = manifest.spec.model_copy(update=update)
        wider = manifest.model_copy(update={"spec": spec})
        assert left(choose(wider, facts, CATALOGUE)) >= left(choose(manifest, facts, CATALOGUE))


@settings(max_examples=25, deadline=None)
@given(MANIFESTS, st.sampled_from(SHAPES), st.floats(0.05, 0.95))
def test_a_cheaper_price_never_lowers_the_rank_of_its_instances(manifest: Manifest, shape: str, part: float) -> None:
    table = bundled_prices()
    pools = [NodePool(name=item.replace(".", "-"), instance_type=item) for item in SHAPES]
    cheaper = tuple(
        price.model_copy(update={"usd_per_hour": price.usd_per_hour * part})
        if (price.instance_type, price.purchase) == (shape, "on-demand")
        else price
        for price in table.prices
    )
    before = choose(manifest, with_pools(pools), CATALOGUE)
    facts = with_pools(pools).model_copy(update={"prices": table.model_copy(update={"prices": cheaper})})
    after = choose(manifest, facts, CATALOGUE)
    best_before, best_after = best_rank(before, shape), best_rank(after, shape)
    assert best_before is None or (best_after is not None and best_after <= best_before)


def best_rank(choice: Choice, shape: str) -> int | None:
    """Of the instance's best candidate, among those that are not its own."""
    ranks = [index for index, item in enumerate(choice.ranked) if item.instance_type == shape]
    return min(ranks, default=None)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(("Qwen/Qwen3-0.6B", "Qwen/Qwen3-32B", "openai/gpt-oss-20b")), pool_lists())
def test_an_alternative_is_taken_only_where_the_model_itself_can_not_be(own: str, pools: list[NodePool]) -> None:
    others = [name for name in ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B") if name != own]
    alternatives = [{"id": name, "kind": "smaller"} for name in others]
    facts = with_pools(pools)
    alone = choose(written(own), facts, CATALOGUE)
    choice = choose(written(own, alternatives=alternatives), facts, CATALOGUE)
    if alone.chosen is not None:
        assert choice.chosen is not None
        assert choice.chosen.model_id == own
    elif choice.chosen is not None:
        assert choice.chosen.model_id != own
        assert choice.chosen.origin is Origin.ALTERNATIVE


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(MODELS), WISHES, pool_lists())
def test_fewer_bits_are_taken_only_where_the_checkpoint_as_it_is_can_not_be(
    model: str, wishes: dict[str, float], pools: list[NodePool]
) -> None:
    facts = with_pools(pools)
    manifest = written(model, objectives=wishes, scaling={"max": 4})
    choice = choose(manifest, facts, CATALOGUE)
    as_stored = [item for item in choice.ranked if item.origin is Origin.ASKED]
    assert as_stored == list(choice.ranked[: len(as_stored)])
    if choice.chosen is None or choice.chosen.origin is Origin.ASKED:
        return
    assert not as_stored
    assert choice.chosen.origin is Origin.AT_LOAD
    assert choice.pinned is not None
    assert choice.pinned.spec.model.quantization == choice.chosen.quantization
    assert stale(manifest, choice.pinned) == []
    model_asked = manifest.spec.model.model_copy(update={"quantization": choice.chosen.quantization})
    asked = manifest.model_copy(update={"spec": manifest.spec.model_copy(update={"model": model_asked})})
    again = choose(asked, facts, CATALOGUE).chosen
    assert again is not None
    assert again.origin is Origin.ASKED
    if again.engine == choice.chosen.engine:
        assert (again.instance_type, again.plan) == (choice.chosen.instance_type, choice.chosen.plan)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_choice_is_the_same_every_time(workload: str) -> None:
    manifest = written("Qwen/Qwen3-32B", workload)
    again = Facts.model_validate(FACTS.model_dump(exclude={"data"}) | {"data": FACTS.data})
    assert choose(manifest, FACTS, CATALOGUE) == choose(manifest, again, CATALOGUE)
