"""Planning a fleet: laws over any deployments and pools, then each reason, then a small environment."""

import json
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet import hardware
from fleet.fleet_plan import plan_fleet
from fleet.hardware import SharingMode
from fleet.node_pools import NodePool
from fleet.plan_wish import Reason
from fleet.pool_match import Deployment, PlacementOption
from fleet.prices import Price, PriceTable
from fleet.sharing import SharingWay, context_bytes

GIB = hardware.BYTES_PER_GIB
DAY = date(2030, 1, 1)
PRICED = {
    ("g6.12xlarge", "on-demand"): 4.0,
    ("g6.12xlarge", "spot"): 1.5,
    ("p5.48xlarge", "on-demand"): 100.0,
    ("p5.48xlarge", "capacity-block"): 40.0,
}
PRICES = PriceTable(
    retrieved="2030-01-01",
    prices=tuple(
        Price(instance_type=name, purchase=purchase, usd_per_hour=usd, as_of="2029-Q4", source="made up for tests")
        for (name, purchase), usd in PRICED.items()
    ),
)
TYPES = ["g6.12xlarge", "p5.48xlarge", "p6-b200.48xlarge"]
"""4 GPUs, 8 GPUs, 8 GPUs without a price."""


def pool(name, instance_type="p5.48xlarge", **rest):
    return NodePool.model_validate({"name": name, "instance_type": instance_type} | rest)


def plan(deployments, pools, **rest):
    return plan_fleet(deployments, pools, prices=PRICES, today=DAY, **rest)


def on(instance_type, gpus, replicas=1, **rest):
    return PlacementOption(instance_type, gpus, replicas, **rest)


def shared(instance_type, gib, mode=SharingMode.MPS, replicas=1):
    return PlacementOption(instance_type, 1, replicas, sharing=mode, memory_bytes=int(gib * GIB))


OPTIONS = st.one_of(
    st.builds(on, st.sampled_from(TYPES), st.sampled_from([1, 2, 3, 4, 8, 12, 16]), st.integers(1, 3)),
    st.builds(
        shared,
        st.sampled_from(TYPES),
        st.integers(1, 90),
        st.sampled_from([SharingMode.MPS, SharingMode.MIG]),
        st.integers(1, 3),
    ),
)


@st.composite
def deployment_lists(draw, most=4):
    return [
        Deployment(
            name=f"d{index}",
            options=tuple(draw(st.lists(OPTIONS, max_size=2))),
            needs_hardware_isolation=draw(st.booleans()),
            until=draw(st.none() | st.just(DAY + timedelta(days=10))),
        )
        for index in range(draw(st.integers(min_value=0, max_value=most)))
    ]


@st.composite
def pool_lists(draw, most=3):
    pools = []
    for index in range(draw(st.integers(min_value=0, max_value=most))):
        instance_type = draw(st.sampled_from(TYPES))
        ways = [SharingWay.EXCLUSIVE, SharingWay.EXCLUSIVE, SharingWay.MPS]
        if instance_type != "g6.12xlarge":
            ways.append(SharingWay.DYNAMIC_SLICES)
        wish = {"max_nodes": draw(st.none() | st.integers(0, 3)), "sharing": draw(st.sampled_from(ways))}
        if instance_type == "p5.48xlarge" and draw(st.booleans()):
            wish |= {"purchase": "capacity-block", "max_nodes": 2}
            wish["ends_on"] = DAY + timedelta(days=draw(st.sampled_from([-1, 0, 5, 30])))
        pools.append(pool(f"p{index}", instance_type, **wish))
    return pools


FEW = settings(max_examples=60, deadline=None)


@FEW
@given(deployments=deployment_lists(), pools=pool_lists())
def test_every_deployment_is_on_one_pool_or_left_out_with_a_reason(deployments, pools):
    found = plan(deployments, pools)
    names = [item.deployment for item in found.placed] + [item.deployment for item in found.unplaced]
    assert sorted(names) == sorted(item.name for item in deployments)
    for item in found.unplaced:
        assert item.reasons
        assert all(reason.reason.rule and reason.reason.message for reason in item.reasons)


@FEW
@given(deployments=deployment_lists(), pools=pool_lists())
def test_no_pool_is_asked_for_more_nodes_or_gpus_than_it_has(deployments, pools):
    for use in plan(deployments, pools).pools:
        assert use.pool.max_nodes is None or use.nodes <= use.pool.max_nodes
        assert use.nodes_left is None or use.nodes_left >= 0
        for node in use.filling.nodes:
            assert node.shares
            assert 0 < node.gpus_used <= node.gpus == use.pool.instance.gpus
            taken = [index for share in node.shares for index in share.gpu_indices]
            assert max(taken) < node.gpus
            if use.pool.sharing is SharingWay.EXCLUSIVE:
                assert len(taken) == len(set(taken))


@FEW
@given(deployments=deployment_lists(), pools=pool_lists())
def test_a_replica_stays_inside_a_node_or_takes_whole_ones_and_has_all_its_gpus(deployments, pools):
    found = plan(deployments, pools)
    for item in found.placed:
        use = next(use for use in found.pools if use.pool.name == item.pool.name)
        size = use.pool.instance.gpus
        for replica in range(item.option.replicas):
            parts = [
                len(share.gpu_indices)
                for node in use.filling.nodes
                for share in node.shares
                if (share.deployment, share.replica) == (item.deployment, replica)
            ]
            assert sum(parts) == item.option.gpus
            assert len(parts) == 1 or set(parts) == {size}


@FEW
@given(deployments=deployment_lists(), pools=pool_lists(), days=st.integers(0, 40))
def test_nothing_stands_on_a_capacity_block_beyond_its_end_nor_shares_against_its_needs(deployments, pools, days):
    until = DAY + timedelta(days=days)
    by_name = {item.name: item for item in deployments}
    for item in plan(deployments, pools, until=until).placed:
        deployment = by_name[item.deployment]
        if item.pool.ends_on is not None:
            assert max(until, deployment.until or until) <= item.pool.ends_on
        if deployment.needs_hardware_isolation:
            assert item.pool.sharing is not SharingWay.MPS
        assert item.option in deployment.options
        assert item.option.sharing is item.pool.sharing.mode


@FEW
@given(deployments=deployment_lists(), pools=pool_lists(), data=st.data())
def test_the_order_of_deployments_and_pools_does_not_matter(deployments, pools, data):
    first = plan(deployments, pools).to_document()
    again = plan(data.draw(st.permutations(deployments)), data.draw(st.permutations(pools))).to_document()
    assert again == first
    assert json.loads(json.dumps(first, allow_nan=False)) == first


@FEW
@given(deployments=deployment_lists(most=3), pools=pool_lists(), extra=st.sampled_from(TYPES))
def test_one_more_pool_or_node_never_places_fewer(deployments, pools, extra):
    before = plan(deployments, pools)
    more = plan(deployments, [*pools, pool("extra", extra)])
    assert before.is_exhaustive
    assert len(more.placed) >= len(before.placed)
    wider = [
        item if item.max_nodes is None else item.model_copy(update={"max_nodes": item.max_nodes + 1}) for item in pools
    ]
    assert len(plan(deployments, wider).placed) >= len(before.placed)


@FEW
@given(deployments=deployment_lists(most=3), pools=pool_lists(), fraction=st.floats(0.1, 0.9))
def test_a_plan_costs_no_more_when_prices_fall(deployments, pools, fraction):
    before = plan(deployments, pools)
    cheaper = PriceTable(
        retrieved=PRICES.retrieved,
        prices=tuple(item.model_copy(update={"usd_per_hour": item.usd_per_hour * fraction}) for item in PRICES.prices),
    )
    after = plan_fleet(deployments, pools, prices=cheaper, today=DAY)
    if before.usd_per_hour is not None and after.usd_per_hour is not None:
        assert after.usd_per_hour <= before.usd_per_hour + 1e-6


def test_many_deployments_are_planned_without_looking_at_every_combination():
    options = (on("p5.48xlarge", 2), on("g6.12xlarge", 4))
    found = plan([Deployment(f"d{n:02}", options) for n in range(40)], [pool("a"), pool("b", "g6.12xlarge")])
    assert not found.is_exhaustive
    assert len(found.placed) == 40
    assert all(item.pool.name == "b" for item in found.placed)


def test_a_large_node_is_opened_where_many_together_pay_for_it():
    options = (on("p5.48xlarge", 1), on("g6.12xlarge", 16))
    found = plan([Deployment(f"d{n:02}", options) for n in range(40)], [pool("a"), pool("b", "g6.12xlarge")])
    assert not found.is_exhaustive
    assert found.usd_per_hour == 5 * 100.0


def test_the_cheapest_known_price_wins_and_an_unknown_one_comes_last():
    options = (on("p6-b200.48xlarge", 4), on("p5.48xlarge", 4), on("g6.12xlarge", 4))
    pools = [pool("b200", "p6-b200.48xlarge"), pool("h100"), pool("l4", "g6.12xlarge")]
    spot = pool("l4-spot", "g6.12xlarge", purchase="spot")
    assert plan([Deployment("d", options)], pools).placed[0].pool.name == "l4"
    assert plan([Deployment("d", options)], [*pools, spot]).placed[0].pool.name == "l4-spot"
    found = plan([Deployment("d", options[:1])], pools)
    assert found.placed[0].pool.name == "b200"
    assert found.usd_per_hour is None
    totals = found.to_document()["totals"]
    assert totals["pools_without_price"] == ["b200"]
    assert totals["usd_per_hour"] is None


def test_a_node_that_is_paid_for_is_filled_before_another_is_opened():
    options = (on("g6.12xlarge", 1), on("p5.48xlarge", 1))
    big = Deployment("big", (on("p5.48xlarge", 4),))
    small = [Deployment(f"small-{n}", options) for n in range(4)]
    found = plan([big, *small], [pool("h100"), pool("l4", "g6.12xlarge")])
    assert {item.pool.name for item in found.placed} == {"h100"}
    (use,) = [use for use in found.pools if use.nodes]
    assert (use.nodes, use.filling.nodes[0].gpus_free, found.usd_per_hour) == (1, 0, 100.0)


def test_a_replica_over_two_nodes_takes_them_whole():
    found = plan(
        [Deployment("huge", (on("p5.48xlarge", 16),)), Deployment("small", (on("p5.48xlarge", 1),))], [pool("h")]
    )
    assert [node.gpus_free for node in found.pools[0].filling.nodes] == [0, 0, 7]
    assert found.to_document()["placed"][0]["nodes_per_replica"] == 2


@pytest.mark.parametrize(
    ("option", "pool_wish", "isolated", "rule", "message"),
    [
        (on("g6.12xlarge", 1), {}, False, "no-pool", "can run on g6.12xlarge; the pools have p5.48xlarge"),
        (on("p5.48xlarge", 12), {}, False, "whole-nodes", "takes 12 GPUs"),
        (on("p5.48xlarge", 8, 3), {"max_nodes": 2}, False, "max-nodes", "has at most 2 (room for 2 of 3 replicas)"),
        (on("p5.48xlarge", 1), {"sharing": "mps"}, False, "sharing", "planned for sharing 'exclusive'"),
        (shared("p5.48xlarge", 9), {"sharing": "mps"}, True, "isolation", "use MIG or exclusive"),
        (shared("p5.48xlarge", 90), {"sharing": "mps"}, False, "memory", "one H100 holds 79.18 GiB"),
        (
            shared("p5.48xlarge", 9, SharingMode.MIG),
            {"sharing": "mig", "mig_profile": "1g.10gb"},
            True,
            "memory",
            "holds 9.75 GiB",
        ),
        (
            PlacementOption("p5.48xlarge", 2, sharing=SharingMode.MIG, memory_bytes=1),
            {"sharing": "dynamic-slices"},
            False,
            "slices",
            "takes 2 GPUs",
        ),
        (
            PlacementOption("p5.48xlarge", 1, sharing=SharingMode.MPS),
            {"sharing": "mps"},
            False,
            "memory-unknown",
            "give memory_bytes",
        ),
        (on("p5.48xlarge", 1, purchase="spot"), {}, False, "purchase", "asks for spot; pool p is bought as on-demand"),
        (
            on("p5.48xlarge", 1),
            {"purchase": "capacity-block", "max_nodes": 1, "ends_on": DAY},
            False,
            "capacity-block-end",
            "ends on 2030-01-01; d must run until 2030-01-02",
        ),
    ],
)
def test_what_does_not_fit_says_why(option, pool_wish, isolated, rule, message):
    deployment = Deployment("d", (option,), needs_hardware_isolation=isolated)
    found = plan([deployment], [pool("p", **pool_wish)], until=DAY + timedelta(days=1))
    (reason,) = found.unplaced[0].reasons
    assert reason.reason.rule == rule
    assert message in reason.reason.message
    assert reason.reason.evidence


def test_a_deployment_without_options_keeps_the_reasons_that_it_came_with():
    stated = Reason("memory", "needs 60.8 GiB of weights, 22.4 GiB visible")
    found = plan([Deployment("a", (), reasons=(stated,)), Deployment("b", ())], [pool("p")])
    assert [item.reasons[0].reason.rule for item in found.unplaced] == ["memory", "no-placement"]


def test_a_full_pool_names_who_stands_there():
    pair = [Deployment(name, (on("p5.48xlarge", 8),)) for name in ("one", "two")]
    found = plan(pair, [pool("p", max_nodes=1)])
    (left,) = found.unplaced
    (reason,) = left.reasons
    assert reason.pool == "p"
    assert reason.reason.rule == "max-nodes"
    assert f"beside {found.placed[0].deployment} needs 2 nodes, pool p has at most 1" in reason.reason.message


def test_small_models_share_the_gpus_of_a_pool_and_the_plan_says_the_saving():
    small = [Deployment(f"m{n}", (shared("g6.12xlarge", 5.0),)) for n in range(6)]
    found = plan(small, [pool("l4", "g6.12xlarge", sharing="mps", max_nodes=1)])
    document = found.to_document()
    assert document["totals"]["gpus_saved_by_sharing"] == 4
    assert document["totals"]["gpus_used"] == 2
    assert document["pools"][0]["gpus_free"] == 2
    assert document["pools"][0]["cost"]["priced_on"] == "2029-Q4"
    assert document["pools"][0]["packing"]["gpus"][0]["used_bytes"] == 3 * (5 * GIB + context_bytes())


def test_names_are_ids():
    with pytest.raises(ValueError, match="two deployments are called 'a'"):
        plan([Deployment("a", ()), Deployment("a", ())], [])
    with pytest.raises(ValueError, match="two pools are called 'p'"):
        plan([], [pool("p"), pool("p")])
    with pytest.raises(ValueError, match=r"0 GPUs x 1 replicas"):
        on("g6.xlarge", 0)
