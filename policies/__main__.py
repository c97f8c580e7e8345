"""The program of the policy pack: the engine starts it, and it serves until it is ended."""

import os
from datetime import UTC, datetime
from pathlib import Path

from pulumi_policy import PolicyPack

from policies import pack
from policies.decode_once import serve_decoded_once
from policies.knowledge import ground_of

HERE = Path(__file__).resolve().parent

serve_decoded_once()
ground = ground_of(os.environ, root=HERE.parent, policy=HERE / "policy.yaml", today=lambda: datetime.now(UTC).date())
PolicyPack(pack.NAME, pack.policies(ground), initial_config=pack.initial_config(ground))
