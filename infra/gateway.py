"""The API gateway: rate limits, logs, and the form of its own errors (RFC 9457).

Its errors have the same form as the function's, with the gateway's reason if that helps the caller.

Source: docs.aws.amazon.com/apigateway/latest/developerguide/set-up-logging.html,
…/api-gateway-gatewayResponse-definition.html, …/supported-gateway-response-types.html.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam

from infra.findings import accept
from infra.program import log_group
from orbweaver.api.problems import CONTENT_TYPE, GATEWAY, TITLES

if TYPE_CHECKING:
    from constructs import Construct

    from infra.config import Config

STAGE = "v1"
# Requests per second and at once, all callers together. They bound the concurrency that API calls
# take from the workers; a person or program that steers crawls sends far fewer.
RATE_MAX, BURST_MAX = 20, 40
# The gateway's own error text, as a JSON string.
REASON = "$context.error.messageString"
# Texts that replace the gateway's own, which explain too little.
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


def rest_api(scope: Construct, config: Config) -> apigateway.RestApi:
    """Make an API with rate limits, logs and a uniform form of errors."""
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
    rest.node.try_remove_child("Endpoint")  # CDK's output; ours is ApiUrl
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
        # Other APIs of the account use it, and must keep logging when the stack is removed.
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
