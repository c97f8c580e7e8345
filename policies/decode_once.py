"""The pack's server, which decodes each resource once instead of once for each policy.

The framework's own server turns the message of a resource into Python values again for every policy that it asks; with
a hundred policies that is nearly all the time a preview waits. This one lets the framework decode for a single policy
that only listens, then asks the policies about what was heard. What it hears of a resource's inputs is what policies on
the whole stack see first.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import policy as framework
from pulumi_policy.proxy import UnknownValueError

from policies.adapter import PolicyOfTypes
from policies.inputs_first import Inputs
from policies.judging import NotRead, Unread
from policies.kubernetes_objects import EVERY_TYPE
from policies.reading import Unreadable, plain
from policies.secrecy import Unsaid
from policies.telling import Capped, capped

_SERVER = "_PolicyAnalyzerServicer"
"""The framework's name of its server; `serve_decoded_once` puts this one in its place."""
_LISTENING = "listening"
_Framework = framework._PolicyAnalyzerServicer


class DecodedOnce(_Framework):
    """Answers as the framework's server does, in a fraction of its time."""

    def __init__(self, name: str, version: str, policies: list[Policy], *others: Any) -> None:  # noqa: ANN401
        super().__init__(name, version, policies, *others)
        self._asked = tuple(policies)
        self._by_type: dict[str, tuple[ResourceValidationPolicy, ...]] = {}
        self._inputs = Inputs()
        self._unsaid = Unsaid()
        self._pack = {"policyPackName": name, "policyPackVersion": version}

    def ConfigureStack(self, request: Any, context: object) -> Any:  # noqa: ANN401
        """A preview or an update begins."""
        self._forget()
        return super().ConfigureStack(request, context)

    def Configure(self, request: Any, context: object) -> Any:  # noqa: ANN401
        """How strict policies are, said before anything is judged."""
        self._forget()
        return super().Configure(request, context)  # type: ignore[no-untyped-call]

    def Analyze(self, request: Any, context: object) -> analyzer_pb2.AnalyzeResponse:  # noqa: ANN401
        """What the policies say about one resource."""
        heard: list[ResourceValidationArgs] = []

        def listen(args: ResourceValidationArgs, _: ReportViolation) -> None:
            heard.append(args)

        self._unsaid.learn(request.type, request.properties)
        self._unsaid.learn(request.provider.type, request.provider.properties)
        self._heard_by(ResourceValidationPolicy(_LISTENING, _LISTENING, listen)).Analyze(request, context)
        self._inputs.hear(heard[0].urn, heard[0].props)
        response = analyzer_pb2.AnalyzeResponse()
        for policy in self._of_type(heard[0].resource_type):
            args = _of_policy(heard[0], self._get_policy_config(policy.name))
            self._ask(policy, partial(policy.validate, args), response)
        return response

    def AnalyzeStack(self, request: Any, context: object) -> analyzer_pb2.AnalyzeResponse:  # noqa: ANN401
        """What the policies say about all resources together."""
        heard: list[list[PolicyResource]] = []

        def listen(args: StackValidationArgs, _: ReportViolation) -> None:
            heard.append(args.resources)

        for item in request.resources:
            self._unsaid.learn(item.type, item.properties)
        self._heard_by(StackValidationPolicy(_LISTENING, _LISTENING, listen)).AnalyzeStack(request, context)
        self._inputs.put_before_outputs(heard[0])
        response = analyzer_pb2.AnalyzeResponse()
        for policy in self._asked:
            if not isinstance(policy, StackValidationPolicy):
                continue
            args = StackValidationArgs(heard[0], self._get_policy_config(policy.name))
            self._ask(policy, partial(policy.validate, args), response)
        self._forget()
        return response

    def _forget(self) -> None:
        """The operation is over, or another one begins."""
        self._inputs.forget()
        self._unsaid.forget()

    def _of_type(self, type_: str) -> tuple[ResourceValidationPolicy, ...]:
        """The policies that have something to say about a resource of a type: hardly ever many of a hundred."""
        if type_ not in self._by_type:
            alone = (policy for policy in self._asked if isinstance(policy, ResourceValidationPolicy))
            self._by_type[type_] = tuple(
                policy for policy in alone if not isinstance(policy, PolicyOfTypes) or policy.looks_at(type_)
            )
        return self._by_type[type_]

    def _heard_by(self, policy: Policy) -> Any:  # noqa: ANN401 the framework's server has no types
        level = EnforcementLevel.ADVISORY
        return _Framework(_LISTENING, "1", [policy], level)

    def _get_enforcement_level(self, policy: Policy) -> Any:  # noqa: ANN401 the framework's server has no types
        """No policy can be switched off: one that a configuration disables keeps the level of the policy file."""
        level = super()._get_enforcement_level(policy)
        return policy.enforcement_level if level is EnforcementLevel.DISABLED else level

    def _ask(
        self, policy: Policy, ask: Callable[[ReportViolation], object], response: analyzer_pb2.AnalyzeResponse
    ) -> None:
        """Ask one policy. What it can't know yet becomes a warning that says so; what it can't read refuses."""
        level = self._get_enforcement_level(policy)
        if level is EnforcementLevel.REMEDIATE:  # what could not be put right refuses
            level = EnforcementLevel.MANDATORY
        report = self._create_report_violation(response, policy.name, policy.description, level, policy.severity)
        told = Capped(partial(self._tell, policy, report))
        try:
            ask(told)
        except UnknownValueError as unknown:
            self._wait(policy, unknown, response)
        except Exception as error:
            self._refuse(policy, error if isinstance(error, NotRead) else NotRead([Unread(None, error)]), response)
        told.close()

    def _tell(self, policy: Policy, report: ReportViolation, message: str, urn: str | None = None) -> None:
        """Report a finding, without what is wrong where that is a secret."""
        if self._unsaid.is_in(message):
            message = f"{_name(urn)}: a value that is kept secret breaks this; {policy.remediation_steps}"
        report(capped(message), urn)

    def _refuse(self, policy: Policy, error: NotRead, response: analyzer_pb2.AnalyzeResponse) -> None:
        """One refusal for each place that can't be read, and what is not known beside it."""
        told = {(place.seen.urn if place.seen else "", self._unreadable(policy, place)): None for place in error.places}
        for urn, message in told:
            self._add(response, policy, message, analyzer_pb2.MANDATORY, urn=urn)
        if error.pending is not None:
            self._wait(policy, error.pending, response)

    def _unreadable(self, policy: Policy, place: Unread) -> str:
        """Which resource a policy could not read, and why; of a Kubernetes object no value, as any may be a secret."""
        error, seen = place.error, place.seen
        is_quiet = seen is None or seen.type in EVERY_TYPE
        if isinstance(error, Unreadable):
            is_quiet = is_quiet or self._unsaid.is_in(repr(plain(error.value)))
            said = error.without_value if is_quiet else str(error)
        else:
            kind = type(error).__name__
            shown = str(error) if isinstance(error, ValueError) else f"{kind}: {error}"
            said = kind if is_quiet or self._unsaid.is_in(shown) else shown
        return capped(f"{policy.description}\n{seen.name if seen else 'the stack'}: can't be read: {said}")

    def _wait(self, policy: Policy, unknown: UnknownValueError, response: analyzer_pb2.AnalyzeResponse) -> None:
        message = f"can't run policy '{policy.name}' during preview: {unknown.message}"
        self._add(response, policy, message, analyzer_pb2.ADVISORY)

    def _add(
        self,
        response: analyzer_pb2.AnalyzeResponse,
        policy: Policy,
        message: str,
        level: analyzer_pb2.EnforcementLevel.ValueType,
        *,
        urn: str = "",
    ) -> None:
        response.diagnostics.add(
            **self._pack,
            policyName=policy.name,
            description=policy.description,
            message=message,
            enforcementLevel=level,
            urn=urn,
        )


def serve_decoded_once() -> None:
    """From now on a `PolicyPack` starts this server."""
    vars(framework)[_SERVER] = DecodedOnce


def _of_policy(heard: ResourceValidationArgs, config: dict[str, Any] | None) -> ResourceValidationArgs:
    return ResourceValidationArgs(
        heard.resource_type, heard.props, heard.urn, heard.name, heard.opts, heard.provider, config
    )


def _name(urn: str | None) -> str:
    return urn.rpartition("::")[2] if urn else "the stack"
