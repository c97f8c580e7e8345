"""Image repositories and caches: immutable, scanned, encrypted; only what ECR can cache is cached."""

import json
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from fleet.cloud.data import repository_findings
from fleet.cloud.identity import document_findings, statements_of
from infra import stack_config
from infra.node_group_names import LONGEST_ENVIRONMENT
from infra.pull_through import CLOSED, OPEN, OPEN_CACHES, NoPullThrough, PullThrough, caches
from infra.repositories import Repositories, RepositoriesArgs
from tests.infra.recording import Recording, record

ECR_NAME = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*"
"""As the API reference of ECR states it (CreateRepository, repositoryName)."""
SECRET = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:ecr-pullthroughcache/docker-AbCdEf"


@cache
def recorded(*, names=("engines/vllm", "gateway"), caches=OPEN_CACHES, protect=True) -> Recording:
    return record(lambda: Repositories("images", RepositoriesArgs("prod", names, protect, caches)))


def test_no_repository_has_a_finding():
    recording = recorded()
    key = recording.one("Key").outputs["arn"]
    for made in recording.of("Repository"):
        (encryption,) = made.inputs["encryptionConfigurations"]
        found = repository_findings(
            made.name,
            mutability=made.inputs["imageTagMutability"],
            is_scanned=made.inputs["imageScanningConfiguration"]["scanOnPush"],
            has_own_key=encryption == {"encryptionType": "KMS", "kmsKey": key},
        )
        assert list(found) == []
        assert made.options.protect
        assert made.inputs["forceDelete"] is False


def test_only_untagged_images_are_pruned():
    recording = recorded(caches=())
    assert len(recording.of("LifecyclePolicy")) == 2
    for policy in recording.of("LifecyclePolicy"):
        (rule,) = json.loads(policy.inputs["policy"])["rules"]
        assert rule["selection"]["tagStatus"] == "untagged"
        assert rule["selection"]["countNumber"] == 14


def test_the_urls_are_the_components_outputs():
    recording = recorded()
    assert [made.inputs["name"] for made in recording.of("Repository")] == ["engines/vllm", "gateway"]
    assert recording.one("Repositories").urn in recording.finished


def test_a_cache_has_a_template_first_and_a_prefix_of_its_environment():
    recording = recorded()
    for rule in recording.of("PullThroughCacheRule"):
        template = recording.one("RepositoryCreationTemplate", rule.name.removesuffix("cache") + "template")
        assert template.urn in rule.depends_on
        assert template.inputs["prefix"] == rule.inputs["ecrRepositoryPrefix"]
        assert template.inputs["prefix"].startswith("prod/")
        assert template.inputs["imageTagMutability"] == "IMMUTABLE"
        assert template.inputs["customRoleArn"] == recording.one("Role").outputs["arn"]
    upstreams = {rule.inputs["upstreamRegistryUrl"] for rule in recording.of("PullThroughCacheRule")}
    assert upstreams == set(OPEN.values())


def test_the_role_of_the_templates_names_what_it_may_touch():
    recording = recorded()
    document = json.loads(recording.one("RolePolicy").inputs["policy"])
    assert list(document_findings("identity", statements_of(document))) == []
    resources = [name for statement in document["Statement"] for name in statement["Resource"]]
    assert resources == [
        "arn:aws:ecr:eu-central-1:111122223333:repository/prod/*",
        recording.one("Key").outputs["arn"],
    ]


@given(secrets=st.dictionaries(st.sampled_from(sorted(CLOSED)), st.just(SECRET)))
def test_the_registries_with_a_secret_are_cached_beside_the_open_ones(secrets):
    found = caches(secrets)
    assert found[: len(OPEN)] == OPEN_CACHES
    assert {item.upstream: item.credential_arn for item in found if item.upstream in CLOSED} == secrets


def test_without_caches_there_is_no_role():
    assert recorded(caches=()).of("Role") == ()


def test_a_registry_with_a_credential_passes_it_on():
    recording = recorded(caches=(PullThrough("docker", SECRET),))
    assert recording.one("PullThroughCacheRule").inputs["credentialArn"] == SECRET


@given(upstream=st.sampled_from([*OPEN, *CLOSED]), has_secret=st.booleans())
def test_a_credential_is_given_exactly_where_the_registry_needs_one(upstream, has_secret):
    secret = SECRET if has_secret else None
    if has_secret == (upstream in CLOSED):
        assert PullThrough(upstream, secret).registry in {*OPEN.values(), *CLOSED.values()}
    else:
        with pytest.raises(NoPullThrough):
            PullThrough(upstream, secret)


@pytest.mark.parametrize(
    ("upstream", "secret", "words"),
    [
        ("nvcr", None, "'nvcr' can't be cached; ECR caches ecr, k8s"),
        ("github", None, "the cache of ghcr.io needs the ARN of a secret"),
        ("github", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:mine", "names no secret that begins with"),
        ("k8s", SECRET, "the cache of registry.k8s.io takes no secret"),
    ],
)
def test_a_cache_that_ecr_would_refuse_is_told_why(upstream, secret, words):
    with pytest.raises(NoPullThrough, match=words.replace("(", r"\(")):
        PullThrough(upstream, secret)


def test_the_prefix_of_every_cache_is_short_enough_for_the_longest_environment():
    secrets = dict.fromkeys(CLOSED, SECRET)
    for name in (*OPEN, *CLOSED):
        assert PullThrough(name, secrets.get(name)).prefix("e" * LONGEST_ENVIRONMENT)


@pytest.mark.parametrize("protect", [True, False])
def test_only_a_stack_that_is_thrown_away_takes_its_images_with_it(protect):
    assert {made.inputs["forceDelete"] for made in recorded(protect=protect).of("Repository")} == {not protect}


def test_names_that_differ_by_a_slash_are_two_repositories():
    assert len(recorded(names=("a/b", "a-b"), caches=()).of("Repository")) == 2


NAMES = TypeAdapter(stack_config.Repository)


WORDS = st.text("az09", min_size=1, max_size=3)


@given(
    words=st.lists(WORDS, min_size=2, max_size=6),
    between=st.lists(st.sampled_from(["/", ".", "_", "__", "-", "---"]), min_size=5, max_size=5),
)
def test_a_name_that_ecr_takes_is_taken(words, between):
    name = words[0] + "".join(f"{sign}{word}" for sign, word in zip(between, words[1:], strict=False))
    assert re.fullmatch(ECR_NAME, name)
    assert NAMES.validate_python(name) == name


@pytest.mark.parametrize(
    "name", ["", "a", "a" * 257, "A1", "-a", "a-", "a..b", "a___b", "a/-b", "a/", "/a", "a b", "a:1", "a1\n"]
)
def test_a_name_that_ecr_does_not_take_is_refused_with_what_would_be_right(name):
    with pytest.raises(ValidationError, match="give 2 to 256"):
        NAMES.validate_python(name)


def test_a_prefix_that_is_too_long_is_refused_with_its_length():
    with pytest.raises(NoPullThrough, match="has 38 letters, ECR takes 30"):
        PullThrough("k8s").prefix("an-environment-with-a-very-long-na")
