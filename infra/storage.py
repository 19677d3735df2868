"""The five tables and the bucket.

They are encrypted at rest with keys that AWS owns, or with the user's key (`kms_key`,
encryption.py). Unless `removal` is `destroy`, tables and bucket outlive the stack. Then tables can
also be restored to any second of the last 35 days (not with `frugal`), and are protected against
deletion at the end of a deployment (protection.py). Each prefix of the bucket has its own retention
(docs/privacy.md). S3 deletes expired objects once a day, so an object can exist for one more day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.findings import accept
from infra.retention import UPLOAD_D, kept_d

if TYPE_CHECKING:
    from infra.config import Config

TTL = "expires_at"
TLS_MIN = 1.2


class Storage(Construct):
    """The tables and the bucket."""

    def __init__(self, scope: Construct, construct_id: str, *, config: Config) -> None:
        super().__init__(scope, construct_id)
        self._kept, self._thrifty = config.kept, config.is_frugal
        self._removal = removal_of(config)
        self.urls = self._table("Urls", "k")
        self.pages = self._table("Pages", "day", "k")
        self.hosts = self._table("Hosts", "host")
        self.crawls = self._table("Crawls", "k")
        self.packs = self._table("Packs", "k", "part")
        # The bucket has no versions: each object is written once, under a name that depends on its
        # content. So a deletion is final.
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=config.tls_only,
            minimum_tls_version=TLS_MIN if config.tls_only else None,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            removal_policy=self._removal,
            lifecycle_rules=lifecycle(config),
        )
        accept(
            self.bucket,
            "AwsSolutions-S1",
            "Only the stack's own functions write here; access logs need a second bucket and"
            " cost per request. CloudTrail data events give the same where they are wanted.",
        )

    @property
    def tables(self) -> tuple[dynamodb.Table, ...]:
        return (self.urls, self.pages, self.hosts, self.crawls, self.packs)

    @property
    def bucket_id(self) -> str:
        """Logical id of the bucket in the template. Some accepted findings contain it."""
        return Stack.of(self).get_logical_id(cast("s3.CfnBucket", self.bucket.node.default_child))

    def _table(self, construct_id: str, partition: str, sort: str | None = None) -> dynamodb.Table:
        def key(name: str) -> dynamodb.Attribute:
            return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)

        return dynamodb.Table(
            self,
            construct_id,
            partition_key=key(partition),
            sort_key=key(sort) if sort else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,  # no cost without crawls
            time_to_live_attribute=TTL,
            encryption=dynamodb.TableEncryption.DEFAULT,  # AWS's own key, which is free
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=self._kept and not self._thrifty
            ),
            removal_policy=self._removal,
        )


def removal_of(config: Config) -> RemovalPolicy:
    """Return the removal policy of stored data.

    A failed first creation of the stack always removes the data.
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if config.kept else RemovalPolicy.DESTROY


def lifecycle(config: Config) -> list[s3.LifecycleRule]:
    return [
        s3.LifecycleRule(
            id="unfinished-uploads",
            abort_incomplete_multipart_upload_after=Duration.days(UPLOAD_D),
        ),
        *(
            s3.LifecycleRule(
                id=prefix.strip("/").rpartition("/")[2].strip("_"),
                prefix=prefix,
                expiration=Duration.days(days),
            )
            for prefix, days in kept_d(config).items()
        ),
    ]
