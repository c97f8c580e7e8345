"""Each mistake in a pod is one finding, and a pod as the house makes it has none."""

from dataclasses import replace

import pytest

from fleet.cloud import objects
from fleet.cloud.labels import GPU_RESOURCE, SHARED_GPU_RESOURCE, gpu_resource, mig_resource
from fleet.cloud.objects import PodContainer, PodOwner, object_findings
from fleet.hardware import gpu
from fleet.sharing import SharingWay

ENGINE = PodContainer(
    name="engine",
    image="invented.invalid/vllm@sha256:" + "1" * 64,
    requests={"memory": "1Gi", GPU_RESOURCE: "1"},
    limits={"memory": "1Gi", GPU_RESOURCE: "1"},
    has_startup_probe=True,
    has_readiness_probe=True,
    may_gain_rights=False,
    drops_all_capabilities=True,
    is_not_root=True,
    has_seccomp=True,
    has_read_only_root=True,
    environment=dict.fromkeys(("HOME", "HF_HUB_CACHE", "TOKENIZERS_PARALLELISM", "PAD_TOKEN"), "x"),
)
GOOD = PodOwner("inference/Deployment/chat", (ENGINE,), gpus=(gpu("H100"),), sharing=SharingWay.EXCLUSIVE)


def asking(resource: str, **changes: object) -> PodOwner:
    taken = {"memory": "1Gi", resource: "1"}
    return replace(GOOD, containers=(replace(ENGINE, requests=taken, limits=taken),), **changes)


def with_container(**changes: object) -> PodOwner:
    return replace(GOOD, containers=(replace(ENGINE, **changes),))


def rules(owner: PodOwner) -> list[str]:
    return [item.rule.id for item in object_findings(owner)]


MISTAKES = {
    "image-digest": with_container(image="vllm/vllm-openai:v0.33.0"),
    "efa-single-node": asking("vpc.amazonaws.com/efa"),
    "mig-on-gpu-without": asking(mig_resource("1g.10gb"), gpus=(gpu("L4"),)),
    "gpu-isolation": replace(GOOD, sharing=SharingWay.TIME_SLICING, needs_isolation=True),
    "pod-probes": with_container(has_startup_probe=False),
    "pod-limits": with_container(limits={GPU_RESOURCE: "1"}),
    "pod-privileged": with_container(is_privileged=True),
    "pod-root": with_container(is_not_root=False),
    "pod-seccomp": with_container(has_seccomp=False),
    "pod-host-access": replace(GOOD, host_paths=("/dev",)),
    "pod-writable-root": with_container(has_read_only_root=False),
    "pod-plain-secret": with_container(environment={"HF_TOKEN": "x"}),
}


def test_a_pod_as_the_house_makes_it_has_no_finding() -> None:
    assert rules(GOOD) == []


@pytest.mark.parametrize("rule", MISTAKES)
def test_each_mistake_is_found_and_no_other(rule: str) -> None:
    assert rules(MISTAKES[rule]) == [rule]


def test_every_rule_has_its_mistake() -> None:
    assert set(MISTAKES) == {rule.id for rule in objects.RULES}


@pytest.mark.parametrize(
    "image",
    ["", "vllm", "vllm:latest", "vllm@sha256:1234", "vllm@sha256:" + "g" * 64, "a:1@sha512:" + "1" * 64],
)
def test_only_a_whole_digest_is_one(image: str) -> None:
    assert rules(with_container(image=image)) == ["image-digest"]


def test_efa_is_for_replicas_over_several_nodes() -> None:
    assert rules(asking("vpc.amazonaws.com/efa", nodes=2)) == []


@pytest.mark.parametrize(
    ("profile", "expected"), [("1g.10gb", []), ("1g.10gb+me", []), ("9g.99gb", ["mig-on-gpu-without"])]
)
def test_a_mig_profile_has_to_be_one_of_the_gpu(profile: str, expected: list[str]) -> None:
    assert rules(asking(mig_resource(profile))) == expected


def test_a_gpu_that_nobody_knows_is_not_judged() -> None:
    assert rules(asking(mig_resource("1g.10gb"), gpus=())) == []


@pytest.mark.parametrize("way", list(SharingWay))
def test_isolation_is_kept_by_hardware_alone(way: SharingWay) -> None:
    found = rules(replace(GOOD, sharing=way, needs_isolation=True))
    assert found == (["gpu-isolation"] if way in (SharingWay.MPS, SharingWay.TIME_SLICING) else [])
    assert rules(replace(GOOD, sharing=way)) == []


def test_the_name_of_a_shared_gpu_says_it_as_well() -> None:
    assert rules(asking(SHARED_GPU_RESOURCE, sharing=None, needs_isolation=True)) == ["gpu-isolation"]


def test_a_container_that_only_prepares_needs_no_probes() -> None:
    first = replace(ENGINE, is_initial=True, has_startup_probe=False, has_readiness_probe=False)
    assert rules(replace(GOOD, containers=(first, ENGINE))) == []


def test_what_kubernetes_does_when_nothing_is_said_is_found() -> None:
    bare = PodOwner("default/Pod/bare", (PodContainer("one", "busybox"),))
    expected = {"image-digest", "pod-limits", "pod-privileged", "pod-root", "pod-seccomp", "pod-writable-root"}
    assert set(rules(bare)) == expected


def test_every_finding_says_which_container_and_what_would_be_right() -> None:
    for rule, owner in MISTAKES.items():
        (found,) = object_findings(owner)
        assert GOOD.id in found.message, rule
        assert found.sentence.endswith(found.remedy or found.rule.remedy)


@pytest.mark.parametrize(
    ("way", "profile", "resource"),
    [
        (SharingWay.EXCLUSIVE, None, "nvidia.com/gpu"),
        (SharingWay.MPS, None, "nvidia.com/gpu.shared"),
        (SharingWay.TIME_SLICING, None, "nvidia.com/gpu.shared"),
        (SharingWay.MIG, "3g.40gb", "nvidia.com/mig-3g.40gb"),
        (SharingWay.MIG, "1g.10gb+me", "nvidia.com/mig-1g.10gb.me"),
    ],
)
def test_what_pods_ask_for(way: SharingWay, profile: str | None, resource: str) -> None:
    assert gpu_resource(way, profile) == resource


@pytest.mark.parametrize("way", [SharingWay.MIG, SharingWay.DYNAMIC_SLICES])
def test_slices_without_a_profile_have_no_name(way: SharingWay) -> None:
    with pytest.raises(ValueError, match=way.value):
        gpu_resource(way)
