"""Protection of the tables against deletion.

The template cannot protect a table, because CloudFormation could not roll back a failed first
creation. So a function protects the tables in the last step of a deployment. With
`removal=destroy`, the function ends the protection. It runs once when tables or `removal` change,
and costs nothing while idle. On an emulator, tables are not protected.

Source: docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.findings import NOT_LATEST, NOT_TRACED, accept
from infra.program import ARCHITECTURES, allow, log_group

if TYPE_CHECKING:
    from infra.config import Config
    from infra.storage import Storage

KIND = "Custom::TableProtection"
SOURCE = Path(__file__).with_name("protection_function.py")
MEMORY_MB, TIMEOUT_S = 128, 300


class Protection(Construct):
    """The function, and a custom resource, for which CloudFormation invokes the function last."""

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Config, storage: Storage
    ) -> None:
        super().__init__(scope, construct_id)
        tables = storage.tables
        name = f"{config.stack_name}-protection"
        logs = log_group(self, "Logs", f"/aws/lambda/{name}", config)
        statements = [
            allow(
                ["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
                *(table.table_arn for table in tables),
            ),
            allow(["logs:CreateLogStream", "logs:PutLogEvents"], logs.log_group_arn),
        ]
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"Needs": iam.PolicyDocument(statements=statements)},
        )
        runtime = config.functions_run_on
        function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            code=lambda_.Code.from_inline(SOURCE.read_text()),
            handler="index.handler",
            runtime=lambda_.Runtime(
                f"python{runtime.python}",
                lambda_.RuntimeFamily.PYTHON,
                supports_inline_code=True,
            ),
            architecture=ARCHITECTURES[runtime.architecture],
            memory_size=MEMORY_MB,
            timeout=Duration.seconds(TIMEOUT_S),
            role=role,
            log_group=logs,
        )
        self._accept(function)
        self._resource = CustomResource(
            self,
            "Tables",
            resource_type=KIND,
            service_token=function.function_arn,
            properties={
                "Tables": [table.table_name for table in tables],
                "Protected": "true" if config.kept else "false",
            },
        )

    def order_last(self) -> None:
        """Make the custom resource depend on all other parts of the stack."""
        for other in Stack.of(self).node.children:
            if other is not self:
                self._resource.node.add_dependency(other)

    def _accept(self, function: lambda_.Function) -> None:
        accept(
            function,
            "Serverless-LambdaDLQ",
            "CloudFormation waits for its answer, so a failure fails the deployment.",
        )
        accept(function, "Serverless-LambdaTracing", NOT_TRACED)
        for rule in ("AwsSolutions-L1", "Serverless-LambdaLatestVersion"):
            accept(function, rule, NOT_LATEST)
