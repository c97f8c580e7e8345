"""Usage records on disk: in order, none lost but what was not synced, never too many."""

import asyncio
import errno
import json

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from fleet.usage import UsageBatch, UsageRecord
from gateway.admitted import Ended
from gateway.billed import Billed
from gateway.passage import End, Ending
from gateway.reservations import Basis, Settled
from gateway.stopwatch import Stopwatch, Times
from gateway.token_usage import TokenUsage
from gateway.usage_delivery import UsageDelivery
from gateway.usage_metrics import UsageMetrics
from gateway.usage_records import record_of
from gateway.usage_settings import MOST_RECORDS, UsageSettings
from gateway.usage_spool import MOST_FILE_BYTES, UsageSpool, lines_of
from gateway.usage_writer import UsageWriter

QUICK = UsageSettings(sync_seconds=0.01, batch_seconds=0.05)


def ended(number=0, **changes):
    usage = TokenUsage(10, 4, number)
    fields = {
        "tenant": "acme",
        "model": "chat",
        "deployment": "a",
        "identity": "0" * 32,
        "address": "127.0.0.1:1",
        "ending": Ending(End.WHOLE, 200, usage),
        "settled": Settled(number, "acme", "chat", usage, Basis.USAGE),
        "billed": Billed("k1", 1_900_000_000.0 + number, None),
        "times": Times(1.0, 0.5),
        "is_stream": True,
    }
    return Ended(**(fields | changes))


def line(number):
    return record_of(ended(number), ended(number).settled, f"record-{number:012d}").model_dump_json().encode() + b"\n"


def spool_in(folder, **more):
    spool = UsageSpool(folder, more.pop("max_bytes", 10**8), **more)
    spool.open()
    return spool


def drained(spool):
    """All that can be brought, in the order in which it would be."""
    found = []
    while (path := spool.oldest()) is not None:
        found += lines_of(path)
        spool.remove(path)
    return found


def metric(registry, outcome):
    return registry.get_sample_value("enginehouse_gateway_usage_records_total", {"outcome": outcome})


class Stage:
    """Everything about usage in one folder."""

    def __init__(self, folder, spool=None, settings=QUICK, answer=None):
        self.registry = CollectorRegistry()
        self.metrics = UsageMetrics(self.registry)
        self.spool = spool or spool_in(folder / "usage")
        self.writer = UsageWriter(self.spool, self.metrics, settings)
        self.batches = []
        self.answer = answer or self.take
        (folder / "token").write_text("eh_token\n")
        transport = httpx2.MockTransport(self.serve)
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:1")
        self.delivery = UsageDelivery(self.client, folder / "token", self.spool, self.metrics)

    def serve(self, request):
        assert request.headers["authorization"] == "Bearer eh_token"
        return self.answer(request)

    def take(self, request):
        batch = UsageBatch.model_validate_json(request.content)
        self.batches.append([record.output_tokens for record in batch.records])
        return httpx2.Response(200, json={"stored": len(batch.records), "duplicates": 0, "too_old": 0, "too_new": 0})

    def bring(self):
        asyncio.run(self.delivery.finish(5))

    @property
    def taken(self):
        return [number for batch in self.batches for number in batch]


OPS = st.lists(st.one_of(st.integers(1, 1200), st.sampled_from(["close", "restart", "cut", "bring"])), max_size=12)


@given(ops=OPS)
def test_what_was_synced_is_brought_once_and_in_order_whatever_happens(tmp_path_factory, ops):
    folder = tmp_path_factory.mktemp("spool") / "usage"
    spool, written, brought = spool_in(folder), 0, []
    for op in ops:
        if isinstance(op, int):
            spool.append([b"%d\n" % number for number in range(written, written + op)])
            written += op
        elif op == "close":
            spool.close()
        elif op == "bring":
            brought += drained(spool)
        else:
            if op == "cut" and (path := spool.oldest()) is not None:
                path.write_bytes(path.read_bytes() + b"77777")
            spool = spool_in(folder)  # as after a kill: what was being written is whole now
    spool.close()
    brought += drained(spool)
    assert brought == [b"%d" % number for number in range(written)]
    assert spool.size_bytes == 0
    assert list(folder.iterdir()) == []


@given(sizes=st.lists(st.integers(1, MOST_FILE_BYTES), min_size=1, max_size=6))
def test_no_file_is_more_than_one_batch(tmp_path_factory, sizes):
    spool = spool_in(tmp_path_factory.mktemp("spool"))
    spool.append([b"x" * size + b"\n" for size in sizes])
    spool.close()
    counts = []
    while (path := spool.oldest()) is not None:
        counts.append(len(lines_of(path)))
        assert path.stat().st_size <= MOST_FILE_BYTES + 1 or counts[-1] == 1
        spool.remove(path)
    assert sum(counts) == len(sizes)
    assert max(counts) <= MOST_RECORDS


def test_records_are_written_and_brought_in_the_order_of_their_ends(tmp_path):
    stage = Stage(tmp_path)
    stage.writer.start()
    for number in range(1, 1200):
        stage.writer.ended(ended(number))
    stage.writer.stop()
    stage.bring()
    assert stage.taken == list(range(1, 1200))
    assert max(map(len, stage.batches)) <= MOST_RECORDS
    assert metric(stage.registry, "stored") == 1199


class FullDisk(UsageSpool):
    """Writes nothing for so many times."""

    failures = 2

    def append(self, lines):
        if lines and self.failures:
            self.failures -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(lines)


def test_a_full_disk_is_tried_again_and_nothing_is_lost(tmp_path, until):
    disk = FullDisk(tmp_path / "usage", 10**8)
    disk.open()
    stage = Stage(tmp_path, disk)
    stage.writer.start()
    stage.writer.ended(ended(1))
    until(lambda: disk.failures < 2, "the first failure")
    stage.writer.ended(ended(2))
    until(lambda: disk.oldest() is not None, "a file")
    stage.writer.stop()
    stage.bring()
    assert stage.taken == [1, 2]
    assert stage.registry.get_sample_value("enginehouse_gateway_usage_disk_failures_total") == 2


def test_a_full_spool_and_a_slow_disk_drop_and_count(tmp_path):
    small = spool_in(tmp_path / "usage", max_bytes=len(line(1)) * 5 // 2)
    stage = Stage(tmp_path, small, settings=QUICK.model_copy(update={"max_waiting_records": 3}))
    for number in range(1, 6):
        stage.writer.ended(ended(number))  # nobody writes yet
    stage.writer.start()
    stage.writer.stop()
    stage.bring()
    assert stage.taken == [1, 2]
    assert (metric(stage.registry, "dropped_in_memory"), metric(stage.registry, "dropped_on_disk")) == (2, 1)


def test_what_the_disk_gives_back_wrong_is_left_out_and_counted(tmp_path):
    stage = Stage(tmp_path)
    stage.spool.append([line(1), b"\x00\xff\n", b'{"id":1}\n', line(2)])
    stage.spool.close()
    stage.bring()
    assert stage.taken == [1, 2]
    assert metric(stage.registry, "malformed") == 2


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_a_control_plane_that_can_not_take_records_gets_them_later(tmp_path, status):
    stage = Stage(tmp_path)
    stage.spool.append([line(1)])
    stage.spool.close()
    stage.answer = lambda _: httpx2.Response(status)
    asyncio.run(stage.delivery.step())
    assert stage.spool.oldest() is not None
    stage.answer = lambda _: httpx2.Response(200, json={"tenants": []})  # somebody else's answer
    asyncio.run(stage.delivery.step())
    assert stage.spool.oldest() is not None
    stage.answer = stage.take
    stage.bring()
    assert stage.taken == [1]


def test_a_name_that_no_record_can_hold_is_counted_and_stops_nothing(tmp_path):
    stage = Stage(tmp_path)
    stage.writer.start()
    stage.writer.ended(ended(1, model="m" * 300))
    stage.writer.ended(ended(2))
    stage.writer.ended(ended(3, settled=None))
    stage.writer.stop()
    stage.bring()
    assert stage.taken == [2]
    assert metric(stage.registry, "malformed") == 1


def test_few_batches_are_set_aside(tmp_path):
    spool = spool_in(tmp_path)
    for number in range(15):
        spool.append([b"%d\n" % number])
        spool.close()
        spool.set_aside(spool.oldest())
    aside = sorted(path.read_bytes() for path in tmp_path.iterdir())
    assert len(aside) == 10
    assert spool_in(tmp_path).oldest() is None


def test_ids_are_unguessable_and_no_record_holds_more_than_it_says(tmp_path):
    stage = Stage(tmp_path)
    stage.writer.start()
    for number in (1, 2):
        stage.writer.ended(ended(number))
    stage.writer.stop()
    records = [UsageRecord.model_validate_json(text) for text in lines_of(stage.spool.oldest())]
    assert len({record.id for record in records}) == 2
    assert all(len(record.id) >= 24 for record in records)
    assert json.loads(records[0].model_dump_json()).keys() == UsageRecord.model_fields.keys()


def test_a_stopwatch_tells_the_first_byte_once():
    moments = iter([10.0, 10.25, 11.0, 12.0])
    watch = Stopwatch(lambda: next(moments))
    watch.first_byte()
    watch.first_byte()
    assert watch.times() == Times(1.0, 0.25)
