"""The HTTP API: IAM-signed requests, rate limits, and one function behind all routes.

The routes are exactly the function's operations (`orbweaver.api.routes`); the gateway rejects all
other paths. No component runs permanently: no web application firewall, no cache, no custom domain.
The gateway's own errors have the form of the function's (RFC 9457).

Source: docs.aws.amazon.com/apigateway/latest/developerguide/permissions.html,
…/api-gateway-request-validation-set-up.html, …/set-up-logging.html,
…/api-gateway-gatewayResponse-definition.html, …/supported-gateway-response-types.html.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.findings import NOT_TRACED, accept
from infra.program import Needs, Program, Site, allow, log_group, sending
from orbweaver.api.problems import CONTENT_TYPE, GATEWAY, TITLES
from orbweaver.api.requests import SEEDS_FOLDER
from orbweaver.api.routes import OPERATIONS
from orbweaver.app.file_retention import BODIES, EXPORTS
from orbweaver.control.json_reader import required_fields

if TYPE_CHECKING:
    from infra.config import Config
    from orbweaver.api.routes import Operation

HANDLER = "api"
READ = (SEEDS_FOLDER, BODIES, EXPORTS)
# Environment variables with the names of the stack's queues, tables and bucket.
SETTINGS = (
    *("CRAWL_QUEUE_URL", "EXPRESS_QUEUE_URL", "RENDER_QUEUE_URL", "URLS_TABLE", "PAGES_TABLE"),
    *("HOSTS_TABLE", "CRAWLS_TABLE", "PACKS_TABLE", "BUCKET"),
)
MEMORY_MB = 1024  # starting a container needs only CPU, which Lambda grants in proportion to memory
TIMEOUT_S = 28  # the gateway waits 29 s
STAGE = "v1"
# Limits for all callers together: requests per second, and requests in a burst. They limit how much
# of the account's concurrency API calls take from the workers. A person or program that controls
# crawls sends far fewer requests.
RATE_MAX, BURST_MAX = 20, 40
# Variable of API Gateway: the gateway's own error text, as a JSON string.
REASON = "$context.error.messageString"
# Texts that replace error texts of the gateway that explain too little.
WORDS = {
    "MISSING_AUTHENTICATION_TOKEN": (
        "there is no such operation, or the request is not signed (AWS Signature Version 4)"
    ),
    "REQUEST_TOO_LARGE": "the request is too large: send it in parts",
    "RESOURCE_NOT_FOUND": "there is no such operation: see /openapi.json",
    "THROTTLED": "too many requests: send fewer per second",
    "INTEGRATION_FAILURE": "no answer: try again",
    "INTEGRATION_TIMEOUT": "no answer in time: check whether it took effect, then try again",
    "API_CONFIGURATION_ERROR": "the API failed: see its logs",
    "DEFAULT_5XX": "the API failed: see its logs",
}
DEFAULTS = {"DEFAULT_4XX": "Request refused", "DEFAULT_5XX": "Internal error"}
HEADERS = {"Content-Type": f"'{CONTENT_TYPE}'"}
RETRY_AFTER = {"Retry-After": "'1'"}


class Api(Construct):
    """The function that answers requests, and its gateway."""

    def __init__(self, scope: Construct, construct_id: str, site: Site) -> None:
        super().__init__(scope, construct_id)
        needs = Needs(
            handler=HANDLER,
            memory_mb=MEMORY_MB,
            timeout_s=TIMEOUT_S,
            uses=SETTINGS,
            permissions=api_permissions(site),
        )
        program = Program(self, site, needs)
        accept_reading(program.role, site)
        self.function, self.logs = program.function, program.logs
        self.rest = rest_api(self, site.config)
        self._route()
        self._acknowledge()

    def _route(self) -> None:
        integration = apigateway.LambdaIntegration(
            self.function, allow_test_invoke=False, scope_permission_to_method=False
        )
        # The gateway checks only which parameters exist. The function checks their values and the
        # bodies, and explains errors.
        checked = apigateway.RequestValidator(
            self,
            "Checked",
            rest_api=self.rest,
            validate_request_body=True,
            validate_request_parameters=True,
        )
        anything = apigateway.Model(
            self,
            "Object",
            rest_api=self.rest,
            content_type="application/json",
            schema=apigateway.JsonSchema(
                schema=apigateway.JsonSchemaVersion.DRAFT4, type=apigateway.JsonSchemaType.OBJECT
            ),
        )
        for operation in OPERATIONS:
            has_body = "body" in operation.parameters and operation.body_needed
            self.rest.root.resource_for_path(operation.path).add_method(
                operation.method,
                integration,
                # An API key would not authenticate callers.
                authorization_type=apigateway.AuthorizationType.IAM,
                request_models={"application/json": anything} if has_body else None,
                request_parameters=_needed(operation),
                request_validator=checked,
            )

    def _acknowledge(self) -> None:
        accept(
            self.function,
            "Serverless-LambdaDLQ",
            "Invoked synchronously by the gateway, so the caller sees a failure.",
        )
        accept(
            self.rest,
            "AwsSolutions-COG4",
            "Callers are IAM identities that sign their requests; no user pool is needed.",
        )
        accept(
            self.rest,
            "AwsSolutions-APIG3",
            "Only signed requests of the account pass, at a limited rate; a firewall would"
            " cost $5 a month idle.",
        )
        accept(self.rest, "Serverless-APIGWXrayEnabled", NOT_TRACED)


def _needed(operation: Operation) -> dict[str, bool]:
    query = operation.parameters.get("query")
    names = required_fields(query) if query is not None else ()
    return {f"method.request.querystring.{name}": True for name in sorted(names)}


def accept_reading(role: iam.Role, site: Site) -> None:
    """Accept the findings of the rule pack about reading all files in a few folders."""
    for folder in READ:
        accept(
            role,
            f"AwsSolutions-IAM5[Resource::<{site.storage.bucket_id}.Arn>/{folder}*]",
            "API callers may read all files below this prefix; the function writes none there.",
        )


def api_permissions(site: Site) -> list[iam.PolicyStatement]:
    """Return the permissions of a function that handles API operations."""
    frontier, storage = site.frontier, site.storage
    return [
        allow(sending(site.config), *(queue.queue_arn for queue in frontier.packs)),
        # Crawls are read, listed, started (the crawl `default` with its first seeds), paused,
        # cancelled and edited. BatchGetItem reads their counters.
        allow(
            [
                "dynamodb:BatchGetItem",
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Scan",
                "dynamodb:UpdateItem",
            ],
            storage.crawls.table_arn,
        ),
        # Parked messages (of paused crawls) are listed and deleted. Journals (records of a pack's
        # progress) are read.
        allow(
            ["dynamodb:BatchGetItem", "dynamodb:BatchWriteItem", "dynamodb:Query"],
            storage.packs.table_arn,
        ),
        allow(["dynamodb:BatchGetItem", "dynamodb:Query"], storage.pages.table_arn),
        allow(["dynamodb:BatchGetItem"], storage.urls.table_arn, storage.hosts.table_arn),
        # Seed files, texts of pages, manifests, and exported files, for which the API signs links.
        allow(
            ["s3:GetObject"],
            *(storage.bucket.arn_for_objects(f"{folder}*") for folder in READ),
        ),
        # Without this permission, S3 reports a missing file as "access denied".
        allow(["s3:ListBucket"], storage.bucket.bucket_arn),
    ]


def rest_api(scope: Construct, config: Config) -> apigateway.RestApi:
    """Create an API with rate limits, logs and a uniform form of errors."""
    access = log_group(scope, "Access", f"/aws/apigateway/{config.stack_name}", config)
    rest = apigateway.RestApi(
        scope,
        "Rest",
        rest_api_name=config.stack_name,
        endpoint_types=[apigateway.EndpointType.REGIONAL],
        cloud_watch_role=False,
        deploy_options=apigateway.StageOptions(
            stage_name=STAGE,
            throttling_rate_limit=RATE_MAX,
            throttling_burst_limit=BURST_MAX,
            logging_level=apigateway.MethodLoggingLevel.ERROR,
            data_trace_enabled=False,  # logs must not contain bodies
            access_log_destination=apigateway.LogGroupLogDestination(access),
            access_log_format=apigateway.AccessLogFormat.json_with_standard_fields(
                caller=True,
                http_method=True,
                ip=True,
                protocol=True,
                request_time=True,
                resource_path=True,
                response_length=True,
                status=True,
                user=True,
            ),
        ),
    )
    rest.node.try_remove_child("Endpoint")  # CDK's output; the stack's own output is ApiUrl
    if config.api_account_role == "yes":
        rest.deployment_stage.node.add_dependency(_account(scope, config))
    _add_responses(rest)
    return rest


def _account(scope: Construct, config: Config) -> apigateway.CfnAccount:
    """Let API Gateway write logs. This is a setting of the account and region."""
    role = iam.Role(
        scope,
        "LogsRole",
        assumed_by=iam.ServicePrincipal("apigateway.amazonaws.com"),
        managed_policies=[
            iam.ManagedPolicy.from_aws_managed_policy_name(
                "service-role/AmazonAPIGatewayPushToCloudWatchLogs"
            )
        ],
    )
    accept(
        role,
        "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
        "AmazonAPIGatewayPushToCloudWatchLogs]",
        "API Gateway accepts only this policy for writing an account's logs.",
    )
    account = apigateway.CfnAccount(scope, "Account", cloud_watch_role_arn=role.role_arn)
    if config.kept:
        # Other APIs of the account use this setting, and must be able to log after the stack is
        # removed.
        account.apply_removal_policy(RemovalPolicy.RETAIN)
        role.apply_removal_policy(RemovalPolicy.RETAIN)
    return account


def _add_responses(rest: apigateway.RestApi) -> None:
    for kind, status in GATEWAY.items():
        rest.add_gateway_response(
            _id(kind),
            type=apigateway.ResponseType.of(kind),
            status_code=str(status),
            response_headers=HEADERS | (RETRY_AFTER if kind == "THROTTLED" else {}),
            templates={"application/json": _template(kind, TITLES[status], status)},
        )
    for kind, title in DEFAULTS.items():
        # Without `status_code`, these responses keep their original status.
        rest.add_gateway_response(
            _id(kind),
            type=apigateway.ResponseType.of(kind),
            response_headers=HEADERS,
            templates={"application/json": _template(kind, title, None)},
        )


def _template(kind: str, title: str, status: int | None) -> str:
    said = {"type": "about:blank", "title": title, "detail": WORDS.get(kind, REASON)}
    body = json.dumps(said | ({} if status is None else {"status": status}))
    return body.replace(f'"{REASON}"', REASON)


def _id(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))
