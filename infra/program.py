"""The program: reads the stack's configuration, refuses what can't work, and builds one environment's cluster."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import pulumi

from infra import config_reading
from infra.autoscaling import stays_empty
from infra.credentials import credential_problems
from infra.ground_layer import GroundLayer, ground_layer
from infra.name_checks import foreign_admins
from infra.node_layer import NodeLayer, node_layer
from infra.object_layer import ObjectLayer, object_layer
from infra.outputs import outputs_of
from infra.problem import Problem, StackRefused
from infra.program_inputs import Inputs, other_environments, read_inputs
from infra.providers import aws_provider, kubeconfig_text, kubernetes_provider
from infra.stack_checks import problems
from infra.stack_config import StackConfig
from infra.storage_layer import StorageLayer, storage_layer
from infra.versions import support_warning

ROOT = Path(__file__).resolve().parent.parent
"""The checkout, whose ``environments`` the program reads."""

NOBODY_ADDS = "it begins with no node and nothing adds one; give it min_nodes or desired_nodes"


@dataclass(frozen=True, slots=True)
class Platform:
    """Everything that was registered, layer upon layer."""

    ground: GroundLayer
    nodes: NodeLayer
    storage: StorageLayer
    objects: ObjectLayer


def run() -> None:
    """The whole program, as Pulumi starts it."""
    try:
        config = read_config()
        today = datetime.now(UTC).date()
        inputs = _checked(config, today)
    except StackRefused as refused:
        for problem in refused.problems:
            pulumi.log.error(problem.sentence)
        raise pulumi.RunError(f"the stack is refused: {refused.summary}; nothing was registered") from None
    for text in warnings_of(config, today):
        pulumi.log.warn(text)
    platform = build(config, inputs)
    for name, value in outputs_of(config, platform, inputs.environment.prices).items():
        pulumi.export(name, value)


def _checked(config: StackConfig, today: date) -> Inputs:
    """What stands beside the configuration; raises `StackRefused` with everything that is wrong with both."""
    known = partial(problems, config, today=today, others=other_environments(ROOT, config.environment))
    found = credential_problems(_environ(), home=Path.home())
    try:
        inputs = read_inputs(config, environments=ROOT / "environments", data_dirs=_data_dirs(), today=today)
    except StackRefused as refused:
        raise StackRefused([*found, *known(), *refused.problems]) from None
    wrong = [*found, *known(pools=inputs.environment.pools), *inputs.judged.problems]
    if wrong:
        raise StackRefused(wrong)
    return inputs


def warnings_of(config: StackConfig, today: date) -> Iterator[str]:
    """What is no reason to stop, and has to be known."""
    for pool in stays_empty(config):
        yield f"the pool {pool} stays empty: {NOBODY_ADDS}"
    yield from foreign_admins(config)
    support = support_warning(config.cluster.kubernetes, today)
    if support is not None:
        yield f"cluster.kubernetes: {support}"


def read_config() -> StackConfig:
    """The stack's configuration; raises `StackRefused`."""
    return config_reading.parse(pulumi.Config("enginehouse").get("stack"))


def build(config: StackConfig, inputs: Inputs) -> Platform:
    """Registers everything; the configuration must have been checked."""
    base = f"enginehouse-{config.environment}"
    aws = aws_provider(f"{base}-aws", config)
    in_account = pulumi.ResourceOptions(providers=[aws])
    ground = ground_layer(base, config, in_account)
    nodes = node_layer(base, config, ground, in_account)
    storage = storage_layer(base, config, ground, nodes, in_account)
    cluster = ground.cluster
    text = pulumi.Output.all(name=cluster.name, endpoint=cluster.endpoint, ca=cluster.ca)
    kubernetes = kubernetes_provider(
        f"{base}-kubernetes", text.apply(lambda found: kubeconfig_text(found, config.region)), cluster.access
    )
    objects = object_layer(
        base, config, inputs, (ground, nodes, storage), pulumi.ResourceOptions(providers=[aws, kubernetes])
    )
    return Platform(ground, nodes, storage, objects)


def _environ() -> Mapping[str, str]:
    """The environment, with the profile and keys that Pulumi's own configuration may hold."""
    own = pulumi.Config("aws")
    named = {"AWS_PROFILE": own.get("profile"), "AWS_ACCESS_KEY_ID": "set" if own.get("accessKey") else None}
    return {**os.environ, **{name: value for name, value in named.items() if value}}


def _data_dirs() -> list[Path]:
    """Folders of advisories (``enginehouse:data``, a list), none = the bundled ones; raises `StackRefused`."""
    stated = pulumi.Config("enginehouse").get("data")
    try:
        found = [] if stated is None else json.loads(stated)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(folder, str) and folder.strip() for folder in found):
        remedy = """write a list: pulumi config set --path 'enginehouse:data[0]' FOLDER"""
        shown = (stated or "")[:60]
        raise StackRefused([Problem("enginehouse:data", shown, "folders of advisories are a list of texts", remedy)])
    return [ROOT / folder for folder in found]
