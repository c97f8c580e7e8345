"""Without a file system: engines stream out of the bucket, or find their weights copied, or are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.invented import REVISION, image, pinned
from workloads import NodeLocalWeights, Reason, RenderGround, RenderRefused, SharedWeights, render
from workloads.container import PORT
from workloads.placement import place_of
from workloads.start import start_time
from workloads.weights import DISK_MARGIN, delivery_of

HOST = "0.0.0.0"  # noqa: S104 - what a pod binds to
SNAPSHOT = f"hub/models--Qwen--Qwen3-32B/snapshots/{REVISION}"
STREAMED = RenderGround(weights=NodeLocalWeights())
COPIED = RenderGround(weights=NodeLocalWeights(copy_image=image("aws-cli")))
STREAMS = ("vllm", "sglang")
FILES_ONLY = ("lmdeploy", "tensorrt-llm")


def pod(objects):
    return objects["Deployment"]["spec"]["template"]["spec"]


def engine(objects):
    (found,) = pod(objects)["containers"]
    return found


def environment(container):
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


def of_map(key, name="weights"):
    return {"configMapKeyRef": {"name": name, "key": key}}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("ground", [STREAMED, COPIED], ids=["nothing copies", "something copies"])
def test_an_engine_that_streams_is_told_the_folder_of_the_pinned_revision(make, objects, catalogue, name, ground):
    manifest = make("chat", name)
    found = objects(manifest, ground)
    uri = f"s3://$(WEIGHTS_BUCKET)/{SNAPSHOT}"
    expected = catalogue.command_line(manifest, host=HOST, port=PORT, weights_uri=uri)
    assert (*engine(found)["command"], *engine(found)["args"]) == expected.argv
    assert uri in expected.argv
    assert "initContainers" not in pod(found)
    assert "ephemeral-storage" not in engine(found)["resources"]["requests"]


@given(st.sampled_from(STREAMS), st.sampled_from(["weights", "elsewhere"]))
def test_the_bucket_s_name_is_the_cluster_s_and_kubernetes_finds_it(catalogue, name, config_map):
    ground = RenderGround(weights=NodeLocalWeights(config_map))
    found = {item["kind"]: item for item in render(pinned("chat", name), catalogue, ground)}
    told = environment(engine(found))
    assert told["WEIGHTS_BUCKET"] == of_map("bucket", config_map)
    assert told["AWS_DEFAULT_REGION"] == of_map("region", config_map)
    assert "$(WEIGHTS_BUCKET)" in " ".join(engine(found)["args"])


def test_an_engine_that_streams_is_not_offline_and_has_no_keys(make, objects):
    told = environment(engine(objects(make(), STREAMED)))
    assert not {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} & told.keys()
    assert not any("KEY" in key or "TOKEN" in key for key in told)


@pytest.mark.parametrize("name", FILES_ONLY)
def test_an_engine_that_finds_files_alone_gets_them_copied_before_it_starts(make, objects, catalogue, name):
    manifest = make("chat", name, model={"id": "Qwen/Qwen3-32B", "revision": REVISION})
    found = objects(manifest, COPIED)
    (copy,) = pod(found)["initContainers"]
    assert copy["image"] == image("aws-cli")
    source, target = copy["args"][-2:]
    assert source == f"s3://$(WEIGHTS_BUCKET)/{SNAPSHOT}/"
    told = environment(engine(found))
    assert target == f"{told['HF_HUB_CACHE']}/{SNAPSHOT.removeprefix('hub/')}/"
    assert told["HF_HUB_OFFLINE"] == "1"
    assert "WEIGHTS_BUCKET" not in told
    assert environment(copy)["WEIGHTS_BUCKET"] == of_map("bucket")
    expected = catalogue.command_line(manifest, host=HOST, port=PORT)
    assert (*engine(found)["command"], *engine(found)["args"]) == expected.argv


@pytest.mark.parametrize("name", FILES_ONLY)
def test_copied_weights_stand_on_a_volume_of_the_node_with_room_kept_for_them(make, objects, name):
    manifest = make("chat", name, model={"id": "Qwen/Qwen3-32B", "revision": REVISION})
    found = objects(manifest, COPIED)
    (volume,) = (item for item in pod(found)["volumes"] if item["name"] == "weights")
    assert volume == {"name": "weights", "emptyDir": {}}
    kept = int(engine(found)["resources"]["requests"]["ephemeral-storage"].removesuffix("Mi")) * 2**20
    size = start_time(manifest, place_of(manifest, COPIED), COPIED).disk_bytes
    assert size is not None
    assert size * DISK_MARGIN <= kept < size * DISK_MARGIN + 2**20
    assert 60e9 < size < 70e9, "32 billion parameters of 16 bits"


def test_room_is_kept_for_the_checkpoint_as_it_is_and_not_as_it_is_loaded(make):
    whole = make(model={"id": "Qwen/Qwen3-32B", "revision": REVISION})
    smaller = make(model={"id": "Qwen/Qwen3-32B", "revision": REVISION, "quantization": "fp8"})
    sizes = {start_time(item, place_of(item, COPIED), COPIED).disk_bytes for item in (whole, smaller)}
    assert len(sizes) == 1


def test_adapters_are_copied_too_and_keep_their_engine_from_streaming(make, objects):
    found = objects(make(features={"lora": ["acme/tone", "legal=acme/law"]}), COPIED)
    folders = [item["args"][-2] for item in pod(found)["initContainers"]]
    bucket = "s3://$(WEIGHTS_BUCKET)"
    assert folders == [f"{bucket}/{SNAPSHOT}/", f"{bucket}/hub/models--acme--tone/", f"{bucket}/hub/models--acme--law/"]
    assert "--revision" in engine(found)["args"]


def test_a_copy_has_the_rights_of_the_engine_and_no_gpu(make, objects):
    found = objects(make("chat", "lmdeploy"), COPIED)
    (copy,) = pod(found)["initContainers"]
    assert copy["securityContext"] == engine(found)["securityContext"]
    assert not any("nvidia" in key for key in copy["resources"]["requests"])
    assert copy["resources"]["limits"]["memory"]


@pytest.mark.parametrize("name", [*STREAMS, *FILES_ONLY])
def test_pods_reach_the_bucket_and_who_says_who_they_are_and_not_the_instance(make, objects, name):
    found = objects(make("chat", name), COPIED)
    egress = found["NetworkPolicy"]["spec"]["egress"]
    by_port = {rule["ports"][0]["port"]: rule["to"][0] for rule in egress}
    assert by_port[443] == {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.169.254/32"]}}
    assert by_port[80] == {"ipBlock": {"cidr": "169.254.170.23/32"}}
    assert pod(found)["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"] == "chat"


def test_a_start_with_a_copy_may_take_longer_until_it_counts_as_failed(make, catalogue):
    manifest = make("chat", "lmdeploy")
    place, way = place_of(manifest, COPIED), delivery_of(manifest, catalogue, COPIED)
    plain, copied = start_time(manifest, place, COPIED), start_time(manifest, place, COPIED, way)
    assert copied.container_seconds == plain.container_seconds
    assert copied.progress_seconds == plain.progress_seconds + plain.container_seconds


@pytest.mark.parametrize(
    ("parts", "ground", "words"),
    [
        ({"on": "lmdeploy"}, STREAMED, "lmdeploy loads weights from files alone; so its weights are copied"),
        ({"features": {"speculative": "draft"}}, COPIED, "which only flags name"),
        ({"features": {"lora": ["s3://elsewhere/tone"]}}, COPIED, "is no id of the hub"),
        ({"on": "lmdeploy", "model": {"id": "invented/model", "revision": REVISION}}, COPIED, "how large the weights"),
        ({"model": {"id": "/models/here", "revision": REVISION}}, STREAMED, "is no id of the hub"),
    ],
)
def test_what_can_neither_stream_nor_be_copied_is_refused(make, catalogue, parts, ground, words):
    with pytest.raises(RenderRefused, match=words) as raised:
        render(make(**parts), catalogue, ground)
    assert raised.value.reason is Reason.WEIGHTS
    assert raised.value.remedy


@pytest.mark.parametrize("name", [*STREAMS, *FILES_ONLY])
def test_a_file_system_needs_neither(make, objects, catalogue, name):
    ground = RenderGround(weights=SharedWeights())
    assert not delivery_of(make("chat", name), catalogue, ground).reads_bucket
    found = objects(make("chat", name), ground)
    assert "initContainers" not in pod(found)
    assert "WEIGHTS_BUCKET" not in environment(engine(found))
