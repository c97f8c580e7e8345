"""How many nodes EKS is told that a group has: the file's number, or the autoscaler's.

EKS refuses an update whose minimum is above the wanted number ("Minimum capacity 2 can't be greater than desired size
1"). Where the file says how many nodes there are, both go up together. Where an autoscaler does, the program does not
know the number: the minimum is then the autoscaler's business, and EKS gets one that is never above what is there.
"""

from pulumi_aws import eks

from fleet.cloud.node_groups import Scaling

UNKNOWN_TO_THE_FILE = ["scalingConfig.desiredSize"]
"""Of a group whose number of nodes is the autoscaler's."""


def scaling_config(scaling: Scaling, *, is_scaled: bool, floor: int = 0) -> eks.NodeGroupScalingConfigArgs:
    """The sizes of a group; ``floor`` = what an autoscaler never goes below either."""
    return eks.NodeGroupScalingConfigArgs(
        min_size=min(floor, scaling.min) if is_scaled else scaling.min,
        desired_size=scaling.desired,
        max_size=scaling.max,
    )
