"""What the router is told of a request: its conversation and the blocks of its prompt, nothing of its text. Pure."""

from gateway.affinity import DEFAULT_BLOCK_TOKENS, conversation_key, named_conversation, prompt_blocks, session_key
from gateway.asked import Asked
from gateway.cache_salt import salt_of
from gateway.router import RoutingRequest


def conversation_of(asked: Asked) -> bytes:
    """What decides on the arm: the session where the client names one, else how the prompt begins."""
    tenant, model, session = asked.caller.tenant.name, asked.route.model, _session(asked)
    if session is not None:
        return named_conversation(tenant, model, session)
    return conversation_key(tenant, model, asked.document, asked.texts)


def routing_request(asked: Asked, block_tokens: int | None) -> RoutingRequest:
    """The prompt in blocks; ``block_tokens`` = as the engines cut token ids, where they have said so."""
    tenant, route, session = asked.caller.tenant.name, asked.route, _session(asked)
    prompt = prompt_blocks(
        asked.document,
        model=route.model,
        cache_salt=salt_of(asked, route),
        block_tokens=block_tokens or DEFAULT_BLOCK_TOKENS,
        texts=asked.texts,
    )
    key = None if session is None else session_key(tenant, route.model, session)
    return RoutingRequest(prompt.blocks, prompt.block_tokens, prompt.prompt_tokens, key, asked.request.reach)


def _session(asked: Asked) -> str | None:
    header = asked.route.session_header
    return None if header is None else asked.request.headers.get(header) or None
