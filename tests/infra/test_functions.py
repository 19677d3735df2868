"""Functions: runtime, limits and event sources."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.wheels import host_runtime
from orbweaver.model.settings import GROUPS, PREFIX, Settings
from tests.infra.roles import (
    ALLOWED,
    API,
    EXPORTER,
    HERE,
    KIND,
    NOTIFIER,
    PROTECTION,
    STARTER,
    WORKER,
)
from tests.infra.template import text

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

pytestmark = pytest.mark.infra

# Settings of libraries, not of the product.
ALLOCATORS = {"MALLOC_ARENA_MAX": "2"}


def test_five_functions_without_custom_resource(aws: Synthesized) -> None:
    functions = aws.properties(KIND)
    assert set(functions) == {WORKER, EXPORTER, API, STARTER, PROTECTION}
    kinds = {resource["Type"] for resource in aws.template["Resources"].values()}
    custom = {kind for kind in kinds if kind.startswith(("Custom::", "AWS::CloudFormation::"))}
    assert custom == {"Custom::TableProtection"}


@pytest.mark.parametrize("name", [WORKER, EXPORTER, API, STARTER])
def test_runtime_is_arm64_python_313_or_local(
    aws: Synthesized, local: Synthesized, name: str
) -> None:
    found = {
        f"{function['Architectures'][0]}/{function['Runtime']}"
        for function in (made.properties(KIND)[name] for made in (aws, local))
    }
    assert found == {"arm64/python3.13", host_runtime()}


@pytest.mark.parametrize("name", [WORKER, EXPORTER, API, STARTER, NOTIFIER])
def test_handlers_exist(local: Synthesized, name: str) -> None:
    package, module, function = local.properties(KIND)[name]["Handler"].split(".")
    file = Path(__file__).resolve().parents[2] / "functions" / package / f"{module}.py"
    tree = ast.parse(file.read_text())
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_worker_limits(aws: Synthesized) -> None:
    """Memory and time; loops are allowed because the worker feeds its own queue."""
    worker = aws.properties(KIND)[WORKER]
    assert (worker["MemorySize"], worker["Timeout"]) == (375, 120)
    assert worker["RecursiveLoop"] == "Allow"
    assert "ReservedConcurrentExecutions" not in worker


@pytest.mark.parametrize(("target", "crawl_max", "express_max"), [("aws", 50, 10), ("local", 2, 2)])
def test_both_queues_feed_worker(
    request: pytest.FixtureRequest, target: str, crawl_max: int, express_max: int
) -> None:
    found = request.getfixturevalue(target).properties("AWS::Lambda::EventSourceMapping")
    sources = {name: source for name, source in found.items() if name.startswith("Worker")}
    concurrency = {
        text(source["EventSourceArn"]): source["ScalingConfig"]["MaximumConcurrency"]
        for source in sources.values()
    }
    assert concurrency == {
        "<FrontierCrawl.Arn>": crawl_max,
        "<FrontierExpress.Arn>": express_max,
        "<FrontierSeeds.Arn>": 2,
    }
    for name, source in sources.items():
        assert text(source["FunctionName"]) == "<WorkerProgramFunction>"
        assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        batch = 40 if target == "aws" and "Seeds" not in name else 10
        assert source["BatchSize"] == batch
        assert source["Enabled"] is True


def test_kill_switch_disables_event_sources(synthesize: Synthesize) -> None:
    stopped = synthesize(worker_enabled="no").properties("AWS::Lambda::EventSourceMapping")
    enabled = {name: source.get("Enabled", True) for name, source in stopped.items()}
    assert enabled == {
        "WorkerCrawl": False,
        "WorkerExpress": False,
        "WorkerSeeds": False,
        "ExporterFromOrders": True,
    }


def test_exporter_runs_every_night(aws: Synthesized) -> None:
    schedule = aws.only("AWS::Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "cron(0 2 * * ? *)"
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    target = schedule["Target"]
    assert text(target["Arn"]) == "<ExporterProgramFunction.Arn>"
    assert text(target["DeadLetterConfig"]["Arn"]) == "<ExporterFailures.Arn>"
    assert target["RetryPolicy"]["MaximumRetryAttempts"] == 2
    assert "Input" not in target, "an input of its own would hide the time of the event"


def test_exporter_limits(aws: Synthesized) -> None:
    exporter = aws.properties(KIND)[EXPORTER]
    assert (exporter["MemorySize"], exporter["Timeout"]) == (1024, 300)
    assert exporter["RecursiveLoop"] == "Allow"


def test_exporter_has_room_for_chunk(aws: Synthesized) -> None:
    made = aws.properties(KIND)
    exporter = made[EXPORTER]
    assert exporter["EphemeralStorage"] == {"Size": 2048}
    variables = exporter["Environment"]["Variables"]
    assert {key: variables.get(key) for key in ALLOCATORS} == ALLOCATORS
    others = {name for name, function in made.items() if "EphemeralStorage" in function}
    assert others == {EXPORTER}


def test_orders_reach_exporters_one_at_a_time(synthesize: Synthesize) -> None:
    made = synthesize(exporter_concurrency_max="7")
    sources = made.properties("AWS::Lambda::EventSourceMapping")
    (source,) = (source for name, source in sources.items() if name.startswith("Exporter"))
    assert text(source["EventSourceArn"]) == "<ExporterOrders.Arn>"
    assert text(source["FunctionName"]) == "<ExporterProgramFunction>"
    assert source["BatchSize"] == 1
    assert source["ScalingConfig"] == {"MaximumConcurrency": 7}
    queue = made.properties("AWS::SQS::Queue")["ExporterOrders"]
    assert queue["VisibilityTimeout"] == 360
    assert text(queue["RedrivePolicy"]["deadLetterTargetArn"]) == "<ExporterDeadLetters.Arn>"


@pytest.mark.parametrize(
    ("part", "queue"),
    [
        ("Exporter", "ExporterFailures"),
        ("Starter", "FailedCallsQueue"),
        ("Notifier", "FailedCallsQueue"),
    ],
)
def test_failed_async_events_go_to_failure_queue(local: Synthesized, part: str, queue: str) -> None:
    retries = local.properties("AWS::Lambda::EventInvokeConfig")[f"{part}Retries"]
    assert text(retries["FunctionName"]) == f"<{part}ProgramFunction>"
    assert retries["MaximumRetryAttempts"] == 2
    destination = retries["DestinationConfig"]["OnFailure"]["Destination"]
    assert text(destination) == f"<{queue}.Arn>"


def test_crawl_schedules_have_own_group_and_role(aws: Synthesized) -> None:
    assert aws.only("AWS::Scheduler::ScheduleGroup")["Name"] == "Orbweaver"
    role = aws.properties("AWS::IAM::Role")["StarterFiringRole"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    conditions = {key: text(value) for key, value in trust["Condition"]["StringEquals"].items()}
    group = f"{HERE}:scheduler:<AWS::Region>:<AWS::AccountId>:schedule-group/Orbweaver"
    assert conditions == {"aws:SourceAccount": "<AWS::AccountId>", "aws:SourceArn": group}


def test_crawls_with_webhook_invoke_notifier(aws: Synthesized, local: Synthesized) -> None:
    rule = local.only("AWS::Events::Rule")
    assert rule["EventPattern"] == {
        "source": ["orbweaver"],
        "detail-type": ["CrawlCompleted"],
        "detail": {"stack": ["Orbweaver"], "webhook": [True]},
    }
    (target,) = rule["Targets"]
    assert text(target["Arn"]) == "<NotifierProgramFunction.Arn>"
    assert text(target["DeadLetterConfig"]["Arn"]) == "<FailedCallsQueue.Arn>"
    invoking = [
        permission
        for permission in local.properties("AWS::Lambda::Permission").values()
        if permission["Principal"] == "events.amazonaws.com"
    ]
    assert [text(permission["SourceArn"]) for permission in invoking] == ["<NotifierRule.Arn>"]
    assert not aws.properties("AWS::Events::Rule"), "without a key nothing is posted"


@pytest.mark.parametrize("name", [WORKER, EXPORTER, API, STARTER, NOTIFIER])
def test_environment_has_only_known_valid_settings(local: Synthesized, name: str) -> None:
    variables = local.properties(KIND)[name]["Environment"]["Variables"]
    ours = {key: text(value) for key, value in variables.items() if key not in ALLOCATORS}
    known = {PREFIX + field.upper() for field in GROUPS}
    assert set(ours) <= known
    assert Settings.from_environment(ours).fetching.allow_addresses == "127.0.0.1/32"


def test_rounds_are_long_where_waiting_is_billed(aws: Synthesized, local: Synthesized) -> None:
    """On AWS a round trip costs more than a short wait; locally both are free.

    Local look-ups are free too, so claims are shared only where waits are billed.
    """
    found = {}
    for target, made in (("aws", aws), ("local", local)):
        variables = made.properties(KIND)[WORKER]["Environment"]["Variables"]
        settings = Settings.from_environment(
            {key: text(value) for key, value in variables.items() if key not in ALLOCATORS}
        )
        found[target] = (
            settings.function.waits_billed,
            settings.function.claims_travel,
            settings.worker.round_s,
        )
    assert found == {"aws": ("yes", "", 60.0), "local": ("no", "", 10.0)}


def test_worker_has_names_of_all_resources(aws: Synthesized) -> None:
    variables = aws.properties(KIND)[WORKER]["Environment"]["Variables"]
    named = {text(value) for value in variables.values()}
    parts = {
        resource.partition("/")[0].removesuffix(">").removesuffix(".Arn") + ">"
        for resource in ALLOWED["WorkerProgramRole"]
        if resource.startswith(("<Frontier", "<Storage"))
    }
    assert parts <= named
    assert "ORBWEAVER_ALLOW_ADDRESSES" not in variables


def test_every_log_group_expires(aws: Synthesized) -> None:
    groups = aws.properties("AWS::Logs::LogGroup")
    assert {group["RetentionInDays"] for group in groups.values()} == {14}
    functions = aws.properties(KIND).values()
    used = {text(function["LoggingConfig"]["LogGroup"]) for function in functions}
    assert {f"<{name}>" for name in groups} == used | {"<ApiAccess>"}
