"""The provider of the account writes the stack's tags on everything: by value, as somebody reads them on a bill."""

import json

import pytest

from infra.providers import aws_provider
from tests.infra.recording import record
from tests.infra.stacks import stack


def default_tags(config):
    """What the provider is told."""
    recording = record(lambda: aws_provider("aws", config))
    return json.loads(recording.one("pulumi:providers:aws").inputs["defaultTags"])["tags"]


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_everything_says_whose_it_is_and_where_it_comes_from(environment):
    assert default_tags(stack(environment, owner="payments")) == {
        "environment": environment,
        "owner": "payments",
        "managed-by": "pulumi",
        "project": "enginehouse",
    }


def test_the_stacks_own_tags_stand_beside_them():
    found = default_tags(stack("prod", owner="payments", tags={"cost-center": "4711", "team": "search"}))
    assert found == {
        "cost-center": "4711",
        "team": "search",
        "environment": "prod",
        "owner": "payments",
        "managed-by": "pulumi",
        "project": "enginehouse",
    }
