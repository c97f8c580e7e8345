"""Which resources carry IAM documents, ACLs and grants, and in which property: one table of the SDK's names."""

from collections.abc import Mapping

ROLE = "aws:iam/role:Role"
CLUSTER = "aws:eks/cluster:Cluster"
ADD_ON = "aws:eks/addon:Addon"
POD_IDENTITY = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
IDENTITY_DOCUMENTS: Mapping[str, str] = {
    "aws:iam/rolePolicy:RolePolicy": "policy",
    "aws:iam/policy:Policy": "policy",
    "aws:iam/userPolicy:UserPolicy": "policy",
    "aws:iam/groupPolicy:GroupPolicy": "policy",
    POD_IDENTITY: "policy",
    "aws:ssoadmin/permissionSetInlinePolicy:PermissionSetInlinePolicy": "inlinePolicy",
    "aws:transfer/access:Access": "policy",
    "aws:transfer/user:User": "policy",
}
"""What an identity may do."""
RESOURCE_DOCUMENTS: Mapping[str, str] = {
    "aws:acmpca/policy:Policy": "policy",
    "aws:amp/resourcePolicy:ResourcePolicy": "policyDocument",
    "aws:backup/vaultPolicy:VaultPolicy": "policy",
    "aws:cloudwatch/eventBusPolicy:EventBusPolicy": "policy",
    "aws:cloudwatch/logDestinationPolicy:LogDestinationPolicy": "accessPolicy",
    "aws:cloudwatch/logResourcePolicy:LogResourcePolicy": "policyDocument",
    "aws:codeartifact/domainPermissions:DomainPermissions": "policyDocument",
    "aws:codeartifact/repositoryPermissionsPolicy:RepositoryPermissionsPolicy": "policyDocument",
    "aws:codebuild/resourcePolicy:ResourcePolicy": "policy",
    "aws:dynamodb/resourcePolicy:ResourcePolicy": "policy",
    "aws:ecr/registryPolicy:RegistryPolicy": "policy",
    "aws:ecr/repositoryPolicy:RepositoryPolicy": "policy",
    "aws:ecr/repositoryCreationTemplate:RepositoryCreationTemplate": "repositoryPolicy",
    "aws:efs/fileSystemPolicy:FileSystemPolicy": "policy",
    "aws:glacier/vault:Vault": "accessPolicy",
    "aws:glue/resourcePolicy:ResourcePolicy": "policy",
    "aws:kinesis/resourcePolicy:ResourcePolicy": "policy",
    "aws:kms/externalKey:ExternalKey": "policy",
    "aws:kms/key:Key": "policy",
    "aws:kms/keyPolicy:KeyPolicy": "policy",
    "aws:kms/replicaExternalKey:ReplicaExternalKey": "policy",
    "aws:kms/replicaKey:ReplicaKey": "policy",
    "aws:lambda/resourcePolicy:ResourcePolicy": "policy",
    "aws:msk/clusterPolicy:ClusterPolicy": "policy",
    "aws:opensearch/domain:Domain": "accessPolicies",
    "aws:opensearch/domainPolicy:DomainPolicy": "accessPolicies",
    "aws:s3tables/tableBucketPolicy:TableBucketPolicy": "resourcePolicy",
    "aws:s3tables/tablePolicy:TablePolicy": "resourcePolicy",
    "aws:sagemaker/modelPackageGroupPolicy:ModelPackageGroupPolicy": "resourcePolicy",
    "aws:secretsmanager/secret:Secret": "policy",
    "aws:secretsmanager/secretPolicy:SecretPolicy": "policy",
    "aws:sns/topic:Topic": "policy",
    "aws:sns/topicPolicy:TopicPolicy": "policy",
    "aws:sqs/queue:Queue": "policy",
    "aws:sqs/queuePolicy:QueuePolicy": "policy",
}
"""Who may use a thing; those of buckets are below."""
BUCKET_DOCUMENTS: Mapping[str, str] = {
    "aws:s3/bucket:Bucket": "policy",
    "aws:s3/bucketV2:BucketV2": "policy",
    "aws:s3/bucketPolicy:BucketPolicy": "policy",
    "aws:s3/accessPoint:AccessPoint": "policy",
    "aws:s3control/accessPointPolicy:AccessPointPolicy": "policy",
    "aws:s3control/bucketPolicy:BucketPolicy": "policy",
    "aws:s3control/objectLambdaAccessPointPolicy:ObjectLambdaAccessPointPolicy": "policy",
    "aws:s3/vectorsVectorBucketPolicy:VectorsVectorBucketPolicy": "policy",
}
BUCKET_ACLS = (
    "aws:s3/bucket:Bucket",
    "aws:s3/bucketV2:BucketV2",
    "aws:s3/bucketAcl:BucketAcl",
    "aws:s3/bucketAclV2:BucketAclV2",
    "aws:s3/bucketObject:BucketObject",
    "aws:s3/bucketObjectv2:BucketObjectv2",
    "aws:s3/objectCopy:ObjectCopy",
)
"""With ``acl``, ``grants`` or ``accessControlPolicy``."""
GRANTEES: Mapping[str, str] = {
    "aws:kms/grant:Grant": "granteePrincipal",
    "aws:lambda/permission:Permission": "principal",
    "aws:lambda/layerVersionPermission:LayerVersionPermission": "principal",
    "aws:cloudwatch/eventPermission:EventPermission": "principal",
}
"""Who is given something outside of a document."""
NARROWED_BY = ("sourceAccount", "sourceArn", "principalOrgId", "organizationId", "condition")
"""What narrows a grantee that is everyone."""
WITH_OPTIONAL_DOCUMENT = frozenset(
    {
        POD_IDENTITY,
        "aws:ecr/repositoryCreationTemplate:RepositoryCreationTemplate",
        "aws:glacier/vault:Vault",
        "aws:kms/externalKey:ExternalKey",
        "aws:kms/key:Key",
        "aws:kms/replicaExternalKey:ReplicaExternalKey",
        "aws:kms/replicaKey:ReplicaKey",
        "aws:opensearch/domain:Domain",
        "aws:s3/accessPoint:AccessPoint",
        "aws:s3/bucket:Bucket",
        "aws:s3/bucketV2:BucketV2",
        "aws:secretsmanager/secret:Secret",
        "aws:sns/topic:Topic",
        "aws:sqs/queue:Queue",
        "aws:transfer/access:Access",
        "aws:transfer/user:User",
    }
)
"""Where an empty text is no document; everywhere else it is one that IAM refuses."""
ROLES: Mapping[str, tuple[str, ...]] = {
    CLUSTER: ("roleArn",),
    POD_IDENTITY: ("roleArn",),
    "aws:eks/capability:Capability": ("roleArn",),
    "aws:eks/fargateProfile:FargateProfile": ("podExecutionRoleArn",),
}
"""Where the ARN of a role has to stand."""
OPTIONAL_ROLES: Mapping[str, tuple[str, ...]] = {
    CLUSTER: ("computeConfig.nodeRoleArn",),
    POD_IDENTITY: ("targetRoleArn",),
    ADD_ON: ("serviceAccountRoleArn", "podIdentityAssociations.roleArn"),
    "aws:ec2/flowLog:FlowLog": ("iamRoleArn", "deliverCrossAccountRole"),
}
"""Where the ARN of a role may stand; behind a point in every member of a list."""
PRINCIPALS: Mapping[str, str] = {
    "aws:eks/accessEntry:AccessEntry": "principalArn",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": "principalArn",
}
"""Where the ARN of a role or a user has to stand."""
ATTACHMENTS: Mapping[str, str] = {
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "policyArn",
    "aws:iam/policyAttachment:PolicyAttachment": "policyArn",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment": "policyArn",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment": "policyArn",
    "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive": "policyArns",
    "aws:iam/userPolicyAttachmentsExclusive:UserPolicyAttachmentsExclusive": "policyArns",
    "aws:iam/groupPolicyAttachmentsExclusive:GroupPolicyAttachmentsExclusive": "policyArns",
    ROLE: "managedPolicyArns",
}
"""Which policies an identity carries."""
