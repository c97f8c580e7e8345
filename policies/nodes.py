"""Policies on node groups and their launch templates."""

from collections.abc import Iterable, Iterator

from pulumi_policy.proxy import UnknownValueError

from fleet.cloud import interfaces, node_access, node_groups, node_types
from fleet.cloud.finding import Finding
from fleet.cloud.node_groups import Scaling, Taint, TypePlaces
from fleet.hardware import InstanceType, instance_types
from policies import autoscalers
from policies.adapter import Check, Props, Seen, Stack, StackCheck, gathered
from policies.groups import NODE_GROUP, TEMPLATE, Group, interfaces_of
from policies.inputs_first import inputs_of
from policies.knowledge import Ground
from policies.kubernetes_objects import all_objects
from policies.reading import at, count, flag, has, labels, number, parts, text

_SIZES = {"minSize": "min_size", "desiredSize": "desired_size", "maxSize": "max_size"}
_TEMPLATE_FIELDS = {
    "iamInstanceProfile": "iam_instance_profile",
    "hibernationOptions": "hibernation_options",
    "instanceInitiatedShutdownBehavior": "instance_initiated_shutdown_behavior",
}
_BESIDE_IMAGE = {"ami_type": "amiType", "version": "version", "release_version": "releaseVersion"}
_INTERFACE_FIELDS = {"subnetId": "subnet_id", "networkInterfaceId": "network_interface_id"}


def _interfaces(seen: Seen) -> Iterator[Finding]:
    users = [Group(user) for user in seen.stack.pointing_at(seen, NODE_GROUP, "launchTemplate")]
    asked = interfaces_of(seen.props)
    has_efa = any(item.type in interfaces.EFA_TYPES for item in asked)
    if asked:
        yield from interfaces.layout_findings(asked)
        for shape in _shapes(users) if users else _own_shape(seen):
            yield from interfaces.fit_findings(shape, asked, wants_efa=has_efa)
    if not has_efa:
        for shape in _shapes(filter(_promises_efa, users)):
            yield from interfaces.label_findings(shape)


def _promises_efa(group: Group) -> bool:
    return labels(group.props, "labels").get(interfaces.EFA_LABEL) == "true"


def _own_shape(template: Seen) -> Iterable[InstanceType]:
    """The type that a template names itself: one that a node group does not use, but others do."""
    found = instance_types().get(text(template.props, "instanceType") or "")
    return () if found is None else (found,)


def _shapes(groups: Iterable[Group]) -> Iterable[InstanceType]:
    return {shape.name: shape for group in groups for shape in group.shapes}.values()


def _group_places(seen: Seen) -> Iterator[Finding]:
    on_template = count(seen.props, "vpcSecurityGroupIds") + count(seen.props, "securityGroupNames")
    if on_template:
        asked = count(seen.props, "networkInterfaces")
        yield from node_access.group_place_findings(template_groups=on_template, interfaces=asked)


def _template_fields(seen: Seen) -> Iterator[Finding]:
    fields = {name for key, name in _TEMPLATE_FIELDS.items() if at(seen.props, key)}
    for key, name in _INTERFACE_FIELDS.items():
        if any(has(item, key) for item in parts(seen.props, "networkInterfaces")):
            fields.add(f"network_interfaces.{name}")
    if at(seen.props, "instanceMarketOptions", "spotOptions"):
        fields.add("instance_market_options.spot_options")
    yield from node_groups.template_field_findings(fields)


def _disk(seen: Seen) -> Iterator[Finding]:
    if Group(seen).has_template:
        yield from node_groups.template_disk_findings(number(seen.props, "diskSize"))


def _remote_access(seen: Seen) -> Iterator[Finding]:
    if Group(seen).has_template:
        yield from node_groups.template_access_findings(has_remote_access=at(seen.props, "remoteAccess") is not None)


def _types(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    yield from node_groups.type_findings(TypePlaces(group.template_type, group.group_types))


def _known_types(seen: Seen) -> Iterator[Finding]:
    for name in Group(seen).types:
        yield from node_types.type_findings(name)


def _template_version(seen: Seen) -> Iterator[Finding]:
    if not Group(seen).has_template:
        return
    try:
        version = text(seen.props, "launchTemplate", "version")
    except UnknownValueError:
        if seen.comes_from("launchTemplate", TEMPLATE):  # only a number can come from there
            return
        raise
    yield from node_types.template_version_findings(version)


def _version_with_image(seen: Seen) -> Iterator[Finding]:
    if text(Group(seen).template_props, "imageId") is None:
        return
    said = {name: text(props, key) for name, key in _BESIDE_IMAGE.items() for props in _said_by_people(seen)}
    yield from node_groups.image_findings(has_image=True, settings=said)


def _said_by_people(seen: Seen) -> tuple[Props, ...]:
    """What a group is asked to be; the cloud answers `CUSTOM` and the cluster's version where nobody says them."""
    own = inputs_of(seen.props)
    if own is None:
        return () if text(seen.props, "amiType") == "CUSTOM" else (seen.props,)
    return (own,)


def _scaling(seen: Seen) -> Iterator[Finding]:
    sizes = {name: number(seen.props, "scalingConfig", key) for key, name in _SIZES.items()}
    missing = [name for name, size in sizes.items() if size is None]
    if missing:
        yield Finding(node_groups.SCALING, f"scaling_config says no {', '.join(missing)}")
        return
    least, desired, most = (size or 0 for size in sizes.values())
    yield from node_groups.scaling_findings(Scaling(least, desired, most))


def _taints(seen: Seen) -> tuple[Taint, ...]:
    return tuple(
        Taint(text(item, "key") or "", text(item, "effect") or "", text(item, "value") or "")
        for item in parts(seen.props, "taints")
    )


def _taint_effects(seen: Seen) -> Iterator[Finding]:
    yield from node_groups.taint_findings(_taints(seen))


def _gpu_taint(seen: Seen) -> Iterator[Finding]:
    if Group(seen).has_gpus:
        yield from node_groups.gpu_taint_findings(_taints(seen))


def _labels(seen: Seen) -> Iterator[Finding]:
    yield from node_groups.label_findings(labels(seen.props, "labels"))


def _role(seen: Seen) -> Iterator[Finding]:
    yield from node_groups.role_findings(text(seen.props, "nodeRoleArn") or "")


def _update(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    if not group.shapes:
        return
    has_spare = not group.buying.is_block and group.reservation_id is None
    strategy = text(seen.props, "updateConfig", "updateStrategy")
    yield from node_groups.update_findings(group.shapes[0], strategy, has_spare=has_spare)


def _repair(seen: Seen) -> Iterator[Finding]:
    if Group(seen).has_gpus:
        is_enabled = flag(seen.props, "nodeRepairConfig", "enabled")
        yield from node_groups.repair_findings(is_enabled=is_enabled)


def _autoscalers(stack: Stack, _: Ground) -> Iterator[tuple[Seen | None, Finding | Exception]]:
    ways: list[str] = []
    yield from gathered(stack.by_urn.values(), autoscalers.ways_of, ways)
    if autoscalers.CLUSTER_AUTOSCALER not in ways:
        yield from gathered(all_objects(stack), autoscalers.ways_of_pods, ways)
    found = node_groups.autoscaler_findings(
        has_karpenter=autoscalers.KARPENTER in ways,
        has_cluster_autoscaler=autoscalers.CLUSTER_AUTOSCALER in ways,
        has_auto_mode=autoscalers.AUTO_MODE in ways,
    )
    for finding in found:
        yield None, finding


_TEMPLATES, _GROUPS = (TEMPLATE,), (NODE_GROUP,)
CHECKS = (
    Check(interfaces.RULES, _TEMPLATES, _interfaces, relates=True),
    Check((node_access.GROUPS_TWICE,), _TEMPLATES, _group_places),
    Check((node_groups.FORBIDDEN,), _TEMPLATES, _template_fields),
    Check((node_groups.DISK_SIZE,), _GROUPS, _disk),
    Check((node_groups.REMOTE_ACCESS,), _GROUPS, _remote_access),
    Check((node_groups.INSTANCE_TYPES,), _GROUPS, _types, relates=True),
    Check((node_types.UNKNOWN_TYPE,), _GROUPS, _known_types, relates=True),
    Check((node_types.TEMPLATE_VERSION,), _GROUPS, _template_version, relates=True),
    Check((node_groups.VERSION_WITH_IMAGE,), _GROUPS, _version_with_image, relates=True),
    Check((node_groups.SCALING,), _GROUPS, _scaling),
    Check((node_groups.TAINT_EFFECT,), _GROUPS, _taint_effects),
    Check((node_groups.GPU_TAINT,), _GROUPS, _gpu_taint, relates=True),
    Check((node_groups.LABEL,), _GROUPS, _labels),
    Check((node_groups.ROLE,), _GROUPS, _role),
    Check((node_groups.UPDATE_STRATEGY,), _GROUPS, _update, relates=True),
    Check((node_groups.NODE_REPAIR,), _GROUPS, _repair, relates=True),
    StackCheck((node_groups.AUTOSCALERS,), _autoscalers),
)
