"""Manifests in ConfigMaps: reviewed by the rules of the fleet, with the facts of the environment and of the day."""

import json
import shutil
from pathlib import Path

import pytest

from fleet.manifest import dump
from tests.infra.manifest_folders import advisory
from tests.infra.stacks import PROD
from tests.policies.edited import Program, program
from tests.policies.faults_of_workloads import config_map, manifest
from tests.policies.pack_server import pack_server


@pytest.fixture
def own_checkout(pack_checkout, tmp_path) -> Path:
    """A checkout to write into."""
    shutil.copytree(pack_checkout, tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture(scope="module")
def with_manifest() -> Program:
    changed = program()
    config_map(dump(manifest()))(changed)
    return changed


def said_in(checkout: Path, changed: Program, **image):
    """What the pack of a checkout says about the changed resources; ``image`` = fields of the pools' image."""
    pools = [pool.model_copy(update={"image": pool.image.model_copy(update=image)}) for pool in PROD.pools]
    stack = PROD.model_copy(update={"pools": tuple(pools)}).model_dump(mode="json", exclude_none=True)
    with pack_server("prod", pack=checkout / "policies", stack_config=stack, data=["data"]) as server:
        return server.review_each(changed.changed, among=changed.resources)


def affected(checkout: Path) -> None:
    """From now on an advisory affects every version of the engine."""
    (checkout / "data" / "news.json").write_text(json.dumps(advisory(id_="INVENTED-2")), encoding="utf-8")


def test_a_new_identity_that_an_advisory_affects_is_refused(own_checkout, with_manifest):
    affected(own_checkout)
    refused = [item for item in said_in(own_checkout, with_manifest) if item.policy == "manifest-refused"]
    assert refused
    assert all(item.level == "mandatory" for item in refused)
    assert any("INVENTED-2" in item.message and manifest().identity in item.message for item in refused)


def test_an_identity_that_runs_by_a_reviewed_decision_is_a_warning(own_checkout, with_manifest):
    affected(own_checkout)
    adopted = {"adopted": [{"name": "chat", "identity": manifest().identity}]}
    (own_checkout / "environments" / "prod" / "adopted.yaml").write_text(json.dumps(adopted), encoding="utf-8")
    said = said_in(own_checkout, with_manifest)
    assert {(item.policy, item.level) for item in said} == {("manifest-advised", "advisory")}
    assert any("INVENTED-2" in item.message for item in said)


def test_an_image_with_a_newer_cuda_than_the_driver_takes_is_refused(own_checkout, with_manifest):
    said = said_in(own_checkout, with_manifest, driver="550.1")
    assert {item.policy for item in said} == {"cuda-driver"}
    assert "CUDA 13.0, which needs driver 580 or newer; the node has 550.1" in said[0].message
    assert said_in(own_checkout, with_manifest, driver="580.1") == []
    assert said_in(own_checkout, with_manifest, driver=None) == []


def test_a_config_map_of_somebody_else_is_left_alone(pack_of):
    changed = program()
    changed.add(
        "kubernetes:core/v1:ConfigMap", "other", {"metadata": {"name": "other"}, "data": {"manifest.yaml": "x"}}
    )
    assert pack_of("prod").review_each(changed.changed, among=changed.resources) == []
