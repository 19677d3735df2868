"""`orbweaver doctor`: results of checks, probes on moto, selection and order of checks."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import boto3
import botocore.session
import jmespath  # type: ignore[import-untyped] # botocore requires it
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError, NoCredentialsError
from botocore.stub import Stubber
from moto import mock_aws

from infra.config import Config
from localstack import cdk, layout, removal
from localstack.doctor import examine, own, reads
from localstack.doctor.ground import Check, Finding, Ground, Result, passed
from localstack.doctor.script import VERBS, Script, parsed
from localstack.errors import LocalStackError

REGION = "eu-west-1"
ENVIRONMENT = {"AWS_REGION": REGION}
CHECKS = {check.id: check for check in examine.checks()}


def client(service: str) -> Any:
    made = boto3.client(
        service, region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b"
    )
    made.meta.events.register("provide-client-params.sqs.ReceiveMessage", _at_once)
    return made


def _at_once(params: dict[str, Any], **_: object) -> dict[str, Any]:
    return {**params, "WaitTimeSeconds": 0}


class Local(Ground):
    """A ground whose clients have keys. Inside `mock_aws` they reach moto."""

    @contextlib.contextmanager
    def lend(self, service: str) -> Iterator[Any]:
        yield client(service)


@cache
def operations(service: str) -> dict[str, Any]:
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


def ground(**outputs: str) -> Ground:
    """Return what checks need (`Ground`) for a stack with these outputs."""
    return Local(
        environment=ENVIRONMENT,
        region_from="--region",
        stack="Orbweaver",
        outputs=outputs,
        config=replace(Config(), worker_enabled="no"),
        pause=lambda _seconds: None,
    )


def find(name: str, made: Ground) -> Finding:
    """Run the check with this id."""
    return CHECKS[name].run(made)


@contextlib.contextmanager
def answering(service: str, *answers: tuple[str, dict[str, Any]]) -> Iterator[Ground]:
    """Yield what checks need (`Ground`), with queued answers of one service."""
    stubbed = client(service)
    with Stubber(stubbed) as stubber:
        for operation, answer in answers:
            stubber.add_response(operation, answer)
        made = ground()
        made._clients[service] = stubbed
        yield made
        stubber.assert_no_pending_responses()


# --- the table --------------------------------------------------------------------------------


def test_table_steps_name_known_operations_parameters_and_expressions() -> None:
    """An emulator does not run all steps, so their names are compared with botocore's models."""
    for step in (step for check in CHECKS.values() for step in check.steps):
        verb, _, rest = step.partition(" ")
        if verb == "run":
            assert rest in examine.FUNCTIONS
        if verb in ("run", "empty", "hide", "pause", "skip"):
            continue
        words = rest if verb in VERBS else step
        words = words.partition(": ")[2] if verb in ("each", "until") else words
        line, _, see = re.sub(r"`\$\w+`", "`0`", words).partition(" -> ")
        for call in line.split("; "):
            operation, _, text = call.strip().partition(" ")
            service, _, method = operation.partition(".")
            names = {name.removesuffix("|json") for name in parsed(text)}
            assert names <= operations(service)[method].input_shape.members.keys(), call
        jmespath.compile(see if verb == "each" else f"{{{see or 'a: a'}}}")


# --- checks that read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quota", "given", "total", "result"),
    [
        (1_000, (), 80, Result.PASSED),
        (10, (), 7, Result.PASSED),
        (8, (), 6, Result.FAILED),
        (60, ("worker_concurrency_max",), 54, Result.PASSED),
        (50, ("worker_concurrency_max",), 54, Result.FAILED),
    ],
)
def test_quota_below_limits_fails(
    quota: int, given: tuple[str, ...], total: int, result: Result
) -> None:
    limits = {"AccountLimit": {"UnreservedConcurrentExecutions": quota}}
    with answering("lambda", ("get_account_settings", limits)) as made:
        made.given = dict.fromkeys(given, "")
        found = find("account.concurrency", made)
    assert found.result is result
    assert found.seen == {"quota": quota, "limits": total}


def test_account_id_is_masked() -> None:
    with answering("sts", ("get_caller_identity", {"Account": "123456789012"})) as made:
        assert find("account.credentials", made).seen == {"account": "********9012"}


def test_account_without_bootstrap_fails() -> None:
    stubbed = client("ssm")
    made = ground()
    made._clients["ssm"] = stubbed
    with Stubber(stubbed) as stubber:
        stubber.add_client_error("get_parameter", "ParameterNotFound")
        found = find("account.bootstrap", made)
    assert (found.result, found.seen["code"]) == (Result.FAILED, "ParameterNotFound")


@pytest.mark.parametrize(("hidden_s", "result"), [(721, Result.PASSED), (719, Result.FAILED)])
def test_short_visibility_timeout_fails(hidden_s: int, result: Result) -> None:
    """The visibility timeout must be six timeouts of the worker."""
    with mock_aws():
        url = client("sqs").create_queue(
            QueueName="q", Attributes={"VisibilityTimeout": str(hidden_s)}
        )["QueueUrl"]
        found = find("queues.visibility", ground(PackQueueUrl=url))
    assert found.result is result
    assert found.seen == {"PackQueueUrl": hidden_s}


def test_variables_are_measured_without_names_and_values() -> None:
    made = ground()
    made.resources = (
        removal.Resource(logical="F", kind="AWS::Lambda::Function", name="f", kept=False),
    )
    stubbed = client("lambda")
    made._clients["lambda"] = stubbed
    values = {"TOKEN": "x" * 5000}
    answer = {"Handler": "handlers.worker.handler", "Environment": {"Variables": values}}
    with Stubber(stubbed) as stubber:
        stubber.add_response("get_function_configuration", answer)
        found = find("functions.variables", made)
    assert found.result is Result.FAILED
    assert found.seen == {"worker": 5005}


# --- probes -----------------------------------------------------------------------------------


@pytest.fixture
def stack() -> Iterator[Ground]:
    """Yield moto tables, buckets and queues, with the stack outputs that probes read."""
    with mock_aws():
        sqs, dynamodb = client("sqs"), client("dynamodb")
        dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
        line = sqs.create_queue(QueueName="line")["QueueUrl"]
        for name, keys in (("urls", ("k",)), ("pages", ("day", "k"))):
            dynamodb.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[
                    {"AttributeName": key, "KeyType": kind}
                    for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
                ],
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            )
        place = {"LocationConstraint": REGION}
        client("s3").create_bucket(Bucket="bodies", CreateBucketConfiguration=place)
        yield ground(
            UrlsTable="urls",
            PagesTable="pages",
            Bucket="bodies",
            ExpressQueueUrl=line,
            DeadLetterQueueUrl=dead,
        )


# Probes that moto (5.2) supports. It lacks request tokens, size limits in bytes and batch limits.
@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        *("sqs.entries", "sqs.visibility", "sqs.polls"),
        *("dynamodb.conditions", "dynamodb.returned", "dynamodb.reasons", "dynamodb.expired"),
        *("dynamodb.consistent", "dynamodb.order"),
        *("s3.whole", "s3.range", "s3.absent", "s3.full"),
    ],
)
def test_probe_passes_on_moto(stack: Ground, name: str) -> None:
    found = find(name, stack)
    assert (found.result, found.why) == (Result.PASSED, "")
    assert found.seen


@pytest.mark.thorough
def test_probe_fails_without_expected_refusal(stack: Ground) -> None:
    """The queue has no redrive policy, so no dead letter arrives."""
    found = find("sqs.dead", stack)
    assert found.result is Result.FAILED
    assert "attributes is False, expected =true" in found.why


def test_script_failed_step_removes_created_queue(stack: Ground) -> None:
    sqs = stack.client("sqs")
    steps = (
        "sqs.create_queue QueueName=temporary -> _url: QueueUrl",
        "undo sqs.delete_queue QueueUrl=$_url",
        "sqs.send_message QueueUrl=$_url MessageBody=x -> _absent: Absent",
        "sqs.delete_message QueueUrl=$_url ReceiptHandle=$_absent",
    )
    with pytest.raises(LookupError, match="_absent"):
        Script(stack, {}, {}).run(steps)
    assert not sqs.list_queues(QueueNamePrefix="temporary").get("QueueUrls")


# --- the run ----------------------------------------------------------------------------------


def check(run: Callable[[Ground], Finding], **options: Any) -> Check:
    return Check(id="a.check", title="a title", run=run, do="mend it", **options)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    """Run only the checks of the test, in an account without a stack."""
    found: list[Check] = []
    monkeypatch.setattr(examine, "checks", lambda: tuple(found))
    monkeypatch.setattr(examine, "_look", lambda _ground: None)
    return found


def run(**options: Any) -> examine.Examined:
    made = ground()
    for name, value in options.items():
        setattr(made, name, value)
    return examine.examine(made, show=lambda _check, _finding: None)


def raising(error: BaseException) -> Callable[[Ground], Finding]:
    def met(_ground: Ground) -> Finding:
        raise error

    return met


SECRET = "arn:aws:iam::123456789012:role/secret"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            ClientError({"Error": {"Code": "AccessDenied", "Message": SECRET}}, "GetThing"),
            "GetThing was refused",
        ),
        (NoCredentialsError(), "AWS could not be asked: NoCredentialsError"),
        (LocalStackError(SECRET), "AWS could not be asked"),
        (KeyError(SECRET), "the answer has another form: KeyError"),
        (ConnectionResetError(SECRET), "it could not be reached: ConnectionResetError"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_error_of_check_is_reported_without_text(
    listed: list[Check], error: BaseException, why: str
) -> None:
    listed += [check(raising(error), stack=False), check(lambda _: passed(n=1), stack=False)]
    found = run()
    first, second = found.report["checks"]
    assert (first["result"], first["why"]) == ("failed", why)
    assert second["result"] == "passed"
    assert SECRET not in str(found.report)
    assert found.advice == (("a.check", "mend it"),)


def test_skipped_checks_have_reason(listed: list[Check], monkeypatch: pytest.MonkeyPatch) -> None:
    listed += [
        check(lambda _: passed(), full=True),
        check(lambda _: passed()),
        check(lambda _: passed(), stack=False, not_on_emulator="it is none"),
    ]
    assert [one.get("why") for one in run().report["checks"]] == [
        "it needs --full",
        "there is no stack",
        None,
    ]
    local = run(environment={layout.ENDPOINT: "http://127.0.0.1:1"})
    assert local.report["checks"][2]["why"] == "not on the emulator: it is none"


def test_failed_credentials_skip_all_other_checks(listed: list[Check]) -> None:
    asked: list[Ground] = []

    def noting(made: Ground) -> Finding:
        asked.append(made)
        return passed()

    listed += [
        replace(check(raising(NoCredentialsError()), stack=False), id=examine.FIRST),
        check(noting, stack=False),
    ]
    found = run()
    assert not found.reached
    assert [one["result"] for one in found.report["checks"]] == ["failed", "skipped"]
    assert not asked


def test_interrupted_run_removes_its_stack(
    listed: list[Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[int] = []
    monkeypatch.setattr(own, "remove_stack", lambda _: removed.append(1))
    listed.append(check(raising(KeyboardInterrupt()), stack=False, full=True))
    with pytest.raises(KeyboardInterrupt):
        run(full=True)
    assert removed == [1]


def test_resources_left_after_removal_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    made, said = ground(), list[str]()
    made.deployed, made.say = True, said.append
    left = [("queue", "OrbweaverDoctor-x"), ("queue", "OrbweaverDoctor-y")]
    monkeypatch.setattr(removal, "resources_of", lambda *_: [])
    monkeypatch.setattr(cdk, "destroy", lambda *_, **__: None)
    monkeypatch.setattr(own, "leftovers", lambda *_: left)
    found = own.remove_stack(made)
    assert (found.result, found.seen) == (Result.FAILED, {"left": 2, "queue": 2})
    assert "left: queue OrbweaverDoctor-x" in said
    assert own.remove_stack(made).seen == {"left": 0}


def test_doctor_stack_is_removed_whole_with_workers_off() -> None:
    config = Config.from_context(own.context(ENVIRONMENT, {"stack_name": "Mine"}))
    assert (config.stack_name, config.removal, config.worker_enabled) == (
        "OrbweaverDoctor",
        "destroy",
        "no",
    )


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("arn:aws:sqs:eu-west-1:123456789012:q", "arn:…"),
        ("of 123456789012 here", "of ********9012 here"),
        ("key AKIAIOSFODNN7EXAMPLE", "key …"),
        ("mail me@example.org", "mail …@…"),
        ("see https://hooks.example.org/T0/secret now", "see https://… now"),
        ("12345 pages in 1234567890123 ms", "12345 pages in 1234567890123 ms"),
    ],
)
def test_masking_hides_ids_arns_keys_and_addresses(text: str, masked: str) -> None:
    assert reads.everything({"a": [text]}) == {"a": [masked]}
