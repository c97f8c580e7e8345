"""Whether there are credentials at all, so that a missing profile is one sentence and not a provider's trace."""

from collections.abc import Mapping
from pathlib import Path

from infra.problem import Problem

IN_ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Each of them says where the SDK gets credentials from."""
MACHINE = Path("/sys/class/dmi/id/sys_vendor")
"""On a machine of EC2 it says so, and an instance profile may give credentials."""
_REMEDY = (
    "set AWS_PROFILE to a profile of ~/.aws/config ('aws sso login' for single sign-on), or AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or run where a role is given (EC2, ECS, GitHub's OIDC with AWS_WEB_IDENTITY_TOKEN_FILE)"
)


def credential_problems(environ: Mapping[str, str], *, home: Path, machine: Path = MACHINE) -> list[Problem]:
    """Nothing where something may give credentials; whether they are good only the cloud knows."""
    if any(environ.get(name) for name in IN_ENVIRONMENT) or _files(environ, home) or _is_of_ec2(machine):
        return []
    looked = f"{', '.join(IN_ENVIRONMENT)} and the files of ~/.aws"
    return [Problem("credentials", "", f"no credentials for AWS were found in {looked}", _REMEDY)]


def _files(environ: Mapping[str, str], home: Path) -> bool:
    named = [environ.get("AWS_SHARED_CREDENTIALS_FILE"), environ.get("AWS_CONFIG_FILE")]
    usual = [home / ".aws" / "credentials", home / ".aws" / "config"]
    return any(path.is_file() for path in [*(Path(name) for name in named if name), *usual])


def _is_of_ec2(machine: Path) -> bool:
    try:
        return "amazon" in machine.read_text(encoding="utf-8").casefold()
    except OSError:
        return False
