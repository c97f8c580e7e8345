"""What a policy on the whole stack sees of a resource: its inputs first, then what the cloud answers.

The engine shows `Analyze` the inputs of one resource after the other, then `AnalyzeStack` the outputs of all. Among
those of a first preview, whatever the cloud may fill in is unknown; afterwards it holds a value that nobody chose. So
the pack remembers the inputs of an operation until its stack is judged. A resource whose inputs were not shown, such as
one beside the targets of ``--target``, is seen by its outputs alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pulumi_policy import PolicyResource
from pulumi_policy.proxy import UnknownValueError

from policies.adapter import Props
from policies.data import BUCKETS
from policies.groups import CLUSTER, NODE_GROUP
from policies.lustre import ADD_ON, FILE_SYSTEM, LINK, OLD_IMPORTS
from policies.routes import TABLE
from policies.security_groups import GROUP, OLD_RULE

_KUBERNETES = "kubernetes:"
"""Of an object its inputs are all that counts: what the API server adds, such as one replica, is nobody's choice."""
CHOSEN_BY_PEOPLE: Mapping[str, frozenset[str]] = {
    NODE_GROUP: frozenset(
        {
            "instanceTypes",  # those of the template may come back
            "releaseVersion",  # the newest one comes back, and that is no pin
        }
    ),
    FILE_SYSTEM: frozenset(
        {
            "kmsKeyId",  # the key of the service comes back, and that is not our own
            *OLD_IMPORTS,  # a link's settings may come back as the file system's own
        }
    ),
}
"""Type -> properties that are left out where no input sets them, whatever the cloud fills in."""
LEFT_OUT: Mapping[str, frozenset[str]] = {
    NODE_GROUP: frozenset({"amiType", "capacityType", "nodeRepairConfig", "updateConfig", "version"}),
    CLUSTER: frozenset({"computeConfig"}),  # Auto Mode
    TABLE: frozenset({"routes"}),  # they may stand beside it
    FILE_SYSTEM: frozenset({"efaEnabled"}),
    LINK: frozenset({"s3"}),
    ADD_ON: frozenset({"configurationValues"}),
    GROUP: frozenset({"ingress", "egress"}),
    OLD_RULE: frozenset({"sourceSecurityGroupId"}),
    **dict.fromkeys(BUCKETS, frozenset({"acl"})),
}
"""Type -> properties whose absence has a meaning that the rules know; they count once the cloud has answered."""
_NONE: frozenset[str] = frozenset()


class Inputs:
    """The inputs of the resources of one operation."""

    def __init__(self) -> None:
        self._heard: dict[str, Props] = {}

    def hear(self, urn: str, inputs: Props) -> None:
        """Remember the inputs of a resource; the last ones count."""
        self._heard[urn] = inputs

    def put_before_outputs(self, resources: Iterable[PolicyResource]) -> None:
        """Let the resources of the stack be seen by their inputs first; the operation is over then."""
        for item in resources:
            inputs = self._heard.get(item.urn)
            if inputs:
                is_object = item.resource_type.startswith(_KUBERNETES)
                item.props = inputs if is_object else seen_props(item.resource_type, inputs, item.props)
        self.forget()

    def forget(self) -> None:
        """Another operation begins."""
        self._heard = {}


def seen_props(type_: str, inputs: Props, outputs: Props) -> Props:
    """The properties of a resource of some type. Reading an unknown one raises `UnknownValueError`."""
    chosen, left_out = CHOSEN_BY_PEOPLE.get(type_, _NONE), LEFT_OUT.get(type_, _NONE)
    unused = frozenset(key for key in outputs if key in chosen or (key in left_out and _is_unknown(outputs, key)))
    return _InputsFirst(inputs, outputs, unused, left_out)


def inputs_of(props: Props) -> Props | None:
    """What people set of it, without any answer of the cloud; ``None`` = its inputs were not shown."""
    return props.inputs if isinstance(props, _InputsFirst) else None


class _InputsFirst(Mapping[str, Any]):
    """Inputs with the outputs behind them, in objects as well; a list of inputs stands alone, as sets have no order."""

    def __init__(self, inputs: Props, outputs: Props, unused: frozenset[str], left_out: frozenset[str]) -> None:
        self.inputs, self._outputs, self._left_out = inputs, outputs, left_out
        self._set, self._filled = frozenset(inputs), frozenset(outputs) - unused

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 what a property holds is the provider's business
        if key in self._set:
            value = self.inputs[key]
            return self._object(key, value) if key in self._filled and isinstance(value, Mapping) else value
        if key in self._filled:
            return self._outputs[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter((*self.inputs, *(key for key in self._outputs if key in self._filled - self._set)))

    def __len__(self) -> int:
        return len(self._set | self._filled)

    def _object(self, key: str, inputs: Props) -> Props:
        """An object of the inputs with what the cloud answers about it."""
        try:
            outputs = self._outputs[key]
        except UnknownValueError as unknown:
            return _Unanswered(inputs, unknown)
        if not isinstance(outputs, Mapping):
            return inputs
        missing = frozenset(part for part in outputs if key in self._left_out and _is_unknown(outputs, part))
        return _InputsFirst(inputs, outputs, missing, _NONE)


class _Unanswered(Mapping[str, Any]):
    """An object of the inputs about which the cloud says nothing yet: whatever they don't set is unknown."""

    def __init__(self, inputs: Props, unknown: UnknownValueError) -> None:
        self._inputs, self._unknown, self._set = inputs, unknown, frozenset(inputs)

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 what a property holds is the provider's business
        if key not in self._set:
            raise self._unknown
        value = self._inputs[key]
        return _Unanswered(value, self._unknown) if isinstance(value, Mapping) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._inputs)

    def __len__(self) -> int:
        return len(self._set)


def _is_unknown(props: Props, key: str) -> bool:
    try:
        props[key]
    except UnknownValueError:
        return True
    return False
