"""The providers: one for the account and region with the tags of everything, one for the cluster."""

import json
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws
import pulumi_kubernetes

from infra.stack_config import StackConfig


def own_tags(config: StackConfig) -> dict[str, str]:
    """The tags that the program sets itself."""
    return {
        "environment": config.environment,
        "owner": config.owner,
        "managed-by": "pulumi",
        "project": "enginehouse",
    }


def tags_of(config: StackConfig) -> dict[str, str]:
    """The tags of everything that costs money."""
    return {**config.tags, **own_tags(config)}


def aws_provider(name: str, config: StackConfig) -> pulumi_aws.Provider:
    """For all resources of the account."""
    return pulumi_aws.Provider(
        name,
        region=config.region,
        allowed_account_ids=[config.account],
        default_tags=pulumi_aws.ProviderDefaultTagsArgs(tags=tags_of(config)),
    )


def kubernetes_provider(
    name: str, kubeconfig: pulumi.Input[str], wait_for: Sequence[pulumi.Resource]
) -> pulumi_kubernetes.Provider:
    """For all objects of the cluster: server-side apply, and ConfigMaps that are updated in place."""
    return pulumi_kubernetes.Provider(
        name,
        kubeconfig=kubeconfig,
        enable_server_side_apply=True,
        enable_config_map_mutable=True,
        opts=pulumi.ResourceOptions(depends_on=list(wait_for)),
    )


def kubeconfig_text(cluster: Mapping[str, str], region: str) -> str:
    """A kubeconfig without a secret: each call asks the AWS CLI for a token of whoever runs it.

    ``cluster`` has ``name``, ``endpoint`` and ``ca``.
    """
    name = cluster["name"]
    command = ["--region", region, "eks", "get-token", "--cluster-name", name, "--output", "json"]
    run = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws", "args": command}
    server = {"server": cluster["endpoint"], "certificate-authority-data": cluster["ca"]}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": server}],
        "users": [{"name": name, "user": {"exec": {**run, "interactiveMode": "Never"}}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return json.dumps(content)
