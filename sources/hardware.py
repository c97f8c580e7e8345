"""Rebuilds the kernel's hardware data (``fleet/data``) from the collected tables.

``python -m sources.hardware build --instances instances.psv --hardware hardware.json`` writes ``instances.json``
(columns of EC2 DescribeInstanceTypes), ``gpus.json`` and ``prices.json``.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fleet.hardware import GpuFile, GpuModel, InstanceFile, InstanceType, LocalStorage, MigProfile, NetworkCard
from fleet.prices import Price, PriceTable
from fleet.value import Value

DEFAULT_OUTPUT = Path(__file__).resolve().parent.parent / "fleet" / "data"
_INSTANCE_SOURCE = "EC2 DescribeInstanceTypes as moto 5.2.5 carries it (ec2/resources/instance_types.json.gz)"
_GPU_SOURCE = (
    "per GPU; memory_mib: EC2 DescribeInstanceTypes; MIG profiles: NVIDIA/mig-parted@bd7160f config-default.yaml"
)
_GPU_BY_MEMORY_MIB = {("A100", 40960): "A100-40", ("A100", 81920): "A100-80"}
_GPU_NAMES = {"RTX PRO 4500": "RTX-PRO-4500", "RTX PRO Server 6000": "RTX-PRO-6000"}
_UNCITABLE = {"H200": "aiconfigurator-core 0.12.0 systems/h200_sxm.yaml; visible memory: about 139 GiB, unverified"}
_PRICE_SOURCE = "gpuaudit pricing table"
_PRICE_PERIOD = "2026-Q1"
_ESTIMATES = {"p5e.48xlarge": ("awsnegotiations.com", "2026-05")}
_CAPACITY_BLOCKS = {"p5.48xlarge": 39.33, "p4d.24xlarge": 14.75}
"""From a page of late 2024; its H200 price does not say which of two instance types it means, so it is left out."""


def instance_file(table: str, *, retrieved: str) -> InstanceFile:
    """The instance types of the table (``|`` between columns, the first line names them)."""
    header, *rows = [line.split("|") for line in table.splitlines() if line.strip()]
    instances = (_instance(dict(zip(header, row, strict=True))) for row in rows)
    return InstanceFile(source=_INSTANCE_SOURCE, retrieved=retrieved, instances=tuple(instances))


def _instance(row: dict[str, str]) -> InstanceType:
    count, model = row["gpus"].split("x", 1)
    gigabits, is_burst = _rate(row["network"])
    memory_mib = int(row["gpu_memory_mib"])
    return InstanceType(
        name=row["instance_type"],
        gpu=_GPU_BY_MEMORY_MIB.get((model, memory_mib), _GPU_NAMES.get(model, model)),
        gpus=max(1, int(count)),
        gpu_fraction=float(row["gpu_partition"]),
        gpu_memory_mib=memory_mib,
        vcpus=int(row["vcpus"]),
        memory_mib=int(row["memory_gib"]) * 1024,
        network_gigabits_per_second=gigabits,
        network_is_burst=is_burst,
        network_cards=tuple(_cards(row["network_cards_detail"])),
        max_efa_interfaces=int(row["efa_max"]),
        max_interfaces=int(row["max_interfaces"]),
        ipv4_per_interface=int(row["ipv4_per_interface"]),
        local_storage=_storage(row["local_storage"]),
        placement_strategies=tuple(ast.literal_eval(row["placement_strategies"])),
        purchase_classes=tuple(sorted(ast.literal_eval(row["usage_classes"]))),
    )


def _rate(text: str) -> tuple[float, bool]:
    """Gigabits per second of ``Up to 10 Gigabit``, ``4x 100 Gigabit`` or ``100G``, and whether it is an upper bound."""
    found = re.fullmatch(r"(?P<burst>Up to )?(?:(?P<times>\d+)x )?(?P<rate>[\d.]+)(?:G| Gigabit)", text.strip())
    if found is None:
        raise ValueError(f"'{text}' is not a network rate; expected one like '100 Gigabit'")
    return float(found["rate"]) * int(found["times"] or 1), found["burst"] is not None


def _cards(detail: str) -> Iterator[NetworkCard]:
    """Read ``0-0:4if/ena/400G;1-16:4if/ena+efa+efa-only/400G``: first and last index, interfaces, kinds, rate."""
    for group in detail.split(";"):
        span, rest = group.split(":", 1)
        first, last = (int(part) for part in span.split("-"))
        interfaces, kinds, rate = rest.split("/")
        gigabits, is_burst = _rate(rate)
        for index in range(first, last + 1):
            yield NetworkCard(
                index=index,
                max_interfaces=int(interfaces.removesuffix("if")),
                interface_types=tuple(kinds.split("+")),
                gigabits_per_second=gigabits,
                is_burst=is_burst,
            )


def _storage(text: str) -> LocalStorage | None:
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    return LocalStorage(disks=int(found[1]), gigabytes_per_disk=int(found[2])) if found else None


def gpu_file(hardware: dict[str, Any], instances: InstanceFile, *, retrieved: str) -> GpuFile:
    """The GPUs of the collected facts, and those that only an instance type names."""
    memory_mib = {item.gpu: item.gpu_memory_mib for item in instances.instances if item.gpu_fraction == 1}
    profiles = hardware["mig_profiles"]
    known = [
        _gpu(name, facts, memory_mib.get(name), profiles.get(name, {})) for name, facts in hardware["gpus"].items()
    ]
    rest = sorted(memory_mib.keys() - hardware["gpus"].keys())
    known += [GpuModel(name=name, memory_mib=memory_mib[name], source=_INSTANCE_SOURCE) for name in rest]
    return GpuFile(source=_GPU_SOURCE, retrieved=retrieved, gpus=tuple(known))


def _gpu(name: str, facts: dict[str, Any], memory_mib: int | None, profiles: dict[str, int]) -> GpuModel:
    major, minor = facts["cc"].split(".")
    return GpuModel(
        name=name,
        memory_mib=memory_mib,
        visible_memory_gib=facts.get("torch_total_gib"),
        compute_capability=(int(major), int(minor)),
        memory_bandwidth_gb_per_second=facts.get("mem_bw_gb_s"),
        bf16_tflops=facts.get("bf16_tflops"),
        fp8_tflops=facts.get("fp8_tflops"),
        fp4_tflops=facts.get("fp4_tflops"),
        nvlink_gb_per_second=facts.get("nvlink_gb_s"),
        pcie_gb_per_second=facts.get("pcie_gb_s"),
        mig_profiles=tuple(MigProfile(name=profile, per_gpu=count) for profile, count in profiles.items()),
        source=_UNCITABLE.get(name, facts["source"].replace("from memory, unverified", "unverified")),
    )


def price_table(hardware: dict[str, Any], *, retrieved: str) -> PriceTable:
    """The prices that a source states; an instance without one is left out."""
    stated = {name: facts[2] for name, facts in hardware["aws_instances"].items() if facts[2] is not None}
    prices = [_price(name, usd) for name, usd in stated.items()]
    prices += [
        Price(
            instance_type=name,
            purchase="capacity-block",
            usd_per_hour=usd,
            as_of="2024-Q4",
            source="AWS Capacity Blocks price page, copy of late 2024",
        )
        for name, usd in _CAPACITY_BLOCKS.items()
    ]
    return PriceTable(retrieved=retrieved, prices=tuple(prices))


def _price(name: str, usd: float) -> Price:
    if name in _ESTIMATES:
        source, period = _ESTIMATES[name]
        return Price(instance_type=name, usd_per_hour=usd, as_of=period, is_estimate=True, source=source)
    return Price(instance_type=name, usd_per_hour=usd, as_of=_PRICE_PERIOD, region="us-east-1", source=_PRICE_SOURCE)


def as_text(value: Value) -> str:
    """Stable JSON, one item a line."""
    plain = value.model_dump(mode="json", exclude_defaults=True)
    lines = []
    for key, item in plain.items():
        rows = ",\n  ".join(json.dumps(row) for row in item) if isinstance(item, list) else ""
        lines.append(f'"{key}": [\n  {rows}\n ]' if rows else f'"{key}": {json.dumps(item)}')
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def main(arguments: Sequence[str]) -> int:
    """``build --instances FILE --hardware FILE --retrieved DAY [--out FOLDER]``."""
    parser = argparse.ArgumentParser(prog="python -m sources.hardware")
    command = parser.add_subparsers(required=True).add_parser("build", help="rebuild fleet/data")
    command.add_argument("--instances", required=True, type=Path, metavar="FILE")
    command.add_argument("--hardware", required=True, type=Path, metavar="FILE")
    command.add_argument("--retrieved", required=True, help="day on which the facts were collected")
    command.add_argument("--out", type=Path, default=DEFAULT_OUTPUT, metavar="FOLDER")
    options = parser.parse_args(arguments)
    hardware = json.loads(options.hardware.read_text(encoding="utf-8"))
    instances = instance_file(options.instances.read_text(encoding="utf-8"), retrieved=options.retrieved)
    written: dict[str, Value] = {
        "instances.json": instances,
        "gpus.json": gpu_file(hardware, instances, retrieved=options.retrieved),
        "prices.json": price_table(hardware, retrieved=options.retrieved),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    for name, value in written.items():
        (options.out / name).write_text(as_text(value), encoding="utf-8")
        sys.stderr.write(f"{options.out / name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
