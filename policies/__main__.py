"""The program of the policy pack: the engine starts it, and it serves until it is ended."""

import os
from pathlib import Path

from pulumi_policy import PolicyPack

from policies import pack
from policies.decode_once import serve_decoded_once
from sources import policy_file

serve_decoded_once()
book = policy_file.read(Path(__file__).with_name("policy.yaml"))
ground = pack.ground_of(os.environ, {name: book.platform_for(name) for name in book.environments})
PolicyPack(pack.NAME, pack.policies(ground), initial_config=pack.initial_config(ground))
