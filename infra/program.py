"""A function with what every function has: its own role, log group, limits and code.

Rules
- A role holds the statements listed for it and no others: no managed policy, no `grant_…`
  helper, which would give more than the code uses.
- The log group stands before the function and has a retention; the role may not make one.
- Function names are made here rather than by CloudFormation, so that a function may be named in
  its own role and environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.config import LOG_RETENTIONS_D
from infra.findings import NOT_LATEST, NOT_TRACED, accept

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.asset import Libraries
    from infra.config import Config

ARCHITECTURES = {
    "arm64": lambda_.Architecture.ARM_64,
    "x86_64": lambda_.Architecture.X86_64,
}
# CDK names what CloudWatch Logs takes, in the same order.
RETENTIONS = dict(zip(LOG_RETENTIONS_D, logs.RetentionDays, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The archive of a code asset, or a folder; without a hash, CDK hashes its contents.

    `files` is that of the functions which need the libraries of that name: this one where None.
    """

    path: str
    hash: str | None = None
    files: Code | None = None

    def of(self, libraries: Libraries) -> Code:
        """Return the code that has these libraries."""
        return self.files if libraries == "files" and self.files else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a function needs of its own; `handler` is its module in `handlers`, and its name.

    With `files` its code can write and deliver files (infra/asset.py): 0.2 s more of a cold start.
    """

    handler: str
    memory_mb: int
    timeout_s: int
    environment: Mapping[str, str]
    permissions: Sequence[iam.PolicyStatement]
    libraries: Libraries = "runtime"
    recursive_loop: lambda_.RecursiveLoop | None = None


def allow(actions: Sequence[str], *resources: str) -> iam.PolicyStatement:
    """Allow exactly these actions on exactly these resources."""
    return iam.PolicyStatement(actions=[*actions], resources=[*resources])


def sending(config: Config) -> list[str]:
    """Name what sends messages: AWS authorises a batch as its messages, an emulator by its name."""
    return ["sqs:SendMessage", *(["sqs:SendMessageBatch"] if config.local else [])]


def secret_arn(scope: Construct, secret: str) -> str:
    """Return the ARN of a secret that is given by its name or whole ARN."""
    if secret.startswith("arn:"):
        return secret
    # AWS puts a hyphen and six characters behind a secret's name.
    return Stack.of(scope).format_arn(
        service="secretsmanager",
        resource="secret",
        resource_name=f"{secret}-??????",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


class Program(Construct):
    """One function, as `function`, with its `role` and `logs`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Config,
        code: Code,
        needs: Needs,
    ) -> None:
        super().__init__(scope, construct_id)
        name = f"{config.stack_name}-{needs.handler}"
        self.logs = log_group(self, "Logs", f"/aws/lambda/{name}", config)
        writes = allow(["logs:CreateLogStream", "logs:PutLogEvents"], self.logs.log_group_arn)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"Needs": iam.PolicyDocument(statements=[*needs.permissions, writes])},
        )
        runtime = config.functions_run_on
        own = code.of(needs.libraries)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            code=lambda_.Code.from_asset(own.path, asset_hash=own.hash),
            handler=f"handlers.{needs.handler}.handler",
            runtime=lambda_.Runtime(f"python{runtime.python}", lambda_.RuntimeFamily.PYTHON),
            architecture=ARCHITECTURES[runtime.architecture],
            memory_size=needs.memory_mb,
            timeout=Duration.seconds(needs.timeout_s),
            environment={**config.environment(), **needs.environment},
            role=self.role,
            log_group=self.logs,
            recursive_loop=needs.recursive_loop,
        )
        accept(self.function, "Serverless-LambdaTracing", NOT_TRACED)
        for rule in ("AwsSolutions-L1", "Serverless-LambdaLatestVersion"):
            accept(self.function, rule, NOT_LATEST)


def log_group(scope: Construct, construct_id: str, name: str, config: Config) -> logs.LogGroup:
    """Make a log group; logs go when the stack goes, so that a new one of its name can stand."""
    return logs.LogGroup(
        scope,
        construct_id,
        log_group_name=name,
        retention=RETENTIONS[config.log_retention_d],
        removal_policy=RemovalPolicy.DESTROY,
    )
