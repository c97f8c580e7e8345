"""Routes of the gateway: a public model name, the deployments that serve it, and what people set for it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from pydantic import ValidationError

from control_plane import logs
from control_plane.records import Document, StoredDeployment
from engines.kv_publishing import kv_events, kv_ranks
from engines.priority import takes_priority
from engines.request_side import text_operations
from fleet.output_policy import NO_FILTER
from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewayShadow, HostedEndpoint

_OWN = frozenset({"model", "tenants", "arms", "output_filter", "closed_paths", "max_output_tokens", "shadow"})
"""Fields of a route that are made here; the others pass from the settings as they are."""
_CLOSED = ("path", "reference")
"""What the gateway is told of a closed path."""
_SERVED: Mapping[str, tuple[str, ...]] = {
    "embedding": ("embedding", "tokenize"),
    "rerank": ("rerank",),
    "speech": ("transcription",),
}
"""What engines of a workload are asked for; others write text."""
_HOSTED_LIMITS = ("requests_per_minute", "tokens_per_minute")


def routes_of(
    deployments: Iterable[StoredDeployment], settings: Mapping[str, Document] | None = None
) -> tuple[GatewayRoute, ...]:
    """One route for each public model name that is deployed; ``settings`` are by this name.

    Where several deployments serve one name, only tenants that all of them admit may ask, and any filter holds for
    all: the default is no.
    """
    by_model: dict[str, list[StoredDeployment]] = defaultdict(list)
    for deployment in deployments:
        by_model[deployment.route.model].append(deployment)
    stated = settings or {}
    return tuple(_route(model, members, stated.get(model, {})) for model, members in sorted(by_model.items()))


def _route(model: str, members: Sequence[StoredDeployment], spec: Document) -> GatewayRoute:
    admitted = set.intersection(*(set(member.route.tenants) for member in members))
    passed = {name: spec[name] for name in GatewayRoute.model_fields.keys() - _OWN if name in spec}
    closed = [{name: item[name] for name in _CLOSED} for item in spec.get("closed_paths", ())]
    settings, shadow = spec.get("arms", {}), spec.get("shadow", {})
    by_name = {member.name: _arms(member, settings.get(member.name, {})) for member in members}
    copied = by_name.pop(shadow.get("deployment", ""), ())
    return GatewayRoute.model_validate(
        {
            **passed,
            "queue": spec.get("queue", {}) | ({"waits_without_engine": True} if any(map(_sleeps, members)) else {}),
            "model": model,
            "tenants": tuple(sorted(admitted)),
            "output_filter": _output_filter(members, spec),
            "max_output_tokens": spec.get("max_output_tokens") or _max_output_tokens(members),
            "arms": tuple(arm for arms in by_name.values() for arm in arms),
            "shadow": _shadow(copied, shadow),
            "closed_paths": closed,
        }
    )


def _shadow(arms: Sequence[GatewayArm], setting: Document) -> GatewayShadow | None:
    """The arm that gets copies: of several identities the one with the most weight, which is the one that stays."""
    if not arms:
        return None
    return GatewayShadow(arm=max(arms, key=lambda arm: arm.weight), share=setting["share"])


def _output_filter(members: Sequence[StoredDeployment], spec: Document) -> str:
    """The one that people set for the route, else the first by name that a manifest asks for."""
    asked = sorted({member.route.output_filter for member in members} - {NO_FILTER})
    chosen = str(spec.get("output_filter", NO_FILTER))
    return chosen if chosen != NO_FILTER else next(iter(asked), NO_FILTER)


def _sleeps(deployment: StoredDeployment) -> bool:
    """Whether it may have no engine until somebody waits for one."""
    scaling = _spec(deployment).get("scaling", {})
    return bool(scaling.get("min") == 0 or scaling.get("idle", "never") != "never")


def _max_output_tokens(members: Sequence[StoredDeployment]) -> int | None:
    """The longest answer that any of its engines can write; ``None`` = one of them does not say."""
    longest = [_spec(member).get("batch", {}).get("max_model_len") for member in members]
    return max(longest) if all(longest) else None


def _arms(deployment: StoredDeployment, setting: Document) -> Sequence[GatewayArm]:
    """One arm for each identity that has endpoints; one whose endpoints all drain has no weight.

    Identities of one deployment share its weight by their endpoints that take requests, so that a replacement of pods
    moves no traffic from or to other deployments.
    """
    by_identity: dict[str, list[GatewayEndpoint]] = {}
    for item in deployment.endpoints:
        endpoint = GatewayEndpoint(address=item.address, is_draining=item.is_draining)
        by_identity.setdefault(item.identity, []).append(endpoint)
    if not by_identity:
        by_identity[deployment.identity] = []
    ready = {identity: sum(not item.is_draining for item in items) for identity, items in by_identity.items()}
    hosted = _hosted(deployment, setting)
    spec = _spec(deployment)
    flags = (spec.get("engine") or {}).get("flags", {})
    published = setting.get("kv_events") or kv_events(deployment.engine, flags, spec.get("features", {}))
    return [
        GatewayArm(
            deployment=deployment.name,
            identity=identity,
            engine=deployment.engine,
            weight=float(setting.get("weight", 1.0)) * _part(ready, identity, has_endpoints=bool(endpoints)),
            endpoints=tuple(endpoints),
            tenants=tuple(setting.get("tenants", ())),
            hosted=hosted,
            takes_priority=takes_priority(deployment.engine, flags),
            kv_events=published,
            kv_ranks=kv_ranks(flags, spec.get("parallelism", {}).get("data", 1)),
            serves=tuple(setting.get("serves") or _serves(deployment)),
        )
        for identity, endpoints in sorted(by_identity.items())
    ]


def _serves(deployment: StoredDeployment) -> Sequence[str]:
    """By its workload, else what its engine takes for text; nothing = the gateway's own default."""
    return _SERVED.get(_spec(deployment).get("workload", "")) or text_operations().get(deployment.engine, ())


def _part(ready: Mapping[str, int], identity: str, *, has_endpoints: bool) -> float:
    total = sum(ready.values())
    if not total:
        return 0.0 if has_endpoints else 1.0
    return float(Fraction(ready[identity], total))


def _hosted(deployment: StoredDeployment, setting: Document) -> HostedEndpoint | None:
    """Somebody else's engine, as its manifest says; what can't be used is told and left out."""
    hosted = _spec(deployment).get("hosted")
    if hosted is None:
        return None
    limits = {name: setting[name] for name in _HOSTED_LIMITS if name in setting}
    stated = {"url": hosted["endpoint"], "model": hosted["model"], "api_key_ref": hosted["api_key_ref"], **limits}
    try:
        return HostedEndpoint.model_validate(stated)
    except ValidationError as error:
        fields = sorted({str(item["loc"][0]) for item in error.errors(include_input=False) if item["loc"]})
        logs.get().error(logs.HOSTED_LEFT_OUT, deployment=deployment.name, fields=fields)
        return None


def _spec(deployment: StoredDeployment) -> Document:
    spec: Document = deployment.document.get("spec", {})
    return spec
