"""Encryption of stored data with the user's own KMS key (`kms_key`).

Without such a key, AWS encrypts all data at rest with keys that it owns, free of charge. The user's
key encrypts tables, bucket, queues, log groups, topics and query results. Secrets are excluded:
their owner chooses a key for them.

Source: docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html,
…/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html,
…/sns/latest/dg/sns-key-management.html ("not supported for EventBridge-to-encrypted topics"),
…/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html,
…/AmazonS3/latest/userguide/bucket-key.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_athena as athena
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.catalogue import encrypt_results
from infra.storage import removal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constructs import IConstruct

    from infra.config import Config

GENERATE = "generate"
DATA_KEY_REUSE_S = 3_600  # an hour, so that SQS sends fewer requests to KMS
DECRYPT, DATA_KEY = "kms:Decrypt", "kms:GenerateDataKey"
# Prefixes of the actions on stored data that also require a permission for the key. Reading needs
# `Decrypt`. Sending to a queue and writing to the bucket also need `GenerateDataKey`. For tables, a
# caller only decrypts the table's key.
READING = ("dynamodb:", "s3:GetObject", "sqs:ReceiveMessage")
WRITING = ("s3:PutObject", "sqs:SendMessage")


class Encryption(Construct):
    """The key, and its use by all resources and roles of the stack."""

    def __init__(self, scope: Construct, construct_id: str, *, config: Config) -> None:
        super().__init__(scope, construct_id)
        self.arn = config.kms_key
        if self.arn == GENERATE:
            self.arn = self._generated(config).key_arn

    def apply(self) -> None:
        """Encrypt all resources of the finished stack, and allow its roles to use the key."""
        if not self.arn:
            return
        for construct in Stack.of(self).node.find_all():
            self._encrypt(construct)

    def _encrypt(self, construct: IConstruct) -> None:
        if isinstance(construct, dynamodb.CfnTable):
            construct.sse_specification = dynamodb.CfnTable.SSESpecificationProperty(
                sse_enabled=True, sse_type="KMS", kms_master_key_id=self.arn
            )
        elif isinstance(construct, s3.CfnBucket):
            construct.bucket_encryption = _bucket_encryption(self.arn)
        elif isinstance(construct, sqs.CfnQueue):
            construct.sqs_managed_sse_enabled = None
            construct.kms_master_key_id = self.arn
            construct.kms_data_key_reuse_period_seconds = DATA_KEY_REUSE_S
        elif isinstance(construct, logs.CfnLogGroup):
            construct.kms_key_id = self.arn
        elif isinstance(construct, sns.CfnTopic):
            construct.kms_master_key_id = self.arn
        elif isinstance(construct, athena.CfnWorkGroup):
            encrypt_results(construct, self.arn)
        elif isinstance(construct, iam.CfnRole):
            self._allow_use(construct)

    def _allow_use(self, role: iam.CfnRole) -> None:
        policies = Stack.of(self).resolve(role.policies) or []
        actions = needed(policies)
        if actions:
            statement: dict[str, Any] = {"Effect": "Allow", "Action": actions, "Resource": self.arn}
            document = {"Version": "2012-10-17", "Statement": [statement]}
            added: Any = {"policyName": "Key", "policyDocument": document}
            role.policies = [*policies, added]

    def _generated(self, config: Config) -> kms.Key:
        key = kms.Key(
            self,
            "Key",
            description=f"What {config.stack_name} stores",
            enable_key_rotation=True,
            # Without the key, data that outlives the stack could not be read. So the key is kept if
            # the data is.
            removal_policy=removal_of(config),
        )
        # This stack sets the policy of its own key only. For any other key, its owner does:
        # docs/privacy.md.
        for statement in _service_statements(Stack.of(self)):
            key.add_to_resource_policy(statement)
        return key


def needed(policies: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the actions on the key that a role needs because of its policies."""
    allowed = {
        action
        for policy in policies
        for statement in policy["policyDocument"]["Statement"]
        for action in _listed(statement["Action"])
    }
    writes = any(action.startswith(WRITING) for action in allowed)
    reads = writes or any(action.startswith(READING) for action in allowed)
    return [*([DECRYPT] if reads else []), *([DATA_KEY] if writes else [])]


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _bucket_encryption(arn: str) -> s3.CfnBucket.BucketEncryptionProperty:
    by_default = s3.CfnBucket.ServerSideEncryptionByDefaultProperty(
        sse_algorithm="aws:kms", kms_master_key_id=arn
    )
    rule = s3.CfnBucket.ServerSideEncryptionRuleProperty(
        bucket_key_enabled=True, server_side_encryption_by_default=by_default
    )
    return s3.CfnBucket.BucketEncryptionProperty(server_side_encryption_configuration=[rule])


def _service_statements(stack: Stack) -> list[iam.PolicyStatement]:
    """Return statements of the key's policy for services that use no role of the stack."""
    groups = f"arn:{Aws.PARTITION}:logs:{stack.region}:{stack.account}:log-group:*"
    account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    # In a key's own policy, `*` means that key.
    return [
        iam.PolicyStatement(
            sid="LogGroups",
            principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
            actions=[
                "kms:Encrypt*",
                "kms:Decrypt*",
                "kms:ReEncrypt*",
                "kms:GenerateDataKey*",
                "kms:Describe*",
            ],
            resources=["*"],
            conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        ),
        iam.PolicyStatement(
            sid="Alarms",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=[DECRYPT, f"{DATA_KEY}*"],
            resources=["*"],
            conditions=account,
        ),
        iam.PolicyStatement(
            sid="Rules",  # EventBridge rules send failed events to a queue
            principals=[iam.ServicePrincipal("events.amazonaws.com")],
            actions=[DECRYPT, f"{DATA_KEY}*"],
            resources=["*"],
        ),
    ]
