"""The platform with faults planted into it.

``planted:faults`` lists them as [type, end of the name, path, value], ``planted:objects`` has more objects of the
cluster by their name.
"""

import pulumi
from pulumi.runtime import register_resource_transform
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import ConfigMap, Service

from infra.program import run

FAULTS = pulumi.Config("planted").require_object("faults")
OBJECTS = pulumi.Config("planted").get_object("objects") or {}
CORE = {"ConfigMap": ConfigMap, "Service": Service}
"""Kinds of the core group, whose types a custom resource can't have."""


def plant(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Writes each fault's value into the resource that it is about."""
    props = dict(args.props)
    for type_, end, path, value in FAULTS:
        if args.type_ == type_ and args.name.endswith(end):
            props = written(props, path, value)
    return pulumi.ResourceTransformResult(props, args.opts)


def written(found, path, value):
    """The same with another value at a path; None takes it out."""
    if not path:
        return value
    copied = list(found) if isinstance(found, list) else dict(found)
    key, *rest = path
    if value is None and not rest:
        copied.pop(key, None)
    else:
        copied[key] = written(copied[key] if rest else None, rest, value)
    return copied


def add(name, apiVersion, kind, **fields):
    """Puts an object in."""
    if kind in CORE:
        CORE[kind](name, **fields)
    else:
        CustomResource(name, apiVersion, kind, fields["spec"], fields["metadata"])


register_resource_transform(plant)
run()
for name, item in OBJECTS.items():
    add(name, **item)
