"""What nodes start from, over every AMI type, and drivers against CUDA."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.cloud import node_images
from fleet.cloud.node_images import AMI_TYPES, DriverFit, driver_fit

INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
TYPES = st.sampled_from(sorted(AMI_TYPES))


def ids(findings):
    return [finding.rule.id for finding in findings]


@given(name=INSTANCES, ami=TYPES)
def test_every_gpu_instance_wants_an_ami_with_a_driver_fractions_too(name, ami):
    found = ids(node_images.driver_findings(ami, gpus=hardware.instance(name).gpus))
    lacks = AMI_TYPES[ami].family != "custom" and not AMI_TYPES[ami].has_nvidia
    assert found == (["ami-without-driver"] if lacks else [])


@given(ami=TYPES)
def test_nodes_without_gpus_take_any_ami(ami):
    assert not list(node_images.driver_findings(ami, gpus=0))


@given(ami=TYPES)
def test_an_ami_type_is_for_one_architecture(ami):
    both = [ids(node_images.ami_type_findings(ami, architectures=[arch])) for arch in ("x86_64", "arm64")]
    assert both.count([]) == (2 if ami == "CUSTOM" else 1)


@given(ami=TYPES, minor=st.integers(min_value=28, max_value=40))
def test_amazon_linux_2_ends_at_1_33(ami, minor):
    ended = AMI_TYPES[ami].family == "al2" and minor >= 33
    assert (ids(node_images.ended_findings(ami, f"1.{minor}")) == ["ami-al2-ended"]) == ended


@given(ami=TYPES, driver=st.booleans(), toolkit=st.booleans())
def test_the_gpu_operator_installs_nothing_that_the_ami_has(ami, driver, toolkit):
    installs = {"driver": driver, "toolkit": toolkit}
    found = ids(node_images.operator_findings([ami, "AL2023_x86_64_STANDARD"], installs=installs))
    assert bool(found) == (AMI_TYPES[ami].has_nvidia and (driver or toolkit))


@given(ami=TYPES, runs=st.booleans())
def test_only_bottlerocket_announces_gpus_itself(ami, runs):
    twice = runs and AMI_TYPES[ami].family == "bottlerocket" and AMI_TYPES[ami].has_nvidia
    assert bool(ids(node_images.device_plugin_findings(ami, runs_chart=runs))) == twice


@given(
    major=st.sampled_from(sorted(node_images.MINIMUM_DRIVERS)),
    minor=st.integers(min_value=0, max_value=9),
    branch=st.integers(min_value=400, max_value=700),
)
def test_a_newer_driver_never_fits_less(major, minor, branch):
    cuda = f"{major}.{minor}"
    if driver_fit(cuda, f"{branch}.1.2") is DriverFit.FITS:
        assert driver_fit(cuda, f"{branch + 1}.1.2") is DriverFit.FITS


@given(cuda=st.one_of(st.none(), st.text(max_size=6)), driver=st.one_of(st.none(), st.text(max_size=6)))
def test_what_can_not_be_read_is_unknown_and_no_finding(cuda, driver):
    fit = driver_fit(cuda, driver)
    assert fit in DriverFit
    if node_images.minimum_driver(cuda) is None or driver is None:
        assert fit is DriverFit.UNKNOWN
    assert bool(list(node_images.cuda_findings("image", cuda=cuda, driver=driver))) == (fit is DriverFit.TOO_OLD)


@pytest.mark.parametrize(("cuda", "driver", "expected"), [
    ("13.0", "580.65.06", DriverFit.FITS),
    ("13.0.1", "570.172.08", DriverFit.TOO_OLD),
    ("12.9", "580.65.06", DriverFit.FITS),
    ("12.8", "535.104", DriverFit.FITS),
    ("12.8", "470.57.02", DriverFit.TOO_OLD),
    ("10.2", "580.65.06", DriverFit.UNKNOWN),
    ("14.0", "580.65.06", DriverFit.UNKNOWN),
    ("13.0", None, DriverFit.UNKNOWN),
])  # fmt: skip
def test_cuda_against_drivers(cuda, driver, expected):
    assert driver_fit(cuda, driver) is expected


def test_a_driver_too_old_names_both_versions_and_the_one_needed():
    (finding,) = node_images.cuda_findings("vllm/vllm-openai", cuda="13.0", driver="570.172.08")
    assert finding.message == "vllm/vllm-openai has CUDA 13.0, which needs driver 580 or newer; the node has 570.172.08"


@pytest.mark.parametrize(("release", "has_image", "expected"), [
    ("1.34.1-20261101", False, []),
    (None, False, ["ami-release-unpinned"]),
    ("latest", False, ["ami-release-unpinned"]),
    (None, True, []),
])  # fmt: skip
def test_an_ami_release_is_pinned(release, has_image, expected):
    assert ids(node_images.release_findings(release, has_image=has_image)) == expected


def test_windows_and_misspelt_types_are_no_place_for_engines():
    for name in ("WINDOWS_CORE_2022_x86_64", "AL2023_x86_64_NVIDA"):
        assert ids(node_images.ami_type_findings(name)) == ["ami-type"]


def test_the_table_is_what_botocore_has(checkout):
    loaders = pytest.importorskip("botocore.loaders")
    shapes = loaders.Loader().load_service_model("eks", "service-2")["shapes"]
    linux = {name for name in shapes["AMITypes"]["enum"] if not name.startswith("WINDOWS")}
    assert set(AMI_TYPES) == linux


def test_a_snapshot_of_images_is_bottlerockets():
    assert ids(node_images.preload_findings("al2023", "snap-1")) == ["image-preload"]
    assert not list(node_images.preload_findings("bottlerocket", "snap-1"))
    assert not list(node_images.preload_findings("al2023", None))
