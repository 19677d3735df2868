"""The HTTP API: IAM-signed requests, and one function behind all routes.

The routes are exactly the function's operations (`orbweaver.api.routes`); the gateway rejects all
other paths. No component runs permanently: no web application firewall, no cache, no custom domain.

Source: docs.aws.amazon.com/apigateway/latest/developerguide/permissions.html,
…/api-gateway-request-validation-set-up.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import gateway
from infra.findings import NOT_TRACED, accept
from infra.program import Needs, Program, Site, allow, sending
from orbweaver.api.requests import SEEDS_FOLDER
from orbweaver.api.routes import OPERATIONS
from orbweaver.control.json_schema import required_fields
from orbweaver.exporting.manifest import PREFIX as EXPORTS
from orbweaver.frontier.body_file import PREFIX as BODIES

if TYPE_CHECKING:
    from orbweaver.api.routes import Operation

HANDLER = "api"
READ = (SEEDS_FOLDER, BODIES, EXPORTS)
# Environment variables with the names of the stack's queues, tables and bucket.
SETTINGS = (
    *("CRAWL_QUEUE_URL", "EXPRESS_QUEUE_URL", "RENDER_QUEUE_URL", "URLS_TABLE", "PAGES_TABLE"),
    *("HOSTS_TABLE", "CRAWLS_TABLE", "PACKS_TABLE", "BUCKET"),
)
MEMORY_MB = 1024  # starting a container needs only CPU, which grows with memory
TIMEOUT_S = 28  # the gateway waits 29 s


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
        self.rest = gateway.rest_api(self, site.config)
        self._route()
        self._acknowledge()

    def _route(self) -> None:
        integration = apigateway.LambdaIntegration(
            self.function, allow_test_invoke=False, scope_permission_to_method=False
        )
        # The function checks what parameters and bodies mean, and explains errors.
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
    """Accept the findings about reading all files in a few folders."""
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
        # Crawls are read, listed, started (`default` with its first seeds), paused, cancelled and
        # edited. BatchGetItem reads their counters.
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
        # Parked messages are listed and deleted. Journals (records of a pack's progress) are read.
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
