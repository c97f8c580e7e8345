"""What holds of every manifest that is rendered."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.catalogue import load
from fleet.cloud.definitions import Bundle, bundle_findings
from fleet.cloud.labels import DEPLOYMENT_LABEL, IDENTITY_LABEL
from fleet.cloud.objects import object_findings
from fleet.cloud.scaling import owner_findings, scaler_findings
from fleet.manifest import PinnedManifest, dump, parse
from fleet.spec import Scaling
from tests.workloads.invented import image, pinned
from workloads import NodeLocalWeights, RenderGround, SharedWeights, reading, render
from workloads.pod_reading import pod_owners

CATALOGUE = load()
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
LABELS = st.dictionaries(
    st.sampled_from(["team", "acme.dev/cost", "enginehouse.dev/identity", "app.kubernetes.io/name"]),
    st.sampled_from(["support", "", "other"]),
)
SCALINGS = st.builds(
    lambda low, more, idle, schedule, by: {
        "min": low,
        "max": max(1, low + more),
        "idle": idle,
        "schedule": [{"cron": "0 8 * * 1-5", "min": min(low, 1)}] if schedule else [],
        "managed_by": by,
    },
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from(["never", "scale-to-zero"]),
    st.booleans(),
    st.sampled_from([None, "pulumi"]),
)
ENGINES = st.sampled_from(["vllm", "sglang", "tensorrt-llm"])
PLACES = st.sampled_from(
    [
        {"hardware": {"instance_type": "p5.48xlarge", "gpus": 2}, "parallelism": {"tensor": 2}},
        {
            "hardware": {"instance_type": "p5.48xlarge", "gpus": 8, "purchase": "capacity-block"},
            "parallelism": {"tensor": 8},
        },
        {"hardware": {"instance_type": "g6.xlarge", "gpus": 1}, "parallelism": {}},
        {"hardware": {"instance_type": "g6f.large", "gpus": 1}, "parallelism": {}},
        {
            "hardware": {"instance_type": "g6.xlarge", "gpus": 1, "sharing": "time-slicing", "memory_share": 0.4},
            "parallelism": {},
        },
    ]
)
SERVED = st.sampled_from([None, "chat", 'quo"ted \\ {name}', "größe/32b"])
COPIED = NodeLocalWeights(copy_image=image("aws-cli"))
GROUNDS = st.builds(
    RenderGround,
    namespace=st.sampled_from(["inference", "prod"]),
    weights=st.sampled_from(
        [SharedWeights(), SharedWeights("models", "", 4800.0), COPIED, NodeLocalWeights("elsewhere", image("aws-cli"))]
    ),
)


@st.composite
def manifests(draw: st.DrawFn) -> PinnedManifest:
    return pinned(
        draw(NAMES),
        draw(ENGINES),
        draw(LABELS),
        served_name=draw(SERVED),
        scaling=draw(SCALINGS),
        **draw(PLACES),
    )


def plain(objects: object) -> str:
    return json.dumps(objects, sort_keys=False)


def names(found: Any) -> Iterator[str]:
    for item in found:
        yield item["metadata"]["name"]
        yield item["metadata"]["namespace"]


@given(manifests(), GROUNDS)
def test_rendering_is_a_function_of_the_manifest(manifest: PinnedManifest, ground: RenderGround) -> None:
    again = parse(dump(manifest))
    assert isinstance(again, PinnedManifest)
    assert plain(render(manifest, CATALOGUE, ground)) == plain(render(again, CATALOGUE, ground))


@given(manifests(), GROUNDS)
def test_what_is_rendered_breaks_no_rule(manifest: PinnedManifest, ground: RenderGround) -> None:
    objects = render(manifest, CATALOGUE, ground)
    engine = manifest.spec.engine
    assert engine is not None
    assert engine.name is not None
    dialect = CATALOGUE.metrics(engine.name, engine.version or "", engine.front)
    for item in objects:
        assert [found for owner in pod_owners(item, ground.pools) for found in object_findings(owner)] == []
        scaler = reading.scaler(item, [dialect])
        assert scaler is None or list(scaler_findings(scaler)) == []
    workloads = [found for item in objects if (found := reading.workload(item))]
    claims = [found for item in objects if (found := reading.claim(item))]
    assert list(owner_findings(workloads, claims)) == []
    used = frozenset(f"{item['apiVersion'].partition('/')[0]}/{item['kind']}" for item in objects)
    assert list(bundle_findings(Bundle("rendered", frozenset(), used))) == []


@given(manifests(), GROUNDS)
def test_names_are_dns_labels_and_no_two_objects_are_one(manifest: PinnedManifest, ground: RenderGround) -> None:
    objects = render(manifest, CATALOGUE, ground)
    assert all(DNS_LABEL.fullmatch(name) for name in names(objects))
    assert len({(item["kind"], item["metadata"]["name"]) for item in objects}) == len(objects)


@given(manifests(), GROUNDS)
def test_every_object_and_pod_carries_the_identity_of_the_pin(manifest: PinnedManifest, ground: RenderGround) -> None:
    for item in render(manifest, CATALOGUE, ground):
        labels = [item["metadata"]["labels"]]
        if item["kind"] == "Deployment":
            labels.append(item["spec"]["template"]["metadata"]["labels"])
            assert item["spec"]["selector"]["matchLabels"].items() <= labels[-1].items()
            assert IDENTITY_LABEL not in item["spec"]["selector"]["matchLabels"]
        for found in labels:
            assert found[IDENTITY_LABEL] == manifest.identity
            assert found[DEPLOYMENT_LABEL] == manifest.name
            assert all(len(value) <= 63 for value in found.values())


@given(manifests(), SCALINGS, LABELS, st.sampled_from(["shared", "hardware"]))
def test_what_is_no_part_of_the_identity_starts_no_engine_anew(
    manifest: PinnedManifest, scaling: dict[str, Any], labels: dict[str, str], isolation: str
) -> None:
    spec = manifest.spec.model_copy(
        update={
            "scaling": Scaling.model_validate(scaling),
            "access": manifest.spec.access.model_copy(update={"tenants": ("acme",), "isolation": isolation}),
        }
    )
    metadata = manifest.metadata.model_copy(update={"labels": labels})
    other = manifest.model_copy(update={"spec": spec, "metadata": metadata})
    assert template(other) == template(manifest)


@given(manifests())
def test_replicas_have_one_owner(manifest: PinnedManifest) -> None:
    objects = {item["kind"]: item for item in render(manifest, CATALOGUE)}
    scaling = manifest.spec.scaling
    replicas = objects["Deployment"]["spec"].get("replicas")
    if scaling.managed_by == "pulumi":
        assert "ScaledObject" not in objects
    elif replicas is None:
        assert objects["ScaledObject"]["spec"]["scaleTargetRef"]["name"] == manifest.name
    else:
        assert "ScaledObject" not in objects
        assert replicas == max(1, scaling.min) == max(1, scaling.max)


@given(manifests(), GROUNDS)
def test_nothing_rendered_asks_for_efa_or_holds_a_secret(manifest: PinnedManifest, ground: RenderGround) -> None:
    text = plain(render(manifest, CATALOGUE, ground))
    assert "vpc.amazonaws.com/efa" not in text
    for item in render(manifest, CATALOGUE, ground):
        assert item["kind"] != "Secret"
    assert "secretKeyRef" not in text
    assert "HF_TOKEN" not in text


def template(manifest: PinnedManifest) -> object:
    (found,) = (item for item in render(manifest, CATALOGUE) if item["kind"] == "Deployment")
    return found["spec"]["template"]


@pytest.mark.parametrize("length", [1, 54, 55, 63])
def test_long_names_stay_apart(length: int, make) -> None:
    from workloads.names import fitted, scaler_name

    one, other = "a" * (length - 1) + "b", "a" * (length - 1) + "c"
    assert scaler_name(one) != scaler_name(other)
    assert len(scaler_name(one)) <= 54
    assert fitted(f"{one}-files") != fitted(f"{other}-files")
