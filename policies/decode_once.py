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

from policies.inputs_first import Inputs

_SERVER = "_PolicyAnalyzerServicer"
"""The framework's name of its server; `serve_decoded_once` puts this one in its place."""
_LISTENING = "listening"
_Framework = framework._PolicyAnalyzerServicer


class DecodedOnce(_Framework):
    """Answers as the framework's server does, in a fraction of its time."""

    def __init__(self, name: str, version: str, policies: list[Policy], *others: Any) -> None:  # noqa: ANN401
        super().__init__(name, version, policies, *others)
        self._asked = tuple(policies)
        self._inputs = Inputs()
        self._pack = {"policyPackName": name, "policyPackVersion": version}

    def ConfigureStack(self, request: Any, context: object) -> Any:  # noqa: ANN401
        """A preview or an update begins."""
        self._inputs.forget()
        return super().ConfigureStack(request, context)

    def Configure(self, request: Any, context: object) -> Any:  # noqa: ANN401
        """How strict policies are, said before anything is judged."""
        self._inputs.forget()
        return super().Configure(request, context)  # type: ignore[no-untyped-call]

    def Analyze(self, request: Any, context: object) -> analyzer_pb2.AnalyzeResponse:  # noqa: ANN401
        """What the policies say about one resource."""
        heard: list[ResourceValidationArgs] = []

        def listen(args: ResourceValidationArgs, _: ReportViolation) -> None:
            heard.append(args)

        self._heard_by(ResourceValidationPolicy(_LISTENING, _LISTENING, listen)).Analyze(request, context)
        self._inputs.hear(heard[0].urn, heard[0].props)
        response = analyzer_pb2.AnalyzeResponse()
        for policy in self._asked:
            if not isinstance(policy, ResourceValidationPolicy) or self._is_off(policy):
                continue
            args = _of_policy(heard[0], self._get_policy_config(policy.name))
            self._ask(policy, partial(policy.validate, args), response)
        return response

    def AnalyzeStack(self, request: Any, context: object) -> analyzer_pb2.AnalyzeResponse:  # noqa: ANN401
        """What the policies say about all resources together."""
        heard: list[list[PolicyResource]] = []

        def listen(args: StackValidationArgs, _: ReportViolation) -> None:
            heard.append(args.resources)

        self._heard_by(StackValidationPolicy(_LISTENING, _LISTENING, listen)).AnalyzeStack(request, context)
        self._inputs.put_before_outputs(heard[0])
        response = analyzer_pb2.AnalyzeResponse()
        for policy in self._asked:
            if not isinstance(policy, StackValidationPolicy) or self._is_off(policy):
                continue
            args = StackValidationArgs(heard[0], self._get_policy_config(policy.name))
            self._ask(policy, partial(policy.validate, args), response)
        return response

    def _heard_by(self, policy: Policy) -> Any:  # noqa: ANN401 the framework's server has no types
        level = EnforcementLevel.ADVISORY
        return _Framework(_LISTENING, "1", [policy], level)

    def _is_off(self, policy: Policy) -> bool:
        return bool(self._get_enforcement_level(policy) is EnforcementLevel.DISABLED)

    def _ask(
        self, policy: Policy, ask: Callable[[ReportViolation], object], response: analyzer_pb2.AnalyzeResponse
    ) -> None:
        """Ask one policy; what it can't know yet becomes a warning that says so."""
        level = self._get_enforcement_level(policy)
        if level is EnforcementLevel.REMEDIATE:  # what could not be put right refuses
            level = EnforcementLevel.MANDATORY
        report = self._create_report_violation(response, policy.name, policy.description, level, policy.severity)
        try:
            ask(report)
        except UnknownValueError as unknown:
            response.diagnostics.add(
                **self._pack,
                policyName=policy.name,
                description=policy.description,
                message=f"can't run policy '{policy.name}' during preview: {unknown.message}",
                enforcementLevel=analyzer_pb2.ADVISORY,
            )


def serve_decoded_once() -> None:
    """From now on a `PolicyPack` starts this server."""
    vars(framework)[_SERVER] = DecodedOnce


def _of_policy(heard: ResourceValidationArgs, config: dict[str, Any] | None) -> ResourceValidationArgs:
    return ResourceValidationArgs(
        heard.resource_type, heard.props, heard.urn, heard.name, heard.opts, heard.provider, config
    )
