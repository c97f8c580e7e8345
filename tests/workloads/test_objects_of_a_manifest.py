"""What the objects of a manifest say: the engine's command, its place, its start and its end."""

import pytest

from fleet.cold_start import Phase
from workloads import RenderGround, SharedWeights
from workloads.container import DEREGISTER_SECONDS, KILL_SECONDS, PORT
from workloads.placement import place_of
from workloads.start import UNKNOWN_SECONDS, start_time

ANYWHERE = "0.0.0.0"  # noqa: S104 - what a pod binds to
L4 = {"hardware": {"instance_type": "g6.xlarge", "gpus": 1}, "parallelism": {}}
MIG = {"hardware": {"instance_type": "p5.48xlarge", "gpus": 1, "sharing": "mig"}, "parallelism": {}}
SLICED = {
    "hardware": {"instance_type": "g6.xlarge", "gpus": 1, "sharing": "time-slicing", "memory_share": 0.4},
    "parallelism": {},
}
BLOCK = {"hardware": {"instance_type": "p5.48xlarge", "gpus": 2, "purchase": "capacity-block"}}


def pod(objects):
    return objects["Deployment"]["spec"]["template"]["spec"]


def engine(objects):
    (found,) = pod(objects)["containers"]
    return found


def environment(objects):
    return {item["name"]: item.get("value") for item in engine(objects)["env"]}


def test_the_command_is_the_catalogue_s_and_the_image_the_pin_s(make, objects, catalogue):
    manifest = make()
    found = engine(objects(manifest))
    expected = catalogue.command_line(manifest, host=ANYWHERE, port=PORT)
    assert (*found["command"], *found["args"]) == expected.argv
    assert expected.environment.items() <= environment(objects(manifest)).items()
    assert found["image"] == manifest.spec.engine.image


def test_probes_ask_where_the_catalogue_says(make, objects, catalogue):
    found = engine(objects(make("chat", "sglang")))
    probes = catalogue.probes("sglang", "0.5.23")
    asked = {key: found[f"{key}Probe"]["httpGet"]["path"] for key in ("startup", "readiness", "liveness")}
    assert asked == {"startup": probes.startup, "readiness": probes.readiness, "liveness": probes.liveness}


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "meta-llama/Meta-Llama-3.1-70B"])
def test_the_startup_probe_waits_longer_than_the_slow_end_of_the_estimate(make, objects, model):
    manifest = make(model={"id": model, "revision": "0" * 40})
    ground = RenderGround(weights=SharedWeights(megabytes_per_second=300))
    probe = engine(objects(manifest, ground))["startupProbe"]
    estimate = start_time(manifest, place_of(manifest, ground), ground).estimate
    assert estimate is not None
    inside = sum(item.high for phase, item in estimate.phases.items() if phase not in (Phase.NODE, Phase.IMAGE))
    assert probe["periodSeconds"] * probe["failureThreshold"] > inside
    progress = objects(manifest, ground)["Deployment"]["spec"]["progressDeadlineSeconds"]
    assert progress > estimate.total.high
    assert progress > probe["periodSeconds"] * probe["failureThreshold"]


def test_a_slow_file_system_gets_a_longer_start(make, objects):
    def failures(rate):
        ground = RenderGround(weights=SharedWeights(megabytes_per_second=rate))
        return engine(objects(make(), ground))["startupProbe"]["failureThreshold"]

    assert failures(100) > failures(1000) >= failures(None)


def test_a_model_that_nobody_knows_gets_an_hour_and_says_so(make, objects):
    found = objects(make(model={"id": "invented/model", "revision": "0" * 40}))
    probe = engine(found)["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == UNKNOWN_SECONDS
    assert found["Deployment"]["metadata"]["annotations"]["enginehouse.dev/start-estimate-seconds"] == "unknown"


def test_the_environment_s_own_configuration_of_a_model_counts(make, objects):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "broken": True}
    ground = RenderGround(model_configs={"Qwen/Qwen3-32B": config})
    annotations = objects(make(), ground)["Deployment"]["metadata"]["annotations"]
    assert annotations["enginehouse.dev/start-estimate-seconds"] == "unknown"


@pytest.mark.parametrize(("name", "waits"), [("vllm", 0), ("sglang", 0), ("tensorrt-llm", 30)])
def test_requests_end_before_the_engine_does(make, objects, catalogue, name, waits):
    found = objects(make("chat", name))
    spec = pod(found)
    stop = catalogue.shutdown(name, make("chat", name).spec.engine.version)
    sleep = engine(found)["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert sleep == DEREGISTER_SECONDS + waits
    assert spec["terminationGracePeriodSeconds"] == DEREGISTER_SECONDS + stop.drain_seconds + KILL_SECONDS


@pytest.mark.parametrize(
    ("parts", "resource", "expected"),
    [
        ({}, "nvidia.com/gpu", ["h100"]),
        (L4, "nvidia.com/gpu", ["l4"]),
        (MIG, "nvidia.com/mig-1g.10gb", ["h100-mig"]),
        (SLICED, "nvidia.com/gpu.shared", ["l4-shared"]),
    ],
)
def test_a_pod_asks_for_its_gpus_on_the_pools_that_have_them(make, objects, pools, parts, resource, expected):
    found = objects(make(**parts), RenderGround(pools=pools))
    (term,) = pod(found)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    (wanted,) = term["matchExpressions"]
    assert (wanted["key"], wanted["values"]) == ("enginehouse.dev/pool", expected)
    resources = engine(found)["resources"]
    assert resources["limits"][resource] == resources["requests"][resource] == str(make(**parts).spec.hardware.gpus)


def test_without_pools_the_instance_type_chooses_the_node(make, objects):
    (term,) = pod(objects(make()))["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"] == [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}
    ]


def test_replicas_that_share_a_node_fit_it_together(make, pools):
    ground = RenderGround(pools=pools)
    for parts, together in (({}, 4), (L4, 1), (MIG, 56), (SLICED, 2)):
        place = place_of(make(**parts), ground)
        assert place.memory_mib * together < place.shape.memory_mib
        assert place.cpu * together <= place.shape.vcpus


def test_shared_memory_is_a_part_of_the_pod_s_own(make, pools):
    for parts in ({}, L4, MIG, SLICED):
        place = place_of(make(**parts), RenderGround(pools=pools))
        assert 0 < place.shm_mib <= place.memory_mib / 4


@pytest.mark.parametrize(("parts", "surge"), [({}, 1), (BLOCK, 0)])
def test_a_capacity_block_has_no_node_to_spare(make, objects, parts, surge):
    steps = objects(make(**parts))["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert steps == {"maxSurge": surge, "maxUnavailable": 1 - surge}


def test_weights_on_the_file_system_are_read_and_nothing_is_fetched(make, objects):
    found = objects(make(), RenderGround(weights=SharedWeights("lustre", "/models-of-bucket")))
    (volume,) = (item for item in pod(found)["volumes"] if item["name"] == "weights")
    assert volume["persistentVolumeClaim"] == {"claimName": "lustre", "readOnly": True}
    assert environment(found)["HF_HUB_CACHE"] == "/models/models-of-bucket/hub"
    assert environment(found)["HF_HUB_OFFLINE"] == "1"
    assert [rule["ports"][0]["port"] for rule in found["NetworkPolicy"]["spec"]["egress"]] == [53]


def test_the_files_of_a_command_line_lie_where_it_looks(make, objects, catalogue):
    manifest = make("chat", "tensorrt-llm")
    found = objects(manifest)
    files = catalogue.command_line(manifest, host=ANYWHERE, port=PORT).files
    assert found["ConfigMap"]["data"] == dict(files)
    (volume,) = (item for item in pod(found)["volumes"] if item["name"] == "files")
    assert volume["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    (mount,) = (item for item in engine(found)["volumeMounts"] if item["name"] == "files")
    assert engine(found)["workingDir"] == mount["mountPath"]
    assert set(files) <= set(engine(found)["args"])


def test_metrics_are_announced_where_the_catalogue_says(make, objects):
    annotations = objects(make("chat", "tensorrt-llm"))["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/path"] == "/prometheus/metrics"
    assert annotations["prometheus.io/port"] == str(PORT)


def test_only_the_gateway_and_the_scraper_come_in(make, objects):
    ground = RenderGround(gateway_namespace="edge", metrics_namespace="watch")
    policy = objects(make(), ground)["NetworkPolicy"]["spec"]
    allowed = [item["from"][0]["namespaceSelector"]["matchLabels"] for item in policy["ingress"]]
    assert allowed == [{"kubernetes.io/metadata.name": "edge"}, {"kubernetes.io/metadata.name": "watch"}]
    assert policy["policyTypes"] == ["Ingress", "Egress"]


def test_what_engines_say_of_prompts_is_heard_by_gateways_alone(make, objects):
    asked = {"features": {"kv_events": "zmq"}}
    ground = RenderGround(gateway_namespace="edge", gateway_labels={"role": "gateway"})
    found = objects(make(**asked), ground)
    ports = [item["containerPort"] for item in engine(found)["ports"]]
    assert ports == [PORT, 5557, 5657]
    (rule,) = found["NetworkPolicy"]["spec"]["ingress"][2:]
    assert [item["port"] for item in rule["ports"]] == [5557, 5657]
    assert rule["from"] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "edge"}},
            "podSelector": {"matchLabels": {"role": "gateway"}},
        }
    ]
    assert found["Service"]["spec"]["ports"] == objects(make(), ground)["Service"]["spec"]["ports"]


def test_each_data_parallel_rank_has_ports_of_its_own(make, objects):
    parts = {"parallelism": {"data": 2}, "hardware": {"instance_type": "p5.48xlarge", "gpus": 2}}
    found = objects(make(features={"kv_events": "zmq"}, **parts))
    assert [item["containerPort"] for item in engine(found)["ports"]] == [PORT, 5557, 5558, 5657, 5658]
    assert len({item["name"] for item in engine(found)["ports"]}) == 5


def test_a_flag_of_the_manifest_s_own_opens_its_ports_too(make, objects):
    config = '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:7000"}'
    choice = make().spec.engine.model_dump(mode="json", exclude_none=True) | {"flags": {"--kv-events-config": config}}
    found = objects(make(**{"engine": choice}))
    assert [item["containerPort"] for item in engine(found)["ports"]] == [PORT, 7000]


def test_the_manifest_s_labels_stand_on_objects_and_never_win(make, objects):
    labels = {"team": "support", "enginehouse.dev/identity": "forged", "app.kubernetes.io/name": "forged"}
    manifest = make(labels=labels)
    found = objects(manifest)["Deployment"]
    assert found["metadata"]["labels"]["team"] == "support"
    assert "forged" not in found["metadata"]["labels"].values()
    assert "team" not in found["spec"]["template"]["metadata"]["labels"]
