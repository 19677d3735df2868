"""The hosted console: one function behind an HTTP API with signed-in users, with `console=yes`.

The application's files are public. Every other route requires a token that the gateway verifies.
The function decides what a token permits (console/users.py). Nothing runs permanently: there is no
web application firewall and no custom domain.

Source: docs.aws.amazon.com/apigateway/latest/developerguide/, pages http-api-jwt-authorizer,
http-api-develop-routes, http-api-throttling; docs.aws.amazon.com/cognito/latest/developerguide/,
pages authorization-endpoint, using-pkce-in-authorization-code,
cognito-user-pools-assign-domain-prefix.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.api import BURST_MAX, RATE_MAX, SETTINGS, accept_reading, api_permissions
from infra.findings import accept
from infra.program import Needs, Program, Site, allow, log_group
from infra.storage import removal_of
from orbweaver.console.users import OPEN_ROUTES, SIGNED_IN_ROUTES, Group

if TYPE_CHECKING:
    from infra.config import Config

HANDLER = "console"
MEMORY_MB = 1024  # starting a container needs only CPU, which Lambda grants in proportion to memory
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
PASSWORD_CHARS_MIN = 12
TOKEN_MINUTES = 60  # after that a user signs in again: the console keeps no refresh token
MEANINGS = {
    Group.LOOK: "view crawls in the console",
    Group.STEER: "view, start, change and end crawls in the console",
}


class HostedConsole(Construct):
    """The gateway, its authorizer, and the function. `url` is the address of the console."""

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
            # The API's permissions, and those for counting messages and reading dead letters. Only
            # IAM identities are allowed to invoke the API's function, so the console has its own
            # function.
            permissions=[
                *api_permissions(site),
                allow(["sqs:GetQueueAttributes"], *counted),
                # Dead letters are read, and then made visible again.
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
            # A stage without a name in URLs, so paths and files are the same as in the local
            # console.
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
            # Browsers cache the files, so a user sends few requests.
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


class SignInPages(Construct):
    """A user pool with two groups, and its sign-in pages. `url` is the address of the console.

    Only administrators create users: there is no sign-up. A user in neither group has no access. If
    stored data outlives the stack (`removal`), users and groups do, too. No cost while idle: no
    advanced security, no text messages.
    """

    def __init__(self, scope: Construct, construct_id: str, config: Config, url: str) -> None:
        super().__init__(scope, construct_id)
        self.pool = self._pool(config)
        for group in Group:
            made = cognito.CfnUserPoolGroup(
                self,
                group.title(),
                user_pool_id=self.pool.ref,
                group_name=group,
                description=MEANINGS[group],
            )
            made.apply_removal_policy(removal_of(config))
        prefix = f"{config.stack_name.lower()}-{Aws.ACCOUNT_ID}"
        domain = cognito.CfnUserPoolDomain(
            self, "Domain", user_pool_id=self.pool.ref, domain=prefix, managed_login_version=1
        )
        self.pages = f"https://{domain.ref}.auth.{Aws.REGION}.amazoncognito.com"
        self.issuer = self.pool.attr_provider_url
        self.client = self._client(url)

    def _pool(self, config: Config) -> cognito.CfnUserPool:
        pool = cognito.CfnUserPool(
            self,
            "Users",
            user_pool_name=f"{config.stack_name}-console",
            user_pool_tier="LITE",
            admin_create_user_config=cognito.CfnUserPool.AdminCreateUserConfigProperty(
                allow_admin_create_user_only=True
            ),
            auto_verified_attributes=["email"],
            account_recovery_setting=cognito.CfnUserPool.AccountRecoverySettingProperty(
                recovery_mechanisms=[
                    cognito.CfnUserPool.RecoveryOptionProperty(name="verified_email", priority=1)
                ]
            ),
            mfa_configuration="OPTIONAL",
            enabled_mfas=["SOFTWARE_TOKEN_MFA"],
            policies=cognito.CfnUserPool.PoliciesProperty(
                password_policy=cognito.CfnUserPool.PasswordPolicyProperty(
                    minimum_length=PASSWORD_CHARS_MIN,
                    require_lowercase=True,
                    require_numbers=True,
                    require_symbols=True,
                    require_uppercase=True,
                )
            ),
            username_configuration=cognito.CfnUserPool.UsernameConfigurationProperty(
                case_sensitive=False
            ),
            # CloudFormation cannot roll back a failed first creation of a protected pool. So the
            # pool is protected from the second deployment on.
            deletion_protection="ACTIVE" if config.kept and config.stack_exists else "INACTIVE",
        )
        pool.apply_removal_policy(removal_of(config))
        accept(
            pool,
            "AwsSolutions-COG2",
            "A second factor is optional for users; the account decides whether to require one.",
        )
        for rule in ("AwsSolutions-COG3", "AwsSolutions-COG8"):
            accept(
                pool, rule, "It is billed per user and month; a pool without it costs nothing idle."
            )
        return pool

    def _client(self, url: str) -> cognito.CfnUserPoolClient:
        return cognito.CfnUserPoolClient(
            self,
            "Application",
            user_pool_id=self.pool.ref,
            client_name="console",
            # An application in a browser cannot keep a secret. So it signs in with a code and PKCE,
            # and cannot get a token by a password.
            generate_secret=False,
            allowed_o_auth_flows=["code"],
            allowed_o_auth_flows_user_pool_client=True,
            allowed_o_auth_scopes=["openid"],
            callback_ur_ls=[url],
            logout_ur_ls=[url],
            supported_identity_providers=["COGNITO"],
            explicit_auth_flows=["ALLOW_REFRESH_TOKEN_AUTH"],
            prevent_user_existence_errors="ENABLED",
            enable_token_revocation=True,
            access_token_validity=TOKEN_MINUTES,
            id_token_validity=TOKEN_MINUTES,
            refresh_token_validity=TOKEN_MINUTES,
            token_validity_units={f"{one}Token": "minutes" for one in ("access", "id", "refresh")},
        )
