"""Manifests are judged before anything is registered; each is one ConfigMap that changes in place."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from engines.catalogue import load
from fleet.manifest import Manifest, PinnedManifest, parse
from infra.manifest_layer import manifest_layer
from infra.manifest_review import Judged
from infra.manifests import KEY, Manifests, ManifestsArgs, config_map_name
from infra.render_ground import render_ground
from sources.environment import Adopted
from tests.infra import stacks
from tests.infra.manifest_folders import advisory, facts, judge, pin_of, put, put_canary, spec, written
from tests.infra.recording import Recording, record
from tests.workloads.invented import VERSIONS, image
from workloads import NodeLocalWeights, RenderGround, SharedWeights, render


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "environments" / "prod"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "osv"


def adopted(manifest: PinnedManifest) -> Adopted:
    return Adopted(name=manifest.name, identity=manifest.identity)


def messages(found: Judged) -> str:
    return "\n".join(problem.sentence for problem in found.problems)


def test_a_manifest_with_its_pin_has_neither_problem_nor_warning(folder, data):
    put(folder, written())
    found = judge(folder, facts(data))
    assert (messages(found), found.warnings) == ("", ())
    assert [item.name for item in found.manifests] == ["chat"]


def test_an_environment_without_a_folder_wants_nothing(folder, data):
    assert judge(folder, facts(data)) == Judged((), (), ())


def test_a_new_identity_that_an_advisory_refuses_stops_with_the_violation(folder, data):
    pinned = put(folder, written())
    found = judge(folder, facts(data, advisory()))
    assert "INVENTED-1" in messages(found)
    assert pinned.identity in messages(found)
    assert str(folder / "chat.pinned.yaml") in messages(found)
    assert found.warnings == ()


def test_an_adopted_identity_that_a_newer_advisory_refuses_is_a_warning(folder, data):
    pinned = put(folder, written())
    found = judge(folder, facts(data, advisory()), adopted(pinned))
    assert messages(found) == ""
    (warning,) = found.warnings
    assert "INVENTED-1" in warning
    assert pinned.identity in warning


def test_the_policy_may_refuse_adopted_identities_as_well(folder, data):
    pinned = put(folder, written())
    found = judge(folder, facts(data, advisory(), existing_identities="refuse"), adopted(pinned))
    assert "INVENTED-1" in messages(found)
    assert found.warnings == ()


@pytest.mark.parametrize("changed", [{"name": "other"}, {"identity": "0" * 32}])
def test_only_the_adopted_name_with_its_identity_is_let_be(folder, data, changed):
    pinned = put(folder, written())
    entry = Adopted(**{"name": pinned.name, "identity": pinned.identity, **changed})
    assert "INVENTED-1" in messages(judge(folder, facts(data, advisory()), entry))


def test_what_a_manifest_itself_does_wrong_stops_adopted_ones_too(folder, data):
    wrong = written(hardware={"instance_type": "p5.48xlarge", "gpus": 4})
    pinned = put(folder, wrong)
    found = judge(folder, facts(data), adopted(pinned))
    assert "gpus-match-plan" in messages(found)


def test_malware_is_never_let_be(folder, data):
    pinned = put(folder, written())
    found = judge(folder, facts(data, advisory(id_="MAL-2030-1")), adopted(pinned))
    assert "malware" in messages(found)


def test_a_stale_pin_stops_even_an_adopted_identity(folder, data):
    stale = pin_of(written())
    pinned = put(folder, written(batch={"max_model_len": 4096}), stale)
    found = judge(folder, facts(data), adopted(pinned))
    assert "pin-stale" in messages(found)
    assert "enginehouse pin" in messages(found)


CANARY = {"engine": {"name": "sglang", "version": VERSIONS["sglang"], "image": image("sglang")}, "share": 0.02}


def stale_problems(found: Judged) -> list[str]:
    return [problem.sentence for problem in found.problems if "pin-stale" in problem.sentence]


def test_a_canary_s_pin_of_the_manifest_as_it_stands_is_not_stale(folder, data):
    source = written(canary=CANARY)
    put(folder, source)
    arm = put_canary(folder, source)
    found = judge(folder, facts(data))
    assert stale_problems(found) == []
    assert arm in found.manifests


def test_a_canary_s_pin_from_before_a_change_of_its_manifest_stops(folder, data):
    arm = put_canary_of(folder, written(canary=CANARY))
    put(folder, written(canary=CANARY, batch={"max_model_len": 4096}))
    (problem,) = stale_problems(judge(folder, facts(data)))
    assert "chat.canary.pinned.yaml" in problem
    assert arm.identity in problem


def test_a_canary_s_pin_that_was_changed_by_hand_stops(folder, data):
    source = written(canary=CANARY)
    put(folder, source)
    arm = put_canary(folder, source)
    other = arm.spec.model_copy(update={"batch": arm.spec.batch.model_copy(update={"max_model_len": 4096})})
    put_canary(folder, source, arm.model_copy(update={"spec": other}))
    (problem,) = stale_problems(judge(folder, facts(data)))
    assert "/spec/batch/max_model_len" in problem


def test_a_canary_s_pin_outlives_no_manifest_that_has_dropped_its_canary(folder, data):
    put_canary_of(folder, written(canary=CANARY))
    put(folder, written())
    assert len(stale_problems(judge(folder, facts(data)))) == 1


def put_canary_of(folder: Path, source: Manifest) -> PinnedManifest:
    folder.mkdir(parents=True)
    return put_canary(folder, source)


def test_a_written_manifest_without_a_pin_is_told(folder, data):
    put(folder, written())
    (folder / "chat.pinned.yaml").unlink()
    found = judge(folder, facts(data))
    assert "chat is not pinned: chat.pinned.yaml is missing" in messages(found)
    assert found.manifests == ()


def test_two_pins_of_one_name_are_told(folder, data):
    put(folder, written())
    (folder / "again.pinned.yaml").write_text((folder / "chat.pinned.yaml").read_text())
    assert "names are ids" in messages(judge(folder, facts(data)))


def test_a_file_that_can_t_be_read_is_told_beside_the_others(folder, data):
    put(folder, written())
    (folder / "broken.yaml").write_text("kind: [")
    (folder / "images.yaml").write_text("images: []\n")
    found = judge(folder, facts(data))
    assert [Path(problem.key).name for problem in found.problems] == ["broken.yaml"]


def recorded(*manifests: PinnedManifest) -> Recording:
    return record(lambda: Manifests("prod-manifests", ManifestsArgs(manifests, "inference")))


def test_each_manifest_is_one_config_map_under_a_fixed_name():
    one, other = pin_of(written()), pin_of(written("code"))
    recording = recorded(one, other)
    assert {item.inputs["metadata"]["name"] for item in recording.of("ConfigMap")} == {
        "manifest-chat",
        "manifest-code",
    }
    found = recording.one("ConfigMap", "prod-manifests-chat").inputs
    assert found["metadata"]["namespace"] == "inference"
    assert found["metadata"]["labels"]["enginehouse.dev/manifest"] == "chat"
    assert found["metadata"]["labels"]["enginehouse.dev/identity"] == one.identity
    assert parse(found["data"][KEY]) == one
    assert "immutable" not in found


def test_a_changed_manifest_changes_nothing_but_its_own_content():
    before = recorded(pin_of(written()), pin_of(written("code"))).of("ConfigMap")
    changed = pin_of(written(batch={"max_model_len": 4096}))
    after = recorded(changed, pin_of(written("code"))).of("ConfigMap")
    assert [item.urn for item in before] == [item.urn for item in after]
    assert [item.inputs["metadata"]["name"] for item in before] == [item.inputs["metadata"]["name"] for item in after]
    assert [one.inputs == other.inputs for one, other in zip(before, after, strict=True)] == [False, True]


def test_a_change_outside_the_identity_is_carried_too():
    before = recorded(pin_of(written())).one("ConfigMap").inputs
    after = recorded(pin_of(written(scaling={"max": 3}))).one("ConfigMap").inputs
    assert before["metadata"] == after["metadata"]
    assert before["data"] != after["data"]


def test_names_of_any_length_fit():
    assert len(config_map_name("a" * 63)) <= 63
    assert config_map_name("a" * 62 + "b") != config_map_name("a" * 62 + "c")


def layer(found: Judged, ground: RenderGround) -> Recording:
    return record(lambda: manifest_layer("prod", found, load(), ground, pulumi.ResourceOptions()))


def test_warnings_are_said_aloud():
    recording = layer(Judged((pin_of(written()),), (), ("chat runs on",)), RenderGround())
    assert ("warning", "chat runs on") in recording.messages


def several_nodes() -> PinnedManifest:
    """What nothing turns into pods."""
    hardware = {"instance_type": "p5.48xlarge", "gpus": 16}
    return pin_of(written(hardware=hardware, parallelism={"tensor": 8, "pipeline": 2}))


def test_what_has_no_pods_yet_is_carried_and_said():
    recording = layer(Judged((several_nodes(),), (), ()), RenderGround())
    assert len(recording.of("ConfigMap")) == 1
    ((severity, text),) = recording.messages
    assert severity == "warning"
    assert text.startswith("no pods yet: chat: ")
    assert "spans 2 p5.48xlarge" in text


def test_what_is_adopted_is_not_said_to_wait_for_its_first_pods():
    recording = layer(Judged((several_nodes(),), (), (), frozenset({"chat"})), RenderGround())
    ((_, text),) = recording.messages
    assert text.startswith("it is adopted, and no pods can be made of it any more: chat: ")


def test_a_hosted_engine_is_carried_without_a_word():
    hosted = {"name": "groq", "endpoint": "https://invented.invalid", "api_key_ref": "groq", "model": "invented"}
    parts: dict[str, Any] = spec(engine=None, hosted=hosted, batch=None, hardware=None, parallelism=None)
    source = written(**{**dict.fromkeys(spec(), None), **parts})
    recording = layer(Judged((pin_of(source),), (), ()), RenderGround())
    assert len(recording.of("ConfigMap")) == 1
    assert recording.messages == ()


def test_only_deployments_of_the_program_get_a_scaler_here():
    own = pin_of(written("own", scaling={"max": 3, "managed_by": "pulumi"}))
    other = pin_of(written("other", scaling={"max": 3}))
    fixed = pin_of(written("fixed", scaling={"managed_by": "pulumi"}))
    recording = layer(Judged((own, other, fixed), (), ()), RenderGround())
    (scaler,) = recording.of("keda.sh/v1alpha1:ScaledObject") or recording.of("ScaledObject")
    assert scaler.inputs["metadata"]["name"] == "own"


def test_the_ground_of_a_stack_is_its_pools_and_its_file_system():
    config = stacks.stack(pools=[stacks.L4, stacks.H100], weights=stacks.LUSTRE)
    ground = render_ground(config, {})
    assert [pool.name for pool in ground.pools] == ["l4", "h100"]
    assert ground.weights == SharedWeights("weights", "/weights", 4800 / 1024 * 250)
    assert render_ground(stacks.stack(weights=stacks.NODE_LOCAL), {}).weights == NodeLocalWeights()


def test_pods_on_pools_that_hand_out_claims_ask_by_claim():
    claims = stacks.pool(name="dra", instance_type="p5.48xlarge", allocation="dra")
    ground = render_ground(stacks.stack(pools=[claims]), {})
    assert "ResourceClaimTemplate" in {item["kind"] for item in render(pin_of(written()), load(), ground)}


def test_what_copies_weights_is_the_stack_s():
    weights = {"kind": "node-local", "copy_image": image("aws-cli")}
    ground = render_ground(stacks.stack(weights=weights), {})
    assert ground.weights == NodeLocalWeights("weights", image("aws-cli"))


def test_what_is_registered_is_what_will_be_adopted():
    one, made = pin_of(written()), []
    record(lambda: made.append(Manifests("prod-manifests", ManifestsArgs((one,), "inference"))))
    assert made[0].identities == {"chat": one.identity}
