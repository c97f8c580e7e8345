"""The prompt of a chat that is nothing but roles and texts, as most are: read once for all who need it. Pure.

Its size, its conversation and its blocks are found in the whole document by general rules; for such a chat the texts
alone say the same.
"""

from collections.abc import Mapping, Sequence

INSTRUCTIONS = frozenset({"system", "developer"})
"""Roles of messages that an application writes and not its user."""
_ROLE_AND_CONTENT = 2
_OTHER_PROMPTS = frozenset(
    {"prompt", "input", "system", "instructions", "documents", "query", "suffix", "tools", "functions"}
)


def plain_texts(document: Mapping[str, object]) -> Sequence[str] | None:
    """Role and text of each message, one after the other; ``None`` = there is something else in the prompt."""
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages or not _OTHER_PROMPTS.isdisjoint(document):
        return None
    texts: list[str] = []
    for message in messages:
        if type(message) is not dict or len(message) != _ROLE_AND_CONTENT:
            return None
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or not isinstance(content, str):
            return None
        texts += (role, content)
    return texts


def opening(texts: Sequence[str]) -> Sequence[str]:
    """The texts up to the first message that is no instruction."""
    for place in range(0, len(texts), _ROLE_AND_CONTENT):
        if texts[place] not in INSTRUCTIONS:
            return texts[: place + _ROLE_AND_CONTENT]
    return texts


def framed(texts: Sequence[str]) -> bytes:
    """The texts as a template would put them one after the other."""
    return "".join(["\0" + text for text in texts]).encode("utf-8", "surrogatepass")
