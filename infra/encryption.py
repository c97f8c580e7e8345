"""A KMS key of the account's own, with rotation, an alias and a policy that says who else may use it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pulumi
from pulumi_aws import kms

from infra.iam_document import Statement, document

DELETION_WINDOW_DAYS = 30


@dataclass(frozen=True, slots=True)
class EncryptionKeyArgs:
    """What a key is for."""

    description: str
    protect: bool
    retain: bool = False
    """Whether the key outlives the stack, as what it has encrypted does."""
    statements: pulumi.Input[Sequence[Statement]] = ()
    """Beside the account's own right to manage the key, which its IAM policies pass on."""


class EncryptionKey(pulumi.ComponentResource):
    """A key, its alias and its policy.

    The policy stands beside the key, because it names the account, which the key's ARN tells.
    """

    def __init__(self, name: str, args: EncryptionKeyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:EncryptionKey", name, None, opts)
        self.key = kms.Key(
            f"{name}-key",
            description=args.description,
            enable_key_rotation=True,
            deletion_window_in_days=DELETION_WINDOW_DAYS,
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect, retain_on_delete=args.retain),
        )
        kms.Alias(  # goes with the stack, whatever stays: the next one needs the name
            f"{name}-alias",
            name=f"alias/{name}",
            target_key_id=self.key.key_id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        text = pulumi.Output.all(arn=self.key.arn, statements=args.statements).apply(
            lambda found: key_policy(found["arn"], found["statements"])
        )
        self.policy = kms.KeyPolicy(
            f"{name}-policy",
            key_id=self.key.key_id,
            policy=text,
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=args.retain),
        )
        self.arn: pulumi.Output[str] = self.key.arn
        self.register_outputs({"arn": self.arn})


def key_policy(key_arn: str, statements: Sequence[Statement]) -> str:
    """The account manages the key by its IAM policies; the statements add who else of the account uses it."""
    partition, account = key_arn.split(":")[1], key_arn.split(":")[4]
    root = f"arn:{partition}:iam::{account}:root"
    own = Statement("Account", ("kms:*",), ("*",), principals=(root,))
    return document(own, *(_of_account(statement, account) for statement in statements))


def _of_account(statement: Statement, account: str) -> Statement:
    """The same for callers of the account alone."""
    equals = {**statement.conditions.get("StringEquals", {}), "kms:CallerAccount": account}
    return replace(statement, conditions={**statement.conditions, "StringEquals": equals})
