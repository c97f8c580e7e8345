"""A moderation service that does not judge is left alone: nobody's sentences wait for it meanwhile."""

import asyncio

import httpx2
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from fleet.output_policy import FilterPolicy, Moderation
from gateway.filter_metrics import FilterMetrics
from gateway.filter_table import FilterTable
from gateway.judge_breaker import MOST_FAILURES, PAUSE_SECONDS, JudgeBreaker, LeftAlone
from gateway.moderation import ModerationClient, NotJudgeable, NoVerdict
from gateway.moderation_metrics import ModerationMetrics
from gateway.settings import ModerationService

pytestmark = pytest.mark.asyncio


class Service:
    """Judges, fails, or says nothing until it is let go."""

    def __init__(self):
        self.asked = 0
        self.error = NoVerdict("it is away")
        self.silent = None

    async def may_pass(self, texts):
        self.asked += 1
        if self.silent is not None:
            await self.silent.wait()
        if self.error is not None:
            raise self.error
        return [True for _ in texts]


class World:
    def __init__(self):
        self.now = 100.0
        self.registry = CollectorRegistry()
        self.service = Service()
        self.judge = JudgeBreaker(self.service, "s", 5.0, ModerationMetrics(self.registry), lambda: self.now)

    async def ask(self):
        return await self.judge.may_pass(["a"])

    async def fail(self, times):
        for _ in range(times):
            with pytest.raises(NoVerdict):
                await self.ask()

    def count(self, outcome):
        name = "enginehouse_gateway_moderation_questions_total"
        return self.registry.get_sample_value(name, {"service": "s", "outcome": outcome}) or 0


@pytest.fixture
def world():
    return World()


async def test_after_failures_in_a_row_it_is_not_asked_until_the_pause_is_over(world):
    with capture_logs() as logs:
        await world.fail(MOST_FAILURES)
        for _ in range(50):
            with pytest.raises(LeftAlone):
                await world.ask()
    assert world.service.asked == MOST_FAILURES
    assert [world.count(outcome) for outcome in ("failed", "not_asked", "judged")] == [MOST_FAILURES, 50, 0]
    assert [line["event"] for line in logs] == ["moderation.left_alone"]
    world.now += PAUSE_SECONDS
    await world.fail(10)
    assert world.service.asked == MOST_FAILURES + 1, "one try, and another pause"
    world.now += PAUSE_SECONDS
    world.service.error = None
    assert await world.ask() == await world.ask() == [True]


async def test_failures_that_are_not_in_a_row_do_not_count_together(world):
    for _ in range(3):
        await world.fail(MOST_FAILURES - 1)
        error, world.service.error = world.service.error, None
        await world.ask()
        world.service.error = error
    assert world.count("not_asked") == 0


async def test_sentences_that_the_service_refuses_say_nothing_about_it(world):
    world.service.error = NotJudgeable("too long")
    await world.fail(3 * MOST_FAILURES)
    assert world.service.asked == 3 * MOST_FAILURES
    refusing = httpx2.MockTransport(lambda _: httpx2.Response(400))
    client = ModerationClient(httpx2.AsyncClient(transport=refusing), ModerationService(url="http://m.test"))
    with pytest.raises(NotJudgeable):
        await client.may_pass(["a"])


async def test_only_one_question_tries_whether_it_judges_again(world):
    await world.fail(MOST_FAILURES)
    world.now += PAUSE_SECONDS
    world.service.error, world.service.silent = None, asyncio.Event()
    trying = asyncio.create_task(world.ask())
    await asyncio.sleep(0)
    with pytest.raises(LeftAlone):
        await world.ask()
    world.service.silent.set()
    assert await trying == [True]
    assert await world.ask() == [True]


@pytest.mark.parametrize(("waited", "counts"), [(4.9, True), (0.1, False)])
async def test_who_stops_waiting_counts_when_it_is_late_and_not_when_its_client_left(world, waited, counts):
    world.service.silent = asyncio.Event()
    waiting = [asyncio.create_task(world.ask()) for _ in range(MOST_FAILURES)]
    await asyncio.sleep(0)
    world.now += waited
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    world.service.silent.set()
    expected = LeftAlone if counts else NoVerdict
    with pytest.raises(expected):
        await world.ask()
    assert world.count("not_asked") == counts


async def test_a_try_whose_client_left_leaves_the_next_one_to_another(world):
    await world.fail(MOST_FAILURES)
    world.now += PAUSE_SECONDS
    world.service.error, world.service.silent = None, asyncio.Event()
    trying = asyncio.create_task(world.ask())
    await asyncio.sleep(0)
    trying.cancel()
    await asyncio.gather(trying, return_exceptions=True)
    world.service.silent = None
    assert await world.ask() == [True]


async def test_every_filter_has_its_own(world):
    registry = CollectorRegistry()
    table = FilterTable(b"s" * 32, {"s": world.service}, FilterMetrics(registry), ModerationMetrics(registry))
    judges = [table._judge(FilterPolicy(moderation=Moderation(service="s", wait_seconds=wait))) for wait in (0.1, 5)]
    for _ in range(MOST_FAILURES):
        with pytest.raises(NoVerdict):
            await judges[0].may_pass(["a"])
    with pytest.raises(LeftAlone):
        await judges[0].may_pass(["a"])
    world.service.error = None
    assert await judges[1].may_pass(["a"]) == [True]
