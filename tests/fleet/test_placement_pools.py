"""Placement of separate prefill and decode: replicas per side, objectives, cost of both, and node pools of both."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.catalogue import load
from fleet.facts import Facts
from fleet.manifest import Manifest
from fleet.node_pools import NodePool
from fleet.placement import Candidate, Choice, choose, repin
from fleet.placement.document import choice_document
from fleet.placement.fleet_wishes import SEPARATE, deployment_of
from fleet.placement.pair import PairEstimate
from fleet.policy import Policy
from fleet.prices import PriceTable
from sources.snapshot import bundled

CATALOGUE = load()
FACTS = Facts(
    today=date(2026, 11, 29),
    data=bundled(),
    policy=Policy(allow_runtime_process=True),
    catalogue_digest=CATALOGUE.digest,
)
MODEL = "Qwen/Qwen3-32B"
LENGTHS = {"input_tokens": 8000, "output_tokens": 500}


def a_side(tensor: int = 2, instance_type: str = "p5.48xlarge", **hardware: object) -> dict[str, Any]:
    return {
        "hardware": {"instance_type": instance_type, "gpus": tensor, **hardware},
        "parallelism": {"tensor": tensor},
    }


def written(
    prefill: dict[str, Any] | None = None,
    decode: dict[str, Any] | None = None,
    most: int = 8,
    least: int = 1,
    batch: dict[str, Any] | None = None,
    **objectives: float | None,
) -> Manifest:
    wished = {name: value for name, value in objectives.items() if value is not None}
    spec: dict[str, Any] = {
        "workload": "reasoning",
        "model": {"id": MODEL, "revision": "0" * 40, "quantization": "bf16"},
        "engine": {"name": "vllm"},
        "features": {"disaggregation": "prefill-decode"},
        "pools": {"prefill": prefill or a_side(), "decode": decode or a_side()},
        "objectives": {**LENGTHS, **wished},
        "scaling": {"max": most, "min": least},
    }
    return Manifest.model_validate({"metadata": {"name": "apart"}, "spec": spec | ({"batch": batch} if batch else {})})


def pool(name: str = "only", instance_type: str = "p5.48xlarge", **more: object) -> NodePool:
    return NodePool.model_validate({"name": name, "instance_type": instance_type, **more})


def placed(manifest: Manifest, *pools: NodePool, **facts: object) -> Choice:
    return choose(manifest, FACTS.model_copy(update={"pools": pools, **facts}), CATALOGUE)


def pair_of(choice: Choice) -> PairEstimate:
    assert choice.chosen is not None, choice.rejections
    assert choice.chosen.pair is not None
    return choice.chosen.pair


def replicas(choice: Choice) -> tuple[int, int]:
    found = pair_of(choice)
    return found.prefill.replicas, found.decode.replicas


SIDES = st.sampled_from([a_side(), a_side(4), a_side(8), a_side(8, "p5e.48xlarge")])


@settings(max_examples=25, deadline=None)
@given(SIDES, SIDES, st.sampled_from([None, 0.5, 3.0, 12.0]), st.sampled_from([None, 0.03, 0.1]))
def test_the_replicas_carry_the_rate_and_the_cost_is_that_of_both_sides(
    prefill: dict[str, Any], decode: dict[str, Any], rate: float | None, tpot: float | None
) -> None:
    choice = placed(written(prefill, decode, most=64, requests_per_second=rate, tpot_p95_seconds=tpot))
    found = pair_of(choice)
    assert found.usd_per_hour == pytest.approx((found.prefill.usd_per_hour or 0) + (found.decode.usd_per_hour or 0))
    assert found.replicas == sum(replicas(choice))
    assert found.latency.basis == "extrapolated"
    throughput, at_rate = found.at_load.throughput, found.at_load.found
    assert throughput is not None
    assert at_rate is not None
    assert found.tokens_per_second is not None
    for total, *sides in zip(
        *(item.values for item in (found.tokens_per_second, throughput.prefill, throughput.decode)),
        strict=True,
    ):
        assert total <= min(sides) * (1 + 1e-9)
    if rate is not None:
        assert found.tokens_per_second.mid > rate * LENGTHS["output_tokens"]
        assert at_rate.prefill_utilisation < 1


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([1.0, 4.0, 9.0]), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.0135, 0.015, 0.03]))
def test_with_one_replica_less_an_objective_would_be_missed(rate: float, ttft: float, tpot: float) -> None:
    wish = {"requests_per_second": rate, "ttft_p95_seconds": ttft, "tpot_p95_seconds": tpot}
    choice = placed(written(most=32, **wish))
    if choice.chosen is None:
        return
    most = max(replicas(choice))
    if most > 1:
        assert placed(written(most=most - 1, **wish)).chosen is None
    assert replicas(placed(written(most=64, **wish))) == replicas(choice)


def test_more_prefill_replicas_are_taken_for_an_early_first_token_and_more_decode_replicas_for_fast_ones() -> None:
    easy = placed(written(most=64, requests_per_second=4))
    early = placed(written(most=64, requests_per_second=4, ttft_p95_seconds=0.4))
    fast = placed(written(most=64, requests_per_second=4, tpot_p95_seconds=0.012))
    assert replicas(early)[0] > replicas(easy)[0]
    assert replicas(early)[1] == replicas(easy)[1]
    assert replicas(fast)[0] == replicas(easy)[0]
    assert replicas(fast)[1] > replicas(easy)[1]


def test_the_least_of_scaling_holds_for_each_side() -> None:
    assert replicas(placed(written(least=3))) == (3, 3)
    assert replicas(placed(written())) == (1, 1)


@pytest.mark.parametrize(
    ("wish", "rule", "words"),
    [
        ({"tpot_p95_seconds": 0.001}, "objective-tpot", "tpot is at least"),
        ({"ttft_p95_seconds": 0.01}, "objective-ttft", "ttft is at least"),
        ({"requests_per_second": 500}, "objective-rate", "prefill replicas are needed for 500 requests a second"),
        ({"max_cost_per_hour": 1}, "objective-cost", "an hour for prefill 1 x TP2, decode 1 x TP2 (priced 2026-Q1)"),
    ],
)
def test_an_objective_that_even_the_favourable_end_misses_rejects_with_its_rule(
    wish: dict[str, float], rule: str, words: str
) -> None:
    choice = placed(written(**wish))
    assert choice.chosen is None
    found = next(item for item in choice.rejections if item.rule == rule)
    assert words in found.reason
    assert found.instance_type == "p5.48xlarge"
    assert any(change.startswith("fits with ") for change in choice.would_fit)


def test_both_sides_count_against_the_nodes_of_one_pool() -> None:
    wish = written(a_side(8), a_side(8))
    assert replicas(placed(wish, pool(max_nodes=2))) == (1, 1)
    crowded = placed(wish, pool(max_nodes=1))
    assert crowded.chosen is None
    found = next(item for item in crowded.rejections if item.rule == "max-nodes")
    assert found.reason.startswith("decode beside prefill needs 2 nodes, pool only has at most 1")


def test_each_side_stands_on_the_instance_that_its_manifest_names() -> None:
    wish = written(a_side(8, "p5e.48xlarge"), a_side(2))
    choice = placed(wish, pool("h200", "p5e.48xlarge"), pool("h100"), pool("l4", "g6.48xlarge"))
    found = pair_of(choice)
    assert [side.place.pool and side.place.pool.name for _, side in found.sides] == ["h200", "h100"]
    assert {item.rule for item in choice.rejections if item.pool == "l4"} == {"instance-type"}
    missing = placed(wish, pool("h100"))
    assert missing.chosen is None
    assert missing.rejections[-1].reason.startswith("prefill: ")


def test_both_sides_stand_in_one_zone_where_they_can() -> None:
    zones = [pool("a", zone="a", max_nodes=1), pool("b", zone="b", max_nodes=2)]
    near = placed(written(a_side(8), a_side(8)), *zones)
    assert near.chosen is not None
    assert near.chosen.pool == "b"
    apart = placed(
        written(a_side(8, "p5e.48xlarge"), a_side(8), ttft_p95_seconds=5),
        pool("a", "p5e.48xlarge", zone="a"),
        pool("b", zone="b"),
    )
    found = pair_of(apart)
    assert found.latency.ttft is None
    assert found.latency.tpot is not None
    assert any("from zone a to zone b is not known" in note for note in apart.notes)


@settings(max_examples=15, deadline=None)
@given(st.permutations([pool("a", zone="a"), pool("b", zone="b"), pool("c"), pool("d", max_nodes=1)]))
def test_the_order_of_pools_does_not_decide(pools: list[NodePool]) -> None:
    first = placed(written(requests_per_second=2), *sorted(pools, key=lambda item: item.name))
    assert placed(written(requests_per_second=2), *pools).ranked == first.ranked


def test_every_pair_is_chosen_or_rejected() -> None:
    choice = placed(written(a_side(8), a_side(8)), pool("a", max_nodes=1), pool("b"), pool("l4", "g6.48xlarge"))
    on_places = [item for item in choice.rejections if item.instance_type]
    assert choice.considered == len(on_places) + 1


def test_a_price_that_is_not_known_leaves_the_cost_open_and_a_note_says_so() -> None:
    choice = placed(written(), prices=PriceTable(retrieved="2030-01-01", prices=()))
    found = pair_of(choice)
    assert (found.price, found.usd_per_hour) == (None, None)
    assert "the price of p5.48xlarge (on-demand) is not known" in choice.notes


def test_the_price_of_both_is_the_less_certain_one() -> None:
    first, second = (
        {"instance_type": name, "usd_per_hour": 9, "source": "own"} for name in ("p5.48xlarge", "p5e.48xlarge")
    )
    wish = written(a_side(), a_side(2, "p5e.48xlarge"))
    for more, other, expected in (
        ({"as_of": "2026-05"}, {"as_of": "2026-Q1"}, "2026-Q1"),
        ({"as_of": "2026-05"}, {"as_of": "2026-05-02"}, "2026-05"),
        ({"as_of": "2026-05"}, {"as_of": "2026-Q4", "is_estimate": True}, "2026-Q4"),
    ):
        prices = PriceTable.model_validate({"retrieved": "2030-01-01", "prices": (first | more, second | other)})
        found = pair_of(placed(wish, prices=prices)).price
        assert found is not None
        assert found.as_of == expected


def test_a_gpu_of_unknown_speed_is_taken_with_the_reason() -> None:
    choice = placed(written(a_side(8, "g5.48xlarge"), a_side(8, "g5.48xlarge"), batch={"max_model_len": 8500}))
    found = pair_of(choice)
    assert found.latency.basis == "none"
    assert found.latency.reasons[0].startswith("A10G: ")
    assert replicas(choice) == (1, 1)
    shown = choice_document(choice)["choice"]["pools"]
    assert (shown["limited_by"], shown["prefill_utilisation"], shown["first_token_seconds"]) == (None, None, None)


def test_the_document_has_both_sides_and_null_where_each_says_it() -> None:
    shown = choice_document(placed(written(requests_per_second=3), pool("h100")))["choice"]
    assert [shown[key] for key in ("instance_type", "pool", "sharing", "purchase", "plan")] == [None] * 5
    sides = [shown["pools"][name] for name in ("prefill", "decode")]
    assert shown["estimate"]["replicas"] == sum(side["replicas"] for side in sides)
    assert shown["estimate"]["usd_per_hour"] == pytest.approx(sum(side["usd_per_hour"] for side in sides))
    assert {side["pool"] for side in sides} == {"h100"}
    assert all(side["plan"]["tp"] == 2 for side in sides)
    assert sum(shown["pools"]["first_token_seconds"].values()) == pytest.approx(shown["estimate"]["ttft"]["mid"])
    together = Manifest.model_validate(
        {"metadata": {"name": "one"}, "spec": {"workload": "chat", "model": {"id": MODEL, "revision": "0" * 40}}}
    )
    alone = choice_document(placed(together, pool("h100")))["choice"]
    assert alone["pools"] is None
    assert set(alone) == set(shown)


def test_an_open_batch_gets_one_that_both_sides_start_with() -> None:
    choice = placed(written())
    assert choice.pinned is not None
    assert choice.pinned.spec.batch is not None
    assert choice.pinned.spec.batch.max_model_len == sum(LENGTHS.values())
    assert choice.pinned.spec.pools == written().spec.pools
    assert choice.pinned.spec.hardware is None


def test_a_share_of_a_gpu_is_that_part_of_its_price() -> None:
    shared = a_side(1, "g6.xlarge", sharing="mps", memory_share=0.4)
    manifest = written(shared, shared, batch={"max_model_len": 9000})
    model = manifest.spec.model.model_copy(update={"id": "Qwen/Qwen3-0.6B"})
    manifest = manifest.model_copy(update={"spec": manifest.spec.model_copy(update={"model": model})})
    found = pair_of(placed(manifest, pool("l4", "g6.xlarge", sharing="mps", max_nodes=1)))
    assert found.prefill.price is not None
    assert found.usd_per_hour == pytest.approx(2 * 0.4 * found.prefill.price.usd_per_hour)


def test_what_runs_apart_stays_where_it_is_when_it_is_pinned_again() -> None:
    before = placed(written()).pinned
    assert before is not None
    again = repin(before, FACTS.model_copy(update={"pools": (pool("l4", "g6.xlarge"),)}), CATALOGUE)
    assert again.pinned is not None
    assert again.pinned.spec.pools == before.spec.pools
    assert "the planner says: prefill: " in again.notes[0]


def test_the_fleet_plan_says_that_it_places_no_separate_pools() -> None:
    found = deployment_of(written(), FACTS, CATALOGUE)
    assert found.options == ()
    assert [reason.message for reason in found.reasons] == [SEPARATE]


def test_a_candidate_of_one_kind_of_replica_has_no_pair() -> None:
    choice = placed(written())
    assert choice.chosen is not None
    other = Candidate(choice.chosen.engine, "1.0", None, None, choice.chosen.preference, 0)
    assert (other.pair, other.split, other.gpus) == (None, None, 0)
    assert (choice.chosen.split, choice.chosen.gpus) == ("prefill 1 x TP2, decode 1 x TP2", 4)
