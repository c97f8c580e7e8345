"""The command that writes the kernel's hardware data, compared with what is committed."""

import json
from pathlib import Path

import pytest

from sources.hardware import gpu_file, instance_file, main, price_table

HEADER = (
    "instance_type|gpus|gpu_memory_mib|gpu_memory_total_mib|vcpus|memory_gib|network|network_cards|efa_max|"
    "network_cards_detail|max_interfaces|ipv4_per_interface|local_storage|placement_strategies|usage_classes|"
    "unlabelled|gpu_partition"
)
B300 = (
    "p6-b300.48xlarge|8xB300|275040|2200320|192|4096|6400 Gigabit|17|16|0-0:4if/ena/400G;"
    "1-16:4if/ena+efa+efa-only/400G|68|50|8x3800|['cluster']|['on-demand', 'capacity-block']|supported|1.0"
)
PART = "g6f.large|0xL4|2861|2861|2|8|Up to 10 Gigabit|1|0|0-0:2if/ena/Up to 10G|2|10|1x100|[]|['spot']|x|0.125"
P4D = "p4d.24xlarge|8xA100|40960|327680|96|1152|4x 100 Gigabit|4|4|0-3:15if/efa-only/100G|60|50||[]|[]|x|1.0"


def test_a_table_becomes_instance_types():
    b300, part, p4d = instance_file(f"{HEADER}\n{B300}\n{PART}\n{P4D}\n", retrieved="2030-01-01").instances
    assert len(b300.network_cards) == 17
    assert [card.supports_efa for card in b300.network_cards] == [False] + [True] * 16
    assert b300.max_efa_interfaces == 16
    assert (part.gpus, part.gpu_fraction, part.gpu_memory_mib) == (1, 0.125, 2861)
    assert part.network_is_burst
    assert (p4d.gpu, p4d.network_gigabits_per_second, p4d.local_storage) == ("A100-40", 400.0, None)


def test_a_rate_that_cannot_be_read_is_named():
    with pytest.raises(ValueError, match="'fast' is not a network rate"):
        instance_file(f"{HEADER}\n{PART.replace('Up to 10 Gigabit', 'fast')}", retrieved="2030-01-01")


def test_an_unknown_price_is_left_out_and_an_estimate_is_marked():
    hardware = {"aws_instances": {"p5e.48xlarge": ["H200", 8, 107.0], "p5en.48xlarge": ["H200", 8, None]}}
    table = price_table(hardware, retrieved="2030-01-01")
    assert table.price("p5en.48xlarge") is None
    assert table.price("p5e.48xlarge").is_estimate


def test_a_gpu_that_only_an_instance_names_keeps_its_unknown_rates():
    instances = instance_file(f"{HEADER}\n{B300}", retrieved="2030-01-01")
    only = gpu_file({"gpus": {}, "mig_profiles": {}}, instances, retrieved="2030-01-01").gpus
    assert [(gpu.name, gpu.memory_mib, gpu.bf16_tflops) for gpu in only] == [("B300", 275040, None)]


def test_the_committed_data_equals_a_rebuild(checkout: Path, tmp_path: Path):
    shared = checkout.parent / "shared"
    if not (shared / "aws" / "instances.psv").is_file():
        pytest.skip("the tables that the data is made from (../shared/aws, ../shared/models) are not here")
    tables = ["--instances", str(shared / "aws" / "instances.psv")]
    tables += ["--hardware", str(shared / "models" / "hardware.json")]
    assert main(["build", *tables, "--retrieved", "2026-11-29", "--out", str(tmp_path)]) == 0
    for name in ("instances.json", "gpus.json", "prices.json"):
        assert (tmp_path / name).read_bytes() == (checkout / "fleet" / "data" / name).read_bytes()
        assert json.loads((tmp_path / name).read_bytes())["retrieved"] == "2026-11-29"
