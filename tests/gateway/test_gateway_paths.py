"""Only an exact public path is a path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.envoy_routes import route_configuration
from gateway.paths import CHAT_SOCKET_PATH, ENGINE_PATHS, MODELS_PATH, REALTIME_PATH, Operation, public_path

PIECES = st.sampled_from(
    [
        "/",
        "//",
        ".",
        "..",
        "%2e",
        "%2F",
        "%5c",
        "\\",
        ";",
        "?",
        "#",
        "%00",
        " ",
        "v1",
        "V1",
        "chat",
        "completions",
        "embeddings",
        "models",
        "responses",
        "messages",
        "count_tokens",
        "rerank",
        "audio/transcriptions",
        "tokenize",
        "metrics",
        "%6detrics",
        "update_weights",
        "é",
        "a",
        "http://x",
    ]
)
TARGETS = st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=60))


@given(TARGETS)
def test_an_engine_is_reached_by_an_exact_path_or_not_at_all(target):
    path = public_path(target)
    if path is not None and path.operation is not Operation.MODELS and not path.is_socket:
        assert target.split("?")[0] in ENGINE_PATHS


@given(TARGETS)
def test_models_are_asked_for_below_their_own_path(target):
    path = public_path(target)
    if path is not None and path.operation is Operation.MODELS:
        assert target.startswith(MODELS_PATH)
        assert path.method == "GET"


@pytest.mark.parametrize("path", [*ENGINE_PATHS, MODELS_PATH, f"{MODELS_PATH}/Qwen/Qwen3-32B"])
def test_public_paths_are_known_with_and_without_a_query(path):
    assert public_path(path) == public_path(f"{path}?api-version=1")
    assert public_path(path) is not None


@pytest.mark.parametrize(
    "target",
    [
        "",
        "/",
        "/metrics",
        "//metrics",
        "/%6detrics",
        "/v1/../metrics",
        "/v1/models/",
        "/v1/chat/completions/",
        "//v1/chat/completions",
        "/v1/chat%2fcompletions",
        "/v1/./models",
        "/v1/chat/completions#x",
        "*",
        "/detokenize",
        "/v1/chat/completions/render",
        "/v1/chat/completions/batch",
        "/v1/responses/resp_1",
        "/v1/responses/resp_1/cancel",
        "/v1/messages/batches",
        "/v1/messages/count_tokens/",
        "/rerank",
        "/v2/rerank",
        "/v1/audio/translations",
        "/v1/load_lora_adapter",
        "/update_weights",
        "/invocations",
        "/pooling",
        "/generative_scoring",
        "/scale_elastic_ep",
        "/v1/tokenize",
        "/tokenize/",
        "/Tokenize",
    ],
)
def test_everything_else_is_unknown(target):
    assert public_path(target) is None


@pytest.mark.parametrize(
    ("query", "model"),
    [
        ("", ""),
        ("?model=a", "a"),
        ("?intent=x&model=org%2Fa%20b", "org/a b"),
        ("?model=a&model=b", ""),
        ("?mode%6c=a", "a"),
        ("?model", ""),
        ("?model=%ff", "\ufffd"),
    ],
)
def test_a_websocket_of_an_engine_names_one_model(query, model):
    found = public_path(f"{REALTIME_PATH}{query}")
    assert (found.is_socket, found.method, found.model) == (True, "GET", model)
    assert public_path(f"{REALTIME_PATH}/{query}") is None


def test_a_websocket_of_chats_names_none():
    found = public_path(f"{CHAT_SOCKET_PATH}?model=a")
    assert (found.is_socket, found.method, found.model) == (True, "GET", None)


def test_a_model_in_the_path_is_decoded():
    assert public_path("/v1/models/Qwen%2FQwen3").model == "Qwen/Qwen3"


def test_envoy_and_the_core_have_the_same_paths():
    routes = route_configuration()["virtual_hosts"][0]["routes"]
    to_engines = {route["match"]["path"] for route in routes if route.get("route", {}).get("cluster") == "guard"}
    assert to_engines == set(ENGINE_PATHS)
    assert routes[-1]["direct_response"]["status"] == 404
