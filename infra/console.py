"""The hosted console: one function behind an HTTP API, whose users sign in.

Rules
- It is there with `console=yes` alone.
- The stage is `$default`, so that paths are those of the console on one's own machine, and its
  files stay as they are.
- The files of the application are open; every other route takes a token that the gateway verifies
  (infra/sign_in.py). What a token allows is the function's to decide (console/users.py).
- The function may do what the API's may, count messages, and look at dead letters. It is not the
  API's own function, which IAM alone opens.
- Each route has a bucket of its own, so strangers at the open routes do not slow signed-in users.
  Browsers keep the files for a while, so a visit needs few requests.
- Nothing is always on: no web application firewall, no custom domain.

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

from infra.api import SETTINGS, accept_reading, answering
from infra.findings import accept
from infra.program import Needs, Program, Site, allow, log_group
from infra.sign_in import SignInPages
from orbweaver.console.users import OPEN_ROUTES, SIGNED_IN_ROUTES

HANDLER = "console"
MEMORY_MB = 1024  # a cold start is all CPU, and CPU comes with it
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
    """The gateway, who may pass, and the function behind it; `url` is where it is."""

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
            permissions=[
                *answering(site),
                allow(["sqs:GetQueueAttributes"], *counted),
                # Dead letters are looked at, and put back.
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
            # A bucket needs a route that exists.
            stage.add_dependency(route)

    def _stage(self, site: Site) -> apigateway.CfnStage:
        config = site.config
        name = f"/aws/apigateway/{config.stack_name}-console"
        access = log_group(self, "Access", name, config)
        return apigateway.CfnStage(
            self,
            "Stage",
            api_id=self.gateway.ref,
            stage_name="$default",
            auto_deploy=True,
            access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
                destination_arn=access.log_group_arn, format=json.dumps(LOGGED)
            ),
            default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=config.api_rate_max,
                throttling_burst_limit=config.api_burst_max,
            ),
            route_settings={
                key: {
                    "ThrottlingRateLimit": config.api_rate_max,
                    "ThrottlingBurstLimit": config.api_burst_max,
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
                    "The files of the application, which are the same everywhere: nothing of the"
                    " stack is in them but where to sign in.",
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
            "Invoked by the gateway, which waits for the answer: the caller sees a failure.",
        )
