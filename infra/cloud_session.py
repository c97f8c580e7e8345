"""AWS clients for the program's own tools: the credentials of the environment, and an end to every wait."""

from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from infra.cloud_client import CloudClosed

_LIMITS = Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 3, "mode": "standard"})


def clients(region: str, *services: str) -> tuple[Any, ...]:
    """A client for each service; raises `CloudClosed` when the environment names a profile that is not there."""
    try:
        return tuple(boto3.client(name, region_name=region, config=_LIMITS) for name in services)
    except BotoCoreError as error:
        raise CloudClosed(f"AWS can't be asked: {error}") from error
