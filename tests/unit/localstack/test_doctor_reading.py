"""Checks of `orbweaver doctor` that no emulator passes, on stubbed AWS answers."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.error import HTTPError

import boto3
import pytest
from botocore.stub import Stubber

from infra.config import Config
from infra.retention import kept_d
from localstack import removal
from localstack.doctor import examine
from localstack.doctor.ground import Ground, Result

REGION = "eu-west-1"
Answers = tuple[tuple[str, str, dict[str, Any]], ...]
CONFIG = replace(Config(), removal="destroy")
ROLE = "arn:aws:iam::123456789012:role/worker"
TABLE = "arn:aws:dynamodb:eu-west-1:123456789012:table/t"


@contextlib.contextmanager
def answering(answers: Answers, kind: str, **outputs: str) -> Iterator[Ground]:
    """Yield what checks need (`Ground`); its clients return these answers in turn."""
    found = removal.Resource(logical="R", kind=kind, name="r", kept=False)
    made = Ground(
        environment={"AWS_REGION": REGION},
        region_from="--region",
        stack="Orbweaver",
        outputs=outputs,
        resources=(found,),
        config=CONFIG,
    )
    with contextlib.ExitStack() as open_:
        for service in {one for one, _, _ in answers}:
            client = boto3.client(
                service, region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b"
            )
            stubber = open_.enter_context(Stubber(client))
            for one, operation, answer in answers:
                if one == service:
                    stubber.add_response(operation, answer)
            made._clients[service] = client
        yield made


def retried(times: int) -> Answers:
    """Answer with the number of retries of a function."""
    aside = {"OnFailure": {"Destination": "arn:aws:sqs:eu-west-1:123456789012:failures"}}
    told = {"MaximumRetryAttempts": times, "DestinationConfig": aside}
    return (("lambda", "get_function_event_invoke_config", told),)


def reported(line: str) -> Answers:
    """Answer with a log line."""
    return (("logs", "filter_log_events", {"events": [{"message": line}]}),)


def restorable(status: str) -> Answers:
    """Answer if a table can be restored."""
    told = {"PointInTimeRecoveryStatus": status}
    described = {"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": told}
    answer = {"ContinuousBackupsDescription": described}
    return (("dynamodb", "describe_continuous_backups", answer),)


def forgetting(uploads_d: int) -> Answers:
    """Answer with the lifecycle rules of a bucket."""
    rules: list[dict[str, Any]] = [
        {"ID": f"r{place}", "Status": "Enabled", "Prefix": "p"}
        for place in range(1 + len(kept_d(CONFIG)))
    ]
    rules[0]["AbortIncompleteMultipartUpload"] = {"DaysAfterInitiation": uploads_d}
    return (("s3", "get_bucket_lifecycle_configuration", {"Rules": rules}),)


def alarmed(*actions: str) -> Answers:
    """Answer with an alarm that has these actions."""
    alarm = {"AlarmName": "r", "StateValue": "OK", "AlarmActions": list(actions)}
    return (("cloudwatch", "describe_alarms", {"MetricAlarms": [alarm]}),)


def measured(stack: str) -> Answers:
    """Answer with a metric of a stack."""
    metric = {"Namespace": "Orbweaver", "Dimensions": [{"Name": "stack", "Value": stack}]}
    return (("cloudwatch", "list_metrics", {"Metrics": [metric]}),)


def simulated(decision: str) -> Answers:
    """Answer with simulated policy decisions for each table of a role."""
    results = {"EvalActionName": "dynamodb:UpdateItem", "EvalDecision": decision}
    rounds = [
        (
            ("dynamodb", "describe_table", {"Table": {"TableArn": TABLE}}),
            ("iam", "simulate_principal_policy", {"EvaluationResults": [results] * actions}),
        )
        for actions in (2, 3, 2)
    ]
    flat = tuple(one for pair in rounds for one in pair)
    return (("lambda", "get_function_configuration", {"Role": ROLE}), *flat)


def conditioned(*conditions: str) -> Answers:
    """Answer with a key policy for EventBridge that has a condition."""
    statement = {
        "Principal": {"Service": "events.amazonaws.com"},
        "Condition": {"StringEquals": dict.fromkeys(conditions, "123456789012")},
    }
    return (("kms", "get_key_policy", {"Policy": json.dumps({"Statement": [statement]})}),)


BEGUN = "REPORT RequestId: x Duration: 1.0 ms Billed Duration: 412 ms Init Duration: 398.4 ms"
CHECKS = {check.id: check for check in examine.checks()}
CASES: list[tuple[str, Answers, Answers, Result]] = [
    ("functions.retries", retried(2), retried(0), Result.FAILED),
    ("functions.init", reported(BEGUN), reported("REPORT"), Result.SKIPPED),
    ("tables.restore", restorable("DISABLED"), restorable("ENABLED"), Result.FAILED),
    ("bucket.lifecycle", forgetting(1), forgetting(30), Result.FAILED),
    ("key.policy", conditioned(), conditioned("aws:SourceAccount"), Result.FAILED),
    ("watch.alarms", alarmed("arn:aws:sns:eu-west-1:123456789012:t"), alarmed(), Result.FAILED),
    ("watch.metrics", measured("Orbweaver"), measured("Other"), Result.SKIPPED),
    ("roles.worker", simulated("allowed"), simulated("implicitDeny"), Result.FAILED),
    (
        "api.account",
        (("apigateway", "get_account", {"cloudwatchRoleArn": ROLE}),),
        (("apigateway", "get_account", {}),),
        Result.FAILED,
    ),
]
KINDS = {"key.policy": "AWS::KMS::Key", "watch.alarms": "AWS::CloudWatch::Alarm"}
OUTPUTS = {
    **dict.fromkeys(("UrlsTable", "Bucket", "WorkerFunction", "WorkerLogGroup"), "x"),
    "ExporterFunction": "x",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_check_passes_right_answer_and_fails_wrong_one(
    case: tuple[str, Answers, Answers, Result],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "aws_cdk", None)
    monkeypatch.delitem(sys.modules, "infra.storage", raising=False)
    name, right, wrong, result = case
    tables = ("PagesTable", "CrawlsTable") if name == "roles.worker" else ()
    named = {**OUTPUTS, **dict.fromkeys(tables, "x")}
    for answers, expected in ((right, Result.PASSED), (wrong, result)):
        with answering(answers, KINDS.get(name, "AWS::None"), **named) as made:
            found = CHECKS[name].run(made)
        assert found.result is expected, found
        assert "123456789012" not in str(found)


@pytest.mark.parametrize(("status", "result"), [(403, Result.PASSED), (500, Result.FAILED)])
def test_unsigned_request_must_get_403(
    monkeypatch: pytest.MonkeyPatch, status: int, result: Result
) -> None:
    def refuse(*_words: object, **_options: object) -> None:
        raise HTTPError("https://x", status, "no", {}, io.BytesIO())  # type: ignore[arg-type]

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with answering((), "AWS::None", ApiUrl="https://x/") as made:
        found = CHECKS["api.signed"].run(made)
    assert (found.result, found.seen) == (result, {"status": status})
