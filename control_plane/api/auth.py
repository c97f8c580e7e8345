"""Who asks, and whether the scope suffices. Without a dependency of this module a route answers nobody."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from control_plane.api.bodies import text_problem
from control_plane.errors import BadRequest, Forbidden, Unauthenticated
from control_plane.records import Actor, Scope
from control_plane.services.house import House

_bearer = HTTPBearer(auto_error=False, description="A token of `python -m control_plane token`.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
Reason = Annotated[str | None, Query(max_length=500, description="Why; kept in the audit log.")]


def house_of(request: Request) -> House:
    """The services behind the API."""
    house: House = request.app.state.house
    return house


Services = Annotated[House, Depends(house_of)]


def needs(scope: Scope, *others: Scope) -> Callable[..., Actor]:
    """A dependency that lets only tokens pass that hold a scope, or one of others."""

    def actor(request: Request, house: Services, credentials: Credentials) -> Actor:
        if credentials is None:
            raise Unauthenticated("there is no token; send 'Authorization: Bearer eh_...'")
        token = house.tokens.recognise(credentials.credentials)
        if not any(map(token.scope.holds, (scope, *others))):
            raise Forbidden(f"this needs the scope '{scope}'; the token '{token.name}' has '{token.scope}'")
        request.scope["actor"] = token.name
        return Actor(name=token.name, scope=token.scope, request_id=request.scope.get("request_id"))

    return actor


def changing_as(scope: Scope) -> Callable[..., Actor]:
    """The same for routes that change something: the actor may say why."""
    actor = needs(scope)

    def with_reason(found: Annotated[Actor, Depends(actor)], reason: Reason = None) -> Actor:
        problem = text_problem(reason or "")
        if problem is not None:
            raise BadRequest(f"the query parameter 'reason' {problem}; send plain text")
        return replace(found, reason=reason or None)

    return with_reason


Reader = Annotated[Actor, Depends(needs(Scope.READER))]
GatewayOrReader = Annotated[Actor, Depends(needs(Scope.GATEWAY, Scope.READER))]
GatewayAlone = Annotated[Actor, Depends(needs(Scope.GATEWAY))]
Operator = Annotated[Actor, Depends(changing_as(Scope.OPERATOR))]
SecurityAdmin = Annotated[Actor, Depends(changing_as(Scope.SECURITY_ADMIN))]
