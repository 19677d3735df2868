"""A function by what it needs: all have a role of their own, a log group, limits and code.

Rules
- A role holds the statements listed for it and no others: no managed policy, no `grant_…`
  helper, which would give more than the code uses.
- The log group stands before the function and has a retention; the role may not make one.
- Function names are made here rather than by CloudFormation, so that a function may be named in
  its own role and environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Size, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.config import LOG_RETENTIONS_D
from infra.findings import NOT_LATEST, NOT_TRACED, TRACES_HAVE_NO_RESOURCE, accept
from orbweaver.model.settings import ARM, X86

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import aws_sqs as sqs

    from infra.asset import Libraries
    from infra.config import Config
    from infra.failures import FailedCalls
    from infra.frontier import Frontier
    from infra.storage import Storage

ARCHITECTURES = {
    ARM: lambda_.Architecture.ARM_64,
    X86: lambda_.Architecture.X86_64,
}
EVENT_BUS = "default"
ON_X86 = "ORBWEAVER_ARCHITECTURE"
# Settings that name parts which not every stack has.
EXTRA = ("RENDER_QUEUE_URL",)
TRACES = ("xray:PutTraceSegments", "xray:PutTelemetryRecords")
# CDK names what CloudWatch Logs takes, in the same order.
RETENTIONS = dict(zip(LOG_RETENTIONS_D, logs.RetentionDays, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The archive of a code asset, or a folder; without a hash, CDK hashes its contents.

    `files` is that of the functions which need the libraries of that name, `renderer` that of the
    one with a browser: this one where None.
    """

    path: str
    hash: str | None = None
    files: Code | None = None
    renderer: Code | None = None

    def of(self, needs: Needs) -> Code:
        """Return the code that has what a function needs."""
        found = self.renderer if needs.renders else None
        return found or (self.files if needs.libraries == "files" and self.files else self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where functions are: what the deployment says, their code, and what they may use."""

    config: Config
    code: Code
    frontier: Frontier
    storage: Storage
    failed_calls: FailedCalls

    def named(self, settings: Sequence[str]) -> dict[str, str]:
        """Say what settings of functions name."""
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
    """What a function needs of its own; `handler` is its module in `handlers`, and its name.

    `uses` are settings that name parts of the site, `settings` are others, by their values.
    With `files` its code can write and deliver files (infra/asset.py): 0.2 s more of a cold start.
    `storage_mb` is its room for temporary files; None: what Lambda gives to all, 512 MB. With
    `renders` it has a browser in its code, and runs where that does.
    """

    handler: str
    memory_mb: int
    timeout_s: int
    uses: Sequence[str]
    permissions: Sequence[iam.PolicyStatement]
    settings: Mapping[str, str] = field(default_factory=dict)
    # Variables that are not ours.
    environment: Mapping[str, str] = field(default_factory=dict)
    libraries: Libraries = "runtime"
    storage_mb: int | None = None
    renders: bool = False
    recursive_loop: lambda_.RecursiveLoop | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """How a queue's messages are brought to a function, so many batches at once at most.

    `partly`: the function says which messages of a batch failed, and only they come back.
    """

    at_once: int
    size: int = 1
    window_s: int | None = None
    partly: bool = True
    enabled: bool | None = None


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


def event_bus_arn(scope: Construct) -> str:
    """Return the ARN of the bus on which ends of crawls, and exports, are announced."""
    return Stack.of(scope).format_arn(
        service="events",
        resource="event-bus",
        resource_name=EVENT_BUS,
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )


class Program(Construct):
    """One function, as `function`, with its `role` and `logs`."""

    def __init__(self, scope: Construct, site: Site, needs: Needs) -> None:
        super().__init__(scope, "Program")
        config, settings = site.config, {**site.named(needs.uses), **needs.settings}
        name = f"{config.stack_name}-{needs.handler}"
        self.logs = log_group(self, "Logs", f"/aws/lambda/{name}", config)
        writes = allow(["logs:CreateLogStream", "logs:PutLogEvents"], self.logs.log_group_arn)
        traced = config.tracing == "yes"
        statements = [*needs.permissions, writes, *([allow(TRACES, "*")] if traced else [])]
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"Needs": iam.PolicyDocument(statements=statements)},
        )
        runtime = config.renderer_runs_on if needs.renders else config.functions_run_on
        own, room_mb = site.code.of(needs), needs.storage_mb
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
                # By which its time is priced; an emulator's is, too, as if it were the usual one.
                **({} if config.local or runtime.architecture == ARM else {ON_X86: X86}),
                **{f"ORBWEAVER_{key}": value for key, value in settings.items()},
                **needs.environment,
            },
            role=self.role,
            log_group=self.logs,
            recursive_loop=needs.recursive_loop,
        )
        if traced:
            self._trace()
        else:
            accept(self.function, "Serverless-LambdaTracing", NOT_TRACED)
        for rule in ("AwsSolutions-L1", "Serverless-LambdaLatestVersion"):
            accept(self.function, rule, NOT_LATEST)

    def _trace(self) -> None:
        """Have X-Ray take invocations; not by the function's own option, which widens the role."""
        function = cast("lambda_.CfnFunction", self.function.node.default_child)
        function.tracing_config = lambda_.CfnFunction.TracingConfigProperty(mode="Active")
        for rule in ("AwsSolutions-IAM5[Resource::*]", "Serverless-LambdaStarPermissions"):
            accept(self.role, rule, TRACES_HAVE_NO_RESOURCE)


def feed(
    scope: Construct, construct_id: str, program: Program, queue: sqs.Queue, batches: Batches
) -> lambda_.EventSourceMapping:
    """Have a queue bring its messages to a function.

    Not by the event source helper of the queue: it would widen the role.
    """
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
        "Lambda takes destinations for streams only; the queue's dead-letter queue is the way.",
    )
    return source


def log_group(scope: Construct, construct_id: str, name: str, config: Config) -> logs.LogGroup:
    """Make a log group; logs go when the stack goes, so that a new one of its name can stand."""
    return logs.LogGroup(
        scope,
        construct_id,
        log_group_name=name,
        retention=RETENTIONS[config.log_retention_d],
        removal_policy=RemovalPolicy.DESTROY,
    )
