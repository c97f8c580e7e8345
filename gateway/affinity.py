"""What requests have in common: the conversation that decides on the arm, and the blocks of the prompt. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from gateway.plain_texts import INSTRUCTIONS, framed, opening
from gateway.prompt_blocks import PromptBlocks, chain_root, text_blocks, token_blocks
from gateway.prompt_text import prompt_text, prompt_tokens_given

DEFAULT_BLOCK_TOKENS = 16
_ROLE_AND_CONTENT = 2
_SORTED = json.JSONEncoder(sort_keys=True)


def conversation_key(
    tenant: str, model: str, document: Mapping[str, object], texts: Sequence[str] | None = None
) -> bytes:
    """A digest that stays the same through a conversation and differs between conversations.

    A chat is known by its messages up to the first that is no instruction: an application's instructions alone are
    shared by all its conversations, and would send every one of them to the same arm. The input of a response is a chat
    where it is a list of messages. A plain prompt, an input or a query has no turns; the whole of it counts.
    ``texts`` = of a chat that is nothing else.
    """
    plain = _plain_opening(document) if texts is None else opening(texts)
    return _digest(tenant, model, _opening(document)) if plain is None else _digest(tenant, model, *plain)


def prompt_blocks(
    document: Mapping[str, object],
    *,
    model: str,
    cache_salt: str | None = None,
    block_tokens: int = DEFAULT_BLOCK_TOKENS,
    texts: Sequence[str] | None = None,
) -> PromptBlocks:
    """The blocks of a request's prompt: of tokens (``block_tokens`` each, as the engine has them) where it gives token
    ids, else of text. ``texts`` = of a chat that is nothing else."""
    root = chain_root(model, cache_salt)
    if texts is not None:
        return text_blocks(framed(texts), root)
    tokens = prompt_tokens_given(document)
    if tokens is not None:
        return token_blocks(tokens, root, block_tokens)
    return text_blocks(prompt_text(document), root)


def named_conversation(tenant: str, model: str, session: str) -> bytes:
    """The same digest for all requests of a session that a client names, whatever they hold."""
    return _digest("session", tenant, model, session)


def session_key(tenant: str, model: str, session: str) -> int:
    """A number for the session that a client names; the same name of another tenant is another session."""
    return int.from_bytes(named_conversation(tenant, model, session)[:8], "little")


def _digest(*parts: str) -> bytes:
    framed_parts: list[bytes] = []
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        framed_parts += (len(data).to_bytes(8, "big"), data)
    return hashlib.blake2b(b"".join(framed_parts), digest_size=16).digest()


def _plain_opening(document: Mapping[str, object]) -> list[str] | None:
    """The texts of a chat that begins with nothing but texts, as most do: long ones are not written as JSON first."""
    messages = document.get("messages")
    if not isinstance(messages, list) or "input" in document or "query" in document:
        return None
    texts: list[str] = []
    for message in _opening_messages(messages):
        if not isinstance(message, dict) or len(message) != _ROLE_AND_CONTENT:
            return None
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or not isinstance(content, str):
            return None
        texts += (role, content)
    return texts


def _opening(document: Mapping[str, object]) -> str:
    messages, given = document.get("messages"), document.get("input")
    opening = _opening_messages(messages) if isinstance(messages, list) else [document.get("prompt", "")]
    is_chat = isinstance(given, list) and any(isinstance(message, dict) for message in given)
    opening += _opening_messages(given) if is_chat and isinstance(given, list) else [given]
    if "query" in document:
        opening += [document["query"], document.get("documents")]
    try:
        return _SORTED.encode(opening)
    except (RecursionError, ValueError):
        return ""


def _opening_messages(messages: list[object]) -> list[object]:
    opening: list[object] = []
    for message in messages:
        opening.append(message)
        role = message.get("role") if isinstance(message, dict) else None
        if not (isinstance(role, str) and role in INSTRUCTIONS):
            break
    return opening
