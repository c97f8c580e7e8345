"""What a plan costs: dollars an hour and per million tokens, from a dated table of prices.

A price that the table lacks makes the cost unknown, with the reason; where a larger instance with the same GPU has one,
its part is shown as an estimate. A cost never stands without the day of its price.
"""

from dataclasses import dataclass, replace

from fleet.hardware import InstanceType, instances_with
from fleet.latency_interval import Interval
from fleet.prices import Price, PriceTable

SECONDS_PER_HOUR = 3600
TOKENS_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """What some GPUs of an instance type cost under one way of buying them. ``None`` = not known, see ``reason``."""

    instance_type: str
    purchase: str
    nodes: int
    """Instances that must be rented."""
    gpu_share: float
    """Part of the rented GPUs that the plan uses; the rest can serve others."""
    usd_per_hour: float | None
    """Of all rented instances."""
    usd_per_hour_of_share: float | None
    """Of the GPUs that the plan uses."""
    usd_per_million_output_tokens: Interval | None
    """At saturation, for the used GPUs; low goes with the highest throughput."""
    priced_on: str | None
    """The day, month or quarter for which the source states the price."""
    is_estimate: bool
    source: str | None
    reason: str | None
    """Why a figure is not known."""
    priced_as_part_of: str | None = None
    """The larger instance of whose price the share is a part, where the instance's own is not known."""


def cost_of(
    instance_type: InstanceType,
    gpus: int,
    *,
    table: PriceTable,
    purchase: str = "on-demand",
    output_tokens_per_second: Interval | None = None,
    slices_per_gpu: int = 1,
) -> Cost:
    """What ``gpus`` GPUs on instances of this type cost; throughput is of all of them together, in tokens a second.

    With ``slices_per_gpu`` they are MIG slices, of which so many share a GPU.
    """
    nodes = -(-gpus // (instance_type.gpus * slices_per_gpu))
    share = gpus / (nodes * instance_type.gpus * slices_per_gpu)
    price = table.price(instance_type.name, purchase) if purchase in instance_type.purchase_classes else None
    if price is not None:
        return _known(price, nodes=nodes, share=share, output_tokens_per_second=output_tokens_per_second)
    unknown = _unknown(instance_type, purchase, nodes=nodes, share=share, table=table)
    larger = _larger_with_price(instance_type, purchase, table)
    if larger is None:
        return unknown
    return _as_part(unknown, *larger, gpus=gpus / slices_per_gpu, output_tokens_per_second=output_tokens_per_second)


def usd_per_million(usd_per_hour: float, tokens_per_second: Interval) -> Interval | None:
    """Dollars per million tokens: dollars an hour over tokens an hour; the fastest case is the cheapest."""
    if tokens_per_second.low <= 0:
        return None
    return Interval(*(usd_per_hour * _hours_per_million(rate) for rate in reversed(tokens_per_second.values)))


def _hours_per_million(tokens_per_second: float) -> float:
    return TOKENS_PER_MILLION / (tokens_per_second * SECONDS_PER_HOUR)


def _larger_with_price(shape: InstanceType, purchase: str, table: PriceTable) -> tuple[InstanceType, Price] | None:
    """The smallest larger one of its family that has a price; with fewer vCPUs a GPU, its part would say too little."""
    if shape.gpu_fraction != 1:
        return None
    for item in instances_with(shape.gpu):
        price = table.price(item.name, purchase)
        is_larger = item.gpus > shape.gpus and item.vcpus * shape.gpus >= shape.vcpus * item.gpus
        if is_larger and _family(item) == _family(shape) and price is not None:
            return item, price
    return None


def _family(shape: InstanceType) -> str:
    return shape.name.partition(".")[0]


def _as_part(
    unknown: Cost, larger: InstanceType, price: Price, *, gpus: float, output_tokens_per_second: Interval | None
) -> Cost:
    """The GPUs at the price that they have as a part of the larger instance: an estimate, marked as one."""
    usd, rate = price.usd_per_hour * gpus / larger.gpus, output_tokens_per_second
    return replace(
        unknown,
        usd_per_hour_of_share=usd,
        usd_per_million_output_tokens=None if rate is None else usd_per_million(usd, rate),
        priced_on=price.as_of,
        is_estimate=True,
        source=price.source,
        reason=f"{unknown.reason}; the share is the part of a {larger.name}",
        priced_as_part_of=larger.name,
    )


def _known(price: Price, *, nodes: int, share: float, output_tokens_per_second: Interval | None) -> Cost:
    usd_per_hour = price.usd_per_hour * nodes
    rate = output_tokens_per_second
    per_million = None if rate is None else usd_per_million(usd_per_hour * share, rate)
    return Cost(
        instance_type=price.instance_type,
        purchase=price.purchase,
        nodes=nodes,
        gpu_share=share,
        usd_per_hour=usd_per_hour,
        usd_per_hour_of_share=usd_per_hour * share,
        usd_per_million_output_tokens=per_million,
        priced_on=price.as_of,
        is_estimate=price.is_estimate,
        source=price.source,
        reason=None if per_million is not None else "the throughput of the plan is not known",
    )


def _unknown(instance_type: InstanceType, purchase: str, *, nodes: int, share: float, table: PriceTable) -> Cost:
    name = instance_type.name
    sold = instance_type.purchase_classes
    not_sold = f"{name} is not sold as {purchase}; it is sold as {', '.join(sold)}"
    return Cost(
        instance_type=name,
        purchase=purchase,
        nodes=nodes,
        gpu_share=share,
        usd_per_hour=None,
        usd_per_hour_of_share=None,
        usd_per_million_output_tokens=None,
        priced_on=None,
        is_estimate=False,
        source=None,
        reason=table.why_unknown(name, purchase) if purchase in sold else not_sold,
    )
