"""The paths that clients may ask for; every other spelling of anything is unknown."""

from enum import StrEnum
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

MODELS_PATH = "/v1/models"
RESPONSES_PATH = "/v1/responses"
CHAT_SOCKET_PATH = "/v1/chat/ws"
REALTIME_PATH = "/v1/realtime"
MESSAGES_PATH = "/v1/messages"
COUNT_TOKENS_PATH = "/v1/messages/count_tokens"


class Operation(StrEnum):
    """What a client may ask for."""

    CHAT = "chat"
    COMPLETION = "completion"
    RESPONSES = "responses"
    MESSAGES = "messages"
    """Anthropic's form of a chat."""
    EMBEDDING = "embedding"
    RERANK = "rerank"
    TRANSCRIPTION = "transcription"
    TOKENIZE = "tokenize"
    COUNT_TOKENS = "count-tokens"
    """What a message would take, in Anthropic's form."""
    MODELS = "models"


class PublicPath(NamedTuple):
    """A path of the allow list."""

    operation: Operation
    model: str | None = None
    """The model that ``/v1/models/<model>`` or ``/v1/realtime?model=<model>`` names; ``None`` elsewhere."""
    is_socket: bool = False
    """Whether it is a WebSocket: an engine's own, where it names a model, else one for requests one after the other."""

    @property
    def method(self) -> str:
        """The one method that the path takes."""
        return "GET" if self.operation is Operation.MODELS or self.is_socket else "POST"


ENGINE_PATHS = {
    "/v1/chat/completions": Operation.CHAT,
    "/v1/completions": Operation.COMPLETION,
    RESPONSES_PATH: Operation.RESPONSES,
    MESSAGES_PATH: Operation.MESSAGES,
    COUNT_TOKENS_PATH: Operation.COUNT_TOKENS,
    "/v1/embeddings": Operation.EMBEDDING,
    "/v1/rerank": Operation.RERANK,
    "/v1/audio/transcriptions": Operation.TRANSCRIPTION,
    "/tokenize": Operation.TOKENIZE,
}
"""The only paths of an engine that can be reached. Envoy has the same list."""


def public_path(target: str) -> PublicPath | None:
    """The allowed path of a request target, or ``None``.

    Envoy has resolved dots, slashes and needless percent signs before it asks. What it would pass on to an engine must
    be an allowed path byte for byte, so nothing is decoded here: a spelling that differs is unknown.
    """
    path, _, query = target.partition("?")
    if operation := ENGINE_PATHS.get(path):
        return PublicPath(operation)
    if path == CHAT_SOCKET_PATH:
        return PublicPath(Operation.CHAT, is_socket=True)
    if path == REALTIME_PATH:
        return PublicPath(Operation.CHAT, _model_of(query), is_socket=True)
    if path == MODELS_PATH:
        return PublicPath(Operation.MODELS)
    if path.startswith(f"{MODELS_PATH}/") and len(path) > len(MODELS_PATH) + 1:
        return PublicPath(Operation.MODELS, unquote(path.removeprefix(f"{MODELS_PATH}/")))
    return None


def _model_of(query: str) -> str:
    """The one model that a query names; empty = none or several."""
    named = [value for name, value in parse_qsl(query) if name == "model"]
    return named[0] if len(named) == 1 else ""
