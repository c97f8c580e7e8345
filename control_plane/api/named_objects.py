"""Nouns whose objects people write by name: list, get, put and delete, made from one description of each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.auth import Reader, Services, changing_as
from control_plane.api.bodies import Body, check_name, parsed
from control_plane.api.etags import Demand, etag_of
from control_plane.api.gateway_shapes import AnyBody, AnyList, AnyObject
from control_plane.api.objects import delete_object, document_of, plan_of, without_server_fields
from control_plane.api.paging import Paging, listing
from control_plane.api.routing import DryRun, NamePath, body_of, changing, reading, router
from control_plane.api.shapes import Plan
from control_plane.records import Actor, Document, Kind, Scope, StoredObject
from control_plane.services.house import House
from control_plane.services.objects import ObjectService

Answers = dict[int | str, dict[str, Any]]


def _as_stored(_house: House, _actor: Actor, kind: Kind, stored: StoredObject) -> Document:
    return document_of(kind, stored)


@dataclass(frozen=True, slots=True)
class Noun:
    """What the routes of one noun are made from."""

    plural: str
    """As it stands in the path."""
    word: str
    """One of them, for people."""
    kind: Kind
    service: Callable[[House], ObjectService]
    body: type[AnyBody]
    shape: type[AnyObject]
    list_shape: type[AnyList]
    scope: Scope = Scope.OPERATOR
    """What a change needs."""
    shown: Callable[[House, Actor, Kind, StoredObject], Document] = _as_stored
    """How one crosses the API for somebody."""
    reason_of: Callable[[Document], str] = lambda _spec: ""
    """What the audit log says about a spec beside the actor's own reason."""

    @property
    def router(self) -> APIRouter:
        """The four routes."""
        made, path = router(self.plural), f"/{self.plural}/{{name}}"
        ident, many = self.word.replace(" ", "_"), self.plural.replace("-", "_")
        made.add_api_route(
            f"/{self.plural}", self._list(), name=f"list_{many}", methods=["GET"], response_model=self.list_shape,
            responses=reading(400), description=f"Every {self.word} by name.",
        )  # fmt: skip
        made.add_api_route(
            path, self._get(), name=f"get_{ident}", methods=["GET"], response_model=self.shape, responses=reading(404),
            description=f"One {self.word}; its ETag is the version that a change must name.",
        )  # fmt: skip
        created: Answers = {201: {"model": self.shape, "description": "Created"}}
        made.add_api_route(
            path, self._put(), name=f"put_{ident}", methods=["PUT"], response_model=self.shape | Plan,
            responses={**created, **changing()}, openapi_extra=body_of(self.body),
            description=f"Create or replace a {self.word}.",
        )  # fmt: skip
        gone: Answers = {200: {"model": Plan}, 204: {"description": "Deleted"}}
        made.add_api_route(
            path, self._delete(), name=f"delete_{ident}", methods=["DELETE"], response_model=None,
            responses={**gone, **changing()}, description=f"Delete a {self.word}.",
        )  # fmt: skip
        return made

    def _list(self) -> Callable[..., Response]:
        def endpoint(house: Services, actor: Reader, page: Paging) -> Response:
            items, has_more = page.cut(self.service(house).page(after=page.after, limit=page.limit))
            token = page.token(items[-1].name) if has_more else None
            shown = [self.shown(house, actor, self.kind, item) for item in items]
            return answer(listing(self.kind.value, shown, token))

        return endpoint

    def _get(self) -> Callable[..., Response]:
        def endpoint(house: Services, actor: Reader, name: NamePath) -> Response:
            stored = self.service(house).get(name)
            return answer(self.shown(house, actor, self.kind, stored), etag=etag_of(stored.generation))

        return endpoint

    def _put(self) -> Callable[..., Response]:
        writer = Depends(changing_as(self.scope))

        def endpoint(
            house: Services,
            actor: Annotated[Actor, writer],
            name: NamePath,
            demand: Demand,
            document: Body,
            dry_run: DryRun = False,
        ) -> Response:
            body = parsed(self.body, without_server_fields(document))
            check_name(body.metadata.name, name)
            spec = body.spec.model_dump(mode="json", exclude_none=True, exclude_unset=True)
            reason = "; ".join(filter(None, (actor.reason, self.reason_of(spec))))
            actor = replace(actor, reason=reason or None)
            outcome = self.service(house).put(name, spec, demand, actor, is_dry_run=dry_run)
            if dry_run or outcome.stored is None:
                return answer(plan_of(name, outcome))
            shown = self.shown(house, actor, self.kind, outcome.stored)
            status = 201 if outcome.verb == "create" else 200
            return answer(shown, status=status, etag=etag_of(outcome.stored.generation))

        return endpoint

    def _delete(self) -> Callable[..., Response]:
        writer = Depends(changing_as(self.scope))

        def endpoint(
            house: Services, actor: Annotated[Actor, writer], name: NamePath, demand: Demand, dry_run: DryRun = False
        ) -> Response:
            return delete_object(self.service(house), name, demand, actor, is_dry_run=dry_run)

        return endpoint
