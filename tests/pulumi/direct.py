"""The doubles called directly, without an engine: what they answer to its questions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pulumi.runtime.proto import provider_pb2 as messages

from tests.pulumi.doubles import wire
from tests.pulumi.doubles.provider_double import ProviderDouble


class Refused(Exception):
    """The double answered with an error."""


class Call:
    """What gRPC hands to a method beside the request."""

    def abort(self, code: object, message: str) -> NoReturn:
        raise Refused(message)


@dataclass(frozen=True)
class Difference:
    """What the double says about a change."""

    changed: Mapping[str, int]
    replaces: tuple[str, ...]


class Provider:
    """A double as the engine uses it, in plain values."""

    def __init__(self, double: ProviderDouble, settings: Mapping[str, Any]) -> None:
        self.double = double
        double.Configure(messages.ConfigureRequest(args=wire.write(settings)), Call())

    def check(self, token: str, news: Mapping[str, Any], olds: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The inputs as the provider takes them."""
        return wire.read(self._check(token, news, olds).inputs)

    def failures(self, token: str, news: Mapping[str, Any]) -> list[str]:
        """What the provider says against some inputs."""
        return [failure.reason for failure in self._check(token, news, None).failures]

    def diff(
        self, token: str, old: Mapping[str, Any], new: Mapping[str, Any], outputs: Mapping[str, Any] | None = None
    ) -> Difference:
        """What a change of inputs does."""
        request = messages.DiffRequest(
            urn=f"urn:{token}::x",
            name="x",
            type=token,
            olds=wire.write(outputs or old),
            news=wire.write(new),
            old_inputs=wire.write(old),
        )
        answer = self.double.Diff(request, Call())
        changed = {path: detail.kind for path, detail in answer.detailedDiff.items()}
        return Difference(changed, tuple(answer.replaces))

    def create(
        self, token: str, inputs: Mapping[str, Any], name: str = "x", *, preview: bool = False
    ) -> tuple[str, dict[str, Any]]:
        """The id and the properties of a new resource."""
        request = messages.CreateRequest(
            urn=f"urn:{token}::{name}", name=name, type=token, properties=wire.write(inputs), preview=preview
        )
        answer = self.double.Create(request, Call())
        return answer.id, wire.read(answer.properties)

    def update(
        self, token: str, id_: str, olds: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The properties after a change."""
        request = messages.UpdateRequest(
            id=id_,
            urn=f"urn:{token}::x",
            name="x",
            type=token,
            olds=wire.write(olds),
            old_inputs=wire.write(old),
            news=wire.write(new),
        )
        return wire.read(self.double.Update(request, Call()).properties)

    def delete(self, token: str, id_: str, name: str = "x") -> None:
        """Takes a resource away."""
        request = messages.DeleteRequest(id=id_, urn=f"urn:{token}::{name}", name=name, type=token)
        self.double.Delete(request, Call())

    def _check(self, token: str, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> messages.CheckResponse:
        request = messages.CheckRequest(
            urn=f"urn:{token}::x", name="x", type=token, news=wire.write(news), olds=wire.write(olds or {})
        )
        return self.double.Check(request, Call())
