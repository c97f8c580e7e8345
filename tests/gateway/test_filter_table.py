"""Filters are made when a snapshot comes, kept while their policy stays, and left out where they can't be made."""

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from fleet.output_policy import FilterPolicy, Mode, Moderation, NamedFilter, OwnPattern
from fleet.snapshot import GatewayRoute, GatewaySnapshot
from gateway.filter_metrics import FilterMetrics
from gateway.filter_table import FilterTable
from gateway.moderation_metrics import ModerationMetrics
from tests.gateway.filtering import TEXT

UNUSABLE = "enginehouse_gateway_filters_unusable"
MASKS_NOTHING = FilterPolicy(classes={})
pytestmark = pytest.mark.asyncio


class Judge:
    """Never asked."""


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def table(registry):
    return FilterTable(b"s" * 32, {"default": Judge()}, FilterMetrics(registry), ModerationMetrics(registry))


def snapshot(*routes: str, **filters: FilterPolicy) -> GatewaySnapshot:
    return GatewaySnapshot(
        routes=tuple(GatewayRoute(model=f"m{n}", output_filter=name, arms=()) for n, name in enumerate(routes)),
        output_filters=tuple(NamedFilter(name=name, policy=policy) for name, policy in filters.items()),
    )


async def test_only_what_routes_name_is_made_and_pii_is_there_without_being_defined(table):
    filters = await table.filters_of(snapshot("none", "pii", own=MASKS_NOTHING))
    assert set(filters) == {"pii"}
    assert "email" in filters["pii"].policy.modes
    assert set(await table.filters_of(snapshot("own", "none", own=MASKS_NOTHING))) == {"own"}


async def test_a_filter_is_kept_while_its_policy_stays(table):
    first = await table.filters_of(snapshot("own", own=MASKS_NOTHING))
    same = await table.filters_of(snapshot("own", "pii", own=FilterPolicy(classes={})))
    assert same["own"] is first["own"]
    other = await table.filters_of(snapshot("own", own=FilterPolicy(classes={"email": Mode.HASH})))
    assert other["own"] is not first["own"]


async def test_a_snapshot_may_define_pii_and_of_two_filters_with_one_name_the_first_counts(table):
    defined = snapshot("pii", pii=MASKS_NOTHING)
    twice = defined.model_copy(
        update={"output_filters": (*defined.output_filters, NamedFilter(name="pii", policy=FilterPolicy()))}
    )
    for one in (defined, twice):
        assert "email" not in (await table.filters_of(one))["pii"].policy.modes


@pytest.mark.parametrize(
    "policy",
    [
        FilterPolicy(patterns=(OwnPattern(name="own", pattern=".*"),)),
        FilterPolicy(patterns=(OwnPattern(name="email", pattern="a"),)),
        FilterPolicy(classes={"nobody-knows": Mode.MASK}),
        FilterPolicy(denied=(" ",)),
        FilterPolicy(moderation=Moderation(service="nobody")),
    ],
)
async def test_what_can_not_be_made_is_left_out_and_said_once(table, registry, policy):
    with capture_logs() as logs:
        for _ in range(2):
            assert set(await table.filters_of(snapshot("pii", "own", own=policy))) == {"pii"}
    assert [(log["event"], log["filter"]) for log in logs] == [("snapshot.filter_unusable", "own")]
    assert registry.get_sample_value(UNUSABLE) == 1
    await table.filters_of(snapshot("pii"))
    assert registry.get_sample_value(UNUSABLE) == 0


async def test_a_name_that_nobody_defined_is_unusable(table, registry):
    assert await table.filters_of(snapshot("nobody-knows")) == {}
    assert registry.get_sample_value(UNUSABLE) == 1


async def test_series_of_a_model_go_with_it(table, registry):
    filters = await table.filters_of(snapshot("pii"))
    for _ in range(2):
        filters["pii"].watch.answered("m0", {"email": 2}, None, None)
    await table.filters_of(snapshot("pii"))
    labels = {"model": "m0", "class": "email"}
    assert registry.get_sample_value("enginehouse_gateway_filtered_values_total", labels) == 4
    await table.filters_of(snapshot())
    assert registry.get_sample_value("enginehouse_gateway_filtered_values_total", labels) is None


async def test_a_policy_that_hashes_has_another_key_for_each_tenant_and_conversation(table):
    made = (await table.filters_of(snapshot("own", own=FilterPolicy(classes={"email": Mode.HASH}))))["own"]
    said = set()
    for tenant, text in (("acme", "one"), ("acme", "two"), ("globex", "one"), ("acme", "one")):
        conversation = {"messages": [{"role": "user", "content": text}]}
        said.add(made.of(tenant, "m", conversation).answer().whole(TEXT, None))
    assert len(said) == 3
