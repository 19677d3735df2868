"""Gateway of the HTTP API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orbweaver.api.problems import GATEWAY, Problem
from orbweaver.api.routes import OPERATIONS
from orbweaver.control.json_reader import read
from tests.infra.template import text

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra


def test_routes_are_signed(aws: Synthesized) -> None:
    methods = aws.properties("AWS::ApiGateway::Method")
    parts = {
        f"<{name}>": (text(resource["ParentId"]), resource["PathPart"])
        for name, resource in aws.properties("AWS::ApiGateway::Resource").items()
    }

    def path_of(resource: str) -> str:
        if resource not in parts:
            return ""
        parent, part = parts[resource]
        return f"{path_of(parent)}/{part}"

    found = [
        (method["HttpMethod"], path_of(text(method["ResourceId"]))) for method in methods.values()
    ]
    assert sorted(found) == sorted((one.method, one.path) for one in OPERATIONS)
    assert {method["AuthorizationType"] for method in methods.values()} == {"AWS_IAM"}
    assert {method["Integration"]["Type"] for method in methods.values()} == {"AWS_PROXY"}


def test_gateway_has_one_permission_to_invoke(aws: Synthesized) -> None:
    permissions = aws.properties("AWS::Lambda::Permission").values()
    (mine,) = [one for one in permissions if one["Principal"] == "apigateway.amazonaws.com"]
    assert "<ApiRest" in text(mine["SourceArn"])


def test_gateway_validates_requests(aws: Synthesized) -> None:
    validator = aws.only("AWS::ApiGateway::RequestValidator")
    assert validator["ValidateRequestBody"] is validator["ValidateRequestParameters"] is True
    assert aws.only("AWS::ApiGateway::Model")["Schema"]["type"] == "object"
    methods = aws.properties("AWS::ApiGateway::Method").values()
    assert {text(method["RequestValidatorId"]) for method in methods} == {"<ApiChecked>"}
    modelled = [method for method in methods if method.get("RequestModels")]
    assert len(modelled) == sum("body" in one.parameters and one.body_needed for one in OPERATIONS)
    needed = [method.get("RequestParameters") for method in methods]
    asked = sorted(name for one in needed for name in one or ())
    assert asked == ["method.request.querystring.host", "method.request.querystring.url"]


def test_gateway_refusals_are_problems(aws: Synthesized) -> None:
    responses = {
        one["ResponseType"]: one
        for one in aws.properties("AWS::ApiGateway::GatewayResponse").values()
    }
    assert set(responses) == {*GATEWAY, "DEFAULT_4XX", "DEFAULT_5XX"}
    for kind, response in responses.items():
        headers = response["ResponseParameters"]
        assert headers["gatewayresponse.header.Content-Type"] == "'application/problem+json'"
        template = response["ResponseTemplates"]["application/json"]
        body = json.loads(template.replace("$context.error.messageString", '"said"'))
        assert read(Problem, body).status == GATEWAY.get(kind)
        assert response.get("StatusCode") == (str(GATEWAY[kind]) if kind in GATEWAY else None)
    assert "gatewayresponse.header.Retry-After" in responses["THROTTLED"]["ResponseParameters"]


def test_stage_throttles_and_logs_without_bodies(aws: Synthesized) -> None:
    stage = aws.only("AWS::ApiGateway::Stage")
    (setting,) = stage["MethodSettings"]
    assert (setting["HttpMethod"], setting["ResourcePath"]) == ("*", "/*")
    assert (setting["ThrottlingRateLimit"], setting["ThrottlingBurstLimit"]) == (20, 40)
    assert setting["LoggingLevel"] == "ERROR"
    assert setting["DataTraceEnabled"] is False
    assert "<ApiAccess>" in text(stage["AccessLogSetting"]["DestinationArn"])
    assert "$context.identity.caller" in stage["AccessLogSetting"]["Format"]


def test_function_answers_before_gateway_timeout(aws: Synthesized) -> None:
    """The gateway's timeout is 29 s."""
    assert aws.properties("AWS::Lambda::Function")["ApiProgramFunction"]["Timeout"] < 29


def test_account_log_role_is_kept_or_omitted(aws: Synthesized, synthesize: Synthesize) -> None:
    (account,) = aws.resources("AWS::ApiGateway::Account").values()
    assert account["DeletionPolicy"] == "Retain"
    assert aws.resources("AWS::IAM::Role")["ApiLogsRole"]["DeletionPolicy"] == "Retain"
    without = synthesize(api_account_role="no")
    assert not without.resources("AWS::ApiGateway::Account")
    assert "ApiLogsRole" not in without.resources("AWS::IAM::Role")
