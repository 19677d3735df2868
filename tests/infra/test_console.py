"""Hosted console: access to its gateway, sign-in, and permissions of its function."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.config import RESERVED, Config
from infra.keys import ConfigError
from orbweaver.console.files import static_files
from orbweaver.console.users import Group
from tests.infra.roles import ALLOWED, HOSTING
from tests.infra.template import BILLED_IDLE, text

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

FUNCTION = "ConsoleProgramFunction"
GATEWAY = "AWS::ApiGatewayV2::"


@pytest.fixture(scope="module")
def hosting(synthesize: Synthesize) -> Synthesized:
    return synthesize(console="yes")


def without_order(stack: Synthesized, *names: str) -> dict[str, Any]:
    """Return resources by name, without the last one, which depends on all others."""
    resources = {name: stack.template["Resources"][name] for name in names} or dict(
        stack.template["Resources"]
    )
    for name, one in resources.items():
        if one["Type"] == "Custom::TableProtection":
            resources[name] = {key: part for key, part in one.items() if key != "DependsOn"}
    return resources


def test_console_is_absent_by_default(aws: Synthesized, hosting: Synthesized) -> None:
    kinds = {resource["Type"] for resource in aws.template["Resources"].values()}
    assert not {kind for kind in kinds if kind.startswith((GATEWAY, "AWS::Cognito::"))}
    added = hosting.template["Resources"].keys() - aws.template["Resources"].keys()
    assert all(name.startswith("Console") for name in added)
    assert without_order(hosting, *aws.template["Resources"]) == without_order(aws)
    outputs = hosting.template["Outputs"]
    assert outputs.keys() - aws.template["Outputs"].keys() == {"ConsoleUrl", "ConsoleUserPool"}
    assert text(outputs["ConsoleUrl"]["Value"]) == "<ConsoleGateway.ApiEndpoint>/"


def test_idle_console_is_free(aws: Synthesized, hosting: Synthesized) -> None:
    added = hosting.template["Resources"].keys() - aws.template["Resources"].keys()
    kinds = {hosting.template["Resources"][name]["Type"] for name in added}
    assert not {kind for kind in kinds if kind.startswith(BILLED_IDLE)}
    pool = hosting.only("AWS::Cognito::UserPool")
    assert pool["UserPoolTier"] == "LITE"
    assert not {"UserPoolAddOns", "SmsConfiguration"} & pool.keys()


def test_routes_require_token_except_files(hosting: Synthesized) -> None:
    (verified,) = hosting.properties(f"{GATEWAY}Authorizer").items()
    name, authorizer = verified
    assert authorizer["AuthorizerType"] == "JWT"
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    assert text(authorizer["JwtConfiguration"]["Issuer"]) == "<ConsoleSignInUsers.ProviderURL>"
    (audience,) = authorizer["JwtConfiguration"]["Audience"]
    assert text(audience) == "<ConsoleSignInApplication>"
    routes = hosting.properties(f"{GATEWAY}Route").values()
    kinds = {route["RouteKey"]: route["AuthorizationType"] for route in routes}
    open_ones = {key for key, kind in kinds.items() if kind == "NONE"}
    assert open_ones == {"GET /", "GET /{file}", "GET /vendor/{file}"}
    assert {kinds[key] for key in kinds.keys() - open_ones} == {"JWT"}
    assert "$default" not in kinds
    for route in routes:
        if route["AuthorizationType"] == "JWT":
            assert text(route["AuthorizerId"]) == f"<{name}>"
            assert route["RouteKey"].partition(" ")[2] in ("/api/{proxy+}", "/console/{proxy+}")
    # These routes reach every file. Paths that require a token contain no file.
    assert all(path.count("/") == 1 or path.startswith("/vendor/") for path in static_files())


def test_console_paths_equal_local_ones(hosting: Synthesized) -> None:
    stage = hosting.only(f"{GATEWAY}Stage")
    assert stage["StageName"] == "$default"
    limits = stage["DefaultRouteSettings"]
    assert (limits["ThrottlingRateLimit"], limits["ThrottlingBurstLimit"]) == (20, 40)
    buckets = stage["RouteSettings"]
    routes = hosting.properties(f"{GATEWAY}Route").values()
    assert buckets.keys() == {route["RouteKey"] for route in routes}
    for bucket in buckets.values():
        assert bucket == {"ThrottlingRateLimit": 20, "ThrottlingBurstLimit": 40}
    assert "<ConsoleAccess" in text(stage["AccessLogSettings"]["DestinationArn"])
    logged = json.loads(stage["AccessLogSettings"]["Format"])
    assert not {name for name in logged.values() if "header" in name.lower() or "body" in name}
    integration = hosting.only(f"{GATEWAY}Integration")
    assert integration["PayloadFormatVersion"] == "2.0"
    assert "CorsConfiguration" not in hosting.only(f"{GATEWAY}Api")


def test_only_gateway_invokes_console_function(hosting: Synthesized) -> None:
    permission = hosting.properties("AWS::Lambda::Permission")["ConsoleInvoked"]
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert text(permission["SourceArn"]).endswith(":<ConsoleGateway>/*")


def test_only_admins_create_users_and_browser_keeps_no_secret(hosting: Synthesized) -> None:
    pool = hosting.only("AWS::Cognito::UserPool")
    assert pool["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is True
    assert pool["Policies"]["PasswordPolicy"]["MinimumLength"] == 12
    client = hosting.only("AWS::Cognito::UserPoolClient")
    assert client["GenerateSecret"] is False
    assert client["AllowedOAuthFlows"] == ["code"]
    assert client["AllowedOAuthScopes"] == ["openid"]
    assert client["ExplicitAuthFlows"] == ["ALLOW_REFRESH_TOKEN_AUTH"]
    assert client["AccessTokenValidity"] == 60
    for urls in ("CallbackURLs", "LogoutURLs"):
        assert [text(url) for url in client[urls]] == ["<ConsoleGateway.ApiEndpoint>/"]
    groups = hosting.properties("AWS::Cognito::UserPoolGroup").values()
    assert {group["GroupName"] for group in groups} == set(Group)
    assert not any("RoleArn" in group for group in groups)


def test_user_pool_is_kept_and_protected_once_the_stack_exists(
    hosting: Synthesized, synthesize: Synthesize
) -> None:
    """CloudFormation must be able to undo a failed first create, so no pool is protected then."""
    for made, policy, protected in (
        (hosting, "RetainExceptOnCreate", "INACTIVE"),
        (synthesize(stack_exists=True, console="yes"), "RetainExceptOnCreate", "ACTIVE"),
        (synthesize(stack_exists=True, console="yes", removal="destroy"), "Delete", "INACTIVE"),
    ):
        (pool,) = made.resources("AWS::Cognito::UserPool").values()
        groups = made.resources("AWS::Cognito::UserPoolGroup").values()
        assert {one["DeletionPolicy"] for one in (pool, *groups)} == {policy}
        assert pool["Properties"]["DeletionProtection"] == protected


def test_console_role_equals_api_plus_counts_and_letters(hosting: Synthesized) -> None:
    assert hosting.allowed("ConsoleProgramRole") == HOSTING
    for role, allowed in ALLOWED.items():
        assert hosting.allowed(role) == allowed


def test_console_function_has_token_settings(hosting: Synthesized) -> None:
    function = hosting.properties("AWS::Lambda::Function")[FUNCTION]
    assert function["Timeout"] < 30
    variables = function["Environment"]["Variables"]
    assert text(variables["ORBWEAVER_CONSOLE_ISSUER"]) == "<ConsoleSignInUsers.ProviderURL>"
    assert text(variables["ORBWEAVER_CONSOLE_CLIENT"]) == "<ConsoleSignInApplication>"
    pages = text(variables["ORBWEAVER_CONSOLE_PAGES"])
    assert pages == "https://<ConsoleSignInDomain>.auth.<AWS::Region>.amazoncognito.com"


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"console": "Yes"}, "no or yes"),
        ({"console": "yes", "target": "local"}, "`orbweaver console`"),
        *(({"console": "yes", "stack_name": f"My{word.title()}"}, word) for word in RESERVED),
    ],
)
def test_invalid_console_setting_is_refused(context: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Config.from_context(context)


def test_frugal_stack_counts_one_queue_once(synthesize: Synthesize) -> None:
    allowed = synthesize(console="yes", frugal="yes").allowed("ConsoleProgramRole")
    assert {
        resource for resource, actions in allowed.items() if "sqs:GetQueueAttributes" in actions
    }
