"""Network interfaces of an instance: the layout that gives it all its EFA bandwidth, and what a layout gets wrong.

Rules: the EC2 guide of EFA instance types (card 0 has the primary ``interface``, and ``efa-only`` on device 1 where it
has EFA; every further card has ``efa-only`` on device 0), and the checks that Karpenter makes of its node classes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.hardware import InstanceType, NetworkCard

InterfaceType = Literal["interface", "efa", "efa-only"]
EFA_TYPES: tuple[InterfaceType, ...] = ("efa", "efa-only")

EFA_LABEL = "vpc.amazonaws.com/efa.present"
"""On nodes that have EFA."""

_GUIDE = "EC2 user guide, EFA-enabled instance types"
_KARPENTER = "karpenter 1.14 pkg/apis/v1/ec2nodeclass.go"

EFA_COUNT = CloudRule(
    "efa-interface-count",
    Grade.HIGH,
    "An instance with EFA has as many EFA interfaces as it can have",
    "take the number from the instance's EFA maximum, not from its number of cards",
    "eksctl#8685, aws-parallelcluster#7143",
)
EFA_SUPPORT = CloudRule(
    "efa-on-instance-without",
    Grade.HIGH,
    "EFA interfaces stand on instances and cards that have EFA",
    "take type 'interface', or an instance and a card with EFA",
    f"{_GUIDE}; aws-parallelcluster#7143",
)
INDEX = CloudRule(
    "interface-index",
    Grade.HIGH,
    "Every interface has a card and a device that the instance has, and none has another's",
    "card < network cards, device < interfaces of that card, each pair once",
    f"eksctl#7520, terraform-aws-eks#2654; {_KARPENTER}",
)
PRIMARY = CloudRule(
    "interface-primary",
    Grade.HIGH,
    "Card 0 device 0 carries IP",
    "make card 0 device 0 an 'interface'; an efa-only one can't be primary",
    f"{_GUIDE}; {_KARPENTER}",
)
PUBLIC = CloudRule(
    "efa-only-public-ip",
    Grade.HIGH,
    "An efa-only interface asks for no address, and none of several interfaces for a public one",
    "leave associate_public_ip_address out, and every address, count and prefix of an efa-only interface",
    "karpenter#5666; botocore ec2 InstanceNetworkInterfaceSpecification: efa-only has no IP address",
)


@dataclass(frozen=True, slots=True)
class Interface:
    """One network interface as a launch template asks for it."""

    card: int
    device: int
    type: InterfaceType | str = "interface"
    """A string that is none of the known ones is a finding."""
    wants_public_ip: bool = False
    addresses: tuple[str, ...] = ()
    """What else it says about addresses of its own: the names of the settings."""


def efa_layout(shape: InstanceType) -> tuple[Interface, ...]:
    """The primary interface and every EFA interface that the instance can have; one interface where it has none."""
    primary = Interface(0, 0)
    found = [Interface(card.index, 1 if card.index == 0 else 0, "efa-only") for card in _efa_cards(shape)]
    return (primary, *found[: shape.max_efa_interfaces])


def interface_findings(shape: InstanceType, interfaces: Sequence[Interface], *, wants_efa: bool) -> Iterator[Finding]:
    """What is wrong with the interfaces of a launch template for an instance type."""
    yield from layout_findings(interfaces)
    yield from fit_findings(shape, interfaces, wants_efa=wants_efa)


def layout_findings(interfaces: Sequence[Interface]) -> Iterator[Finding]:
    """What is wrong with the interfaces of a launch template for whatever instance type."""
    yield from _places(interfaces)
    if not any((item.card, item.device, item.type) in ((0, 0, "interface"), (0, 0, "efa")) for item in interfaces):
        yield Finding(PRIMARY, "no interface with IP stands on card 0 device 0")
    yield from _addresses(interfaces)


def fit_findings(shape: InstanceType, interfaces: Sequence[Interface], *, wants_efa: bool) -> Iterator[Finding]:
    """What an instance type lacks of the interfaces that a launch template asks for."""
    cards = {card.index: card for card in shape.network_cards}
    yield from _indices(shape, interfaces, cards)
    yield from _types(shape, interfaces, cards)
    found = sum(item.type in EFA_TYPES for item in interfaces)
    if wants_efa and shape.supports_efa and found != shape.max_efa_interfaces:
        message = f"{found} EFA interfaces; {shape.name} has {shape.max_efa_interfaces}"
        yield Finding(EFA_COUNT, message, evidence={"found": found, "maximum": shape.max_efa_interfaces})


def label_findings(shape: InstanceType) -> Iterator[Finding]:
    """What is wrong with a label that promises EFA where the launch template asks for no EFA interface."""
    if shape.supports_efa:
        message = f"the nodes are labelled as ones with EFA and have no EFA interface; {shape.name} has"
        evidence = {"found": 0, "maximum": shape.max_efa_interfaces}
        yield Finding(EFA_COUNT, f"{message} {shape.max_efa_interfaces}", evidence=evidence)
    else:
        yield Finding(EFA_SUPPORT, f"nodes of {shape.name} are labelled as ones with EFA, which it has not")


def _addresses(interfaces: Sequence[Interface]) -> Iterator[Finding]:
    for item in interfaces:
        place = f"the {item.type} interface on card {item.card} device {item.device}"
        if item.wants_public_ip and (item.type == "efa-only" or len(interfaces) > 1):
            yield Finding(PUBLIC, f"{place} asks for a public IP; it is one of {len(interfaces)}")
        if item.type == "efa-only" and item.addresses:
            yield Finding(PUBLIC, f"{place} asks for addresses ({', '.join(item.addresses)})")


def _efa_cards(shape: InstanceType) -> Iterator[NetworkCard]:
    return (card for card in shape.network_cards if "efa-only" in card.interface_types)


def _indices(shape: InstanceType, interfaces: Sequence[Interface], cards: dict[int, NetworkCard]) -> Iterator[Finding]:
    for item in interfaces:
        card = cards.get(item.card)
        if card is None and item.card >= 0:
            yield Finding(INDEX, f"network card {item.card}; {shape.name} has cards 0 to {len(cards) - 1}")
        elif card is not None and item.device >= card.max_interfaces:
            message = f"device {item.device} on card {item.card}; that card of {shape.name} has {card.max_interfaces}"
            yield Finding(INDEX, message)


def _places(interfaces: Sequence[Interface]) -> Iterator[Finding]:
    for item in interfaces:
        if min(item.card, item.device) < 0:
            yield Finding(INDEX, f"device {item.device} on card {item.card}; both count from 0")
    for (index, device), count in Counter((item.card, item.device) for item in interfaces).items():
        if count > 1:
            yield Finding(INDEX, f"{count} interfaces on card {index} device {device}")
    for index, count in Counter(item.card for item in interfaces if item.type in EFA_TYPES).items():
        if count > 1:
            yield Finding(INDEX, f"{count} EFA interfaces on card {index}, which can have one", "one on each card")


def _types(shape: InstanceType, interfaces: Sequence[Interface], cards: dict[int, NetworkCard]) -> Iterator[Finding]:
    for item in interfaces:
        card = cards.get(item.card)
        if item.type not in EFA_TYPES or card is None or item.type in card.interface_types:
            continue
        has = ", ".join(card.interface_types)
        yield Finding(EFA_SUPPORT, f"{item.type} on card {item.card} of {shape.name}, which has {has} only")


RULES: tuple[CloudRule, ...] = (EFA_COUNT, EFA_SUPPORT, INDEX, PRIMARY, PUBLIC)
