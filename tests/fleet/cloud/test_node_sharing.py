"""Shared GPUs over every GPU and every way."""

from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.cloud import node_sharing
from fleet.cloud.node_images import AMI_TYPES
from fleet.cloud.node_sharing import NodeSharing
from fleet.gpu_parts import gpu_of
from fleet.sharing import SharingWay, isolation_of, ways_of

GPUS = st.sampled_from(sorted(hardware.gpu_models()))
INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
WAYS = st.sampled_from(list(SharingWay))
SHARED = (SharingWay.TIME_SLICING, SharingWay.MPS)


def ids(findings):
    return [finding.rule.id for finding in findings]


@given(name=GPUS, way=WAYS)
def test_slices_need_a_gpu_with_mig(name, way):
    model = hardware.gpu(name)
    profile = model.mig_profiles[0].name if model.mig_profiles and way.has_slices else None
    found = ids(node_sharing.mig_findings(model, NodeSharing(way, profile)))
    assert found == ([] if way in ways_of(model) else ["mig-without-hardware"])


@given(name=INSTANCES, profile=st.sampled_from(["1g.10gb", "1g.5gb", "7g.80gb", "9g.9gb"]))
def test_a_profile_of_another_gpu_is_found_and_a_part_of_a_gpu_has_none(name, profile):
    model = gpu_of(hardware.instance(name))
    found = ids(node_sharing.mig_findings(model, NodeSharing(SharingWay.MIG, profile)))
    if not model.mig_profiles:
        assert found == ["mig-without-hardware"]
    else:
        known = {item.name for item in model.mig_profiles}
        assert found == ([] if profile in known else ["mig-profile"])


def test_mig_without_a_profile_is_found():
    h100 = hardware.gpu("H100")
    assert ids(node_sharing.mig_findings(h100, NodeSharing(SharingWay.MIG))) == ["mig-profile"]
    assert not list(node_sharing.mig_findings(h100, NodeSharing(SharingWay.DYNAMIC_SLICES)))


@given(way=WAYS, shares=st.one_of(st.none(), st.integers(min_value=0, max_value=100)))
def test_shares_belong_to_time_slices_and_mps_and_are_two_or_more(way, shares):
    found = ids(node_sharing.share_findings(NodeSharing(way, shares=shares)))
    limit = 48 if way is SharingWay.MPS else 10**6
    fine = (shares is not None and 2 <= shares <= limit) if way in SHARED else shares is None
    assert (found == []) == fine
    assert set(found) <= {"gpu-shares"}


@given(way=WAYS)
def test_shares_are_the_device_plugins_and_not_for_resource_claims(way):
    shares = 4 if way in SHARED else None
    found = ids(node_sharing.share_findings(NodeSharing(way, shares=shares, uses_dra=True)))
    assert found == (["gpu-shares"] if way in SHARED else [])


@given(way=WAYS, tenants=st.integers(min_value=0, max_value=5), needs=st.booleans())
def test_tenants_that_need_isolation_never_share_what_hardware_does_not_keep_apart(way, tenants, needs):
    found = ids(node_sharing.tenant_findings(way, tenants=tenants, needs_isolation=needs))
    wrong = needs and tenants > 1 and not isolation_of(way).is_hardware
    assert found == (["shared-gpu-isolation"] if wrong else [])


@given(way=WAYS, uses_dra=st.booleans(), minor=st.integers(min_value=30, max_value=38))
def test_slices_on_demand_need_dra_and_its_kubernetes(way, uses_dra, minor):
    found = ids(node_sharing.dynamic_findings(NodeSharing(way, uses_dra=uses_dra), f"1.{minor}"))
    fine = (uses_dra and minor >= 34) if way is SharingWay.DYNAMIC_SLICES else not (way is SharingWay.MIG and uses_dra)
    assert (found == []) == fine


@given(way=WAYS, ami=st.sampled_from(sorted(AMI_TYPES)))
def test_mig_nodes_start_from_an_image_whose_plugin_names_the_profiles(way, ami):
    found = ids(node_sharing.mig_image_findings(way, ami))
    wrong = way is SharingWay.MIG and AMI_TYPES[ami].has_device_plugin
    assert found == (["mig-on-bottlerocket"] if wrong else [])
