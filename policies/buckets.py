"""Policies on who reaches a bucket: its public access block, ACLs and grants, and the documents beside it."""

from collections.abc import Iterator

from fleet.cloud import data
from fleet.cloud.data import Bucket
from fleet.cloud.finding import Finding
from fleet.cloud.identity import TRUST_EVERYONE, document_findings, statements_of
from policies.adapter import Check, Props, Seen
from policies.data import BUCKETS
from policies.iam_places import BUCKET_ACLS, BUCKET_DOCUMENTS
from policies.reading import flag, json_at, parts, text

PUBLIC_BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
_ACCOUNT_BLOCK = "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock"
_BLOCKS = {
    "blockPublicAcls": "block_public_acls",
    "blockPublicPolicy": "block_public_policy",
    "ignorePublicAcls": "ignore_public_acls",
    "restrictPublicBuckets": "restrict_public_buckets",
}
_ALL_BLOCKS = frozenset(data.BLOCKS)


def _public_block(seen: Seen) -> Iterator[Finding]:
    """One on the bucket, which the last of several writes; one on the account counts beside it."""
    own = seen.stack.pointing_at(seen, PUBLIC_BLOCK, "bucket")
    of_account = [item for item in seen.stack.of(_ACCOUNT_BLOCK) if text(item.props, "accountId") is None]
    blocks = _on_in_all(own) | _on_in_all(of_account)
    yield from data.bucket_findings(Bucket(seen.name, True, True, blocks=blocks))


def _on_in_all(blocks: tuple[Seen, ...] | list[Seen]) -> frozenset[str]:
    return frozenset(name for key, name in _BLOCKS.items() if blocks and all(flag(item.props, key) for item in blocks))


def _acls(seen: Seen) -> Iterator[Finding]:
    acls = tuple(_acls_of(seen.props))
    yield from data.bucket_findings(Bucket(seen.name, True, True, blocks=_ALL_BLOCKS, acls=acls))


def _acls_of(props: Props) -> Iterator[str]:
    """The canned ACL, and the groups to whom something is granted: everybody's is ``.../AllUsers``."""
    yield text(props, "acl") or ""
    for path in (("grants",), ("accessControlPolicy", "grants")):
        for grant in parts(props, *path):
            uri = text(grant, "uri") or text(grant, "grantee", "uri") or ""
            yield uri.rpartition("/")[2]


def _document(seen: Seen) -> Iterator[Finding]:
    statements = statements_of(json_at(seen.props, BUCKET_DOCUMENTS[seen.type]))
    lets_in = any(finding.rule is TRUST_EVERYONE for finding in document_findings("resource", statements))
    yield from data.bucket_findings(Bucket(seen.name, True, True, blocks=_ALL_BLOCKS, lets_everybody_in=lets_in))


CHECKS = (
    Check((data.PUBLIC_BUCKET,), BUCKETS, _public_block, relates=True),
    Check((data.PUBLIC_BUCKET,), BUCKET_ACLS, _acls),
    Check((data.PUBLIC_BUCKET,), tuple(BUCKET_DOCUMENTS), _document),
)
