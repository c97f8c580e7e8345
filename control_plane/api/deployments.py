"""``/v1/deployments``: pinned manifests that the rules accept."""

from typing import Annotated, Any, Literal

from fastapi import Query
from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.auth import Operator, Reader, Services
from control_plane.api.bodies import Body, check_name
from control_plane.api.etags import Demand, etag_of
from control_plane.api.lists import DeploymentList
from control_plane.api.paging import Paging, listing
from control_plane.api.routing import DryRun, NamePath, body_of, changing, reading, router
from control_plane.api.shapes import Deployment, Plan
from control_plane.errors import Invalid
from control_plane.records import Document
from control_plane.services.deployments import Outcome, View
from control_plane.services.reviews import as_member
from fleet.manifest import AnyManifest, Manifest, ManifestError, PinnedManifest, from_document

SERVER_WRITTEN = ("generation", "creationTimestamp", "updateTimestamp", "managedBy")
"""Fields of metadata that the server writes: a client may send back what it read."""
ViewChoice = Annotated[
    Literal["full", "basic"],
    Query(description="`basic` leaves out spec, pin, labels and what the review said: quick for thousands."),
]
deployments = router("deployments")


@deployments.get("/deployments", response_model=DeploymentList, responses=reading(400))
def list_deployments(house: Services, _actor: Reader, page: Paging, view: ViewChoice = "full") -> Response:
    """Every deployment by name, with what its last review said."""
    if view == "basic":
        views, has_more = page.cut(house.deployments.summaries(after=page.after, limit=page.limit))
        documents = [_summary(item) for item in views]
    else:
        views, has_more = page.cut(house.deployments.page(after=page.after, limit=page.limit))
        documents = [document_of(item) for item in views]
    token = page.token(views[-1].stored.name) if has_more else None
    return answer(listing("Deployment", documents, token))


@deployments.get("/deployments/{name}", response_model=Deployment, responses=reading(404))
def get_deployment(house: Services, _actor: Reader, name: NamePath) -> Response:
    """One deployment; its ETag is the version that a change must name."""
    view = house.deployments.get(name)
    return answer(document_of(view), etag=etag_of(view.stored.generation))


@deployments.put(
    "/deployments/{name}",
    response_model=Deployment | Plan,
    responses={201: {"model": Deployment, "description": "Created"}, **changing()},
    openapi_extra=body_of(PinnedManifest, Manifest),
)
def put_deployment(
    house: Services, actor: Operator, name: NamePath, demand: Demand, document: Body, dry_run: DryRun = False
) -> Response:
    """Create or replace a deployment by its pinned manifest; refused manifests are answered with their violations."""
    manifest = _manifest(document, name)
    outcome = house.deployments.put(manifest, demand, actor, is_dry_run=dry_run)
    if dry_run or outcome.view is None:
        return answer(plan_of(name, outcome))
    status = 201 if outcome.verb == "create" else 200
    headers = {"Location": f"/v1/deployments/{name}"} if status == 201 else {}
    etag = etag_of(outcome.view.stored.generation)
    return answer(document_of(outcome.view), status=status, etag=etag, headers=headers)


@deployments.delete(
    "/deployments/{name}",
    response_model=None,
    responses={200: {"model": Plan}, 204: {"description": "Deleted"}, **changing()},
)
def delete_deployment(
    house: Services, actor: Operator, name: NamePath, demand: Demand, dry_run: DryRun = False
) -> Response:
    """Delete a deployment: its engines finish their requests and end."""
    outcome = house.deployments.delete(name, demand, actor, is_dry_run=dry_run)
    return answer(plan_of(name, outcome)) if dry_run else Response(status_code=204)


def _manifest(document: Document, name: str) -> AnyManifest:
    try:
        manifest = from_document(_without_server_fields(document), source=name)
    except ManifestError as error:
        raise Invalid(str(error), error.problems) from None
    check_name(manifest.name, name)
    return manifest


def _without_server_fields(document: Document) -> Document:
    plain = {key: value for key, value in document.items() if key != "status"}
    metadata = plain.get("metadata")
    if isinstance(metadata, dict):
        plain["metadata"] = {key: value for key, value in metadata.items() if key not in SERVER_WRITTEN}
    return plain


def document_of(view: View) -> Document:
    """A deployment as it crosses the API."""
    document = view.stored.document
    return {**document, "metadata": {**document["metadata"], **_metadata(view)}, "status": _status(view)}


def _summary(view: View) -> Document:
    metadata = {"name": view.stored.name, **_metadata(view)}
    kind = {"apiVersion": "enginehouse.dev/v1", "kind": "PinnedInferenceDeployment"}
    return {**kind, "metadata": metadata, "status": _state(view)}


def _metadata(view: View) -> dict[str, Any]:
    stored = view.stored
    return {
        "generation": stored.generation,
        "creationTimestamp": stored.created,
        "updateTimestamp": stored.updated,
        "managedBy": stored.managed_by,
    }


def _state(view: View) -> dict[str, Any]:
    stored = view.stored
    return {
        "identity": stored.identity,
        "phase": stored.phase.value,
        "conditions": [condition.document() for condition in stored.conditions],
        "endpoints": [
            {"address": item.address, "identity": item.identity, "draining": item.is_draining}
            for item in stored.endpoints
        ],
    }


def _status(view: View) -> dict[str, Any]:
    review = view.review
    violations = review.violations if review else ()
    return _state(view) | {
        "violations": [item for item in violations if item["severity"] == "mandatory"],
        "residuals": [item for item in violations if item["severity"] != "mandatory"],
        "proposal": _proposal(view),
        "noProposalReason": review.proposal_reason or None if review and not review.proposal else None,
        "factsDigest": review.facts_digest if review else None,
    }


def _proposal(view: View) -> Document | None:
    review = view.review
    if review is None or review.proposal is None:
        return None
    return {"manifest": as_member(review.proposal, view.stored.document), "reason": review.proposal_reason}


def plan_of(name: str, outcome: Outcome) -> Document:
    """A plan as it crosses the API."""
    return {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "Plan",
        "action": outcome.verb,
        "name": name,
        "refused": outcome.is_refused,
        "changes": [item.document() for item in outcome.differences],
        "violations": [item.model_dump(mode="json", exclude_none=True) for item in outcome.violations],
        "identity": {"before": outcome.identity_before, "after": outcome.identity_after},
        "facts": {"digest": outcome.facts_digest or None, "as_of": outcome.facts_as_of},
    }
