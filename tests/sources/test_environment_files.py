"""Environments, policy and manifests as files: what is right is read, what is wrong is named with its place."""

import os
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.manifest import ManifestError
from fleet.prices import bundled
from fleet.severity import Severity
from sources import environment, facts, manifest_file, policy_file
from sources.errors import SourceError
from sources.yaml_file import mapping_of, read_text

IDENTITY = "0123456789abcdef0123456789abcdef"
DIGEST = "a" * 64
WAIVER = f"identity: '{IDENTITY}'\nadvisory: CVE-1\nowner: ann\nreason: tested\nexpires: 2030-02-01\n"
IMAGE = f"{{engine: vllm, version: 0.33.0, digest: 'r/vllm@sha256:{DIGEST}', date: 2030-01-01, who: ann}}"
PRICE = "instance_type: g6.xlarge, usd_per_hour: 0.5, source: our contract"
POOL = "{name: l4, instance_type: g6.12xlarge}"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@given(text=st.text(max_size=60))
def test_any_text_is_a_mapping_or_a_source_error(text):
    try:
        found = mapping_of(text, source="any.yaml")
    except SourceError as error:
        found = str(error)
    assert isinstance(found, dict) or found.startswith("any.yaml: ")


def test_an_environment_is_read(tmp_path: Path):
    write(tmp_path / "waivers" / "one.yaml", WAIVER)
    triage = "{name: t, package: vllm, advisory: CVE-2, versions: ['0.33.0'], status: not_affected, "
    triage += "owner: ann, reason: read the code, reference: https://a.invalid, expires: 2030-02-01}"
    write(tmp_path / "triage" / "vllm.yml", f"triage: [{triage}]")
    write(tmp_path / "images.yaml", f"images: [{IMAGE}]")
    write(tmp_path / "adopted.yaml", f"adopted: [{{name: chat, identity: '{IDENTITY}'}}]")
    write(tmp_path / "pools.yaml", "pools: [{name: l4, instance_type: g6.12xlarge, sharing: mps, max_nodes: 2}]")
    write(tmp_path / "waivers" / "README.md", "not an entry")
    found = environment.read(tmp_path)
    assert [waiver.name for waiver in found.waivers] == ["one"]
    assert found.waivers[0].expires == date(2030, 2, 1)
    assert [entry.advisory for entry in found.triage] == ["CVE-2"]
    assert [image.version for image in found.images] == ["0.33.0"]
    assert [item.identity for item in found.adopted] == [IDENTITY]
    assert [(pool.name, pool.instance.gpus, pool.max_nodes) for pool in found.pools] == [("l4", 4, 2)]


def test_a_folder_that_is_not_there_is_an_empty_environment(tmp_path: Path):
    assert environment.read(tmp_path / "nowhere") == environment.Environment()


def test_own_prices_count_before_the_bundled_ones_and_stand_in_the_facts(tmp_path: Path):
    rows = f"[{{{PRICE}, as_of: 2030-01-01}}, {{{PRICE.replace('0.5', '0.2')}, purchase: spot, as_of: 2030-Q1}}]"
    write(tmp_path / "local" / "prices.yaml", f"prices: {rows}")
    found = facts.load("local", today=date(2030, 1, 1), environments_dir=tmp_path)
    price = found.prices.price("g6.xlarge")
    assert (price.usd_per_hour, price.as_of, price.source) == (0.5, "2030-01-01", "our contract")
    assert found.prices.usd_per_hour("g6.xlarge", purchase="spot") == 0.2
    assert found.prices.usd_per_hour("p5.48xlarge") == bundled().usd_per_hour("p5.48xlarge")
    plain = facts.load("local", today=date(2030, 1, 1), environments_dir=tmp_path / "none")
    assert plain.prices is None
    assert plain.digest != found.digest
    assert facts.loads(facts.dumps(found), source="bundle").prices == found.prices


def test_a_price_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(SourceError, match="no such file; it holds a list under 'prices'"):
        environment.read_prices(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("waivers/a.yaml", WAIVER + "ownr: x\n", "/ownr: unknown field 'ownr'; did you mean 'owner'?"),
        ("waivers/a.yaml", WAIVER.replace("2030-02-01", "soon"), "/expires"),
        ("waivers/a.yaml", "- 1", "expected a mapping, found a list"),
        ("waivers/a.yaml", "", "expected a mapping, found an empty file"),
        ("waivers/a.yaml", "owner: a\nowner: b", "line 2"),
        ("waivers/a.yaml", "a: &x [1]\nb: *x", "the alias '*x' is not allowed"),
        ("waivers/a.yaml", "waivers: {}", "/waivers: expected a list, found dict"),
        ("waivers/a.yaml", "waivers: [1]", "/waivers/0: expected a mapping"),
        ("waivers/a.yaml", "waivers: []\nother: 1", "/other: a file with 'waivers' has no other key"),
        ("triage/a.yaml", "triage: [{name: t}]", "/triage/0/package"),
        ("images.yaml", IMAGE, "expected a list under 'images'"),
        ("images.yaml", f"images: [{IMAGE.replace('0.33.0', '0.10')}]", "/images/0/version"),
        ("images.yaml", f"images: [{IMAGE.replace(DIGEST, 'latest')}]", "/images/0/digest"),
        ("adopted.yaml", "adopted: [{name: chat, identity: short}]", "/adopted/0/identity"),
        ("pools.yaml", "- name: l4", "expected a mapping, found a list"),
        ("pools.yaml", "name: l4", "expected a list under 'pools'"),
        ("pools.yaml", "pools: [{name: l4, instance_type: g6.12xl}]", "/pools/0/instance_type"),
        ("pools.yaml", f"pools: [{POOL}, {POOL}]", "/pools/1/name: 'l4' is taken by /pools/0"),
        ("pools.yaml", f"pools: [{POOL[:-1]}, max_node: 1}}]", "did you mean 'max_nodes'?"),
        ("pools.yaml", f"pools: [{POOL[:-1]}, sharing: mig}}]", "needs MIG, which L4 does not have"),
        ("prices.yaml", f"prices: [{{{PRICE}}}]", "/prices/0/as_of"),
        ("prices.yaml", f"prices: [{{{PRICE}, as_of: ''}}]", "/prices/0/as_of"),
        ("prices.yaml", f"prices: [{{{PRICE}, as_of: last year}}]", "/prices/0/as_of"),
        ("prices.yaml", f"prices: [{{{PRICE.replace('g6.xlarge', 'g6.xlarg')}, as_of: 2030-01}}]", "did you mean"),
        ("prices.yaml", f"prices: [{{{PRICE}, as_of: 2030-01, purchase: capacity-block}}]", "is not sold as"),
        ("prices.yaml", f"{{{PRICE}, as_of: 2030-01}}", "expected a list under 'prices'"),
        ("waivers/a.yaml", WAIVER + "invented: maybe", "/invented: expected true or false"),
    ],
)
def test_a_wrong_file_is_named_with_the_place_and_what_would_be_right(tmp_path: Path, name, text, message):
    path = write(tmp_path / name, text)
    with pytest.raises(SourceError) as refused:
        environment.read(tmp_path)
    assert str(path) in str(refused.value)
    assert message in str(refused.value)


def test_two_entries_of_one_name_are_refused(tmp_path: Path):
    write(tmp_path / "waivers" / "a.yaml", WAIVER)
    write(tmp_path / "waivers" / "b.yaml", WAIVER + "name: a\n")
    with pytest.raises(SourceError, match="the name 'a' is taken by"):
        environment.read(tmp_path)


def test_invented_entries_are_refused_outside_tests(checkout: Path, tmp_path: Path):
    folder = checkout / "tests" / "data" / "fixtures" / "environment"
    with pytest.raises(SourceError, match="invented entries are for tests alone"):
        environment.read(folder)
    assert environment.read(folder, allow_invented=True).images
    write(tmp_path / "waivers" / "list.yaml", "waivers:\n- invented: true\n  name: x\n")
    with pytest.raises(SourceError, match="/waivers/0/invented"):
        environment.read(tmp_path)


def test_the_bundled_policy_is_the_one_of_the_working_tree(checkout: Path):
    written = checkout / "policies" / "policy.yaml"
    assert (checkout / "sources" / "data" / "policy.yaml").read_bytes() == written.read_bytes()
    assert policy_file.locate(working_tree=checkout) == written


def test_the_policy_grows_stricter_towards_production():
    book = policy_file.read(working_tree=Path("nowhere"))
    local, staging, prod = (policy_file.policy_for(book, name) for name in ("local", "staging", "prod"))
    assert (local.max_advisory_age_days, local.allow_runtime_process) == (None, True)
    assert all(policy.refuse_affected_from is Severity.MEDIUM for policy in (local, staging, prod))
    for policy in (staging, prod):
        assert (policy.max_advisory_age_days, policy.allow_runtime_process) == (7, False)
        assert policy.unrated_affected_needs_triage
        assert policy.denials == ()
    assert (staging.residuals_need_triage_from, prod.residuals_need_triage_from) == (None, Severity.HIGH)


def test_the_named_policy_wins_over_the_working_tree(tmp_path: Path):
    write(tmp_path / "policies" / "policy.yaml", "default: {max_waiver_days: 1}")
    named = write(tmp_path / "mine.yaml", "default: {max_waiver_days: 2}")
    assert policy_file.read(named, working_tree=tmp_path).default.max_waiver_days == 2
    assert policy_file.read(working_tree=tmp_path).default.max_waiver_days == 1
    assert policy_file.policy_for(policy_file.read(named), "anything").max_waiver_days == 2
    with pytest.raises(SourceError, match=r"none\.yaml: can't be read"):
        policy_file.read(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("defaults: {}", "did you mean 'default'?"),
        ("environments: {prod: {max_age: 3}}", "/environments/prod/max_age: unknown field"),
        ("environments: {prod: {refuse_affected_from: awful}}", "/environments/prod/refuse_affected_from"),
        ("environments: {prod: 3}", "/environments/prod"),
    ],
)
def test_a_wrong_policy_is_named_with_its_place(text, message):
    with pytest.raises(SourceError) as refused:
        policy_file.parse(text, source="p.yaml")
    assert str(refused.value).startswith("p.yaml: /")
    assert message in str(refused.value)


def test_an_environment_that_the_policy_does_not_name_is_an_error():
    with pytest.raises(SourceError, match=r"has no environment 'prd'.*did you mean 'prod'"):
        policy_file.policy_for(policy_file.read(), "prd")


def test_a_manifest_is_written_and_read_back(checkout: Path, tmp_path: Path):
    text = "apiVersion: enginehouse.dev/v1\nkind: InferenceDeployment\nmetadata: {name: chat}\nspec:\n"
    text += f"  workload: chat\n  model: {{id: a/b, revision: {'ab' * 20}}}\n"
    path = write(tmp_path / "chat.yaml", text)
    manifest = manifest_file.read(path)
    target = manifest_file.pinned_path(path)
    assert target.name == "chat.pinned.yaml"
    manifest_file.write(target, manifest)
    assert manifest_file.read(target) == manifest
    assert sorted(item.name for item in tmp_path.iterdir()) == ["chat.pinned.yaml", "chat.yaml"]
    with pytest.raises(ManifestError, match="/kind"):
        manifest_file.read(write(tmp_path / "x.yaml", "a: 1"))


def test_text_is_read_up_to_its_limit_and_only_as_utf_8(tmp_path: Path):
    big = tmp_path / "big.yaml"
    big.touch()
    os.truncate(big, 200 * 1024 * 1024)
    with pytest.raises(SourceError, match="209715200 bytes; at most 1000000 are read"):
        read_text(big)
    broken = tmp_path / "latin.yaml"
    broken.write_bytes(b"a: \xe4")
    with pytest.raises(SourceError, match=r"not UTF-8 text \(byte 3"):
        read_text(broken)
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(SourceError, match="not a regular file"):
        read_text(tmp_path / "pipe.yaml")
    with pytest.raises(SourceError, match="can't be read"):
        read_text(tmp_path / "none.yaml")
