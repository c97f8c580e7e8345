"""Embeddings and ranks: made of the tokens of their texts, so that like texts are near each other.

The members are those of vLLM 0.32.0's models, which were read and not captured.
"""

import base64
import math
import struct
import time
from collections.abc import Sequence

from simulator.answer import Json
from simulator.api_errors import bad_request, wrong_field
from simulator.identifiers import fresh_id
from simulator.request_body import Body
from simulator.tokens import pieces_of, token_ids

DIMENSIONS = 32


def embeddings(body: Body, model: str) -> Json:
    """Return the embeddings of the inputs."""
    body.need("input")
    inputs = _inputs(body.fields["input"])
    form = body.text("encoding_format") or "float"
    if form not in {"float", "base64"}:
        raise bad_request(f"encoding_format must be float or base64, got {form!r}", "encoding_format")
    size = body.whole("dimensions") or DIMENSIONS
    data = [
        {"index": index, "object": "embedding", "embedding": _written(_vector(tokens, size), form)}
        for index, tokens in enumerate(inputs)
    ]
    head = {"id": fresh_id("embd-"), "object": "list", "created": int(time.time()), "model": model}
    return {**head, "data": data, "usage": _usage(sum(map(len, inputs)))}


def ranks(body: Body, model: str) -> Json:
    """Return the documents by how near they are to the query."""
    body.need("query")
    body.need("documents")
    query = token_ids(pieces_of(body.text("query") or ""))
    documents = [str(document) for document in body.items("documents")]
    tokens = [token_ids(pieces_of(document)) for document in documents]
    near = [_nearness(query, found) for found in tokens]
    order = sorted(range(len(documents)), key=lambda index: -near[index])
    most = body.whole("top_n") or len(documents)
    results = [
        {"index": index, "document": {"text": documents[index], "multi_modal": None}, "relevance_score": near[index]}
        for index in order[:most]
    ]
    total = sum(len(query) + len(found) for found in tokens)
    usage = {"prompt_tokens": total, "total_tokens": total}
    return {"id": fresh_id("rerank-"), "model": model, "usage": usage, "results": results}


def _inputs(given: object) -> list[Sequence[int]]:
    several = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    return [_tokens(one) for one in several]


def _tokens(given: object) -> Sequence[int]:
    if isinstance(given, str):
        return token_ids(pieces_of(given))
    if isinstance(given, list) and given and all(isinstance(token, int) and token >= 0 for token in given):
        return tuple(given)
    raise wrong_field("body.input", "string_type", "Input should be a valid string", given)


def _vector(tokens: Sequence[int], size: int) -> list[float]:
    counts = [0.0] * size
    for token in tokens:
        counts[token % size] += 1.0
    length = math.sqrt(sum(count * count for count in counts)) or 1.0
    return [count / length for count in counts]


def _nearness(one: Sequence[int], other: Sequence[int]) -> float:
    pairs = zip(_vector(one, DIMENSIONS), _vector(other, DIMENSIONS), strict=True)
    return sum(left * right for left, right in pairs)


def _written(vector: Sequence[float], form: str) -> object:
    return list(vector) if form == "float" else base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _usage(tokens: int) -> Json:
    return {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0, "prompt_tokens_details": None}
