"""The decision about one request: who asks, what for, may they, and which engine serves it. No I/O, no clock."""

import hashlib
import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from fleet.snapshot import GatewayArm, GatewayKey, GatewayRoute, GatewayTenant
from gateway.affinity import conversation_key
from gateway.ext_authz import DEPLOYMENT_HEADER, DESTINATION_HEADER, IDENTITY_HEADER, MODEL_HEADER, TENANT_HEADER
from gateway.index import SnapshotIndex
from gateway.limits import Admission, RequestLimits
from gateway.paths import ENGINE_PATHS, MODELS_PATH, PublicPath, public_path
from gateway.refusals import Reason, Refused, quoted, refuse
from gateway.request_document import BadDocument, parse_document
from gateway.router import order_endpoints, pick_arm

REMOVED_HEADERS = ("authorization",)
_MAX_KEY_CHARS = 512
_REJECTED_KEY = (("www-authenticate", "Bearer"),)
_NO_FILTER = "none"


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request; what it holds never shows in its ``repr``."""

    method: str
    target: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    """By lower-case name."""
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Allowed:
    """A request that goes to an engine."""

    tenant: str
    model: str
    deployment: str
    identity: str
    endpoints: tuple[str, ...]
    """Best first; the others are for a connection that fails."""
    headers_to_remove: tuple[str, ...] = REMOVED_HEADERS

    @property
    def headers_to_set(self) -> tuple[tuple[str, str], ...]:
        """What the data plane is told."""
        return (
            (DESTINATION_HEADER, ",".join(self.endpoints)),
            (TENANT_HEADER, self.tenant),
            (MODEL_HEADER, quote(self.model, safe="/:@+ ")),
            (DEPLOYMENT_HEADER, self.deployment),
            (IDENTITY_HEADER, self.identity),
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that the gateway answers itself, with 200."""

    tenant: str
    body: bytes


Decision = Allowed | Refused | Answered


class DecisionCore:
    """The tables, the buckets and the turns that decisions are made from."""

    def __init__(self) -> None:
        self._index: SnapshotIndex | None = None
        self._limits = RequestLimits()
        self._turns: dict[tuple[str, str], int] = {}

    @property
    def index(self) -> SnapshotIndex | None:
        """The tables in use; ``None`` before the first snapshot, when everything is refused."""
        return self._index

    def replace(self, index: SnapshotIndex) -> None:
        """Decide by another snapshot from now on; buckets and turns go on."""
        arms = {(arm.deployment, arm.identity) for route in index.routes.values() for arm in route.arms}
        self._turns = {arm: turn for arm, turn in self._turns.items() if arm in arms}
        self._limits.keep_only(index.tenants)
        self._index = index

    def decide(self, request: Request, now_unix_seconds: float) -> Decision:
        """What happens to a request."""
        if self._index is None:
            return refuse(Reason.NO_SNAPSHOT, "The gateway has not got its configuration yet; try again in a moment.")
        tenant = _authenticate(self._index, request, now_unix_seconds)
        if isinstance(tenant, Refused):
            return tenant
        path = _path(request, tenant)
        if isinstance(path, Refused):
            return path
        if path.method == "GET":
            return _models(self._index, tenant, path.model)
        return self._route(self._index, tenant, request, now_unix_seconds)

    def _route(self, index: SnapshotIndex, tenant: GatewayTenant, request: Request, now: float) -> Decision:
        document = _document(request, tenant)
        if isinstance(document, Refused):
            return document
        route = _allowed_route(index, tenant, document.get("model"))
        if isinstance(route, Refused):
            return route
        admission = self._limits.take(tenant, now)
        if admission is not None and not admission.is_admitted:
            return _too_many(tenant, route, admission)
        arm = pick_arm(route.arms, conversation_key(tenant.name, route.model, document))
        if arm is None:
            message = f"No engine is ready for the model {quoted(route.model)}; try again in a moment."
            return refuse(Reason.NO_ENDPOINT, message, tenant=tenant.name, model=route.model)
        endpoints = order_endpoints(arm, {}, self._next_turn(arm))
        return Allowed(tenant.name, route.model, arm.deployment, arm.identity, endpoints)

    def _next_turn(self, arm: GatewayArm) -> int:
        name = (arm.deployment, arm.identity)
        turn = self._turns.get(name, 0)
        self._turns[name] = turn + 1
        return turn


def _authenticate(index: SnapshotIndex, request: Request, now: float) -> GatewayTenant | Refused:
    scheme, _, presented = request.headers.get("authorization", "").strip().partition(" ")
    presented = presented.strip()
    if scheme.lower() != "bearer" or not presented:
        message = "No API key was sent; send it as the header 'Authorization: Bearer KEY'."
        return refuse(Reason.MISSING_KEY, message, headers=_REJECTED_KEY)
    key = _known_key(index, presented)
    tenant = None if key is None else index.tenants.get(key.tenant)
    if key is None or tenant is None:
        return refuse(Reason.INVALID_KEY, "The API key is not valid here.", headers=_REJECTED_KEY)
    if key.expires_unix_seconds is not None and key.expires_unix_seconds <= now:
        message = "The API key has expired; ask for a new one."
        return refuse(Reason.EXPIRED_KEY, message, headers=_REJECTED_KEY, tenant=tenant.name)
    return tenant


def _known_key(index: SnapshotIndex, presented: str) -> GatewayKey | None:
    if len(presented) > _MAX_KEY_CHARS:
        return None
    digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).hexdigest()
    key = index.keys.get(digest)
    return key if key is not None and hmac.compare_digest(digest, key.sha256.lower()) else None


def _path(request: Request, tenant: GatewayTenant) -> PublicPath | Refused:
    path = public_path(request.target)
    if path is None:
        served = ", ".join((*ENGINE_PATHS, MODELS_PATH))
        return refuse(Reason.UNKNOWN_PATH, f"There is nothing at this path; served are {served}.", tenant=tenant.name)
    if request.method != path.method:
        message = f"This path takes {path.method} only."
        return refuse(Reason.WRONG_METHOD, message, headers=(("allow", path.method),), tenant=tenant.name)
    return path


def _document(request: Request, tenant: GatewayTenant) -> Mapping[str, object] | Refused:
    if request.headers.get("content-encoding", "identity") != "identity":
        message = "The body must be sent uncompressed, without the header 'Content-Encoding'."
        return refuse(Reason.ENCODED_BODY, message, tenant=tenant.name)
    try:
        return parse_document(request.body)
    except BadDocument as error:
        return refuse(Reason.BAD_JSON, f"The body is not valid JSON: {error}.", tenant=tenant.name)


def _allowed_route(index: SnapshotIndex, tenant: GatewayTenant, model: object) -> GatewayRoute | Refused:
    if not isinstance(model, str) or not model:
        message = "The field 'model' is missing or no text; name one of the models that GET /v1/models lists."
        return refuse(Reason.MISSING_MODEL, message, param="model", tenant=tenant.name)
    route = index.routes.get((tenant.name, model))
    if route is None:
        return _model_not_found(tenant, model)
    if route.output_filter != _NO_FILTER:
        message = (
            f"The model {quoted(model)} asks for the output filter {quoted(route.output_filter)}, not served here."
        )
        return refuse(Reason.FILTER_UNAVAILABLE, message, tenant=tenant.name, model=model)
    return route


def _model_not_found(tenant: GatewayTenant, model: str) -> Refused:
    """The same answer whether or not the model exists for others."""
    message = f"The model {quoted(model)} does not exist or you do not have access to it."
    return refuse(Reason.MODEL_NOT_FOUND, message, param="model", tenant=tenant.name)


def _too_many(tenant: GatewayTenant, route: GatewayRoute, admission: Admission) -> Refused:
    seconds = math.ceil(admission.wait_seconds) if math.isfinite(admission.wait_seconds) else None
    headers = [("x-ratelimit-limit-requests", str(admission.limit)), ("x-ratelimit-remaining-requests", "0")]
    wait = "This tenant may send none."
    if seconds is not None:
        headers += [("retry-after", str(seconds)), ("x-ratelimit-reset-requests", f"{seconds}s")]
        wait = f"Try again in {seconds} s."
    message = f"The limit of {admission.limit} requests per minute is used up. {wait}"
    return refuse(Reason.TOO_MANY_REQUESTS, message, headers=tuple(headers), tenant=tenant.name, model=route.model)


def _models(index: SnapshotIndex, tenant: GatewayTenant, model: str | None) -> Answered | Refused:
    names = index.models.get(tenant.name, ())
    if model is not None and model not in names:
        return _model_not_found(tenant, model)
    cards = [{"id": name, "object": "model", "created": 0, "owned_by": "enginehouse"} for name in names]
    if model is None:
        return Answered(tenant.name, json.dumps({"object": "list", "data": cards}).encode())
    return Answered(tenant.name, json.dumps(cards[names.index(model)]).encode())
