"""A Lambda function with its own role, log group, limits and code.

A role contains only the statements that the function needs. It has no managed policy, and CDK's
`grant_…` helpers are not used, because both would allow more. The log group is created before the
function, because the role is not allowed to create log groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Size, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.config import LOG_RETENTIONS_D
from infra.findings import NOT_LATEST, NOT_TRACED, accept
from orbweaver.model.auth import login_prefix
from orbweaver.model.settings import ARM, X86

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import aws_sqs as sqs

    from infra.asset import Libraries
    from infra.config import Config
    from infra.frontier import FailedCalls, Frontier
    from infra.storage import Storage

ARCHITECTURES = {
    ARM: lambda_.Architecture.ARM_64,
    X86: lambda_.Architecture.X86_64,
}
EVENT_BUS = "default"
ON_X86 = "ORBWEAVER_ARCHITECTURE"
# Settings with names of resources that some stacks do not have.
EXTRA = ("RENDER_QUEUE_URL",)
# CDK's constant for each retention period of CloudWatch Logs. Both lists have the same order.
RETENTIONS = dict(zip(LOG_RETENTIONS_D, logs.RetentionDays, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Code of functions: the path of an asset's archive, or of a folder.

    Without `hash`, CDK hashes the contents. `files` is the code with the file libraries, `renderer`
    the code with a browser. If they are None, this code is used instead.
    """

    path: str
    hash: str | None = None
    files: Code | None = None
    renderer: Code | None = None

    def for_needs(self, needs: Needs) -> Code:
        found = self.renderer if needs.renders else None
        return found or (self.files if needs.libraries == "files" and self.files else self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Settings, code and resources of a stack, from which its functions are created."""

    config: Config
    code: Code
    frontier: Frontier
    storage: Storage
    failed_calls: FailedCalls

    def resource_settings(self, settings: Sequence[str]) -> dict[str, str]:
        """Return all of `settings` that contain names of the stack's resources."""
        queues, tables = self.frontier, self.storage
        names = {
            "SEED_QUEUE_URL": queues.seeds.queue_url,
            "CRAWL_QUEUE_URL": queues.crawl.queue_url,
            "EXPRESS_QUEUE_URL": queues.express.queue_url,
            "DEAD_LETTER_QUEUE_URL": queues.dead_letters.queue_url,
            "URLS_TABLE": tables.urls.table_name,
            "PAGES_TABLE": tables.pages.table_name,
            "HOSTS_TABLE": tables.hosts.table_name,
            "CRAWLS_TABLE": tables.crawls.table_name,
            "PACKS_TABLE": tables.packs.table_name,
            "BUCKET": tables.bucket.bucket_name,
        }
        if queues.render is not None:
            names["RENDER_QUEUE_URL"] = queues.render.queue_url
        return {name: names[name] for name in settings if name in names or name not in EXTRA}


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Requirements of one function.

    `handler` is its name, and the name of its module in `handlers`.

    - `uses` lists settings that contain names of the stack's resources.
    - `settings` are all other settings, with their values.
    - `libraries="files"` adds the file libraries (infra/asset.py), and 0.2 s to a cold start.
    - `storage_mb` is the size of the temporary folder. None is Lambda's default of 512 MB.
    - `renders` adds a browser, and uses the runtime for which the browser exists.
    """

    handler: str
    memory_mb: int
    timeout_s: int
    uses: Sequence[str]
    permissions: Sequence[iam.PolicyStatement]
    settings: Mapping[str, str] = field(default_factory=dict)
    # Environment variables that are read by libraries, not by Orbweaver.
    environment: Mapping[str, str] = field(default_factory=dict)
    libraries: Libraries = "runtime"
    storage_mb: int | None = None
    renders: bool = False
    recursive_loop: lambda_.RecursiveLoop | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Batches in which a function receives messages of a queue.

    At most `at_once` batches are processed at the same time. `window_s` is the time to collect a
    batch. If `partly` is True, the function reports the failed messages of a batch, and only those
    are delivered again.
    """

    at_once: int
    size: int = 1
    window_s: int | None = None
    partly: bool = True
    enabled: bool | None = None


def allow(actions: Sequence[str], *resources: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=[*actions], resources=[*resources])


def sending(config: Config) -> list[str]:
    """Return the actions that allow sending messages.

    For an emulator they include an action for batches, which AWS does not have.
    """
    return ["sqs:SendMessage", *(["sqs:SendMessageBatch"] if config.local else [])]


def login_arns(scope: Construct, config: Config) -> tuple[str, str]:
    """Return the ARNs of the secrets and of the parameters with which crawls may log in."""
    stack, prefix = Stack.of(scope), login_prefix(config.stack_name)
    secrets = stack.format_arn(
        service="secretsmanager",
        resource="secret",
        resource_name=f"{prefix}*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return secrets, stack.format_arn(
        service="ssm", resource="parameter", resource_name=f"{prefix}*"
    )


def secret_arn(scope: Construct, secret: str) -> str:
    """Return the ARN of a secret that is given by its name or ARN."""
    if secret.startswith("arn:"):
        return secret
    # AWS appends a hyphen and six random characters to a secret's name.
    return Stack.of(scope).format_arn(
        service="secretsmanager",
        resource="secret",
        resource_name=f"{secret}-??????",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


def event_bus_arn(scope: Construct) -> str:
    return Stack.of(scope).format_arn(
        service="events",
        resource="event-bus",
        resource_name=EVENT_BUS,
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )


class Program(Construct):
    """A Lambda function with its role and log group (`role`, `logs`)."""

    def __init__(self, scope: Construct, site: Site, needs: Needs) -> None:
        super().__init__(scope, "Program")
        config, settings = site.config, {**site.resource_settings(needs.uses), **needs.settings}
        # The name is set here. A name given by CloudFormation could not be used in the function's
        # own role and environment.
        name = f"{config.stack_name}-{needs.handler}"
        self.logs = log_group(self, "Logs", f"/aws/lambda/{name}", config)
        writes = allow(["logs:CreateLogStream", "logs:PutLogEvents"], self.logs.log_group_arn)
        statements = [*needs.permissions, writes]
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"Needs": iam.PolicyDocument(statements=statements)},
        )
        runtime = config.renderer_runs_on if needs.renders else config.functions_run_on
        own, room_mb = site.code.for_needs(needs), needs.storage_mb
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
            ephemeral_storage_size=None if room_mb is None else Size.mebibytes(room_mb),
            environment={
                **config.environment(),
                "ORBWEAVER_MEMORY_MB": str(needs.memory_mb),
                # The price of computing depends on the architecture. An emulator reports the
                # default price.
                **({} if config.local or runtime.architecture == ARM else {ON_X86: X86}),
                **{f"ORBWEAVER_{key}": value for key, value in settings.items()},
                **needs.environment,
            },
            role=self.role,
            log_group=self.logs,
            recursive_loop=needs.recursive_loop,
        )
        accept(self.function, "Serverless-LambdaTracing", NOT_TRACED)
        for rule in ("AwsSolutions-L1", "Serverless-LambdaLatestVersion"):
            accept(self.function, rule, NOT_LATEST)


def feed(
    scope: Construct, construct_id: str, program: Program, queue: sqs.Queue, batches: Batches
) -> lambda_.EventSourceMapping:
    """Connect a queue to a function. CDK's helper for event sources would widen the role."""
    window_s = batches.window_s
    source = lambda_.EventSourceMapping(
        scope,
        construct_id,
        target=program.function,
        event_source_arn=queue.queue_arn,
        batch_size=batches.size,
        max_batching_window=None if window_s is None else Duration.seconds(window_s),
        max_concurrency=batches.at_once,
        report_batch_item_failures=batches.partly,
        enabled=batches.enabled,
    )
    accept(
        source,
        "Serverless-LambdaEventSourceMappingDestination",
        "Lambda supports destinations for streams only; the queue has a dead-letter queue.",
    )
    return source


def log_group(scope: Construct, construct_id: str, name: str, config: Config) -> logs.LogGroup:
    """Create a log group. It is removed with the stack, so that a new stack can reuse its name."""
    return logs.LogGroup(
        scope,
        construct_id,
        log_group_name=name,
        retention=RETENTIONS[config.log_retention_d],
        removal_policy=RemovalPolicy.DESTROY,
    )
