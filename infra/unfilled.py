"""What an example leaves open: facts that only an account, a region or a day can give. One message names them all."""

import re
from collections.abc import Iterator

from infra.pool_checks import UNFILLED_DAY
from infra.problem import Problem
from infra.stack_config import StackConfig
from infra.versions import add_on_version, add_ons_of

NO_ACCOUNT = "000000000000"
NOBODY = ".invalid"
"""The end of mail addresses that reach nobody (RFC 2606)."""
_NOBODYS_ACCOUNT = f"the account {NO_ACCOUNT} is nobody's: give your own"
_ONLY_ZEROS = re.compile(r"^[a-z]+-0+$")


def unfilled_problems(config: StackConfig) -> Iterator[Problem]:
    """Nothing, or one problem with every key that is open and where its value comes from."""
    parts = [*_placeholders(config), *_reservations(config), *_releases(config), *_add_ons(config)]
    if not parts:
        return
    keys = [key for key, _ in parts]
    remedies = dict.fromkeys(remedy for _, remedy in parts)
    count = "1 value is" if len(keys) == 1 else f"{len(keys)} values are"
    message = f"{count} not filled in: {', '.join(keys)}"
    yield Problem("enginehouse:stack", "", message, "; ".join(remedies), unfilled=len(keys))


def _placeholders(config: StackConfig) -> Iterator[tuple[str, str]]:
    if config.account == NO_ACCOUNT:
        yield "account", _NOBODYS_ACCOUNT
    for index, admin in enumerate(config.cluster.admins):
        if f":{NO_ACCOUNT}:" in admin:
            yield f"cluster.admins[{index}]", _NOBODYS_ACCOUNT
    for index, email in enumerate(config.budget.emails):
        if email.endswith(NOBODY):
            yield f"budget.emails[{index}]", "give mail addresses that somebody reads"


def _reservations(config: StackConfig) -> Iterator[tuple[str, str]]:
    for pool in config.pools:
        if pool.reservation_id and _ONLY_ZEROS.match(pool.reservation_id):
            yield f"pools.{pool.name}.reservation_id", "give the id that 'aws ec2 describe-capacity-reservations' lists"
        if pool.ends_on == UNFILLED_DAY:
            yield f"pools.{pool.name}.ends_on", _asks_aws(config)


def _releases(config: StackConfig) -> Iterator[tuple[str, str]]:
    if not config.system_nodes.release:
        yield "system_nodes.release", _asks_aws(config)
    for pool in config.pools:
        if not pool.image.release:
            yield f"pools.{pool.name}.image.release", _asks_aws(config)


def _add_ons(config: StackConfig) -> Iterator[tuple[str, str]]:
    for name in add_ons_of(config):
        if add_on_version(name, config.versions) is None:
            yield f"versions.addons.{name}", _asks_aws(config)


def _asks_aws(config: StackConfig) -> str:
    file = f"Pulumi.{config.environment}.yaml"
    command = f"python -m infra.fill_versions --stack-file {file} --write"
    return f"AWS knows releases, versions and last days: run '{command}'"
