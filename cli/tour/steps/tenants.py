"""Two tenants talk to their models through Envoy; nobody talks to another's."""

from cli.tour.evidence import Evidence, StepFailed
from cli.tour.stream import ChatStream, StreamCut
from cli.tour.world import Document, Journey, World, store

TENANTS = ("acme", "globex")
MODEL = "support-chat"
OTHERS_MODEL = {"acme": "invoice-fields", "globex": "claim-photos"}
ROUTE_SECONDS = 10.0
MAX_TOKENS = 24
WRONG_KEY = "not-a-key-of-this-house"


def tenants_are_served(world: World, journey: Journey) -> Evidence:
    """A streamed chat for each tenant; a wrong key gets 401, another tenant's model 404."""
    for tenant in TENANTS:
        journey.keys[tenant] = _key(world, tenant)
    lines, figures = [], []
    for tenant in TENANTS:
        _wait_for_route(world, journey.keys[tenant], tenant)
        stream = chat(world, journey.keys[tenant], MODEL, f"Which models may {tenant} use?")
        lines.append(f"{tenant}: {sentence(stream)}")
        figures.append({"tenant": tenant, "ttft_seconds": round(stream.ttft_seconds or 0.0, 4), "usage": stream.usage})
    lines.append(_expect(world, "a wrong key", WRONG_KEY, MODEL, 401))
    for tenant in TENANTS:
        model = OTHERS_MODEL[tenant]
        lines.append(_expect(world, f"{tenant} asking for {model}", journey.keys[tenant], model, 404))
    return Evidence(tuple(lines), {"chats": figures})


def chat(world: World, key: str, model: str, text: str, *, max_tokens: int = MAX_TOKENS) -> ChatStream:
    """One whole streamed chat, checked."""
    try:
        with world.chat(key, model, text, max_tokens=max_tokens) as stream:
            stream.finish()
    except StreamCut as error:
        raise StepFailed(f"the chat with {model}: {error}") from None
    if stream.usage is None or stream.ttft_seconds is None:
        raise StepFailed(f"the chat with {model} brought {stream.chunks} chunks and usage {stream.usage}")
    return stream


def sentence(stream: ChatStream) -> str:
    """What a finished stream was like."""
    usage = stream.usage or {}
    return (
        f"{stream.chunks} chunks, the first after {1000 * (stream.ttft_seconds or 0.0):.0f} ms; "
        f"usage {usage.get('prompt_tokens')} + {usage.get('completion_tokens')} tokens"
    )


def _key(world: World, tenant: str) -> str:
    body: Document = {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "Tenant",
        "metadata": {"name": tenant},
        "spec": {"requests_per_minute": 600},
    }
    store(world.api, f"/v1/tenants/{tenant}", body)
    return str(world.api.post("/v1/keys", {"tenant": tenant})["key"])


def _wait_for_route(world: World, key: str, tenant: str) -> None:
    def knows() -> bool:
        reply = world.ask(key, "/v1/models")
        return reply.status == 200 and MODEL in [card["id"] for card in reply.document["data"]]

    if world.until(knows, seconds=ROUTE_SECONDS) is None:
        reply = world.ask(key, "/v1/models")
        raise StepFailed(
            f"the gateway does not offer {MODEL} to {tenant} after {ROUTE_SECONDS:g} s; "
            f"/v1/models answers {reply.status}: {reply.document}"
        )


def _expect(world: World, who: str, key: str, model: str, status: int) -> str:
    body: Document = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
    reply = world.ask(key, "/v1/chat/completions", body)
    if reply.status != status:
        raise StepFailed(f"{who} got {reply.status}; {status} would be right")
    return f"{who}: {reply.status} {reply.document['error']['code']}"
