"""Where weights are, in the cluster: a ConfigMap that pods read, so that no object has to know the bucket's name."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from workloads.weights import BUCKET_KEY, REGION_KEY

CONFIG_MAP = "weights"
"""Its name, in every namespace."""


@dataclass(frozen=True, slots=True)
class WeightsAddressArgs:
    """Which bucket, for whom."""

    bucket: pulumi.Input[str]
    region: str
    namespace: str
    """It must be there."""


class WeightsAddress(pulumi.ComponentResource):
    """The ConfigMap of pods that read the bucket themselves."""

    def __init__(self, name: str, args: WeightsAddressArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:WeightsAddress", name, None, opts)
        self.config_map = core.ConfigMap(
            f"{name}-config",
            metadata=ObjectMetaArgs(
                name=CONFIG_MAP, namespace=args.namespace, labels={"app.kubernetes.io/part-of": "enginehouse"}
            ),
            data={BUCKET_KEY: args.bucket, REGION_KEY: args.region},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"configMap": CONFIG_MAP, "namespace": args.namespace})
