"""``python -m infra.drift --stack-file Pulumi.prod.yaml --outputs outputs.json``: is it still what was asked for?

The outputs are those of ``pulumi stack output --json``. It looks at the release and the interfaces of every node group
and at the file system with its links, prints each difference, and exits with 0 when there is none, with 1 when there
is one or AWS does not answer, with 2 when a file can't be read.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.cloud.interfaces import efa_layout
from fleet.cloud.labels import POOL_LABEL
from infra.cloud_client import Answer, CloudUnanswered, Ec2, Eks, Fsx, ask, pages
from infra.cloud_drift import Difference, launch_template_drift, lustre_drift
from infra.cloud_session import clients
from infra.lustre_wish import file_system_of, link_of
from infra.problem import Problem, StackRefused
from infra.stack_config import LustreWeights, PoolConfig, StackConfig
from infra.stack_file import config_of


@dataclass(frozen=True, slots=True)
class Clients:
    """Of the region of the stack."""

    ec2: Ec2
    eks: Eks
    fsx: Fsx


def connected(region: str) -> Clients:
    """Clients with the credentials of the environment; raises `CloudClosed`."""
    ec2, eks, fsx = clients(region, "ec2", "eks", "fsx")
    return Clients(ec2, eks, fsx)


def drift(config: StackConfig, outputs: Mapping[str, Any], cloud: Clients) -> Iterator[str]:
    """A sentence for each difference; raises `CloudUnanswered`."""
    pools = {pool.name: pool for pool in config.pools}
    seen = set()
    for name, group in _groups(cloud.eks, outputs["cluster_name"]):
        pool = pools.get(group.get("labels", {}).get(POOL_LABEL, ""))
        if pool is not None:
            seen.add(pool.name)
            yield from (f"node group {name}: {item.sentence}" for item in _group(pool, group, cloud.ec2))
    yield from (f"pool {name}: no node group carries its label" for name in pools if name not in seen)
    if isinstance(config.weights, LustreWeights):
        yield from _lustre(config.weights, outputs, cloud.fsx)


def main(arguments: Sequence[str] | None = None, *, connect: Callable[[str], Clients] = connected) -> int:
    """The command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.drift", description="Compares AWS with the stack's file.")
    parser.add_argument("--stack-file", type=Path, required=True, help="Pulumi.<stack>.yaml")
    parser.add_argument("--outputs", type=Path, required=True, help="what `pulumi stack output --json` wrote")
    asked = parser.parse_args(arguments)
    try:
        config = config_of(asked.stack_file.read_text(encoding="utf-8"))
        outputs = _outputs(asked.outputs.read_text(encoding="utf-8"), config)
    except (OSError, UnicodeDecodeError, StackRefused) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    try:
        found = list(drift(config, outputs, connect(config.region)))
    except CloudUnanswered as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.writelines(f"{sentence}\n" for sentence in found)
    return 1 if found else 0


def _outputs(text: str, config: StackConfig) -> Mapping[str, Any]:
    """The outputs that are needed; raises `StackRefused` when one is missing."""
    remedy = "write them with: pulumi stack output --json"
    try:
        outputs = json.loads(text)
    except ValueError as error:
        raise StackRefused([Problem("outputs", "", f"they are no JSON ({error})", remedy)]) from None
    needed = ["cluster_name"] + (["lustre", "weights_bucket"] if config.weights.kind == "lustre" else [])
    missing = [name for name in needed if not (isinstance(outputs, Mapping) and outputs.get(name))]
    if missing:
        raise StackRefused([Problem("outputs", "", f"they lack {', '.join(missing)}", remedy)])
    return dict(outputs)


def _groups(eks: Eks, cluster: str) -> Iterator[tuple[str, Answer]]:
    for answer in pages(eks.list_nodegroups, "nextToken", clusterName=cluster):
        for name in answer["nodegroups"]:
            yield name, ask(eks.describe_nodegroup, clusterName=cluster, nodegroupName=name)["nodegroup"]


def _group(pool: PoolConfig, group: Answer, ec2: Ec2) -> Iterator[Difference]:
    release = group.get("releaseVersion")
    if release != pool.image.release:
        yield Difference("the image release", str(pool.image.release), str(release or "nothing"))
    template = group.get("launchTemplate")
    if template is None:
        yield Difference("the launch template", "one of the pool's own", "nothing")
        return
    layout = efa_layout(pool.instance) if pool.efa else ()
    yield from launch_template_drift(ec2, template["id"], layout, version=template["version"])


def _lustre(weights: LustreWeights, outputs: Mapping[str, Any], fsx: Fsx) -> Iterator[str]:
    id_ = outputs["lustre"]["file_system_id"]
    link = link_of(weights, f"s3://{outputs['weights_bucket']}/")
    for item in lustre_drift(fsx, id_, file_system_of(weights), [link]):
        yield f"file system {id_}: {item.sentence}"


if __name__ == "__main__":
    sys.exit(main())
