"""The HTTP API: requests signed by IAM, one function behind all of its routes.

Rules
- `ROUTES` is the whole surface; a path that is not there is refused by the gateway.
- The gateway checks who asks (SigV4), how often, and the shape of the body; what a body means is
  the function's to decide. An API key would be no authentication.
- Nothing is always on: no web application firewall, no cache, no custom domain.

Source: docs.aws.amazon.com/apigateway/latest/developerguide/permissions.html,
…/set-up-logging.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.findings import NOT_TRACED, accept
from infra.program import Code, Needs, Program, allow, log_group, sending
from orbweaver.core.message import CRAWL_ID_CHARS_MAX, REFERENCE_CHARS_MAX

if TYPE_CHECKING:
    from infra.config import Config
    from infra.frontier import Frontier
    from infra.storage import Storage

HANDLER = "api"
STAGE = "v1"
MEMORY_MB = 512
TIMEOUT_S = 28  # the gateway waits 29 s
ROUTES = (("POST", "/seeds"),)


class Api(Construct):
    """The function that answers, and the gateway before it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Config,
        code: Code,
        frontier: Frontier,
        storage: Storage,
    ) -> None:
        super().__init__(scope, construct_id)
        program = Program(
            self,
            "Program",
            config=config,
            code=code,
            needs=Needs(
                handler=HANDLER,
                memory_mb=MEMORY_MB,
                timeout_s=TIMEOUT_S,
                environment={
                    "ORBWEAVER_CRAWL_QUEUE_URL": frontier.crawl.queue_url,
                    "ORBWEAVER_EXPRESS_QUEUE_URL": frontier.express.queue_url,
                    "ORBWEAVER_CRAWLS_TABLE": storage.crawls.table_name,
                },
                permissions=[
                    allow(sending(config), frontier.crawl.queue_arn, frontier.express.queue_arn),
                    # PutItem: the crawl `default` comes with its first seeds.
                    allow(["dynamodb:GetItem", "dynamodb:PutItem"], storage.crawls.table_arn),
                ],
            ),
        )
        self.function, self.logs = program.function, program.logs
        self.rest = self._gateway(config)
        self._route()
        self._acknowledge()

    def _route(self) -> None:
        integration = apigateway.LambdaIntegration(self.function, allow_test_invoke=False)
        seeds = self._seeds_model()
        checked = apigateway.RequestValidator(
            self,
            "Checked",
            rest_api=self.rest,
            validate_request_body=True,
            validate_request_parameters=True,
        )
        for method, path in ROUTES:
            self.rest.root.resource_for_path(path).add_method(
                method,
                integration,
                authorization_type=apigateway.AuthorizationType.IAM,
                request_models={"application/json": seeds},
                request_validator=checked,
            )

    def _gateway(self, config: Config) -> apigateway.RestApi:
        access = log_group(self, "Access", f"/aws/apigateway/{config.stack_name}", config)
        rest = apigateway.RestApi(
            self,
            "Rest",
            rest_api_name=config.stack_name,
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            cloud_watch_role=False,
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                throttling_rate_limit=config.api_rate_max,
                throttling_burst_limit=config.api_burst_max,
                logging_level=apigateway.MethodLoggingLevel.ERROR,
                data_trace_enabled=False,  # bodies do not belong in logs
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
        rest.node.try_remove_child("Endpoint")  # an output under a name of CDK's; ours is ApiUrl
        if config.api_account_role == "yes":
            rest.deployment_stage.node.add_dependency(self._account(config))
        return rest

    def _account(self, config: Config) -> apigateway.CfnAccount:
        """Let API Gateway write logs: a setting of the account and region, without which none."""
        role = iam.Role(
            self,
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
            "The one policy that API Gateway accepts for writing logs of an account.",
        )
        account = apigateway.CfnAccount(self, "Account", cloud_watch_role_arn=role.role_arn)
        if config.kept:
            # Other APIs of the account write by it, and removing the stack must not stop them.
            account.apply_removal_policy(RemovalPolicy.RETAIN)
            role.apply_removal_policy(RemovalPolicy.RETAIN)
        return account

    def _seeds_model(self) -> apigateway.Model:
        kinds = apigateway.JsonSchemaType
        url = apigateway.JsonSchema(type=kinds.STRING, min_length=1, max_length=REFERENCE_CHARS_MAX)
        return apigateway.Model(
            self,
            "Seeds",
            rest_api=self.rest,
            content_type="application/json",
            schema=apigateway.JsonSchema(
                schema=apigateway.JsonSchemaVersion.DRAFT4,
                type=kinds.OBJECT,
                additional_properties=False,
                properties={
                    "url": url,
                    # How many are too many is the function's to say, which answers 413.
                    "urls": apigateway.JsonSchema(type=kinds.ARRAY, items=url, min_items=1),
                    "crawl": apigateway.JsonSchema(
                        type=kinds.STRING, min_length=1, max_length=CRAWL_ID_CHARS_MAX
                    ),
                },
            ),
        )

    def _acknowledge(self) -> None:
        accept(
            self.function,
            "Serverless-LambdaDLQ",
            "Invoked by the gateway, which waits for the answer: the caller sees a failure.",
        )
        accept(
            self.rest,
            "AwsSolutions-COG4",
            "Callers are IAM identities that sign their requests; there are no user pools.",
        )
        accept(
            self.rest,
            "AwsSolutions-APIG3",
            "Only signed requests of the account pass, at a bounded rate; a firewall costs"
            " $5 a month idle.",
        )
        accept(self.rest, "Serverless-APIGWXrayEnabled", NOT_TRACED)
