"""Every line of the table of changes says where it comes from, and what can be looked up is looked up."""

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from functools import cache

import botocore.session
import pytest
from botocore.model import ServiceModel, StructureShape

from tests.pulumi.doubles.changes import Row, UnlistedChange, changed_paths, read_rows, row_of
from tests.pulumi.doubles.enum_check import allowed_words
from tests.pulumi.doubles.enum_check import rows as enum_rows
from tests.pulumi.doubles.sdk_types import NotInSdk, resource_type

ROWS = read_rows()
EFFECT = re.compile(r"update|replace(?: if smaller| if removed| if input \w+| unless setting \w+)?")
READ_THERE = ("provider ", "pulumi-kubernetes ", "Kubernetes API", "documentation of botocore ")


@cache
def service(name: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(name)


def members(shape: str) -> dict[str, str]:
    """Name of each member of a request -> what botocore says about it."""
    found = service(shape.split(".")[0]).shape_for(shape.split(".")[1])
    assert isinstance(found, StructureShape), f"{shape} is no structure"
    return {name: member.documentation for name, member in found.members.items()}


def faults(row: Row) -> Iterator[str]:
    """What is wrong with the source of a line."""
    kind, _, rest = row.source.partition(" ")
    if row.source.startswith("no api "):
        yield from _in_requests(row, row.source.removeprefix("no api ").split())
    elif row.source.startswith("no operation "):
        yield from _operations(*row.source.split()[2:4])
    elif kind in ("api", "key"):
        yield from (f"{word} is no member" for word in rest.split() if not _is_member(word))
    elif kind == "sdk":
        yield from () if _is_argument(*rest.split(".")) else (f"{rest} does not exist",)
    elif not row.source.startswith(READ_THERE):
        yield f"source of no known kind: {row.source}"


def _is_argument(module: str, name: str, argument: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the module may have deprecated neighbours
        args = getattr(importlib.import_module(f"pulumi_aws.{module}"), name)
    return argument in inspect.signature(args.__init__).parameters


def _is_member(word: str) -> bool:
    shape, _, member = word.rpartition(".")
    return member in members(shape)


def _in_requests(row: Row, shapes: list[str]) -> Iterator[str]:
    last = row.path.split(".")[-1].lower().rstrip("s")
    for shape in shapes:
        if last in {name.lower().rstrip("s") for name in members(shape)}:
            yield f"{shape} has {row.path}"


def _operations(name: str, noun: str) -> Iterator[str]:
    pattern = re.compile(rf"^(?:Modify|Update|Replace|Put|Set){noun}s?$")
    yield from (f"{name} has {found}" for found in service(name).operation_names if pattern.match(found))


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: f"{row.token} {row.path}")
def test_a_line_has_an_effect_and_a_source_that_holds(row: Row) -> None:
    assert EFFECT.fullmatch(row.effect)
    assert list(faults(row)) == []


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: f"{row.token} {row.path}")
def test_a_line_is_about_a_property_that_the_sdk_has(row: Row) -> None:
    if row.token.endswith(":*"):
        return
    package = f"pulumi_{row.token.split(':')[0]}"
    try:
        type_ = resource_type(package, row.token)
    except NotInSdk:
        assert row.token.startswith("kubernetes:keda.sh/")
        return
    assert row.path.split(".")[0] in {*type_.inputs, *type_.outputs}


@pytest.mark.parametrize("source", ["api ec2.ModifyVpcAttributeRequest.Colour", "no api ec2.ModifyVpcAttributeRequest",
    "no operation ec2 LaunchTemplate", "sdk ec2.VpcArgs.colour", "somebody told me"])  # fmt: skip
def test_a_source_that_does_not_hold_is_found(source: str) -> None:
    assert list(faults(Row("aws:ec2/vpc:Vpc", "enableDnsSupport", "update", source)))


def test_the_best_fitting_line_counts() -> None:
    group = "aws:eks/nodeGroup:NodeGroup"
    assert row_of(ROWS, group, "launchTemplate.version").effect == "update"
    assert row_of(ROWS, group, "launchTemplate.id").effect == "replace"
    assert row_of(ROWS, group, "taints[0].effect").path == "taints"
    assert row_of(ROWS, group, "tags.team").token == "aws:*"
    with pytest.raises(UnlistedChange):
        row_of(ROWS, group, "launchTemplate.colour")


def test_changes_are_told_by_their_smallest_paths() -> None:
    old = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    new = {"a": {"b": 2, "c": [1, 3, 4]}, "e": 1}
    assert list(changed_paths(old, new)) == ["a.b", "a.c[1]", "a.c[2]", "d", "e"]
    assert list(changed_paths(old, old)) == []


def test_the_words_come_from_the_models_of_the_apis() -> None:
    group = allowed_words("aws:eks/nodeGroup:NodeGroup")
    assert {"amitype", "capacitytype", "taints.effect", "updateconfig.updatestrategy"} <= group.keys()
    template = allowed_words("aws:ec2/launchTemplate:LaunchTemplate")
    assert template["networkinterfaces.interfacetype"] == ("interface", "efa", "efa-only")
    assert "capacity-block" in template["instancemarketoptions.markettype"]
    assert "PERSISTENT_2" in allowed_words("aws:fsx/lustreFileSystem:LustreFileSystem")["deploymenttype"]
    assert all(allowed_words(token) for token in enum_rows())
