"""Open values of the stack's file: asked for once, filled in without losing a comment, contradictions told."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.cloud_client import CloudClosed
from infra.fill_versions import main
from infra.open_values import (
    Clients,
    Fill,
    contradictions,
    fills,
    last_whole_day,
    may_be_published,
    release_contradictions,
    version_contradictions,
)
from infra.stack_file import config_of, filled
from tests.infra.moto_gaps import add_on_page, reservation_answer
from tests.infra.stacks import H100_BLOCK, L4, LUSTRE, RESERVATION, ZONE, ZONES, stack

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("Pulumi.*.yaml"))
INVENTED = "1.36.0-20300101"


class Cloud:
    """All three clients: knows every add-on and release, offers everything in all zones, holds one reservation."""

    def __init__(self, *, zones=ZONES, end=None, refuses="", **reservation):
        self.zones, self.refuses = zones, refuses
        self.answer = reservation_answer(CapacityReservationId=RESERVATION, EndDate=end, **reservation)

    def describe_addon_versions(self, **request):
        self._may("describe_addon_versions")
        return add_on_page(request["addonName"], ("v9.9.9-eksbuild.1", ["1.36"], "1.36"))

    def get_parameter(self, **request):
        self._may("get_parameter")
        return {"Parameter": {"Name": request["Name"], "Value": INVENTED}}

    def describe_instance_type_offerings(self, **request):
        return {"InstanceTypeOfferings": [{"Location": zone} for zone in self.zones]}

    def describe_capacity_reservations(self, **request):
        self._may("describe_capacity_reservations")
        return self.answer

    def _may(self, call):
        if self.refuses.startswith(call):
            code = self.refuses.partition(":")[2]
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, call)

    @property
    def clients(self) -> Clients:
        return Clients(self, self, self)


def open_stack(**fields):
    pools = [pool.model_copy(update={"image": pool.image.model_copy(update={"release": None})}) for pool in (L4,)]
    return stack(**{"pools": pools, "versions": {}, "system_nodes": {}, "weights": LUSTRE} | fields)


@given(day=st.integers(0, 2**31).map(lambda second: datetime.fromtimestamp(second, UTC)))
def test_the_last_whole_day_of_a_block_is_over_before_the_block_is(day):
    last = last_whole_day(day)
    assert last < day.date()
    assert (day.date() - last).days == 1


def test_every_open_value_is_asked_for_and_no_other():
    found = {fill.key: fill.value for fill in fills(open_stack(), Cloud().clients)}
    assert found.pop("system_nodes.release") == found.pop("pools.l4.image.release") == INVENTED
    assert set(found.values()) == {"v9.9.9-eksbuild.1"}
    assert "versions.addons.aws-fsx-csi-driver" in found
    assert list(fills(stack(), Cloud().clients)) == []


def test_an_add_on_that_nobody_needs_is_not_asked_for():
    keys = {fill.key for fill in fills(open_stack(weights={"kind": "node-local"}), Cloud().clients)}
    assert "versions.addons.vpc-cni" in keys
    assert "versions.addons.aws-fsx-csi-driver" not in keys


def test_what_aws_does_not_know_stays_open_with_the_reason():
    cloud = Cloud(refuses="get_parameter:ParameterNotFound")
    left = [fill for fill in fills(open_stack(), cloud.clients) if fill.value is None]
    assert [fill.key for fill in left] == ["system_nodes.release", "pools.l4.image.release"]
    assert all("publishes no al2023 release for Kubernetes 1.36" in fill.reason for fill in left)


def test_credentials_that_have_expired_end_everything_at_once():
    with pytest.raises(CloudClosed, match="ExpiredToken"):
        list(fills(open_stack(), Cloud(refuses="describe_addon_versions:ExpiredToken").clients))


BLOCK = stack(pools=[H100_BLOCK])


def test_a_stack_that_aws_agrees_with_has_no_contradiction():
    assert list(contradictions(BLOCK, Cloud())) == []


def test_two_pools_of_one_name_are_told_as_only_one_of_them_is_filled_in():
    (problem,) = contradictions(stack(pools=[L4, L4]), Cloud())
    assert problem.sentence == "pools: l4 stands there more than once; give each pool its own name"


@pytest.mark.parametrize(
    ("cloud", "key", "words"),
    [
        (Cloud(zones=(f"{ZONE[:-1]}b",)), "pools.h100-block.zones", f"p5.48xlarge is not offered in {ZONE}"),
        (Cloud(InstanceType="p5e.48xlarge"), "pools.h100-block.instance_type", "holds p5e.48xlarge"),
        (Cloud(AvailabilityZone=ZONES[1]), "pools.h100-block.zone", f"stands in {ZONES[1]}, the pool in {ZONE}"),
        (Cloud(ReservationType="default"), "pools.h100-block.purchase", "is no Capacity Block"),
        (Cloud(TotalInstanceCount=2), "pools.h100-block.max_nodes", "has 2 instances, the pool may have 4"),
        (
            Cloud(refuses="describe_capacity_reservations:InvalidCapacityReservationId.NotFound"),
            "pools.h100-block.reservation_id",
            "InvalidCapacityReservationId.NotFound",
        ),
    ],
)
def test_each_contradiction_is_told_with_its_key(cloud, key, words):
    (problem,) = contradictions(BLOCK, cloud)
    assert problem.key == key
    assert words in problem.message


@given(stated=st.dictionaries(st.sampled_from(["vpc-cni", "coredns", "aws-fsx-csi-driver"]), st.booleans()))
def test_a_version_that_eks_does_not_have_is_told_with_one_that_it_has(stated):
    versions = {name: "v9.9.9-eksbuild.1" if is_right else "v99.99.99-eksbuild.7" for name, is_right in stated.items()}
    wrong = list(version_contradictions(stack(versions={"addons": versions}), Cloud()))
    expected = {f"versions.addons.{name}" for name, is_right in stated.items() if not is_right}
    assert {problem.key for problem in wrong} == expected - {"versions.addons.aws-fsx-csi-driver"}  # no Lustre
    for problem in wrong:
        assert "EKS has no version v99.99.99-eksbuild.7" in problem.message
        assert problem.remedy == "take v9.9.9-eksbuild.1"


def test_an_add_on_that_eks_does_not_know_is_told_and_closed_doors_end_everything():
    config = stack(versions={"addons": {"vpc-cni": "v1.20.0"}})
    (problem,) = version_contradictions(config, Cloud(refuses="describe_addon_versions:Throttled"))
    assert (problem.key, problem.value) == ("versions.addons.vpc-cni", "v1.20.0")
    with pytest.raises(CloudClosed):
        list(version_contradictions(config, Cloud(refuses="describe_addon_versions:ExpiredToken")))


@pytest.mark.parametrize(
    ("release", "newest", "may_be"),
    [
        ("1.36.0-20300101", "1.36.0-20300101", True),
        ("1.36.0-20291231", "1.36.0-20300101", True),
        ("1.36.0-20291231", "1.36.1-20300101", True),
        ("1.36.0-20300102", "1.36.0-20300101", False),
        ("1.36.1-20300101", "1.36.0-20300101", False),
        ("1.36.2-20291231", "1.36.1-20300101", False),
        ("1.60.0-0123abcd", "1.60.0-0123abcd", True),
        ("1.60.0", "1.60.0-0123abcd", True),
        ("1.59.9-ffff", "1.60.0-0123abcd", True),
        ("1.60.0-ffff", "1.60.0-0123abcd", False),
        ("1.61.0-ffff", "1.60.0-0123abcd", False),
    ],
)
def test_a_release_is_the_newest_or_an_older_one(release, newest, may_be):
    assert may_be_published(release, newest) is may_be


def with_release(release):
    image = L4.image.model_copy(update={"release": release})
    return stack(pools=[L4.model_copy(update={"image": image})], system_nodes={"release": INVENTED})


def test_a_release_that_aws_can_not_have_is_told_with_the_newest_and_an_older_one_is_not():
    (problem,) = release_contradictions(with_release("1.36.0-20300228"), Cloud().clients.ssm)
    assert problem.key == "pools.l4.image.release"
    assert problem.message == f"AWS has no release 1.36.0-20300228: the newest for Kubernetes 1.36 is {INVENTED}"
    assert problem.remedy == f"take {INVENTED}"
    assert list(release_contradictions(with_release("1.36.0-20291224"), Cloud().clients.ssm)) == []
    assert list(release_contradictions(with_release(None), Cloud().clients.ssm)) == []


def test_a_kubernetes_without_releases_is_told_at_each_and_closed_doors_end_everything():
    told = list(release_contradictions(with_release(INVENTED), Cloud(refuses="get_parameter:ParameterNotFound")))
    assert [problem.key for problem in told] == ["system_nodes.release", "pools.l4.image.release"]
    assert all("publishes no al2023 release" in problem.message for problem in told)
    with pytest.raises(CloudClosed):
        list(release_contradictions(with_release(INVENTED), Cloud(refuses="get_parameter:ExpiredToken")))


def comments(lines) -> list[str]:
    return [line.partition("#")[2] for line in lines if "#" in line]


TEXT = """\
# above
config:
  aws:profile: mine
  enginehouse:stack: # here it is
    pools: # two of them
      - name: l4 # small
        image: {family: al2023, release: null}
      - {name: h100}
      - {name: other, image: {family: al2023, release: null}}
    versions: {}
"""


@settings(max_examples=25)
@given(version=st.from_regex(r"v?[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-eksbuild\.[0-9]{1,2})?", fullmatch=True))
def test_a_value_is_put_in_its_place_and_every_comment_stays(version):
    values = [
        Fill(("pools", "l4", "image", "release"), version),
        Fill(("pools", "h100", "image", "release"), version),
        Fill(("versions", "addons", "vpc-cni"), version),
        Fill(("versions", "addons", "coredns"), None, "unknown"),
    ]
    text = filled(TEXT, values)
    assert comments(text.splitlines()) == [" above", " here it is", " two of them", " small"]
    assert text.count(version) >= 3
    assert "coredns" not in text
    assert "      - {name: other, image: {family: al2023, release: null}}\n" in text
    assert filled(text, values) == text


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_the_shipped_files_are_filled_in_and_nothing_else_of_them_changes(path, tmp_path, capsys):
    copy = tmp_path / path.name
    copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    end = datetime(2099, 1, 1, 11, 30, tzinfo=UTC)
    main(["--stack-file", str(copy), "--write"], connect=lambda _: Cloud(end=end).clients)
    told = capsys.readouterr().out.splitlines()
    assert any(line.startswith("system_nodes.release: ") for line in told)
    before, after = path.read_text(encoding="utf-8").splitlines(), copy.read_text(encoding="utf-8").splitlines()
    assert len([line for line in before if line not in after]) <= len(told)
    assert comments(after) == comments(before)
    kept = [line for line in before if "null" not in line and "addons:" not in line and "ends_on" not in line]
    assert [line for line in kept if line not in after] == []
    config = config_of(copy.read_text(encoding="utf-8"))
    assert list(fills(config, Cloud().clients)) == []


def test_the_file_is_put_in_place_as_a_whole(tmp_path):
    copy = tmp_path / "Pulumi.dev.yaml"
    text = (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    with copy.open(encoding="utf-8") as reader:
        main(["--stack-file", str(copy), "--write"], connect=lambda _: Cloud().clients)
        assert reader.read() == text
    assert copy.read_text(encoding="utf-8") != text
    assert list(tmp_path.iterdir()) == [copy]


def test_without_write_the_file_stays_as_it_is(tmp_path, capsys):
    copy = tmp_path / "Pulumi.dev.yaml"
    text = (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    assert main(["--stack-file", str(copy)], connect=lambda _: Cloud().clients) == 0
    assert copy.read_text(encoding="utf-8") == text
    assert "versions.addons.vpc-cni: v9.9.9-eksbuild.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "it is no YAML"),
        ("- 1", "it has no mapping config.enginehouse:stack"),
        ("config: {enginehouse:stack: {version: 7}}", "is of version 7"),
    ],
)
def test_a_file_that_is_none_is_told_and_nobody_is_asked(text, words, tmp_path, capsys):
    path = tmp_path / "Pulumi.x.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["--stack-file", str(path)], connect=lambda _: pytest.fail("asked")) == 2
    assert words in capsys.readouterr().err


def test_a_file_that_is_not_there_is_told_by_its_name(tmp_path, capsys):
    assert main(["--stack-file", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err


def test_without_credentials_one_sentence_is_all(tmp_path, capsys):
    def nobody(_region):
        raise CloudClosed("AWS can't be asked: Unable to locate credentials")

    assert main(["--stack-file", str(ROOT / "Pulumi.dev.yaml")], connect=nobody) == 1
    assert capsys.readouterr().err == "AWS can't be asked: Unable to locate credentials\n"


def test_open_values_and_contradictions_are_told_apart_from_the_values(capsys):
    cloud = Cloud(zones=(), refuses="get_parameter:ParameterNotFound")
    assert main(["--stack-file", str(ROOT / "Pulumi.dev.yaml")], connect=lambda _: cloud.clients) == 1
    out, err = capsys.readouterr()
    assert "release" not in out
    assert "system_nodes.release: AWS publishes no al2023 release" in err
    assert "take another region or instance type" in err
