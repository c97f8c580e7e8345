"""Runs a Pulumi program without an engine, keeps every resource that it registers, and refuses what mocks let through.

``record(program)`` gives a `Recording`, or raises `ProgramFault` with everything that is wrong: two resources of one
type and name, a dict where the SDK has an Args class, a property that the SDK lacks or of another kind, an Output in a
text. With ``preview=True`` what the cloud computes is unknown, as it is at ``pulumi preview``.
"""

import asyncio
import contextvars
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import mocks, settings
from pulumi.runtime import stack as pulumi_stack
from pulumi.runtime.config import set_all_config
from pulumi.runtime.proto import engine_pb2, resource_pb2

from tests.infra.computed_outputs import computed, resource_id
from tests.infra.sdk_shapes import dict_faults, wire_faults

PROJECT = "enginehouse"
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_STACK = "pulumi:pulumi:Stack"


class ProgramFault(AssertionError):
    """What a program does wrong, one line each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class Options:
    """The options of a resource that change what happens to it."""

    protect: bool = False
    retain_on_delete: bool = False
    delete_before_replace: bool = False
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    timeouts: Mapping[str, str] = field(default_factory=dict)
    """Of ``create``, ``update``, ``delete``."""


@dataclass(frozen=True)
class Recorded:
    """One resource as the engine gets it."""

    type: str
    """``aws:ec2/vpc:Vpc``."""
    name: str
    urn: str
    inputs: Mapping[str, Any]
    """As the wire has it (camelCase); whole numbers are ``int``, secrets plain, the unknown is `sdk_shapes.UNKNOWN`."""
    is_custom: bool
    """``False`` = a component."""
    parent: str
    """The parent's URN; empty for the stack's own."""
    provider: str
    """The provider's URN with its id; empty = the default one."""
    depends_on: frozenset[str]
    """URNs: every dependency, the ones that properties bring as well."""
    property_dependencies: Mapping[str, frozenset[str]]
    """Property -> the URNs that its value comes from."""
    options: Options
    id: str
    """Empty at preview."""
    outputs: Mapping[str, Any]
    secret_inputs: frozenset[str]
    """Names of the properties that hold a secret."""


@dataclass(frozen=True)
class Recording:
    """What a program registered."""

    resources: tuple[Recorded, ...]
    """By URN: the order in which they arrive is chance."""
    outputs: Mapping[str, Any]
    """Of the stack."""
    secret_outputs: frozenset[str]
    finished: frozenset[str]
    """URNs of the components that registered their outputs."""
    messages: tuple[tuple[str, str], ...]
    """Severity and text of what was logged to the engine (debug left out)."""

    def of(self, type_: str) -> tuple[Recorded, ...]:
        """The resources of a type: the whole token, or its last part (``Vpc``)."""
        return tuple(item for item in self.resources if type_ in (item.type, item.type.rsplit(":", 1)[-1]))

    def one(self, type_: str, name: str = "") -> Recorded:
        """The only resource of a type (and name)."""
        found = [item for item in self.of(type_) if name in ("", item.name)]
        if len(found) != 1:
            known = sorted(f"{item.type} {item.name}" for item in self.resources)
            raise LookupError(f"{len(found)} resources of type {type_!r} and name {name!r} among {known}")
        return found[0]

    def by_urn(self, urn: str) -> Recorded:
        """The resource of a URN."""
        return next(item for item in self.resources if item.urn == urn)

    def children(self, parent: Recorded) -> tuple[Recorded, ...]:
        """The resources right under a component."""
        return tuple(item for item in self.resources if item.parent == parent.urn)


def record(
    program: Callable[[], object],
    *,
    config: Mapping[str, object] | None = None,
    stack: str = "test",
    preview: bool = False,
) -> Recording:
    """Run a program and give what it registered.

    ``config`` holds the stack's configuration (``{"enginehouse:stack": {...}}``; what is no text becomes JSON).

    Raises:
        ProgramFault: everything that is wrong with how it uses the SDK.
    """
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in (config or {}).items()}
    monitor = _Monitor(preview=preview)
    with _strict_outputs(), _seen_inputs(monitor), _waits_once():
        contextvars.copy_context().run(asyncio.run, _run(program, monitor, texts, stack, preview=preview))
    if monitor.problems:
        raise ProgramFault(monitor.problems)
    return monitor.recording()


async def _run(
    program: Callable[[], object], monitor: "_Monitor", config: dict[str, str], stack: str, *, preview: bool
) -> None:
    set_all_config(config)
    features = set(monitor.GetDeploymentInfo(empty_pb2.Empty()).supportedFeatures)
    settings.set_root_resource(None)
    settings.configure(
        mocks.MockSettings(
            monitor=monitor,
            monitor_features=features,
            engine=_Engine(monitor),
            project=PROJECT,
            stack=stack,
            dry_run=preview,
            organization="organization",
            callbacks=None,
            outputs=set(),
            package_refs={},
            base_providers_by_ref={},
        )
    )

    def run_program() -> None:
        program()

    await pulumi_stack.run_in_stack(run_program)


class _Monitor(mocks.MockMonitor):
    """The engine's side: answers as the cloud would, remembers and checks."""

    def __init__(self, *, preview: bool) -> None:
        super().__init__(_NoMocks())
        self.preview = preview
        self.problems: list[str] = []
        self.args: dict[tuple[str, str], type | None] = {}
        self._recorded: dict[str, Recorded] = {}
        self._outputs: dict[str, dict[str, Any]] = {}
        self._secret_outputs: dict[str, frozenset[str]] = {}
        self.messages: list[tuple[str, str]] = []
        self._one_at_a_time = threading.Lock()

    def RegisterResource(self, request: resource_pb2.RegisterResourceRequest) -> object:
        """A resource arrives."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == _STACK:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        with self._one_at_a_time:
            return self._register(request, urn)

    def _register(self, request: resource_pb2.RegisterResourceRequest, urn: str) -> object:
        if any(item.type == request.type and item.name == request.name for item in self._recorded.values()):
            self.problems.append(f"{request.type} '{request.name}' is registered twice; names are ids")
        inputs = {name: _plain(value) for name, value in request.object.fields.items()}
        self._check(request, inputs)
        outputs = {**inputs, **({} if self.preview else computed(request.type, request.name, inputs))}
        id_ = "" if self.preview or not request.custom else resource_id(request.type, request.name, outputs)
        self._recorded[urn] = _recorded(request, urn, inputs, outputs, id_)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=id_, object=_struct(outputs))

    def ReadResource(self, request: resource_pb2.ReadResourceRequest) -> object:
        """Programs of this project read nothing."""
        self.problems.append(f"{request.type} '{request.name}' is read; pass what is known of it instead")
        return resource_pb2.ReadResourceResponse(urn=self.make_urn(request.parent, request.type, request.name))

    def Invoke(self, request: resource_pb2.ResourceInvokeRequest) -> object:
        """Programs of this project look nothing up."""
        self.problems.append(f"{request.tok} is looked up; the stack's configuration says what is needed")
        return resource_pb2.ResourceInvokeResponse()

    def RegisterResourceOutputs(self, request: resource_pb2.RegisterResourceOutputsRequest) -> object:
        """A component is finished, or the stack."""
        self._outputs[request.urn] = {name: _plain(value) for name, value in request.outputs.fields.items()}
        secret = (name for name, value in request.outputs.fields.items() if _holds_secret(value))
        self._secret_outputs[request.urn] = frozenset(secret)
        return empty_pb2.Empty()

    def recording(self) -> Recording:
        """Everything that was seen."""
        stack = next((urn for urn in self._outputs if urn.split("::")[2] == _STACK), "")
        return Recording(
            resources=tuple(sorted(self._recorded.values(), key=lambda item: item.urn)),
            outputs=self._outputs.get(stack, {}),
            secret_outputs=self._secret_outputs.get(stack, frozenset()),
            finished=frozenset(self._outputs),
            messages=tuple(self.messages),
        )

    def _check(self, request: resource_pb2.RegisterResourceRequest, inputs: dict[str, Any]) -> None:
        type_ = self.args.get((request.type, request.name))
        if type_ is None or request.type.startswith("pulumi:providers:"):  # providers take JSON in place of objects
            return
        where = f"{request.type} '{request.name}'"
        self.problems.extend(wire_faults(inputs, type_, where))


class _NoMocks(mocks.Mocks):
    """Never asked: the monitor answers itself."""

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, object], None]:
        raise AssertionError(f"{args.token} was called")

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, object]]:
        raise AssertionError(f"{args.typ} was registered")


class _Engine:
    """Where the program logs to."""

    def __init__(self, monitor: _Monitor) -> None:
        self._monitor = monitor

    def Log(self, request: engine_pb2.LogRequest) -> object:
        severity = engine_pb2.LogSeverity.Name(request.severity).lower()
        if severity != "debug":
            self._monitor.messages.append((severity, request.message))
        return empty_pb2.Empty()


@contextmanager
def _strict_outputs() -> Iterator[None]:
    """An Output that becomes text is an error, here and in whatever the program starts."""
    before = os.environ.get("PULUMI_ERROR_OUTPUT_STRING")
    os.environ["PULUMI_ERROR_OUTPUT_STRING"] = "true"
    try:
        yield
    finally:
        os.environ.pop("PULUMI_ERROR_OUTPUT_STRING")
        if before is not None:
            os.environ["PULUMI_ERROR_OUTPUT_STRING"] = before


@contextmanager
def _seen_inputs(monitor: _Monitor) -> Iterator[None]:
    """Inputs are looked at before the SDK turns them into the wire's form, where an Args class is a dict like any."""
    import pulumi.resource

    original = pulumi.resource.register_resource

    def register(
        res: pulumi.Resource, ty: str, name: str, custom: bool, remote: bool, new: object, props: Any, opts: object,
        typ: type | None = None, package: object = None,
    ) -> None:  # fmt: skip
        monitor.args[ty, name] = typ
        if typ is not None:
            monitor.problems.extend(_dicts(props, typ, f"{ty} '{name}'"))
        original(res, ty, name, custom, remote, new, props, opts, typ, package)

    pulumi.resource.register_resource = register
    try:
        yield
    finally:
        pulumi.resource.register_resource = original


class _WaitsForAll:
    """``asyncio`` as the SDK's loop at the end of a program sees it.

    The SDK waits for the first of all outstanding outputs, then for the first of the rest, and so on: a quarter of what
    a recording costs. Here it waits for all of them; an output that fails is raised all the same.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def wait(self, tasks: list["asyncio.Task[Any]"], *, return_when: str) -> Any:
        assert return_when == asyncio.FIRST_COMPLETED
        return await asyncio.wait(tasks)


@contextmanager
def _waits_once() -> Iterator[None]:
    original = pulumi_stack.asyncio
    pulumi_stack.asyncio = _WaitsForAll()
    try:
        yield
    finally:
        pulumi_stack.asyncio = original


def _dicts(props: Mapping[str, object], typ: type, where: str) -> Iterator[str]:
    known = pulumi._types.input_type_types(typ)
    names = pulumi._types.input_type_py_to_pulumi_names(typ)
    for name, value in props.items():
        wire_name = names.get(name, name)
        yield from dict_faults(value, known.get(wire_name, Any), f"{where}.{wire_name}")


def _recorded(
    request: resource_pb2.RegisterResourceRequest, urn: str, inputs: dict[str, Any], outputs: dict[str, Any], id_: str
) -> Recorded:
    timeouts = {name: getattr(request.customTimeouts, name) for name in ("create", "update", "delete")}
    options = Options(
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        delete_before_replace=request.deleteBeforeReplace,
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        timeouts={name: text for name, text in timeouts.items() if text},
    )
    return Recorded(
        type=request.type,
        name=request.name,
        urn=urn,
        inputs=inputs,
        is_custom=request.custom,
        parent=request.parent,
        provider=request.provider,
        depends_on=frozenset(request.dependencies),
        property_dependencies={name: frozenset(item.urns) for name, item in request.propertyDependencies.items()},
        options=options,
        id=id_,
        outputs=outputs,
        secret_inputs=frozenset(name for name, value in request.object.fields.items() if _holds_secret(value)),
    )


def _plain(value: struct_pb2.Value) -> Any:
    """A value of the wire as Python has it; a secret is what it hides."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = value.struct_value.fields
        if _SIGNATURE in fields and fields[_SIGNATURE].string_value == _SECRET:
            return _plain(fields["value"])
        return {name: _plain(item) for name, item in fields.items()}
    if kind == "list_value":
        return [_plain(item) for item in value.list_value.values]
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    return None if kind in (None, "null_value") else getattr(value, kind)


def _holds_secret(value: struct_pb2.Value) -> bool:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = value.struct_value.fields
        own = _SIGNATURE in fields and fields[_SIGNATURE].string_value == _SECRET
        return own or any(_holds_secret(item) for item in fields.values())
    return kind == "list_value" and any(_holds_secret(item) for item in value.list_value.values)


def _struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update(values)
    return struct
