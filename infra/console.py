"""The hosted console: one function behind an HTTP API with signed-in users, with `console=yes`.

The application's files are public. Every other route requires a token that the gateway verifies
(infra/sign_in.py). The function decides what a token permits (console/users.py). No component runs
permanently: no web application firewall, no custom domain.

Source: docs.aws.amazon.com/apigateway/latest/developerguide/, pages http-api-jwt-authorizer,
http-api-develop-routes, http-api-throttling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.api import SETTINGS, accept_reading, api_permissions
from infra.findings import accept
from infra.gateway import BURST_MAX, RATE_MAX
from infra.program import Needs, Program, Site, allow, log_group
from infra.sign_in import SignInPages
from orbweaver.console.users import OPEN_ROUTES, SIGNED_IN_ROUTES

HANDLER = "console"
MEMORY_MB = 1024  # starting a container needs only CPU, which grows with memory
TIMEOUT_S = 28  # the gateway waits 30 s
LOGGED = {
    "requestId": "$context.requestId",
    "ip": "$context.identity.sourceIp",
    "user": "$context.authorizer.claims.username",
    "requestTime": "$context.requestTime",
    "routeKey": "$context.routeKey",
    "status": "$context.status",
    "responseLength": "$context.responseLength",
    "error": "$context.authorizer.error",
}


class HostedConsole(Construct):
    """The gateway, its authorizer, and the function. `url` is the console's address."""

    def __init__(self, scope: Construct, construct_id: str, site: Site) -> None:
        super().__init__(scope, construct_id)
        config = site.config
        self.gateway = apigateway.CfnApi(
            self, "Gateway", name=f"{config.stack_name}-console", protocol_type="HTTP"
        )
        self.url = f"{self.gateway.attr_api_endpoint}/"
        self.sign_in = SignInPages(self, "SignIn", config, self.url)
        frontier = site.frontier
        queues = (frontier.seeds, *frontier.packs, frontier.dead_letters)
        counted = dict.fromkeys(queue.queue_arn for queue in queues)
        needs = Needs(
            handler=HANDLER,
            memory_mb=MEMORY_MB,
            timeout_s=TIMEOUT_S,
            uses=(*SETTINGS, "SEED_QUEUE_URL", "DEAD_LETTER_QUEUE_URL"),
            settings={
                "CONSOLE_ISSUER": self.sign_in.issuer,
                "CONSOLE_CLIENT": self.sign_in.client.ref,
                "CONSOLE_PAGES": self.sign_in.pages,
            },
            # The API's permissions, plus counting messages and reading dead letters. Only IAM
            # identities may invoke the API's function, so the console has its own.
            permissions=[
                *api_permissions(site),
                allow(["sqs:GetQueueAttributes"], *counted),
                # Dead letters are read, and made visible again.
                allow(
                    ["sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"],
                    frontier.dead_letters.queue_arn,
                ),
            ],
        )
        program = Program(self, site, needs)
        self.function, self.logs = program.function, program.logs
        self._accept(program, site)
        stage = self._stage(site)
        for route in self._routes():
            # The stage sets a rate limit for each route, so the route must exist first.
            stage.add_dependency(route)

    def _stage(self, site: Site) -> apigateway.CfnStage:
        config = site.config
        name = f"/aws/apigateway/{config.stack_name}-console"
        access = log_group(self, "Access", name, config)
        return apigateway.CfnStage(
            self,
            "Stage",
            api_id=self.gateway.ref,
            # Paths and files are therefore the same as in the local console.
            stage_name="$default",
            auto_deploy=True,
            access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
                destination_arn=access.log_group_arn, format=json.dumps(LOGGED)
            ),
            default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=RATE_MAX,
                throttling_burst_limit=BURST_MAX,
            ),
            # Each route has its own limit, so strangers on public routes do not slow users down.
            # Browsers cache the files, so a visit needs few requests.
            route_settings={
                key: {
                    "ThrottlingRateLimit": RATE_MAX,
                    "ThrottlingBurstLimit": BURST_MAX,
                }
                for key in (*OPEN_ROUTES, *SIGNED_IN_ROUTES)
            },
        )

    def _routes(self) -> Iterator[apigateway.CfnRoute]:
        integration = apigateway.CfnIntegration(
            self,
            "Answered",
            api_id=self.gateway.ref,
            integration_type="AWS_PROXY",
            integration_uri=self.function.function_arn,
            payload_format_version="2.0",
        )
        verified = apigateway.CfnAuthorizer(
            self,
            "SignedIn",
            api_id=self.gateway.ref,
            name="signed-in",
            authorizer_type="JWT",
            identity_source=["$request.header.Authorization"],
            jwt_configuration=apigateway.CfnAuthorizer.JWTConfigurationProperty(
                audience=[self.sign_in.client.ref], issuer=self.sign_in.issuer
            ),
        )
        for place, key in enumerate((*OPEN_ROUTES, *SIGNED_IN_ROUTES)):
            route = apigateway.CfnRoute(
                self,
                f"Route{place}",
                api_id=self.gateway.ref,
                route_key=key,
                target=f"integrations/{integration.ref}",
                authorization_type="NONE" if key in OPEN_ROUTES else "JWT",
                authorizer_id=None if key in OPEN_ROUTES else verified.ref,
            )
            if key in OPEN_ROUTES:
                accept(
                    route,
                    "AwsSolutions-APIG4",
                    "The application's files are public and the same everywhere; the sign-in"
                    " address is all they contain of the stack.",
                )
            yield route
        lambda_.CfnPermission(
            self,
            "Invoked",
            action="lambda:InvokeFunction",
            function_name=self.function.function_arn,
            principal="apigateway.amazonaws.com",
            source_arn=Stack.of(self).format_arn(
                service="execute-api",
                resource=self.gateway.ref,
                resource_name="*",
                arn_format=ArnFormat.SLASH_RESOURCE_NAME,
            ),
        )

    def _accept(self, program: Program, site: Site) -> None:
        accept_reading(program.role, site)
        accept(
            self.function,
            "Serverless-LambdaDLQ",
            "Invoked synchronously by the gateway, so the caller sees a failure.",
        )
