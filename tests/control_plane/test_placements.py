"""Placements over the API: the same choice as the kernel's, nothing stored, and every wrong body told what is wrong."""

import json
from importlib.resources import files

import pytest

from control_plane.records import Scope
from control_plane.services.placements import MAX_ALTERNATIVES
from fleet.manifest import Manifest
from fleet.placement import choose
from fleet.placement.document import choice_document

PATH = "/v1/placements"
CONFIG = json.loads(files("fleet").joinpath("data", "models", "Qwen--Qwen3-8B.json").read_text(encoding="utf-8"))


def written(model: dict | None = None, **spec) -> dict:
    """A manifest with everything but model and workload open."""
    whole = {"workload": "chat", "model": {"id": "Qwen/Qwen3-8B", "revision": "0" * 40, **(model or {})}, **spec}
    return {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "InferenceDeployment",
        "metadata": {"name": "chat"},
        "spec": whole,
    }


def place(world, manifest: dict, **more):
    return world.call("POST", PATH, scope=Scope.READER, json={"manifest": manifest, **more})


def test_a_placement_is_the_kernels_own_choice_and_names_its_facts(world):
    answer = place(world, written())
    facts = world.assembly.house.facts.current()
    expected = choice_document(choose(Manifest.model_validate(written()), facts, world.assembly.house.facts.catalogue))
    found = answer.json()
    assert answer.status_code == 200
    assert {key: found[key] for key in expected} == json.loads(json.dumps(expected))
    assert (found["kind"], found["name"]) == ("Placement", "chat")
    assert found["facts"] == {"digest": facts.digest, "as_of": facts.as_of}
    chosen = found["choice"]
    assert chosen["plan"]["gpus"] == found["pinned"]["spec"]["hardware"]["gpus"]
    assert chosen["total"] == pytest.approx(
        sum(item["weight"] * item["value"] for item in chosen["scores"])
        / sum(item["weight"] for item in chosen["scores"])
    )


def test_nothing_is_stored_by_a_placement(world):
    before = world.get("/v1/audit-events:head").json()
    assert place(world, written()).status_code == 200
    assert world.get("/v1/deployments").json()["items"] == []
    assert world.get("/v1/audit-events:head").json() == before


def test_a_manifest_that_fits_nowhere_is_an_answer_with_reasons_and_what_would_fit(world):
    hardware = {"instance_type": "g6.xlarge", "gpus": 1}
    found = place(world, written({"id": "meta-llama/Meta-Llama-3.1-405B"}, hardware=hardware)).json()
    assert found["choice"] is None
    assert found["pinned"] is None
    memory = next(item for item in found["rejections"] if item["rule"] == "memory")
    assert memory["instance_type"] == "g6.xlarge"
    assert memory["evidence"]["weights_bytes"] > memory["evidence"]["visible_bytes"]


def test_a_configuration_without_what_is_needed_leaves_fitting_unknown_and_names_the_key(world):
    shallow = {key: value for key, value in CONFIG.items() if key != "num_hidden_layers"}
    found = place(world, written(), model_config=shallow).json()
    assert found["choice"] is None
    unknown = [item for item in found["rejections"] if item["rule"] == "unknown"]
    assert unknown
    assert all("num_hidden_layers" in item["reason"] for item in unknown)


def test_a_manifest_that_a_rule_refuses_is_an_answer_too(world):
    world.publish(world.record("CVE-2030-1", package="vllm", severity="critical"))
    found = place(world, written(engine={"name": "vllm"}))
    assert found.status_code == 200
    assert found.json()["choice"] is None
    assert found.json()["rejections"][0]["rule"] == "advisory-affected"


def test_a_configuration_that_the_request_brings_counts_for_that_request_alone(world):
    unknown = written({"id": "example/unknown"})
    before = place(world, unknown).json()
    found = place(world, unknown, model_config=CONFIG).json()
    assert before["choice"]["plan"] is None
    assert "example/unknown" in before["notes"][0]
    assert found["choice"]["plan"]["gpus"] == 1
    assert found["facts"]["digest"] != before["facts"]["digest"]
    assert place(world, unknown).json() == before


def test_a_configuration_before_the_catalogues_own_changes_what_fits(world):
    larger = {**CONFIG, "num_hidden_layers": 360}
    small = place(world, written()).json()["choice"]
    large = place(world, written(), model_config=larger).json()["choice"]
    assert large["plan"]["gpus"] > small["plan"]["gpus"]
    assert place(world, written()).json()["choice"] == small


def smaller(name: str) -> dict[str, str]:
    return {"id": f"invented/{name}", "kind": "smaller"}


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({}, "/manifest", "missing"),
        ({"manifest": []}, "/manifest", "mapping"),
        ({"manifest": {}}, "/manifest/metadata", "missing"),
        ({"manifest": written(), "config": {}}, "/config", "unknown field"),
        ({"manifest": written(), "model_config": []}, "/model_config", "mapping"),
        ({"manifest": written(), "model_config": {**CONFIG, "hidden_size": -1}}, "/model_config/hidden_size", "-1"),
        ({"manifest": written(enginee={})}, "/manifest/spec/enginee", "did you mean 'engine'"),
        (
            {"manifest": written({"alternatives": [smaller(str(number)) for number in range(MAX_ALTERNATIVES + 1)]})},
            "/manifest/spec/model/alternatives",
            f"{MAX_ALTERNATIVES} at most",
        ),
        (
            {"manifest": written({"alternatives": [smaller("a"), smaller("b"), smaller("a")]})},
            "/manifest/spec/model/alternatives/2",
            "listed already",
        ),
    ],
)
def test_a_body_that_can_not_be_read_is_refused_with_a_pointer(world, body, pointer, words):
    answer = world.call("POST", PATH, scope=Scope.READER, json=body)
    assert answer.status_code == 422, answer.text
    assert pointer in [item["pointer"] for item in answer.json()["errors"]]
    assert words in answer.json()["detail"]


def test_a_pinned_manifest_is_not_placed_again(world):
    answer = place(world, world.pinned())
    assert answer.status_code == 422
    assert "/manifest/kind" in [item["pointer"] for item in answer.json()["errors"]]
