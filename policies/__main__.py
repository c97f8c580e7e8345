"""The program of the policy pack: the engine starts it, and it serves until it is ended.

What it can't work with ends it with one sentence on standard error.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from pulumi_policy import PolicyPack

from fleet.cloud.registry import UnknownRule
from policies import pack
from policies.decode_once import serve_decoded_once
from policies.knowledge import NoEnvironment, ground_of
from sources.errors import SourceError

HERE = Path(__file__).resolve().parent

serve_decoded_once()
try:
    ground = ground_of(
        os.environ, root=HERE.parent, policy=HERE / "policy.yaml", today=lambda: datetime.now(UTC).date()
    )
    policies = pack.policies(ground)
except (NoEnvironment, SourceError, UnknownRule) as error:
    sys.exit(f"the policy pack can't judge this stack: {error}")
PolicyPack(pack.NAME, policies, initial_config=pack.initial_config(ground))
