"""Doubles for the calls that moto 5.2.5 does not know, each on a real client whose model checks question and answer.

`botocore.stub.Stubber` refuses a request or a response that AWS's own model has not.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import boto3
from botocore.stub import Stubber

REGION = "eu-central-1"
RESERVATION = "cr-0123456789abcdef0"
FILE_SYSTEM = "fs-0123456789abcdef0"
_NOBODY = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing"}


@cache
def _client(service: str) -> Any:
    """One for all tests: making it takes longer than using it."""
    return boto3.client(service, region_name=REGION, **_NOBODY)


@contextmanager
def answering(service: str, call: str, *answers: tuple[Mapping[str, object], Mapping[str, Any]]) -> Iterator[Any]:
    """A client that expects requests of one call, in this order, and gives these answers; all must be asked."""
    client = _client(service)
    with Stubber(client) as stub:
        for expected, response in answers:
            stub.add_response(call, dict(response), dict(expected))
        yield client
        stub.assert_no_pending_responses()


@contextmanager
def refusing(service: str, call: str, code: str, message: str = "no") -> Iterator[Any]:
    """A client whose call fails with one of AWS's errors."""
    client = _client(service)
    with Stubber(client) as stub:
        stub.add_client_error(call, service_error_code=code, service_message=message)
        yield client


def add_on_page(name: str, *versions: tuple[str, Sequence[str], str]) -> dict[str, Any]:
    """A page of ``describe_addon_versions``: version, Kubernetes versions it goes with, the one it is default of."""
    listed = [
        {
            "addonVersion": version,
            "compatibilities": [{"clusterVersion": item, "defaultVersion": item == default} for item in goes_with],
        }
        for version, goes_with, default in versions
    ]
    return {"addons": [{"addonName": name, "addonVersions": listed}]}


def reservation_answer(**changes: object) -> dict[str, Any]:
    """An answer of ``describe_capacity_reservations`` with one reservation."""
    plain = {
        "CapacityReservationId": RESERVATION,
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": f"{REGION}a",
        "State": "active",
        "TotalInstanceCount": 4,
        "AvailableInstanceCount": 3,
        "ReservationType": "capacity-block",
    }
    return {"CapacityReservations": [{**plain, **changes}]}


def file_system_answer(**changes: object) -> dict[str, Any]:
    """An answer of ``describe_file_systems``: what moto leaves out of Lustre is there, as AWS says it."""
    lustre = {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 500,
        "MountName": "abcdefgh",
        "EfaEnabled": False,
        "MetadataConfiguration": {"Mode": "AUTOMATIC", "Iops": 6000},
    }
    plain = {
        "FileSystemId": FILE_SYSTEM,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": 4800,
        "StorageType": "SSD",
    }
    own = {key: value for key, value in changes.items() if key in plain}
    rest = {key: value for key, value in changes.items() if key not in plain}
    return {"FileSystems": [{**plain, **own, "LustreConfiguration": {**lustre, **rest}}]}


def association(folder: str, bucket: str, imports: Sequence[str], exports: Sequence[str] = ()) -> dict[str, Any]:
    """One association of ``describe_data_repository_associations``."""
    policies: dict[str, Any] = {"AutoImportPolicy": {"Events": list(imports)}}
    if exports:
        policies["AutoExportPolicy"] = {"Events": list(exports)}
    return {
        "AssociationId": "dra-0123456789abcdef0",
        "FileSystemId": FILE_SYSTEM,
        "Lifecycle": "AVAILABLE",
        "FileSystemPath": folder,
        "DataRepositoryPath": bucket,
        "S3": policies,
    }
