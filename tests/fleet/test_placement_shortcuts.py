"""What placement remembers inside one search changes no answer: each pool alone, each load alone, says the same."""

import math
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.catalogue import load
from fleet.facts import Facts
from fleet.hardware import gpu, instance_types
from fleet.known_models import known_model
from fleet.latency import Latency, latency_of, speed_of
from fleet.manifest import Manifest
from fleet.model import Missing
from fleet.node_pools import NodePool
from fleet.parallel_plan import ParallelPlan
from fleet.placement import choose
from fleet.placement.estimate import at_load
from fleet.placement.hardware_search import search_hardware
from fleet.placement.wording import outscored
from fleet.policy import Policy
from fleet.serving import Serving
from fleet.spec import EngineName, Objectives, Scaling
from fleet.throughput import throughput_of
from sources.snapshot import bundled

CATALOGUE = load()
FACTS = Facts(
    today=date(2030, 1, 1),
    data=bundled(),
    policy=Policy(allow_runtime_process=True),
    catalogue_digest=CATALOGUE.digest,
)
VERSIONS = {EngineName.VLLM: "0.33.0", EngineName.SGLANG: "0.5.23", EngineName.TENSORRT_LLM: "1.3.0"}
MODELS = ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-32B", "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-R1")
SHAPES = (
    "g6.xlarge",
    "g6.12xlarge",
    "g6.48xlarge",
    "g6f.large",
    "g6f.xlarge",
    "g6f.2xlarge",
    "p4de.24xlarge",
    "p5.4xlarge",
    "p5.48xlarge",
)
RATES, TPOTS, TTFTS = (None, 0.5, 8.0, 200.0), (None, 0.005, 0.01, 0.03), (None, 0.05, 0.3, 2.0)


@st.composite
def pool_lists(draw: st.DrawFn) -> list[NodePool]:
    """Pools of which many are alike: zones, limits, purchases, slices and neighbours of few shapes."""
    pools = []
    for index, shape in enumerate(draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=8))):
        item = instance_types()[shape]
        profiles = gpu(item.gpu).mig_profiles if item.gpu_fraction == 1 else ()
        ways: list[dict[str, object]] = [{}, {}, {"sharing": "mps"}, {"sharing": "time-slicing"}]
        ways += [{"sharing": "mig", "mig_profile": profile.name} for profile in profiles[:3]]
        kinds = [str(kind) for kind in item.purchase_classes if kind != "capacity-block"] or ["capacity-block"]
        document = {
            "name": f"pool-{index}",
            "instance_type": shape,
            "zone": draw(st.sampled_from(["a", "b"])),
            "purchase": draw(st.sampled_from(kinds)),
            "max_nodes": draw(st.sampled_from([None, None, 0, 1, 2])),
            **draw(st.sampled_from(ways)),
        }
        if document["purchase"] == "capacity-block":
            document |= {"max_nodes": 2, "ends_on": date(2030, 12, 31)}
        pools.append(NodePool.model_validate(document))
    return pools


def wishes(rate: float | None, tpot: float | None, ttft: float | None, cost: float | None = None) -> Objectives:
    given_ones = {
        "requests_per_second": rate,
        "tpot_p95_seconds": tpot,
        "ttft_p95_seconds": ttft,
        "max_cost_per_hour": cost,
    }
    return Objectives.model_validate({name: value for name, value in given_ones.items() if value is not None})


def written(model: str, objectives: Objectives, *, most: int = 4) -> Manifest:
    spec = {
        "workload": "chat",
        "model": {"id": model, "alternatives": [{"id": "Qwen/Qwen3-8B", "kind": "smaller"}]},
        "objectives": objectives.model_dump(exclude_none=True),
        "scaling": {"max": most},
    }
    return Manifest.model_validate({"metadata": {"name": "placed"}, "spec": spec})


WISHES = st.builds(
    wishes, st.sampled_from(RATES), st.sampled_from(TPOTS), st.sampled_from(TTFTS), st.sampled_from([None, 20.0])
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MODELS), WISHES, pool_lists(), st.sampled_from(list(VERSIONS)))
def test_what_is_said_of_a_pool_does_not_depend_on_the_pools_beside_it(
    model: str, objectives: Objectives, pools: list[NodePool], engine: EngineName
) -> None:
    spec, version = written(model, objectives).spec, VERSIONS[engine]
    together = search_hardware(spec, engine, version, FACTS.model_copy(update={"pools": tuple(pools)}))
    assert together is not None
    for pool in pools:
        alone = search_hardware(spec, engine, version, FACTS.model_copy(update={"pools": (pool,)}))
        assert alone is not None
        assert alone.options == tuple(item for item in together.options if item.place.pool == pool)
        assert alone.rejections == tuple(item for item in together.rejections if item.pool == pool.name)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(MODELS), WISHES, pool_lists())
def test_a_candidate_loses_for_the_same_reason_whatever_others_lost_before_it(
    model: str, objectives: Objectives, pools: list[NodePool]
) -> None:
    choice = choose(written(model, objectives), FACTS.model_copy(update={"pools": tuple(pools)}), CATALOGUE)
    if not choice.ranked:
        return
    best, *others = choice.ranked
    lost = [item for item in choice.rejections if item.rule == "score"]
    assert lost == [item for other in others for item in outscored([other], best)]


def served(model: str, hardware: str, plan: ParallelPlan, engine: str, *, output_tokens: int = 300) -> Serving:
    known = known_model(model, FACTS)
    assert known is not None
    return Serving(known.model, plan, gpu(hardware), engine, known.quantization, "auto", 2000, output_tokens)


SERVED = st.builds(
    served,
    st.sampled_from(MODELS),
    st.sampled_from(["H100", "L4", "A10G", "B200"]),
    st.sampled_from([ParallelPlan(), ParallelPlan(tensor=2), ParallelPlan(tensor=8), ParallelPlan(8, 2)]),
    st.sampled_from(["vllm", "sglang", "tensorrt-llm", "another"]),
    output_tokens=st.sampled_from([1, 300]),
)


@settings(max_examples=60, deadline=None)
@given(SERVED, st.lists(st.integers(1, 4000), min_size=1, max_size=4))
def test_a_latency_is_the_same_whichever_loads_were_asked_before(serving: Serving, loads: list[int]) -> None:
    speed = speed_of(serving)
    if isinstance(speed, Missing):
        return
    asked = (*loads, *loads)
    assert [speed.latency(load) for load in asked] == [latency_of(serving, load) for load in asked]


@settings(max_examples=60, deadline=None)
@given(SERVED, WISHES, st.sampled_from([1, 3, 17]))
def test_the_figures_at_load_are_those_of_a_search_that_remembers_nothing(
    serving: Serving, objectives: Objectives, most: int
) -> None:
    found = at_load(serving, objectives, Scaling(max=most))
    if objectives.requests_per_second is None or found.latency.tpot is None:
        assert (found.concurrency, found.latency) == (1, latency_of(serving, 1))
        return
    assert (found.concurrency, found.latency) == settled(serving, objectives.requests_per_second / found.replicas)
    rate = throughput_of(serving).total
    assert found.tokens_per_second == rate
    assert rate is not None
    least = math.ceil(objectives.requests_per_second * serving.output_tokens / rate.mid)
    assert found.replicas == max(1, least) or found.replicas <= most


def settled(serving: Serving, rate: float) -> tuple[int, Latency]:
    """Little's law in three rounds, nothing remembered."""
    concurrency, latency = 1, latency_of(serving, 1)
    for _ in range(3):
        assert latency.tpot is not None
        assert latency.ttft is not None
        seconds = latency.ttft.mid + serving.output_tokens * latency.tpot.mid
        concurrency = max(1, math.ceil(rate * seconds))
        latency = latency_of(serving, concurrency)
    return concurrency, latency


@pytest.mark.parametrize(("first", "second"), [("g6f.large", "g6f.xlarge"), ("g6f.xlarge", "g6f.large")])
def test_a_part_of_a_gpu_is_named_after_its_own_instance(first: str, second: str) -> None:
    pools = tuple(NodePool(name=shape.replace(".", "-"), instance_type=shape) for shape in (first, second))
    spec = written("Qwen/Qwen3-0.6B", wishes(None, None, None)).spec
    found = search_hardware(spec, EngineName.VLLM, "0.33.0", FACTS.model_copy(update={"pools": pools}))
    assert found is not None
    said = {item.place.instance.name: item.estimate.latency.reasons[0] for item in found.options}
    said |= {str(item.instance_type): item.reason for item in found.rejections}
    assert all(shape in said[shape] for shape in (first, second)), said
