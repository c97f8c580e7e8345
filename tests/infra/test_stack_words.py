"""Whatever stands in a stack's configuration: one message for each wrong key, in the stack's words, and no fault."""

import json
import re
from datetime import date
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fleet.cloud.registry import BY_ID
from fleet.value import Value
from infra.config_places import KEY, place_of, shown
from infra.config_reading import parse
from infra.config_words import PATTERNS, flow
from infra.finding_words import LUSTRE_KEYS, REMEDIES
from infra.node_group_names import DIGITS_BEHIND, LONGEST, node_group_names
from infra.problem import StackRefused
from infra.stack_checks import problems
from infra.stack_config import StackConfig
from infra.stack_examples import EXAMPLES, STACK
from tests.infra.built import built
from tests.infra.changed_places import with_value_at
from tests.infra.stacks import DEV, PROD, STAGING, VARIANTS, ZONES, pool, stack

TODAY = date(2030, 1, 1)
LEAKS = (
    "Input should", "Value error", "validation", "Tuple", "discriminator", "constrained", "literal[", "Expecting",
    "pydantic", "Unable to", "valid ", "pattern", "Traceback", "tag '", "capacity_reservation", "release_version",
    "USER_PROVISIONED", "AUTOMATIC", "CAPACITY_BLOCK", "ON_DEMAND",
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**3), 10**6), st.just(10**40), st.text(max_size=8),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["latest", "eu-central-1a", "us-east-1", "", "a\nb", "1", "dra", "mig", "public"]),
)  # fmt: skip
ANYTHING = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.sampled_from(["kind", "name", "x"]), SCALARS, max_size=2)
)


def content_of(config):
    """Everything that a configuration can say, written out."""
    return json.loads(config.model_dump_json())


def places_of(value, above=()):
    """The way to everything in it."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, inner in below:
        yield (*above, part)
        yield from places_of(inner, (*above, part))


PLACES = [(name, path) for name in ("dev", "prod", "staging") for path in places_of(content_of(VARIANTS[name]))]


def told(content):
    """Every problem of a configuration, as the program would tell them."""
    try:
        return problems(parse(content if isinstance(content, str) else json.dumps(content)), today=TODAY)
    except StackRefused as refused:
        return list(refused.problems)


def dashed(**fields):
    """`pools__0__zone=...` as a path and a value."""
    for name, value in fields.items():
        yield tuple(int(part) if part.isdecimal() else part for part in name.split("__")), value


def changed(config, fields):
    content = json.loads(config.model_dump_json(exclude_none=True))
    for path, value in dashed(**fields):
        content = with_value_at(content, path, value)
    return content


@settings(max_examples=400)
@given(at=st.sampled_from(PLACES), value=ANYTHING)
def test_any_value_of_any_key_is_taken_or_told_once_by_its_key(at, value):
    variant, path = at
    found = told(with_value_at(content_of(VARIANTS[variant]), path, value))
    keys = [item.key for item in found]
    assert len(keys) == len(set(keys)), [item.sentence for item in found]
    for item in found:
        assert item.remedy
        assert "\n" not in item.sentence
        assert not [leak for leak in LEAKS if leak in item.sentence], item.sentence


@settings(max_examples=200)
@given(at=st.sampled_from(PLACES), value=ANYTHING)
def test_a_value_that_can_not_be_read_stands_in_the_only_message(at, value):
    variant, path = at
    content = with_value_at(content_of(VARIANTS[variant]), path, value)
    try:
        parse(json.dumps(content))
    except StackRefused as refused:
        place = place_of(path, content)
        if isinstance(place.value, bool | int | float | str) and place.value != "":
            mine = [item for item in refused.problems if item.key in (place.key, f"{place.key}.kind")]
            if len(refused.problems) == 1 and mine:
                assert shown(value) in mine[0].sentence


@given(text=st.text(max_size=10) | ANYTHING.map(json.dumps))
def test_a_stack_that_is_no_mapping_of_ours_is_told_in_plain_words(text):
    found = told(text)
    assert found
    assert not [leak for leak in LEAKS for item in found if leak in item.sentence]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("null", "nothing stands below it, not a mapping"),
        ("", "it is text, not a mapping; write its keys below it"),
        ("hello", "it is text, not a mapping (found hello)"),
        ("[]", "it is a list, not a mapping"),
        ("3", "it is a single value, not a mapping (found 3)"),
        ("[" * 5000, "it is text"),
    ],
)
def test_a_stack_that_is_no_mapping_is_one_message(text, words):
    (problem,) = told(text)
    assert problem.key == KEY
    assert words in problem.sentence


def patterns_in(schema):
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        yield from (found for value in schema.values() for found in patterns_in(value))
    elif isinstance(schema, list):
        yield from (found for value in schema for found in patterns_in(value))


def test_every_form_of_a_text_has_words_and_its_example_is_of_that_form():
    used = set(patterns_in(StackConfig.model_json_schema()))
    assert used <= PATTERNS.keys()
    for pattern in used:
        example = re.search(r'such as "?([^"\s]+)"?$', PATTERNS[pattern][1])
        assert example is None or re.search(pattern, example[1]), pattern


@cache
def fields_below():
    schema = StackConfig.model_json_schema()
    return frozenset(_fields_in(schema))


def _fields_in(schema):
    yield from schema["properties"]
    yield from (name for part in schema["$defs"].values() for name in part.get("properties", ()))


def test_remedies_name_keys_of_the_stack_alone():
    keys, commands = fields_below(), {"fill_versions"}
    assert set(REMEDIES) <= set(BY_ID)
    assert set(LUSTRE_KEYS) <= set(BY_ID)
    for remedy in REMEDIES.values():
        assert set(re.findall(r"[a-z]+(?:_[a-z]+)+", remedy)) <= keys | commands
        assert not re.search(r"\b[A-Z0-9]+_[A-Z_0-9]+\b", remedy)


# A wrong value -> words of the message and what the remedy proposes, which has to be right.
PROPOSALS = {
    "capacity": (PROD, {"weights__capacity_gib": 9700}, r"take (\d+) or (\d+) GiB", "weights__capacity_gib", int),
    "capacity with EFA": (PROD, {"weights__capacity_gib": 19201}, r"take (\d+) or (\d+) GiB",
                          "weights__capacity_gib", int),
    "capacity below all": (PROD, {"weights__capacity_gib": 1200}, r"take (\d+) GiB", "weights__capacity_gib", int),
    "metadata": (PROD, {"weights__metadata_iops": 5000}, r"(automatic), (\d+), (\d+), (\d+) or a multiple of (\d+)",
                 "weights__metadata_iops", lambda text: int(text) if text.isdecimal() else text),
    "most metadata": (PROD, {"weights__metadata_iops": 5000}, r"up to (\d+)", "weights__metadata_iops", int),
    "version": (DEV, {"version": "1"}, r"version: (\d)", "version", int),
    "days": (DEV, {"cluster__log_days": 45}, r"take (\d+), or (\d)", "cluster__log_days", int),
    "add-on without v": (DEV, {"versions__addons__vpc-cni": "1.20.0"}, r"write (v\S+)",
                         "versions__addons__vpc-cni", str),
    "old add-on": (DEV, {"versions__addons__vpc-cni": "v1.1.0"}, r"take (\S+) or", "versions__addons__vpc-cni", str),
    "any add-on": (DEV, {"versions__addons__vpc-cni": "latest"}, r"such as (\S+);", "versions__addons__vpc-cni", str),
    "any other add-on": (DEV, {"versions__addons__coredns": "x"}, r"such as (\S+);", "versions__addons__coredns", str),
    "min": (STAGING, {"pools__0__min_nodes": 9}, r"take (\d+)", "pools__0__min_nodes", int),
    "desired": (STAGING, {"pools__0__desired_nodes": 9}, r"take (\d+) to (\d+)", "pools__0__desired_nodes", int),
    "desired below min": (DEV, {"pools__0__min_nodes": 3, "pools__0__desired_nodes": 1}, r"take (\d+) to (\d+)",
                          "pools__0__desired_nodes", int),
    "system": (DEV, {"system_nodes__min_nodes": 9}, r"take (\d+) or more", "system_nodes__max_nodes", int),
    "long name": (STAGING, {"pools__0__name": "h" * 30}, r"such as (\S+)$", "pools__0__name", str),
    "network": (DEV, {"network__cidr": "10.9.0.1/16"}, r"such as (\S+)$", "network__cidr", str),
    "tiny network": (DEV, {"network__cidr": "10.9.0.5/30"}, r"such as (\S+)$", "network__cidr", str),
    "small numbers": (DEV, {"pools__0__root_volume_gib": 1}, r"give (\d+) or more", "pools__0__root_volume_gib", int),
    "region": (DEV, {"region": "x"}, r"such as (\S+)$", "region", str),
    "account": (DEV, {"account": "1"}, r'such as "(\S+)"$', "account", str),
    "kubernetes": (DEV, {"cluster__kubernetes": 1.4}, r'such as "(\S+)"$', "cluster__kubernetes", str),
    "owner": (DEV, {"owner": 5}, r'quotes: "(\S+)"$', "owner", str),
    "mail": (DEV, {"budget__emails__0": 3}, None, "budget__emails__0", str),
    "type": (DEV, {"pools__0__instance_type": "g6.xlrge"}, r"mean '(\S+)'", "pools__0__instance_type", str),
    "any type": (DEV, {"pools__0__instance_type": "m7i.large"}, r"such as (\S+) or", "pools__0__instance_type", str),
    "system type": (DEV, {"system_nodes__instance_types__0": "m7i.xlrge"}, r"such as (\S+)$",
                    "system_nodes__instance_types__0", str),
    "zone of Lustre": (PROD, {"weights__zone": ZONES[1]}, r"take (\S+),", "weights__zone", str),
    "throughput": (STAGING, {"weights__mb_per_second_per_tib": 3}, r"take (\d+), (\d+), (\d+) or (\d+)",
                   "weights__mb_per_second_per_tib", int),
    "chart": (DEV, {"versions__charts": {"keda": "newest"}}, r"such as (\S+),", "versions__charts__keda", str),
}  # fmt: skip


@pytest.mark.parametrize("name", PROPOSALS)
def test_what_a_message_proposes_is_accepted(name):
    config, fields, pattern, target, kind = PROPOSALS[name]
    wrong = changed(config, fields)
    (problem,) = told(wrong)
    if pattern is None:
        assert problem.remedy == "write text, in quotes"
        return
    found = re.search(pattern, problem.remedy)
    assert found, problem.remedy
    for text in found.groups():
        ((path, _),) = dashed(**{target: None})
        assert not [item.sentence for item in told(with_value_at(wrong, path, kind(text))) if item.key == problem.key]


WRONG = {
    "text version": (DEV, {"version": "1"}, "version", "the text '1'"),
    "block without both": (PROD, {"pools__0__reservation_id": None, "pools__0__ends_on": None},
                           "pools.h100-block.ends_on pools.h100-block.reservation_id", "set reservation_id"),
    "moving release": (DEV, {"pools__0__image__release": "latest"}, "pools.l4.image.release", "fill_versions"),
    "zone z": (DEV, {"network__zones": [ZONES[0], "eu-central-1z"]}, "network.zones", "eu-central-1z"),
    "capacity text": (PROD, {"weights__capacity_gib": "much"}, "weights.capacity_gib", "much is no capacity_gib"),
    "iops text": (PROD, {"weights__metadata_iops": "fast"}, "weights.metadata_iops", "fast is no metadata_iops"),
    "keys of lustre": (DEV, {"weights__zone": ZONES[0], "weights__efa": True}, "weights.kind",
                       "zone, efa belong to kind lustre"),
    "one key of lustre": (DEV, {"weights__zone": ZONES[0]}, "weights.zone", "belongs to kind lustre"),
    "key of node-local": (PROD, {"weights__copy_image": "x"}, "weights.copy_image", "belongs to kind node-local"),
    "a bad zone": (DEV, {"network__zones": ["x", ZONES[0]]}, "network.zones[0]", "x is no zone"),
    "a bad mail": (DEV, {"budget__emails": ["x"]}, "budget.emails[0]", "x is no mail address"),
    "a bad admin": (DEV, {"cluster__admins": ["x"]}, "cluster.admins[0]", "x is no ARN"),
    "a bad pool": (DEV, {"pools": [3]}, "pools[0]", "3 is not a mapping"),
    "no admin": (DEV, {"cluster__admins": []}, "cluster.admins", "give 1 or more"),
    "a type without GPU": (DEV, {"pools__0__instance_type": "m7i.large"}, "pools.l4.instance_type", "no GPU instance"),
    "no kind": (DEV, {"weights": {}}, "weights.kind", "take lustre or node-local"),
    "no such kind": (DEV, {"weights__kind": "fsx"}, "weights.kind", "fsx is no kind of weights"),
    "system release": (DEV, {"system_nodes__release": "latest"}, "system_nodes.release", "is latest"),
    "system release of old": (DEV, {"system_nodes__release": "1.30.0-20300101"}, "system_nodes.release", "not of Kube"),
    "GPU for the system": (DEV, {"system_nodes__instance_types": ["g6.xlarge"]}, "system_nodes.instance_types[0]",
                           "has GPUs"),
    "an AMI": (DEV, {"pools__0__image__release": "ami-0123"}, "pools.l4.image.release", "ami-0123"),
    "AL2023 on Bottlerocket": (DEV, {"pools__0__image": {"family": "bottlerocket", "release": "1.36.0-20300101"}},
                               "pools.l4.image.release", "no release of Bottlerocket"),
    "Lustre alone with EFA": (stack("prod", weights=PROD.weights), {}, "weights.efa", "no pool has EFA"),
    "nobody": (DEV, {"owner": " "}, "owner", "owner is empty"),
    "a section elsewhere": (DEV, {"cidr": "10.0.0.0/16"}, "cidr", "it stands under network"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_told_by_its_key_in_words_of_the_stack(name):
    config, fields, keys, words = WRONG[name]
    content = changed(config, {key: value for key, value in fields.items() if value is not None})
    for path, _ in dashed(**{key: None for key, value in fields.items() if value is None}):
        content["pools"][path[1]].pop(path[2])
    found = told(content)
    assert [item.key for item in found] == keys.split()
    assert any(words in item.sentence for item in found), [item.sentence for item in found]


@given(name=st.sampled_from(sorted(STACK)), at=st.integers(0, 20))
def test_a_mistyped_key_is_one_message_with_the_key_that_was_meant(name, at):
    index = at % len(name)
    typo = name[:index] + name[index + 1 :]
    content = changed(DEV, {})
    if name == "version" or typo in StackConfig.model_fields:
        return
    content[typo] = content.pop(name)
    (problem,) = told(content)
    assert (problem.key, problem.remedy) == (typo, f"did you mean '{name}'?")


@pytest.mark.parametrize("variant", ["dev", "staging", "prod"])
def test_node_groups_are_called_as_they_are_registered(variant):
    config = VARIANTS[variant]
    groups = [item.name for item in built(config).resources if item.type == "aws:eks/nodeGroup:NodeGroup"]
    names = [name for item in config.pools for name in node_group_names(item, config.environment, config.network.zones)]
    assert set(names) <= set(groups)
    assert len(groups) == len(names) + 1  # the system's


@given(letters=st.integers(1, 63), environment=st.integers(1, 20), efa=st.booleans())
def test_a_pools_name_is_refused_where_eks_would_refuse_it_and_nowhere_else(letters, environment, efa):
    named = pool(name="p" * letters, instance_type="p5.48xlarge", zone=ZONES[0], efa=efa)
    config = stack("e" * environment, pools=[named])
    longest = max(map(len, node_group_names(named, config.environment, ZONES))) + DIGITS_BEHIND
    keys = [item.key for item in problems(config, today=TODAY)]
    assert keys == ([f"pools.{named.name}.name"] if longest > LONGEST else [])


def test_what_is_not_filled_in_is_asked_for_in_one_sentence_each():
    nobody = {"kubernetes": "1.36", "admins": ["arn:aws:iam::000000000000:role/x"]}
    (problem,) = problems(stack("dev", account="000000000000", cluster=nobody), today=TODAY)
    assert problem.message == "2 values are not filled in: account, cluster.admins[0]"
    assert problem.remedy == "the account 000000000000 is nobody's: give your own"


SECTIONS = [
    (name, path[:-1])
    for name, path in PLACES
    if isinstance(path[-1], str) and "labels" not in path and path[0] not in ("tags", "pull_through_secrets")
]


@given(at=st.sampled_from(SECTIONS), key=st.text(max_size=12), value=SCALARS)
def test_a_key_that_there_is_not_is_one_message_in_one_line(at, key, value):
    variant, path = at
    content = content_of(VARIANTS[variant])
    place = content
    for part in path:
        place = place[part]
    if key in place or key in fields_below() or "addons" in path or "charts" in path:
        return
    place[key] = value
    (problem,) = told(content)
    assert "unknown field" in problem.message
    assert "\n" not in problem.sentence
    assert not [leak for leak in LEAKS if leak in problem.sentence and leak not in key]


@given(at=st.sampled_from([item for item in PLACES if isinstance(item[1][-1], str)]))
def test_a_key_that_is_left_out_is_at_most_one_message(at):
    variant, path = at
    content = content_of(VARIANTS[variant])
    place = content
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    found = told(content)
    assert len(found) <= 1
    assert not [leak for leak in LEAKS for item in found if leak in item.sentence]


def test_an_example_in_one_line_reads_back():
    for example in EXAMPLES.values():
        assert YAML(typ="safe", pure=True).load(flow(example)) == example


def test_every_required_key_has_an_example_and_the_whole_example_is_right():
    for model, example in EXAMPLES.items():
        assert issubclass(model, Value)
        assert {name for name, field in model.model_fields.items() if field.is_required()} <= example.keys()
        model.model_validate(example)
    (only,) = told(dict(STACK))
    assert only.unfilled
