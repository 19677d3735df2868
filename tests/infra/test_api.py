"""The HTTP API's gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orbweaver.core.message import REFERENCE_CHARS_MAX
from tests.infra.template import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra


def test_routes_are_signed(aws: Synthesized) -> None:
    """Every method of every path takes requests that IAM identities signed, and no others."""
    methods = aws.properties("AWS::ApiGateway::Method")
    assert {method["AuthorizationType"] for method in methods.values()} == {"AWS_IAM"}
    assert [method["HttpMethod"] for method in methods.values()] == ["POST"]
    assert aws.only("AWS::ApiGateway::Resource")["PathPart"] == "seeds"


def test_bodies_are_checked(aws: Synthesized) -> None:
    """The gateway refuses bodies with unknown fields, without seeds or with too long ones."""
    (method,) = aws.properties("AWS::ApiGateway::Method").values()
    assert text(method["RequestModels"]["application/json"]) == "<ApiSeeds>"
    assert text(method["RequestValidatorId"]) == "<ApiChecked>"
    assert aws.only("AWS::ApiGateway::RequestValidator")["ValidateRequestBody"] is True
    schema = aws.only("AWS::ApiGateway::Model")["Schema"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["urls"]["minItems"] == 1
    assert schema["properties"]["urls"]["items"]["maxLength"] == REFERENCE_CHARS_MAX


def test_stage(aws: Synthesized) -> None:
    """Requests are throttled and logged, their bodies are not logged."""
    stage = aws.only("AWS::ApiGateway::Stage")
    (setting,) = stage["MethodSettings"]
    assert (setting["HttpMethod"], setting["ResourcePath"]) == ("*", "/*")
    assert (setting["ThrottlingRateLimit"], setting["ThrottlingBurstLimit"]) == (20, 40)
    assert setting["LoggingLevel"] == "ERROR"
    assert setting["DataTraceEnabled"] is False
    assert "<ApiAccess>" in text(stage["AccessLogSetting"]["DestinationArn"])
    assert "$context.identity.caller" in stage["AccessLogSetting"]["Format"]


def test_function_answers_before_the_gateway_gives_up(aws: Synthesized) -> None:
    """The function's time is over before the gateway's 29 s are."""
    assert aws.properties("AWS::Lambda::Function")["ApiProgramFunction"]["Timeout"] < 29


def test_account_role(aws: Synthesized, synthesize: Callable[..., Synthesized]) -> None:
    """The account's log role is set, outlives the stack, and is left alone where asked for."""
    (account,) = aws.resources("AWS::ApiGateway::Account").values()
    assert account["DeletionPolicy"] == "Retain"
    assert aws.resources("AWS::IAM::Role")["ApiLogsRole"]["DeletionPolicy"] == "Retain"
    without = synthesize(api_account_role="no")
    assert not without.resources("AWS::ApiGateway::Account")
    assert "ApiLogsRole" not in without.resources("AWS::IAM::Role")
