"""The description of the API: committed as it is, and held against the running app by schemathesis with all checks."""

import json
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig as Config

from control_plane.api.application import application
from control_plane.records import Scope

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.json"
OPERATIONS = {
    (method.upper(), path): operation
    for path, methods in json.loads(COMMITTED.read_text(encoding="utf-8"))["paths"].items()
    for method, operation in methods.items()
}


def cases():
    """Valid requests for every route, and invalid ones where a request can be invalid at all."""
    for (method, path), operation in OPERATIONS.items():
        yield GenerationMode.POSITIVE, method, path
        places = {parameter["in"] for parameter in operation.get("parameters", [])}
        if places - {"header"} or "requestBody" in operation:
            yield GenerationMode.NEGATIVE, method, path


EXAMPLES = 8
REFUSABLE = ["2xx", "3xx", "400", "401", "403", "404", "409", "412", "422", "428", "503"]
"""A request can fit the description and be refused all the same: by a rule, a page token or an ETag of another day."""


@pytest.fixture(scope="module")
def api_world(tmp_path_factory, module_world):
    """A world with one of everything, so that reading finds something."""
    world = module_world(tmp_path_factory.mktemp("schema"))
    world.put(world.pinned("a"))
    world.call("PUT", "/v1/tenants/a", json={"metadata": {"name": "a"}})
    world.call("POST", "/v1/keys", json={"tenant": "a", "name": "a"})
    return world


@pytest.fixture(scope="module")
def api_schema(api_world):
    app = application(api_world.assembly.house)
    config = Config.from_dict(
        {
            "checks": {
                "positive_data_acceptance": {"expected-statuses": REFUSABLE},
                "negative_data_rejection": {
                    "expected-statuses": ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "428"]
                },
            }
        }
    )
    return schemathesis.openapi.from_asgi("/openapi.json", app, config=config)


@pytest.mark.parametrize(("mode", "method", "path"), list(cases()))
def test_every_route_keeps_its_description(api_schema, api_world, method, path, mode):
    headers = api_world.as_(Scope.GATEWAY if path.startswith("/v1/gateway/") else Scope.SECURITY_ADMIN)

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(case=api_schema[path][method].as_strategy(generation_mode=mode, headers=headers))
    def holds(case):
        if mode.is_positive and "wait_seconds" in (case.query or {}):
            case.query = {**case.query, "wait_seconds": 0}
        case.call_and_validate(headers=headers)

    holds()


def test_every_operation_is_named_by_its_function_tagged_and_lists_its_problems():
    paths = json.loads(COMMITTED.read_text(encoding="utf-8"))["paths"]
    operations = [(path, operation) for path, methods in paths.items() for operation in methods.values()]
    names = [operation["operationId"] for _, operation in operations]
    assert len(set(names)) == len(names)
    for path, operation in operations:
        assert operation["operationId"].isidentifier()
        assert len(operation["tags"]) == 1
        if path.startswith("/v1/"):
            assert {"401", "403", "422", "503"} <= operation["responses"].keys()
            assert operation["security"]
            for status, answer in operation["responses"].items():
                if status[0] in "45":
                    assert "application/problem+json" in answer["content"]
