"""Bad input: one message for each mistake, with key, value and remedy, and nothing is registered."""

import json
from datetime import date
from pathlib import Path

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fleet.hardware import instance_types
from fleet.node_pools import NodePool
from infra import program
from infra.config_reading import parse
from infra.credentials import credential_problems
from infra.name_checks import regions
from infra.problem import Problem, StackRefused
from infra.stack_checks import problems
from infra.stack_config import PoolConfig
from infra.stack_file import config_of as config_of_file
from infra.zone_groups import zone_groups
from sources.yaml_file import read_mapping
from tests.infra.recording import record
from tests.infra.stacks import DEV, PROD, RELEASE, STAGING, VARIANTS, ZONES, config_of, stack

TODAY = date(2030, 1, 1)
SECRET = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:ecr-pullthroughcache/docker-AbCdEf"
RESERVED = "cr-0123456789abcdef0"  # invented


def sentences(config, **more):
    return [item.sentence for item in problems(config, **{"today": TODAY, **more})]


def changed(config, **fields):
    """A stack with parts of its configuration replaced: ``network__cidr=...`` reaches inside."""
    content = json.loads(config.model_dump_json(exclude_none=True))
    for path, value in fields.items():
        *parents, last = path.split("__")
        place = content
        for part in parents:
            place = place[int(part) if part.isdecimal() else part]
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return json.dumps(content)


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_the_clean_stacks_have_no_problem(variant):
    assert sentences(VARIANTS[variant]) == []


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_a_stack_reads_back_from_its_configuration(variant):
    text = json.dumps(config_of(VARIANTS[variant])["enginehouse:stack"])
    assert parse(text) == VARIANTS[variant]


# One mistake in an otherwise clean stack -> the key it is told by, and words of its message and remedy.
MISTAKES = {
    "wrong region": (PROD, {"region": "us-east-1"}, "network.zones", "are not of the region us-east-1"),
    "zone of the weights": (PROD, {"weights__zone": "eu-central-1f"}, "weights.zone", "take one of"),
    "zone of a pool": (PROD, {"pools__0__zone": "eu-central-1f"}, "pools.h100-block.zone", "no subnet stands in"),
    "zone and zones": (
        PROD,
        {"pools__1__zone": ZONES[0], "pools__1__zones": list(ZONES)},
        "pools.l4.zones",
        "say different things",
    ),
    "letter of a zone": (DEV, {"network__zones": [ZONES[0], "eu-central-1h"]}, "network.zones", "has no place"),
    "tiny network": (DEV, {"network__cidr": "10.0.0.0/24"}, "network.cidr", "take /18 or larger"),
    "huge network": (DEV, {"network__cidr": "10.0.0.0/8"}, "network.cidr", "take /16 or smaller"),
    "small network": (DEV, {"network__cidr": "10.0.0.0/22"}, "network.cidr", "addresses"),
    "days of flow logs": (DEV, {"network__flow_log_days": 45}, "network.flow_log_days", "take 60"),
    "days of logs": (DEV, {"cluster__log_days": 4000}, "cluster.log_days", "0 for ever"),
    "cidrs of a private endpoint": (
        DEV,
        {"cluster__public_cidrs": ["203.0.113.0/24"]},
        "cluster.public_cidrs",
        "set endpoint: public",
    ),
    "public endpoint": (DEV, {"cluster__endpoint": "public"}, "cluster.public_cidrs", "everybody"),
    "endpoint for the world": (
        DEV,
        {"cluster__endpoint": "public", "cluster__public_cidrs": ["0.0.0.0/0"]},
        "cluster.public_cidrs",
        "0.0.0.0/0",
    ),
    "a user as admin": (
        DEV,
        {"cluster__admins": ["arn:aws:iam::111122223333:user/eve"]},
        "cluster.admins[0]",
        "is no role",
    ),
    "an admin twice": (DEV, {"cluster__admins": [DEV.cluster.admins[0]] * 2}, "cluster.admins", "more than once"),
    "system nodes upside down": (DEV, {"system_nodes__min_nodes": 9}, "system_nodes.max_nodes", "take 9 or more"),
    "two architectures": (
        DEV,
        {"system_nodes__instance_types": ["m7i.xlarge", "m7g.xlarge"]},
        "system_nodes.instance_types",
        "one architecture",
    ),
    "an add-on's name": (DEV, {"versions__addons__cordns": "v1"}, "versions.addons.cordns", "did you mean 'coredns'"),
    "an add-on that is too old": (
        PROD,
        {"versions__addons__vpc-cni": "v1.18.3-eksbuild.1"},
        "versions.addons.vpc-cni",
        "take v1.18.5 or newer",
    ),
    "a chart's name": (DEV, {"versions__charts__kedaa": "v1"}, "versions.charts.kedaa", "did you mean 'keda'"),
    "capacity of lustre": (PROD, {"weights__capacity_gib": 5000}, "weights.capacity_gib", "take 9600 GiB"),
    "a reserved tag": (DEV, {"tags": {"owner": "me"}}, "tags.owner", "leave it out"),
    "a tag that no resource takes": (DEV, {"tags": {"team": "a;b"}}, "tags.team", "letters, digits"),
    "an owner that no tag takes": (DEV, {"owner": "o" * 257}, "owner", "256 characters at most"),
    "a region that is nowhere": (
        DEV,
        {"region": "eu-central-9", "network__zones": ["eu-central-9a", "eu-central-9b"]},
        "region",
        "did you mean 'eu-central-",
    ),
    "a loopback network": (DEV, {"network__cidr": "127.0.0.0/16"}, "network.cidr", "take private ones"),
    "a pool called as our own nodes": (DEV, {"pools__0__name": "system"}, "pools.system.name", "another name"),
    "no driver's version": (DEV, {"pools__0__image__driver": "newest"}, "pools.l4.image.driver", "580.95.05"),
    "a repository twice": (DEV, {"repositories": ["team/a", "team/a"]}, "repositories", "more than once"),
    "a long environment": (DEV, {"environment": "e" * 30}, "environment", "take 20 at most"),
    "no limit of nodes": (DEV, {"pools__0__max_nodes": None}, "pools.l4.max_nodes", "give 1 or more"),
    "desired above max": (DEV, {"pools__0__desired_nodes": 9}, "pools.l4.desired_nodes", "take 0 to 6"),
    "min above max": (DEV, {"pools__0__min_nodes": 9}, "pools.l4.min_nodes", "take 6 or fewer"),
    "efa on an instance without": (DEV, {"pools__0__efa": True}, "pools.l4.efa", "g6.xlarge has no EFA"),
    "placement without efa": (DEV, {"pools__0__placement_group": True}, "pools.l4.placement_group", "leave it out"),
    "placement beside a reservation": (
        STAGING,
        {"pools__0__reservation_id": RESERVED},
        "pools.h100.placement_group",
        "leave placement_group out",
    ),
    "a block without its reservation": (
        PROD,
        {"pools__0__reservation_id": None},
        "pools.h100-block.reservation_id",
        "set reservation_id to",
    ),
    "spot with a reservation": (
        DEV,
        {"pools__0__reservation_id": RESERVED, "pools__0__zone": ZONES[0]},
        "pools.l4.reservation_id",
        "spot nodes target",
    ),
    "a block in several zones": (PROD, {"pools__0__zone": None}, "pools.h100-block.zone", "in one zone"),
    "a block that has ended": (PROD, {"pools__0__ends_on": "2029-12-31"}, "pools.h100-block.ends_on", "2029-12-31"),
    "slices of an exclusive pool": (DEV, {"pools__0__time_slices": 4}, "pools.l4.time_slices", "4"),
    "time-slicing without slices": (DEV, {"pools__1__time_slices": None}, "pools.l4-shared.time_slices", "time"),
    "dra on an old cluster": (
        DEV,
        {"cluster__kubernetes": "1.33", "pools__0__allocation": "dra", "pools__0__image__release": "1.33.1-20300101",
         "pools__1__image__release": "1.33.1-20300101",
         "system_nodes__release": "1.33.1-20300101"},
        "pools.l4.allocation",
        "needs Kubernetes 1.34",
    ),
    "a moving release": (DEV, {"pools__0__image__release": "latest"}, "pools.l4.image.release", "latest"),
    "a release of another version": (
        DEV,
        {"pools__0__image__release": "1.33.1-20300101"},
        "pools.l4.image.release",
        "begins with 1.36.",
    ),
    "a snapshot with al2023": (
        DEV,
        {"pools__0__preload": {"data_volume_snapshot": "snap-0123456789abcdef0"}},
        "pools.l4.preload.data_volume_snapshot",
        "al2023",
    ),
    "an illegal label": (DEV, {"pools__0__labels": {"team!": "x"}}, "pools.l4.labels.team!", "team!"),
    "a secret of another region": (
        DEV,
        {"pull_through_secrets": {"docker": SECRET.replace("eu-central-1", "us-east-1")}},
        "pull_through_secrets.docker",
        "begins with arn:aws:secretsmanager:eu-central-1:111122223333:secret:ecr-pullthroughcache/",
    ),
    "a secret of another name": (
        DEV,
        {"pull_through_secrets": {"github": SECRET.replace("ecr-pullthroughcache/", "")}},
        "pull_through_secrets.github",
        "does not begin with ecr-pullthroughcache/",
    ),
    "a release that is missing": (DEV, {"system_nodes__release": None}, "enginehouse:stack", "system_nodes.release"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_by_its_key_with_a_remedy(name):
    config, fields, key, words = MISTAKES[name]
    found = problems(parse(changed(config, **fields)), today=TODAY)
    told = [item.sentence for item in found]
    assert found, "nothing was found"
    assert any(words in sentence for sentence in told), told
    assert all(item.remedy for item in found)
    assert [item.key for item in found] == [key], told


# What the types themselves refuse.
UNREADABLE = {
    "another version": ({"version": 2}, "version", "this program reads version 1"),
    "no version": ({"version": None}, "version", "the version of the configuration is missing"),
    "an unknown key": ({"netwrok": {}}, "netwrok", "did you mean 'network'"),
    "an unknown key inside": ({"cluster__kubernets": "1"}, "cluster.kubernets", "did you mean 'kubernetes'"),
    "a count of cards": ({"pools__0__network_cards": 40}, "pools.l4.network_cards", "unknown field"),
    "an unknown instance": ({"pools__0__instance_type": "g6.xlrge"}, "pools.l4.instance_type", "g6.xlarge"),
    "a purchase that is not sold": ({"pools__0__purchase": "capacity-block"}, "pools.l4.purchase", "is not sold as"),
    "one zone": ({"network__zones": [ZONES[0]]}, "network.zones", "give 2 or more"),
    "a repository in capitals": ({"repositories": ["Engines"]}, "repositories[0]", "no name that ECR takes"),
    "a repository below nothing": ({"repositories": ["a1", "a1//b"]}, "repositories[1]", "between single slashes"),
    "a registry that needs no secret": (
        {"pull_through_secrets": {"quay": SECRET}},
        "pull_through_secrets.quay",
        "gitlab",
    ),
    "bits behind the network": ({"network__cidr": "10.0.0.1/16"}, "network.cidr", "write its first address and length"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_value_that_is_none_is_told_by_its_key(name):
    fields, key, words = UNREADABLE[name]
    with pytest.raises(StackRefused) as caught:
        parse(changed(DEV, **fields))
    (problem,) = caught.value.problems
    assert problem.key == key
    assert words in problem.sentence
    assert problem.remedy


@given(
    name=st.sampled_from(sorted(instance_types())),
    purchase=st.sampled_from(["on-demand", "spot", "capacity-block"]),
    zones=st.lists(st.sampled_from([*ZONES, "eu-central-1f"]), max_size=3, unique=True),
    numbers=st.tuples(*[st.integers(0, 5)] * 3),
    efa=st.booleans(),
    placement=st.booleans(),
    reserved=st.booleans(),
)
def test_a_pool_without_problems_becomes_node_groups(name, purchase, zones, numbers, efa, placement, reserved):
    low, desired, high = numbers
    block = {"ends_on": "2099-01-01"} if purchase == "capacity-block" else {}
    fields = {
        "name": "x", "instance_type": name, "purchase": purchase, "zones": zones, "min_nodes": low,
        "desired_nodes": desired, "max_nodes": high, "efa": efa, "placement_group": placement,
        "reservation_id": RESERVED if reserved else None, "image": {"release": RELEASE}, **block,
    }  # fmt: skip
    try:
        found = PoolConfig.model_validate(fields)
    except ValidationError:
        return
    wrong = problems(stack("prod", pools=[found]), today=TODAY)
    assert all(item.sentence and item.remedy for item in wrong)
    if not wrong:
        groups = zone_groups(found, ZONES)
        assert sum(group.scaling.max for group in groups) == high
        assert all(0 <= group.scaling.min <= group.scaling.desired <= group.scaling.max for group in groups)


def test_two_pools_of_one_name_are_told_beside_the_other_mistakes():
    config = parse(changed(DEV, pools__1__name="l4", cluster__admins=[DEV.cluster.admins[0]] * 2))
    assert [item.key for item in problems(config, today=TODAY)] == ["pools", "cluster.admins"]
    assert "pools: l4 stands there more than once; give each pool its own name" in sentences(config)


def test_a_repository_that_is_named_after_another_environment_is_refused_with_the_name_that_would_be_right():
    names = ["enginehouse/dev/gateway", "team/staging", "enginehouse/mine/dev", "team/developers"]
    config = stack("mine", repositories=names)
    found = sentences(config, others={"dev", "staging", "prod"})
    assert [text.partition("; ")[2] for text in found] == ["take enginehouse/mine/gateway", "take team/mine"]
    assert "carries the name of the environment dev" in found[0]
    assert sentences(config) == []


@pytest.mark.parametrize("text", [None, "", "[]", "3", '"text"'])
def test_no_configuration_is_one_message(text):
    with pytest.raises(StackRefused) as caught:
        parse(text)
    assert len(caught.value.problems) == 1


def test_everything_that_is_not_filled_in_is_one_message():
    config = stack("prod", versions={}, system_nodes={}, cluster={
        "kubernetes": "1.36", "admins": ["arn:aws:iam::000000000000:role/x"]
    })  # fmt: skip
    (told,) = sentences(config)
    for key in ("cluster.admins[0]", "system_nodes.release", "versions.addons.vpc-cni", "versions.addons.coredns"):
        assert key in told
    assert "aws-fsx-csi-driver" not in told  # no Lustre, no driver
    assert "python -m infra.fill_versions --stack-file Pulumi.prod.yaml --write" in told


@pytest.mark.parametrize("environment", ["dev", "staging", "prod"])
def test_the_examples_are_complete_but_for_what_only_an_account_knows(checkout, environment):
    content = read_mapping(checkout / f"Pulumi.{environment}.yaml")["config"]["enginehouse:stack"]
    config = parse(json.dumps(content))
    assert config.environment == environment
    (told,) = sentences(config)
    assert "values are not filled in" in told


@given(values=st.integers(0, 3), mistakes=st.integers(0, 3))
def test_the_summary_counts_values_and_mistakes_apart(values, mistakes):
    open_ = [Problem("enginehouse:stack", "", "open", "fill in", unfilled=values)] if values else []
    told = StackRefused([*open_, *[Problem("x", "", "wrong", "right")] * mistakes]).summary
    assert (f"{values} value{'s' * (values > 1)} to fill in" in told) == (values > 0)
    assert told.endswith(f"{mistakes} mistake{'s' * (mistakes > 1)}") == (mistakes > 0)


def test_a_program_that_lacks_values_alone_says_how_many_and_speaks_of_no_mistake(monkeypatch):
    content = json.loads(changed(DEV, system_nodes__release=None, pools__0__image={}))
    error, (message,) = refused(monkeypatch, {"enginehouse:stack": content}, AWS_PROFILE="x")
    assert error == "the stack is refused: 2 values to fill in; nothing was registered"
    assert "2 values are not filled in: system_nodes.release, pools.l4.image.release" in message


@given(account=st.integers(0, 10**12 - 1))
def test_an_account_without_quotes_is_taken_where_all_its_digits_are_there(account):
    text = changed(DEV, account=account)
    if account >= 10**11:
        assert parse(text).account == str(account)
        return
    with pytest.raises(StackRefused) as caught:
        parse(text)
    (problem,) = caught.value.problems
    assert problem.key == "account"
    assert "write it in quotes" in problem.remedy


@pytest.mark.parametrize("line", ["account: 012345678901", "account: 01234567", "account: 1_2345"])
def test_a_files_account_that_lost_a_digit_is_refused(checkout, line):
    text = (checkout / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    with pytest.raises(StackRefused, match=r'account: an account has 12 digits.*in quotes, such as "012345678901"$'):
        config_of_file(text.replace('account: "000000000000"', line))


def test_pools_of_the_folder_must_be_those_of_the_stack():
    same = NodePool(name="l4", instance_type="g6.xlarge", purchase="spot", max_nodes=6)
    other = NodePool(name="h100-blok", instance_type="p5.48xlarge")
    told = "\n".join(sentences(PROD, pools=(same, other)))
    assert "which the stack does not build; did you mean 'h100-block'?" in told
    assert "lacks the pool h100-block" in told
    fewer = same.model_copy(update={"max_nodes": 2})
    (told,) = sentences(stack("prod"), pools=(fewer,))
    assert told.startswith("pools.l4.max_nodes: environments/prod/pools.yaml says 2 where the stack says 6")
    assert sentences(stack("prod"), pools=(same,)) == []


def test_credentials_are_looked_for_without_asking_anybody(tmp_path):
    nowhere = tmp_path / "no-such-file"
    (problem,) = credential_problems({}, home=tmp_path, machine=nowhere)
    assert "AWS_PROFILE" in problem.sentence
    assert credential_problems({"AWS_PROFILE": "x"}, home=tmp_path, machine=nowhere) == []
    machine = tmp_path / "vendor"
    machine.write_text("Amazon EC2\n")
    assert credential_problems({}, home=tmp_path, machine=machine) == []
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text("")
    assert credential_problems({}, home=tmp_path, machine=nowhere) == []


def refused(monkeypatch, config, **environ):
    """What a refused program says; a `RunError` ends it, and what it registered is looked at before."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    seen = {}

    def run():
        try:
            program.run()
        except pulumi.RunError as error:
            seen["error"] = str(error)

    recording = record(run, config=config)
    assert recording.resources == ()
    return seen["error"], [text for severity, text in recording.messages if severity == "error"]


def test_a_refused_program_registers_nothing_and_says_each_mistake_once(monkeypatch):
    content = json.loads(changed(DEV, pools__0__efa=True, network__flow_log_days=45))
    error, messages = refused(monkeypatch, {"enginehouse:stack": content}, AWS_PROFILE="x")
    assert error == "the stack is refused: 2 mistakes; nothing was registered"
    assert len(messages) == 2
    assert any(text.startswith("network.flow_log_days: ") for text in messages)


def test_a_program_without_configuration_or_credentials_is_refused(monkeypatch):
    assert refused(monkeypatch, {}, AWS_PROFILE="x")[1][0].startswith("enginehouse:stack: ")
    monkeypatch.setattr(Path, "home", lambda: Path("no-such-home"))
    monkeypatch.setattr(program, "credential_problems", lambda environ, home: credential_problems(
        {}, home=home, machine=Path("no-such-file")
    ))  # fmt: skip
    _, messages = refused(monkeypatch, config_of(DEV))
    assert [text.split(":")[0] for text in messages] == ["credentials"]


def test_regions_are_known_without_any_profile(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    regions.cache_clear()
    assert {"eu-central-1", "us-gov-west-1", "cn-north-1"} < set(regions())


def test_a_pool_called_as_a_group_of_another_is_told():
    content = json.loads(STAGING.model_dump_json(exclude_none=True))
    split = next(pool for pool in content["pools"] if pool.get("efa"))
    group = next(iter(zone_groups(STAGING.pools[content["pools"].index(split)], STAGING.network.zones)))
    twin = {**split, "name": split["name"] + group.suffix}
    config = parse(changed(STAGING, pools=[*content["pools"], twin]))
    assert any(f"pools.{twin['name']}.name: {twin['name']} is already the name" in line for line in sentences(config))


def test_roles_of_one_name_are_two_administrators_and_of_one_path_in_resources_are_told():
    role = "arn:aws:iam::111122223333:role"
    apart = parse(changed(DEV, cluster__admins=[f"{role}/a/platform", f"{role}/b/platform"]))
    assert sentences(apart) == sentences(parse(changed(DEV, cluster__admins=[f"{role}/a/platform"])))
    one = parse(changed(DEV, cluster__admins=[f"{role}/a/platform", f"{role}/a-platform"]))
    assert any(line.startswith("cluster.admins[1]: it would be registered under one name") for line in sentences(one))
