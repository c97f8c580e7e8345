"""What this program's own tools need of AWS clients: a few calls, their pages, and one kind of error.

The clients are boto3's (``boto3.client("ec2", region_name=...)``); a call that fails says which permission or which
setting is missing instead of a trace.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

Answer = Mapping[str, Any]
"""A response as botocore reads it; only this room's look-ups touch it."""
_NOBODY = frozenset(
    {"AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"}
)
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})


class CloudUnanswered(Exception):
    """AWS did not answer a question, or answered that there is no such thing."""

    def __init__(self, message: str, code: str = "") -> None:
        self.code = code
        """AWS's own word for what went wrong; empty where it has said none."""
        super().__init__(message)


class CloudClosed(CloudUnanswered):
    """No question will be answered: AWS can't be reached, or knows nobody by these credentials."""


class Ec2(Protocol):
    """Of the EC2 client."""

    def describe_instance_type_offerings(self, **request: object) -> Answer:
        """Instance types and where they are offered."""
        ...

    def describe_capacity_reservations(self, **request: object) -> Answer:
        """Reservations of the account, Capacity Blocks as well."""
        ...

    def describe_launch_template_versions(self, **request: object) -> Answer:
        """Launch templates with their content."""
        ...


class Eks(Protocol):
    """Of the EKS client."""

    def describe_addon_versions(self, **request: object) -> Answer:
        """Add-ons, their versions and what they go with."""
        ...

    def list_nodegroups(self, **request: object) -> Answer:
        """Names of the node groups of a cluster."""
        ...

    def describe_nodegroup(self, **request: object) -> Answer:
        """A node group."""
        ...


class Ssm(Protocol):
    """Of the SSM client."""

    def get_parameter(self, **request: object) -> Answer:
        """A parameter; AWS publishes image releases as parameters."""
        ...


class Fsx(Protocol):
    """Of the FSx client."""

    def describe_file_systems(self, **request: object) -> Answer:
        """File systems."""
        ...

    def describe_data_repository_associations(self, **request: object) -> Answer:
        """Links between file systems and buckets."""
        ...


def ask(call: Callable[..., Answer], **request: object) -> Answer:
    """One answer; raises `CloudUnanswered` with what was asked and what AWS said."""
    question = _question(call, request)
    try:
        return call(**request)
    except ClientError as error:
        code, text = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
        remedy = "; the role in use lacks that permission" if code in _DENIED else ""
        kind = CloudClosed if code in _NOBODY else CloudUnanswered
        raise kind(f"AWS refused {question}: {code}: {text}{remedy}", code) from error
    except BotoCoreError as error:
        raise CloudClosed(f"AWS can't be asked ({question}): {error}") from error


def pages(call: Callable[..., Answer], token: str, **request: object) -> Iterator[Answer]:
    """All pages of an answer; ``token`` = the key of the next page's token in request and answer."""
    while True:
        answer = ask(call, **request)
        yield answer
        following = answer.get(token)
        if not following:
            return
        request = {**request, token: following}


def _question(call: Callable[..., Answer], request: Mapping[str, object]) -> str:
    said = ", ".join(f"{key}={value}" for key, value in request.items() if "token" not in key.casefold())
    return f"{getattr(call, '__name__', 'a call')}({said})"
