"""What the doubles of both providers share: strict checks, differences by the table, and a life in the account."""

import hashlib
import json
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import wraps
from importlib.metadata import version
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as messages

from tests.pulumi.doubles import wire
from tests.pulumi.doubles.account import Account, AccountError, Entry, own_ids
from tests.pulumi.doubles.changes import UnlistedChange, changed_paths, effect_of, read_rows, row_of
from tests.pulumi.doubles.sdk_types import NotInSdk, ResourceType, provider_type
from tests.pulumi.doubles.value_check import Failure, failures

Properties = dict[str, Any]
_NONE, _SOME = messages.DiffResponse.DIFF_NONE, messages.DiffResponse.DIFF_SOME
_KINDS = {
    "update": (messages.PropertyDiff.ADD, messages.PropertyDiff.DELETE, messages.PropertyDiff.UPDATE),
    "replace": (
        messages.PropertyDiff.ADD_REPLACE,
        messages.PropertyDiff.DELETE_REPLACE,
        messages.PropertyDiff.UPDATE_REPLACE,
    ),
}


class Refusal(Exception):
    """The provider does not do it; the message goes to the person."""


def answering(method: Callable) -> Callable:
    """Turns what a provider refuses into the error that the engine shows."""

    @wraps(method)
    def answered(self, request, context):
        try:
            return method(self, request, context)
        except (Refusal, AccountError, UnlistedChange, NotInSdk) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{getattr(request, 'urn', '')} {error}".strip())
        except Exception:
            context.abort(grpc.StatusCode.INTERNAL, f"the double failed: {traceback.format_exc()}")

    return answered


def hex_of(*parts: object, length: int) -> str:
    """Digits that look random and depend on nothing else."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:length]


class ProviderDouble(ABC, provider_pb2_grpc.ResourceProviderServicer):
    """A provider; what differs between clouds is in the methods of the second half."""

    package: str
    """The SDK."""
    answers_ids = False
    """Whether the id stands among the properties as well."""

    def __init__(self) -> None:
        self.config = provider_type(self.package)
        self.account = Account.of_environment()
        self.rows = read_rows()
        self.settings: Properties = {}

    def Handshake(self, request, context):
        return messages.ProviderHandshakeResponse()

    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version=version(self.package))

    def Cancel(self, request, context):
        return Empty()

    @answering
    def CheckConfig(self, request, context):
        news = wire.read(request.news)
        plain = {name: self.config_value(name, value) for name, value in news.items() if name != "version"}
        found = failures(plain, self.config)
        return messages.CheckResponse(inputs=wire.write(news), failures=map(_failure, found))

    @answering
    def DiffConfig(self, request, context):
        changed = list(changed_paths(wire.read(request.old_inputs), wire.read(request.news)))
        replaces = [path for path in changed if path.split(".")[0] in self.identity_settings()]
        return messages.DiffResponse(changes=_SOME if changed else _NONE, diffs=changed, replaces=replaces)

    @answering
    def Configure(self, request, context):
        given = wire.read(request.args)
        self.settings = {name: self.config_value(name, value) for name, value in given.items()}
        return messages.ConfigureResponse(supportsPreview=True)

    @answering
    def Check(self, request, context):
        token, news, olds = request.type, wire.read(request.news), wire.read(request.olds)
        named = self.with_names(token, request.name, news, olds, request.randomSeed)
        found = [*failures(named, self.type_of(token)), *self.further_failures(token, named)]
        return messages.CheckResponse(inputs=wire.write(named), failures=map(_failure, found))

    @answering
    def Diff(self, request, context):
        old, new = wire.read(request.old_inputs), wire.read(request.news)
        changed = [*changed_paths(old, new), *self.further_changes(request.type, wire.read(request.olds), new)]
        ignored = tuple(request.ignoreChanges)
        effects = {
            path: effect_of(
                row_of(self.rows, request.type, path), value_at(old, path), value_at(new, path), new, self.settings
            )
            for path in changed
            if path not in ignored and _top(path) not in ignored
        }
        replaces = [path for path, effect in effects.items() if effect == "replace"]
        details = {path: _detail(value_at(old, path), value_at(new, path), effects[path]) for path in effects}
        return messages.DiffResponse(
            changes=_SOME if effects else _NONE,
            diffs=sorted(set(map(_top, effects))),
            replaces=sorted(set(map(_top, replaces))),
            detailedDiff=details,
            hasDetailedDiff=True,
            deleteBeforeReplace=bool(replaces) and self.deletes_first(request.type, new),
        )

    @answering
    def Create(self, request, context):
        token, inputs = request.type, wire.read(request.properties)
        number = None if request.preview else self.account.number()
        outputs = {**inputs, **self.computed(token, request.name, inputs, number)}
        id_ = wire.UNKNOWN if number is None else self.id_of(token, request.urn, inputs, number)
        if self.answers_ids:
            outputs["id"] = id_
        if number is None:
            return messages.CreateResponse(properties=wire.write(outputs))
        self.account.create(self._entry("create", request, id_, inputs, outputs))
        return messages.CreateResponse(id=id_, properties=wire.write(outputs))

    @answering
    def Update(self, request, context):
        token, inputs, old_inputs = request.type, wire.read(request.news), wire.read(request.old_inputs)
        number = None if request.preview else self.account.number()
        outputs = self.touched(token, inputs, carried(wire.read(request.olds), old_inputs, inputs), number)
        if number is not None:
            changed = list(changed_paths(old_inputs, inputs))
            self.account.update(self._entry("update", request, request.id, inputs, outputs, changed))
        return messages.UpdateResponse(properties=wire.write(outputs))

    @answering
    def Read(self, request, context):
        return messages.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    @answering
    def Delete(self, request, context):
        self.account.delete(self._entry("delete", request, request.id, {}, {}))
        return Empty()

    @answering
    def Invoke(self, request, context):
        result = self.call(request.tok, wire.read(request.args))
        return messages.InvokeResponse(**{"return": wire.write(result)})

    def _entry(
        self,
        op: str,
        request,
        id_: str,
        inputs: Properties,
        outputs: Properties,
        changed: list[str] | None = None,
    ) -> Entry:
        if wire.is_unknown(inputs):
            raise Refusal("the engine sent an unknown value to an update")
        refers = sorted({*own_ids(inputs), *self.needs(request.type, inputs)})
        offers = sorted({*own_ids(outputs), *self.offers(request.type, inputs)} - {id_, *refers})
        return Entry(
            op, request.type, request.urn, id_, self.unique_name(request.type, inputs), refers, changed or [], offers
        )

    def config_value(self, name: str, value: Any) -> Any:
        """A setting of the provider as its type has it: what is no text travels as JSON."""
        shape, _ = self.config.inputs.get(name, ("string", False))
        if shape in ("string", "any") or not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value

    # What each cloud says for itself.

    @abstractmethod
    def identity_settings(self) -> set[str]:
        """Settings of the provider that make it another place."""

    @abstractmethod
    def type_of(self, token: str) -> ResourceType:
        """What a resource of the type may have."""

    @abstractmethod
    def with_names(self, token: str, name: str, news: Properties, olds: Properties, seed: bytes) -> Properties:
        """The inputs with the names that the provider makes up."""

    @abstractmethod
    def further_failures(self, token: str, inputs: Properties) -> Iterator[Failure]:
        """What the types don't say."""

    def further_changes(self, token: str, outputs: Properties, inputs: Properties) -> Iterator[str]:
        """Properties that change although no input did."""
        yield from ()

    @abstractmethod
    def computed(self, token: str, name: str, inputs: Properties, number: int | None) -> Properties:
        """The properties that the cloud fills in at creation; without a number it is a preview: they are unknown."""

    @abstractmethod
    def touched(self, token: str, inputs: Properties, outputs: Properties, number: int | None) -> Properties:
        """The properties after an update; without a number it is a preview."""

    @abstractmethod
    def id_of(self, token: str, urn: str, inputs: Properties, number: int) -> str:
        """The id of a new resource."""

    @abstractmethod
    def unique_name(self, token: str, inputs: Properties) -> str:
        """What nobody else of the type may have; empty = nothing."""

    def deletes_first(self, token: str, inputs: Properties) -> bool:
        """Whether the provider itself deletes the old one before it makes the new one."""
        return False

    def needs(self, token: str, inputs: Properties) -> Iterator[str]:
        """What must exist beside the ids that stand in the properties."""
        yield from ()

    def offers(self, token: str, inputs: Properties) -> list[str]:
        """API groups that exist once the resource does."""
        return []

    def call(self, token: str, args: Properties) -> Properties:
        """The answer of a function of the provider."""
        raise Refusal(f"function {token} is not part of the double")


def value_at(properties: Any, path: str) -> Any:
    """The value at a path of `changed_paths`, or None."""
    for word in path.replace("[", ".[").split("."):
        if word.startswith("[") and isinstance(properties, list):
            index = int(word[1:-1])
            properties = properties[index] if index < len(properties) else None
        else:
            properties = properties.get(word) if isinstance(properties, dict) else None
    return properties


def carried(olds: Properties, old_inputs: Properties, inputs: Properties) -> Properties:
    """What a resource has after its inputs changed: the new inputs, and of the old outputs what was no input."""
    found = {name: value for name, value in olds.items() if name not in old_inputs and name not in inputs}
    for name, value in inputs.items():
        old = olds.get(name)
        nested = isinstance(value, dict) and isinstance(old, dict)
        found[name] = carried(old, old_inputs.get(name) or {}, value) if nested else value
    return found


def _detail(old: Any, new: Any, effect: str) -> messages.PropertyDiff:
    add, delete, update = _KINDS[effect]
    return messages.PropertyDiff(kind=add if old is None else delete if new is None else update, inputDiff=True)


def _top(path: str) -> str:
    return path.split(".")[0].split("[")[0]


def _failure(failure: Failure) -> messages.CheckFailure:
    path, reason = failure
    return messages.CheckFailure(property=path, reason=f"{path} {reason}")
