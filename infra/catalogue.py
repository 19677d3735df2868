"""The database over exports: Glue tables, an Athena workgroup, saved queries.

orbweaver.model.columns defines tables, columns and types. The exporter registers item tables
(`items_…`) when a crawl has found items. Athena derives the partitions (days) from a query, so new
days need no registration. The stack gives no role the permission to query; docs/query.md lists the
permissions. Without queries the database costs nothing.

Source: docs.aws.amazon.com/athena/latest/ug/workgroups-settings.html,
docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-glue-table.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, CfnResource
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from constructs import Construct

from infra.findings import accept
from infra.program import allow
from infra.retention import ATHENA_RESULTS
from orbweaver.app.file_retention import EXPORTS
from orbweaver.cli.query.saved import saved
from orbweaver.exporting.glue_schema import ITEMS, TABLES, database_name, glue_table

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam

    from infra.config import Config
    from infra.storage import Storage

ENGINE = "Athena engine version 3"


class Catalogue(Construct):
    """The database, its workgroup, and saved queries."""

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Config, storage: Storage
    ) -> None:
        super().__init__(scope, construct_id)
        self.name = database_name(config.stack_name)
        self.root = f"s3://{storage.bucket.bucket_name}/{EXPORTS}"
        self.database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=self.name, description=f"What {config.stack_name} exported"
            ),
        )
        for table in TABLES:
            self._table(f"{_camel(table.name)}Table", glue_table(table.name, table, self.root))
        self.workgroup = self._workgroup(config, storage)
        # MiniStack (1.5.33) lacks AWS::Athena::NamedQuery. `orbweaver query --saved` runs the same
        # queries.
        if not config.local:
            self._queries()

    def _table(self, construct_id: str, table: dict[str, object]) -> None:
        made = CfnResource(
            self,
            construct_id,
            type="AWS::Glue::Table",
            properties={
                "CatalogId": Aws.ACCOUNT_ID,
                "DatabaseName": self.name,
                "TableInput": table,
            },
        )
        made.add_resource_dependency(self.database)

    def _workgroup(self, config: Config, storage: Storage) -> athena.CfnWorkGroup:
        group = athena.CfnWorkGroup
        # Results are deleted after a week (retention.py).
        results = group.ResultConfigurationProperty(
            output_location=f"s3://{storage.bucket.bucket_name}/{ATHENA_RESULTS}",
            encryption_configuration=group.EncryptionConfigurationProperty(
                encryption_option="SSE_S3"
            ),
            expected_bucket_owner=Aws.ACCOUNT_ID,
        )
        return group(
            self,
            "Workgroup",
            name=config.stack_name,
            description=f"Queries of what {config.stack_name} exported",
            recursive_delete_option=True,
            work_group_configuration=group.WorkGroupConfigurationProperty(
                # Athena cancels a query that reads more bytes, and bills the bytes read ($5 per
                # TB). Clients cannot override these settings.
                bytes_scanned_cutoff_per_query=config.athena_bytes_max,
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=True,
                engine_version=group.EngineVersionProperty(selected_engine_version=ENGINE),
                result_configuration=results,
            ),
        )

    def _queries(self) -> None:
        for query in saved().values():
            made = athena.CfnNamedQuery(
                self,
                f"{_camel(query.name)}Query",
                name=query.name,
                description=query.title,
                database=self.name,
                query_string=query.sql,
                work_group=self.workgroup.name,
            )
            made.add_resource_dependency(self.workgroup)
            made.add_resource_dependency(self.database)


def table_permissions(config: Config) -> iam.PolicyStatement:
    """Return the permission to register and update tables of items, and no others."""
    name = database_name(config.stack_name)
    parts = ("catalog", f"database/{name}", f"table/{name}/{ITEMS}*")
    arns = [f"arn:{Aws.PARTITION}:glue:{Aws.REGION}:{Aws.ACCOUNT_ID}:{part}" for part in parts]
    return allow(["glue:GetTable", "glue:CreateTable", "glue:UpdateTable"], *arns)


def accept_registering(role: iam.Role, config: Config) -> None:
    """Accept the rule pack's finding about the wildcard in `table_permissions`."""
    name = database_name(config.stack_name)
    part = f"table/{name}/{ITEMS}*"
    accept(
        role,
        "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:glue:<AWS::Region>:<AWS::AccountId>:"
        f"{part}]",
        "Item tables are named after crawls and rules; the prefix excludes other tables.",
    )


def encrypt_results(workgroup: athena.CfnWorkGroup, key: str) -> None:
    workgroup.add_property_override(
        "WorkGroupConfiguration.ResultConfiguration.EncryptionConfiguration",
        {"EncryptionOption": "SSE_KMS", "KmsKey": key},
    )


def _camel(name: str) -> str:
    return name.title().replace("_", "")
