"""The audit log: any change, removal or move of an event is found, by whoever holds the events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from fleet.audit import AuditEntry, AuditEvent, ChainHead, cut_off, extend, first_break, head_of

WORDS = st.text(max_size=8)
MAYBE = st.none() | WORDS
ENTRIES = st.lists(
    st.builds(
        AuditEntry,
        time=WORDS,
        actor=WORDS,
        action=WORDS,
        kind=WORDS,
        name=WORDS,
        reason=MAYBE,
        request_id=MAYBE,
        before=MAYBE,
        after=MAYBE,
    ),
    min_size=1,
    max_size=6,
)


@given(entries=ENTRIES, cut=st.integers(0, 6))
def test_a_chain_holds_however_it_was_written_and_read(entries, cut):
    whole = extend(ChainHead(), entries)
    first = extend(ChainHead(), entries[:cut])
    assert (*first, *extend(head_of(first), entries[cut:])) == whole
    assert first_break(whole) is None
    assert first_break(whole[cut:], start=head_of(whole[:cut])) is None
    assert cut_off(head_of(whole), head_of(whole)) is None


@given(entries=ENTRIES, data=st.data())
def test_any_changed_field_is_found(entries, data):
    events = list(extend(ChainHead(), entries))
    place = data.draw(st.integers(0, len(events) - 1))
    name = data.draw(st.sampled_from(sorted(AuditEvent.model_fields)))
    old = getattr(events[place], name)
    new = data.draw(st.integers(0, 99) if name == "sequence" else MAYBE.filter(lambda value: value != old))
    if new is None and name not in ("reason", "request_id", "before", "after"):
        new = f"{old}x"
    events[place] = events[place].model_copy(update={name: new if new != old else 1000})
    assert first_break(events) is not None


@given(entries=ENTRIES, data=st.data())
def test_any_removed_event_is_found(entries, data):
    events = list(extend(ChainHead(), entries))
    stated = head_of(events)
    del events[data.draw(st.integers(0, len(events) - 1))]
    broken = first_break(events) or cut_off(head_of(events), stated)
    assert broken is not None


@given(entries=ENTRIES.filter(lambda items: len(items) > 1), data=st.data())
def test_any_two_events_that_changed_places_are_found(entries, data):
    events = list(extend(ChainHead(), entries))
    one, two = data.draw(st.lists(st.integers(0, len(events) - 1), min_size=2, max_size=2, unique=True))
    events[one], events[two] = events[two], events[one]
    assert first_break(events) is not None


def test_the_api_gives_everything_for_a_check_from_outside(world):
    for name in ("a", "b", "c"):
        world.put(world.pinned(name))
    events, token = [], None
    while True:
        page = world.get("/v1/audit-events", params={"page_size": 2} | ({"page_token": token} if token else {})).json()
        events += [AuditEvent.model_validate(item) for item in page["items"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert first_break(events) is None
    stated = ChainHead.model_validate(world.get("/v1/audit-events:head").json())
    assert page["head"] == stated.model_dump()
    assert cut_off(head_of(events), stated) is None
    newer = world.get("/v1/audit-events", params={"after": stated.sequence - 1}).json()["items"]
    assert [item["sequence"] for item in newer] == [stated.sequence]
    created = next(event for event in events if event.name == "b")
    assert (created.action, created.before, created.actor) == ("deployment.create", None, "test-operator")
    assert created.after.startswith("sha256:")
    assert created.request_id


def test_a_refused_or_stale_change_leaves_no_event(world):
    head = world.get("/v1/audit-events:head").json()
    world.put(world.pinned(engine="vllm", version="0.1.0"))
    world.put(world.pinned(), etag='"4"')
    assert world.get("/v1/audit-events:head").json() == head


@pytest.mark.parametrize("statement", ["UPDATE audit_events SET actor = 'me'", "DELETE FROM audit_events"])
def test_the_database_itself_refuses_to_change_the_log(world, statement):
    engine = world.assembly.store._engine
    with engine.connect() as connection, connection.begin(), pytest.raises(DBAPIError, match="append-only"):
        connection.execute(text(statement))


def test_the_service_finds_a_log_that_was_cut_behind_its_back(world):
    engine = world.assembly.store._engine
    with engine.connect() as connection, connection.begin():
        connection.execute(text("DROP TRIGGER audit_events_no_delete"))
        connection.execute(text("DELETE FROM audit_events WHERE sequence = (SELECT max(sequence) FROM audit_events)"))
    broken = world.assembly.house.audit.verify()
    assert broken is not None
    assert "were read" in broken.message
