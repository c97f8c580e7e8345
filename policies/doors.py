"""Policies on the doors of the control plane: Services, Ingresses and routes that lead to it."""

from collections.abc import Iterator
from typing import Literal

from fleet.cloud import identity
from fleet.cloud.finding import Finding
from fleet.cloud.identity import ServiceDoor
from policies.adapter import Check, Props, Seen
from policies.reading import at, count, labels, parts, text

_CONTROL_PLANE = "control-plane"
_SERVICE = ("kubernetes:core/v1:Service",)
_INGRESS = (
    "kubernetes:networking.k8s.io/v1:Ingress",
    "kubernetes:networking.k8s.io/v1beta1:Ingress",
    "kubernetes:extensions/v1beta1:Ingress",
)
_GATEWAY = "kubernetes:gateway.networking.k8s.io"
_ROUTES = tuple(
    f"{_GATEWAY}/{version}:{kind}Route"
    for version in ("v1", "v1beta1", "v1alpha2", "v1alpha3")
    for kind in ("HTTP", "GRPC", "TLS", "TCP")
)
_NO_COMPONENT = frozenset({"app.kubernetes.io/part-of", "helm.sh/chart"})
"""Labels that say to what something belongs, not what it is."""
_SERVICE_SCHEME = "service.beta.kubernetes.io/aws-load-balancer-scheme"
_SERVICE_INTERNAL = "service.beta.kubernetes.io/aws-load-balancer-internal"
_INGRESS_SCHEME = "alb.ingress.kubernetes.io/scheme"


def _also(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds with what else the SDK has of each: its patch, and the list of several."""
    return tuple(f"{kind}{form}" for kind in kinds for form in ("", "Patch", "List"))


def _objects(seen: Seen) -> tuple[Props, ...]:
    return parts(seen.props, "items") if seen.type.endswith("List") else (seen.props,)


def _service(seen: Seen) -> Iterator[Finding]:
    for props in _objects(seen):
        opens = _service_opens(props)
        if opens != "nothing" and _is_before_control_plane(props):
            yield from identity.door_findings(ServiceDoor(_CONTROL_PLANE, "Service", opens))


def _service_opens(props: Props) -> Literal["nothing", "nodes", "network", "internet"]:
    kind = text(props, "spec", "type")
    if kind == "NodePort":
        return "nodes"
    if kind != "LoadBalancer":
        return "internet" if count(props, "spec", "externalIPs") else "nothing"
    notes = at(props, "metadata", "annotations") or {}
    internal = (text(notes, _SERVICE_INTERNAL) or "false").lower()
    return "network" if text(notes, _SERVICE_SCHEME) == "internal" or internal != "false" else "internet"


def _is_before_control_plane(props: Props) -> bool:
    """Whether its selector, its labels or its name say that it leads to the control plane."""
    named = {**labels(props, "metadata", "labels"), **labels(props, "spec", "selector")}
    values = [value for key, value in named.items() if key not in _NO_COMPONENT]
    return any(map(_is_control_plane, [*values, text(props, "metadata", "name")]))


def _ingress(seen: Seen) -> Iterator[Finding]:
    for props in _objects(seen):
        if _leads_to_control_plane(props):
            notes = at(props, "metadata", "annotations") or {}
            is_internal = text(notes, _INGRESS_SCHEME) == "internal"
            opens: Literal["network", "internet"] = "network" if is_internal else "internet"
            yield from identity.door_findings(ServiceDoor(_CONTROL_PLANE, "Ingress", opens))


def _leads_to_control_plane(props: Props) -> bool:
    backends = [at(props, "spec", key) or {} for key in ("defaultBackend", "backend")]
    for rule in parts(props, "spec", "rules"):
        backends += [at(path, "backend") or {} for path in parts(rule, "http", "paths")]
    names = [text(item, "service", "name") or text(item, "serviceName") for item in backends]
    return any(_CONTROL_PLANE in (name or "") for name in names)


def _route(seen: Seen) -> Iterator[Finding]:
    """A route says nothing of where its gateway listens, so it counts as open."""
    for props in _objects(seen):
        backends = [item for rule in parts(props, "spec", "rules") for item in parts(rule, "backendRefs")]
        if any(_CONTROL_PLANE in (text(item, "name") or "") for item in backends):
            kind = seen.type.rpartition(":")[2]
            yield from identity.door_findings(ServiceDoor(_CONTROL_PLANE, kind, "internet"))


def _is_control_plane(value: str | None) -> bool:
    return value is not None and value.endswith(_CONTROL_PLANE)


CHECKS = (
    Check((identity.ADMIN_API,), _also(_SERVICE), _service),
    Check((identity.ADMIN_API,), _also(_INGRESS), _ingress),
    Check((identity.ADMIN_API,), _also(_ROUTES), _route),
)
