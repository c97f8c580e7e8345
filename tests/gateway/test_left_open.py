"""Many connections at once, opened and left in all states: afterwards everything is back to where it was."""

from tests.gateway.leaving import HELD, Client, HoldingEngine, files_of, held, is_in_use, publish, request

COUNT = 500
TASKS = "enginehouse_gateway_tasks"
KEPT_FILES = COUNT // 2 + 80
"""Connections between the two processes are kept for the next burst for a while, and some to engines."""


def standing(gateway):
    """File descriptors of both processes, and tasks."""
    return files_of(gateway.decision.pid), files_of(gateway.envoy.pid), gateway.metric(TASKS)


def test_a_thousand_connections_at_once_are_all_admitted_and_leave_nothing(gateway, world, until):
    engine = HoldingEngine()
    gateway.servers.start(engine)
    publish(gateway, world, engine.address)
    until(lambda: is_in_use(gateway), "the routes")
    whole = request(world.acme_key, "guarded")
    going = [request(world.acme_key, model) for model in ("guarded", "unguarded", "filtered", "queued")]
    going.append(request(world.acme_key, "guarded", is_stream=False))
    cut = [b"", whole[:20], whole[: whole.index(b"\r\n\r\n")], whole[:-9], b"GET / HTTP/1.1\r\n\r\n" + whole[:-1]]
    sent = [*cut, *going]

    def come_and_go(count, *, abruptly):
        clients = [Client(gateway).send(sent[number % len(sent)]) for number in range(count)]
        until(lambda: gateway.metric(f'{HELD}{{part="admitted"') == count // 2, "each is admitted", 20)
        until(lambda: gateway.metric(f'{HELD}{{part="arriving"') == 0, "each has arrived")
        for client in clients:
            client.leave(abruptly=abruptly)
        until(lambda: held(gateway) == 0, "nothing is held")

    before = standing(gateway)
    come_and_go(COUNT, abruptly=False)
    come_and_go(COUNT, abruptly=True)
    until(lambda: standing(gateway)[2] <= before[2] + 1, "the tasks are gone")
    most = [then + KEPT_FILES for then in before]
    until(lambda: all(now <= then for now, then in zip(standing(gateway), most, strict=True)), "files are closed")
    once = standing(gateway)
    come_and_go(COUNT // 2, abruptly=True)
    until(lambda: all(now <= then + 2 for now, then in zip(standing(gateway), once, strict=True)), "nothing grows")
