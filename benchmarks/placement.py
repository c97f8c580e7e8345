"""What one placement over 10,000 candidates costs: pools x alternatives x engines, as ``choose`` looks at them.

Run it with ``python benchmarks/placement.py [--runs N]``. An environment has a pool for every instance type, purchase,
MIG profile and zone until manifest, alternatives and engines make at least 10,000 candidates. Nothing is remembered
from one run to the next: the facts are new, and what the package remembers is forgotten.
"""

import argparse
import gc
import itertools
import json
import resource
import statistics
import sys
import time
from collections import Counter
from datetime import date
from typing import Any

from plan import forget

from cli.main import GARBAGE_THRESHOLD
from engines.catalogue import Catalogue, load
from fleet.facts import Facts
from fleet.hardware import gpu, instance_types
from fleet.manifest import Manifest
from fleet.node_pools import NodePool
from fleet.placement import Choice, choose
from fleet.policy import Policy
from sources.snapshot import bundled

CANDIDATES, TARGET_SECONDS, MEMORY_MIB = 10_000, 2.0, 200
TODAY = date(2030, 1, 1)
COMMIT = "0123456789abcdef0123456789abcdef01234567"  # invented
OWN = "meta-llama/Llama-3.3-70B-Instruct"
ALTERNATIVES = (
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-32B-FP8",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "openai/gpt-oss-120b",
    "openai/gpt-oss-20b",
    "google/gemma-4-26B-A4B",
    "meta-llama/Meta-Llama-3.1-8B",
    "mistralai/Mixtral-8x7B-v0.1",
    "zai-org/GLM-4.5-Air",
    "Qwen/Qwen3-235B-A22B-FP8",
)
ZONES = ("a", "b")
WORKLOADS: dict[str, dict[str, Any]] = {
    "chat, a rate and a cost": {"requests_per_second": 8, "input_tokens": 2000, "output_tokens": 300},
    "latency-critical, strict": {"ttft_p95_seconds": 0.2, "tpot_p95_seconds": 0.01, "requests_per_second": 2},
    "batch, nothing asked": {},
}


def main() -> int:
    """Measure, print; 1 when a target is missed or there are fewer candidates than promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    catalogue, data, pools = load(), bundled(), every_pool()
    kinds = {(pool.instance_type, pool.purchase, pool.mig_profile) for pool in pools}
    print(f"environment          {len(pools)} pools of {len(kinds)} kinds; {1 + len(ALTERNATIVES)} models")
    missed = []
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)  # as the command and the control plane search for garbage
    for name, objectives in WORKLOADS.items():
        manifest, taken, choice = manifest_of(name.split(",")[0], objectives), [], None
        for _ in range(runs):
            forget()
            policy = Policy(allow_runtime_process=True)
            facts = Facts(today=TODAY, data=data, policy=policy, pools=pools, catalogue_digest=catalogue.digest)
            wall, cpu = time.perf_counter(), time.process_time()
            choice = choose(manifest, facts, catalogue)
            taken.append((time.perf_counter() - wall, time.process_time() - cpu))
        if choice is not None:
            missed += print_choice(name, choice, taken, catalogue)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory          {peak:.0f} MB; target {MEMORY_MIB} MB")
    missed += ["memory"] if peak > MEMORY_MIB else []
    print("targets met" if not missed else f"targets missed: {', '.join(missed)}")
    return 1 if missed else 0


def print_choice(name: str, choice: Choice, taken: list[tuple[float, float]], catalogue: Catalogue) -> list[str]:
    """What was considered, what was chosen, and how long it took."""
    rules = Counter(item.rule for item in choice.rejections)
    seen = Counter(f"{item.engine} {item.version}" for item in choice.rejections if item.instance_type)
    cpu = statistics.median(item[1] for item in taken)
    chosen = choice.chosen
    print(f"{name}")
    print(f"  considered         {choice.considered:,} by {', '.join(seen)} of {len(catalogue.names)} engines")
    print(f"  rejections kept    {len(choice.rejections):,}: {', '.join(f'{k} {v}' for k, v in rules.most_common(6))}")
    if chosen is not None:
        print(
            f"  chosen             {chosen.engine} {chosen.version}, {chosen.model_id} on {chosen.pool} ({chosen.plan})"
        )
    walls = ", ".join(f"{wall:.2f}" for wall, _ in taken)
    print(f"  seconds            {cpu:.2f} of CPU (wall {walls}); target {TARGET_SECONDS:.0f}")
    missed = [f"{name}: time"] if cpu > TARGET_SECONDS else []
    return missed + ([f"{name}: too few candidates"] if choice.considered < CANDIDATES else [])


# --- The load ------------------------------------------------------------------------------------------------------
def every_pool() -> tuple[NodePool, ...]:
    """A pool of each kind in each zone."""
    pools: list[NodePool] = []
    for shape, zone in itertools.product(instance_types().values(), ZONES):
        if shape.gpu_fraction != 1:
            continue
        profiles: list[str | None] = [
            None,
            *(item.name for item in gpu(shape.gpu).mig_profiles if "+" not in item.name),
        ]
        for purchase, profile in itertools.product(shape.purchase_classes, profiles):
            if profile is not None and purchase != "on-demand":
                continue
            block = {"max_nodes": 4, "ends_on": "2030-12-31"} if purchase == "capacity-block" else {}
            wish = {"sharing": "mig", "mig_profile": profile} if profile else {}
            document = {"name": f"pool-{len(pools)}", "instance_type": shape.name, "purchase": purchase, "zone": zone}
            pools.append(NodePool.model_validate_json(json.dumps(document | block | wish)))
    return tuple(pools)


def manifest_of(workload: str, objectives: dict[str, Any]) -> Manifest:
    """Engine, hardware and plan are left open."""
    spec = {
        "workload": workload,
        "model": {
            "id": OWN,
            "revision": COMMIT,
            "alternatives": [{"id": name, "revision": COMMIT, "kind": "smaller"} for name in ALTERNATIVES],
        },
        "batch": {"max_model_len": 8192},
        "objectives": objectives,
        "scaling": {"max": 64},
    }
    document = {"kind": "InferenceDeployment", "metadata": {"name": "load"}, "spec": spec}
    return Manifest.model_validate_json(json.dumps(document))


if __name__ == "__main__":
    sys.exit(main())
