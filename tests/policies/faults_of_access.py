"""Faults of who may do what and who reaches what: documents, ACLs, grants, doors, and machines without a template."""

import json

from tests.policies.fault import Fault, add, all_of, chart, put
from tests.policies.faults_of_ground import BUCKET, FILE_SYSTEM, NODE_ROLE, POD_ROLE, READ_POLICY, rewritten, statement
from tests.policies.faults_of_nodes import L4_TEMPLATE

TAGS = {"environment": "prod", "owner": "platform"}
ISSUER = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-central-1.amazonaws.com/id/A"
SAML = "arn:aws:iam::111122223333:saml-provider/staff"
_EVERYBODY = {"Effect": "Allow", "Principal": "*", "Action": "sns:Publish", "Resource": "*"}
_WORLD = {"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}}
_ENCRYPTION = "BucketServerSideEncryptionConfiguration weights-encrypted"
_DEFAULT = "rules.0.applyServerSideEncryptionByDefault"


def document(*statements):
    """A document as text."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def federated(provider, **condition):
    """The node role is taken by identities of a provider."""
    return statement(
        NODE_ROLE, "assumeRolePolicy", Principal={"Federated": provider}, Action="sts:AssumeRoleWithWebIdentity",
        Condition=condition,
    )  # fmt: skip


def allowed(**fields):
    """One more thing that the readers of weights may do."""
    wanted = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::weights/*"}
    return rewritten(READ_POLICY, "policy", lambda found: found.append({**wanted, **fields}))


def reading(**fields):
    """A bucket policy lets everybody read."""
    wanted = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*", **fields}
    return rewritten("BucketPolicy weights-encrypted-transport", "policy", lambda found: found.append(wanted))


def instance(**fields):
    """A single machine that is as it should be, but for some fields."""
    metadata = {"httpTokens": "required", "httpPutResponseHopLimit": 1}
    inputs = {"metadataOptions": metadata, "rootBlockDevice": {"encrypted": True}, "tags": TAGS, **fields}
    return add("aws:ec2/instance:Instance", "single", inputs)


def door(kind, selector=None, *, annotations=None, version="core/v1", name="x", **spec):
    """An object that may open the control plane."""
    inputs = {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}
    if selector:
        inputs["spec"]["selector"] = selector
    return add(f"kubernetes:{version}:{kind}", name, inputs)


ADMIN = {"app.kubernetes.io/name": "enginehouse-control-plane"}
IDENTITY = (
    Fault("a document that is no JSON", "iam-document-unreadable", put(READ_POLICY, "policy", "{")),
    Fault("a document encoded twice", "iam-document-unreadable",
          put(READ_POLICY, "policy", json.dumps(document({"Effect": "Allow", "Action": "*", "Resource": "*"})))),
    Fault("a document that is a list", "iam-document-unreadable", put(READ_POLICY, "policy", "[]")),
    Fault("a statement that is nothing", "iam-document-unreadable", put(NODE_ROLE, "assumeRolePolicy", document(None))),
    Fault("a document of no end of depth", "iam-document-unreadable", put(READ_POLICY, "policy", "[" * 100_000)),
    *(Fault(f"the action {action}", "iam-action-wildcard", allowed(Action=action))
      for action in ("s3:**", "s3:?*", "**", "s*", "i*:*Policy*", "iam:*Role*", "ec2:D*")),
    Fault("elements in lower case", "iam-action-wildcard",
          put(READ_POLICY, "policy", document({"effect": "allow", "action": "*", "resource": "*"}))),
    Fault("every action of a session", "iam-action-wildcard",
          add("aws:eks/podIdentityAssociation:PodIdentityAssociation", "wide",
              {"roleArn": "arn:aws:iam::111122223333:role/x",
               "policy": document({"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::weights"})})),
    Fault("a managed policy for a whole service", "iam-action-wildcard",
          add("aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive", "wide",
              {"policyArns": ["arn:aws:iam::aws:policy/AmazonS3FullAccess"]})),
    Fault("an administrator among all attachments", "iam-admin-policy",
          add("aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive", "wide",
              {"policyArns": ["arn:aws:iam::aws:policy/job-function/SystemAdministrator"]})),
    *(Fault(f"the resource {resource}", "iam-resource-wildcard", allowed(Resource=resource))
      for resource in ("**", "arn:*", "arn:aws:s3:::*", "arn:aws:s3:::*/*")),
    *(Fault(f"every resource on the condition {condition}", "iam-resource-wildcard",
            allowed(Resource="*", Condition=condition))
      for condition in ({"StringLike": {"aws:PrincipalArn": "*"}}, {"Bool": {"aws:SecureTransport": "true"}},
                        {"StringNotEquals": {"aws:ResourceTag/a": "b"}}, {"StringLike": {"aws:ResourceTag/a": "*"}},
                        {"StringEqualsIfExists": {"aws:ResourceTag/a": "b"}})),
    Fault("everybody from anywhere", "iam-trust-everyone",
          statement(NODE_ROLE, "assumeRolePolicy", Principal={"AWS": "*"}, Condition=_WORLD)),
    Fault("every account's root", "iam-trust-everyone",
          statement(NODE_ROLE, "assumeRolePolicy", Principal={"AWS": "arn:aws:iam::*:root"})),
    *(Fault(f"a subject by {operator} {subject}", "iam-trust-everyone",
            federated(ISSUER, **{operator: {"issuer:sub": subject}}))
      for operator, subject in (("StringLike", "*"), ("StringLike", "system:serviceaccount:*:*"),
                                ("StringLike", "repo:*"), ("StringLike", "re*"), ("StringNotEquals", "repo:a/b"))),
    *(Fault(f"everybody in {prop} of {kind}", "iam-trust-everyone", add(kind, "open", {prop: document(_EVERYBODY)}))
      for kind, prop in (("aws:sns/topic:Topic", "policy"), ("aws:ecr/registryPolicy:RegistryPolicy", "policy"),
                         ("aws:secretsmanager/secretPolicy:SecretPolicy", "policy"),
                         ("aws:efs/fileSystemPolicy:FileSystemPolicy", "policy"))),
    Fault("a grant for everybody", "iam-trust-everyone", add("aws:kms/grant:Grant", "open", {"granteePrincipal": "*"})),
    Fault("a role's ARN with a line's end", "role-arn",
          put("Cluster cluster-cluster", "roleArn", "arn:aws:iam::111122223333:role/x\n")),
)  # fmt: skip
DATA = (
    *(Fault(f"everybody reads weights on {condition}", "bucket-public", reading(Condition=condition))
      for condition in ({"Bool": {"aws:SecureTransport": "true"}}, {"StringLike": {"aws:Referer": "x"}}, _WORLD)),
    Fault("a public ACL beside the bucket", "bucket-public",
          add("aws:s3/bucketAcl:BucketAcl", "open", {"acl": "public-read"})),
    Fault("all users in a grant", "bucket-public",
          add("aws:s3/bucketAclV2:BucketAclV2", "open", {"accessControlPolicy": {
              "grants": [{"grantee": {"uri": "http://acs.amazonaws.com/groups/global/AllUsers"}}]}})),
    Fault("a public object", "bucket-public",
          add("aws:s3/bucketObjectv2:BucketObjectv2", "open", {"acl": "public-read"})),
    Fault("everybody in the bucket itself", "bucket-public",
          put(BUCKET, "policy", document({**_EVERYBODY, "Action": "s3:GetObject"}))),
    Fault("an access point for everybody", "bucket-public",
          add("aws:s3/accessPoint:AccessPoint", "open", {"policy": document(_EVERYBODY)})),
    Fault("a second block that blocks less", "bucket-public",
          add("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "less",
              {"bucket": "weights", "blockPublicAcls": True, "ignorePublicAcls": True, "restrictPublicBuckets": True},
              of={"bucket": [BUCKET]})),
    Fault("the key of AWS", "data-without-own-key", put(_ENCRYPTION, f"{_DEFAULT}.kmsMasterKeyId", "alias/aws/s3")),
    Fault("a key that is not used", "data-without-own-key", put(_ENCRYPTION, f"{_DEFAULT}.sseAlgorithm", "AES256")),
    Fault("the key of AWS on a file system", "data-without-own-key",
          put(FILE_SYSTEM, "kmsKeyId", "arn:aws:kms:eu-central-1:111122223333:alias/aws/fsx")),
    Fault("encryption of the account off", "volume-unencrypted",
          add("aws:ebs/encryptionByDefault:EncryptionByDefault", "off", {"enabled": False})),
    Fault("a root volume that nobody tells", "volume-unencrypted", put(L4_TEMPLATE, "blockDeviceMappings", [])),
    Fault("a machine in the clear", "volume-unencrypted", instance(rootBlockDevice={"volumeSize": 9})),
    Fault("a file system in the clear", "volume-unencrypted",
          add("aws:efs/fileSystem:FileSystem", "clear", {"tags": TAGS})),
    Fault("a database in the clear", "volume-unencrypted", add("aws:rds/instance:Instance", "clear", {"tags": TAGS})),
    Fault("metadata without a token", "metadata-tokens",
          instance(metadataOptions={"httpTokens": "optional", "httpPutResponseHopLimit": 1})),
    Fault("metadata two hops away", "metadata-hop-limit", instance(metadataOptions={"httpTokens": "required"})),
    Fault("a machine without an owner", "tags-present", instance(tags={"environment": "prod", "owner": " "})),
)  # fmt: skip
_RULES = [{"backendRefs": [{"name": "control-plane", "port": 443}]}]
_PATHS = [{"http": {"paths": [{"backend": {"serviceName": "control-plane", "servicePort": 443}}]}}]
DOORS = (
    Fault("a public load balancer by name", "admin-api-public", door("Service", ADMIN, type="LoadBalancer")),
    Fault("a public load balancer by app", "admin-api-public",
          door("Service", {"app": "control-plane"}, type="LoadBalancer")),
    Fault("a patched Service", "admin-api-public", door("ServicePatch", ADMIN, type="NodePort")),
    Fault("a route", "admin-api-public", door("HTTPRoute", version="gateway.networking.k8s.io/v1", rules=_RULES)),
    Fault("an old Ingress", "admin-api-public", door("Ingress", version="networking.k8s.io/v1beta1", rules=_PATHS)),
)  # fmt: skip
FAULTS = (*IDENTITY, *DATA, *DOORS)
_BLOCKED = dict.fromkeys(("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"), True)
CLEAN = (
    *(allowed(Action=action) for action in ("s3:Get*", "S3:getObject", "kms:GenerateDataKey*", "kms:ReEncrypt*")),
    *(allowed(Action=action, Resource="*")
      for action in ("sts:getcalleridentity", "ssmmessages:OpenDataChannel", "ec2messages:GetMessages",
                     "servicequotas:GetServiceQuota", "ec2:Describe*")),
    *(allowed(Action="ec2:CreateTags", Resource="*", Condition=condition)
      for condition in ({"StringEquals": {"aws:ResourceTag/owner": "${aws:PrincipalTag/owner}"}},
                        {"StringEquals": {"ec2:CreateAction": "RunInstances"}},
                        {"Null": {"aws:ResourceTag/cluster": "false"}})),
    federated(SAML, StringEquals={"SAML:aud": "https://signin.aws.amazon.com/saml"}),
    federated("cognito-identity.amazonaws.com",
              StringEquals={"cognito-identity.amazonaws.com:aud": "eu-central-1:a"}),
    federated(ISSUER, StringEquals={"issuer:sub": "system:serviceaccount:kube-system:a"}),
    federated(ISSUER, StringLike={"token.actions.githubusercontent.com:sub": "repo:example/*"}),
    federated(ISSUER, StringLike={"app.terraform.io:sub": "organization:example:project:*:workspace:*"}),
    statement(NODE_ROLE, "assumeRolePolicy", Principal={"AWS": "*"},
              Condition={"StringEquals": {"aws:PrincipalOrgID": "o-example"}}),
    statement(POD_ROLE, "assumeRolePolicy", Action="sts:*"),
    reading(Condition={"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}),
    add("aws:sns/topic:Topic", "own",
        {"policy": document({**_EVERYBODY, "Condition": {"StringEquals": {"AWS:SourceOwner": "111122223333"}}})}),
    all_of(add("aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock", "all", _BLOCKED),
           put("BucketPublicAccessBlock weights-private", "blockPublicAcls", False)),
    put(L4_TEMPLATE, "metadataOptions", {"httpEndpoint": "disabled"}),
    instance(),
    door("Service", ADMIN, type="LoadBalancer",
         annotations={"service.beta.kubernetes.io/aws-load-balancer-internal": "0.0.0.0/0"}),
    door("Service", {"app": "gateway"}, type="LoadBalancer"),
    door("HTTPRoute", version="gateway.networking.k8s.io/v1", rules=[{"backendRefs": [{"name": "gateway"}]}]),
    chart("keda"),
)  # fmt: skip
"""Changes that no policy minds."""
