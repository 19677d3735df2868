"""The functions: how they are run, and what feeds them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.runtime import host_runtime
from orbweaver.model.settings import PREFIX, Settings
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
    from collections.abc import Callable

    from tests.infra.template import Synthesized

pytestmark = pytest.mark.infra

# Settings of libraries, which are none of ours.
ALLOCATORS = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}


def test_functions(aws: Synthesized) -> None:
    """There are five functions, all ours, and no custom resource that would bring another."""
    functions = aws.properties(KIND)
    assert set(functions) == {WORKER, EXPORTER, API, STARTER, PROTECTION}
    kinds = {resource["Type"] for resource in aws.template["Resources"].values()}
    custom = {kind for kind in kinds if kind.startswith(("Custom::", "AWS::CloudFormation::"))}
    assert custom == {"Custom::TableProtection"}


@pytest.mark.parametrize("name", [WORKER, EXPORTER, API, STARTER])
def test_runtime(aws: Synthesized, local: Synthesized, name: str) -> None:
    """Functions run on arm64 and Python 3.13 on AWS, and on what this machine has here."""
    found = {
        f"{function['Architectures'][0]}/{function['Runtime']}"
        for function in (made.properties(KIND)[name] for made in (aws, local))
    }
    assert found == {"arm64/python3.13", host_runtime()}


@pytest.mark.parametrize("name", [WORKER, EXPORTER, API, STARTER, NOTIFIER])
def test_handler_exists(local: Synthesized, name: str) -> None:
    """The function that Lambda calls is defined where the template says."""
    package, module, function = local.properties(KIND)[name]["Handler"].split(".")
    file = Path(__file__).resolve().parents[2] / "functions" / package / f"{module}.py"
    tree = ast.parse(file.read_text())
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_worker_limits(aws: Synthesized) -> None:
    """The worker has its memory and time, and is not halted for feeding its own queue."""
    worker = aws.properties(KIND)[WORKER]
    assert (worker["MemorySize"], worker["Timeout"]) == (375, 120)
    assert worker["RecursiveLoop"] == "Allow"
    assert "ReservedConcurrentExecutions" not in worker


def test_recursive_loop_may_be_terminated(synthesize: Callable[..., Synthesized]) -> None:
    """A stack can be given the limit that Lambda has by default, to see what it does."""
    worker = synthesize(recursive_loop="Terminate").properties(KIND)[WORKER]
    assert worker["RecursiveLoop"] == "Terminate"


@pytest.mark.parametrize(("target", "crawl_max", "express_max"), [("aws", 50, 10), ("local", 2, 2)])
def test_event_sources(
    request: pytest.FixtureRequest, target: str, crawl_max: int, express_max: int
) -> None:
    """Both queues feed the worker, with bounded concurrency and partial batch responses."""
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


def test_kill_switch(synthesize: Callable[..., Synthesized]) -> None:
    """One context key stops all crawling, and messages wait."""
    stopped = synthesize(worker_enabled="no").properties("AWS::Lambda::EventSourceMapping")
    enabled = {name: source.get("Enabled", True) for name, source in stopped.items()}
    assert enabled == {
        "WorkerCrawl": False,
        "WorkerExpress": False,
        "WorkerSeeds": False,
        "ExporterFromOrders": True,
    }


def test_schedule(aws: Synthesized) -> None:
    """The exporter runs every night, and an event that keeps failing ends in a queue."""
    schedule = aws.only("AWS::Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "cron(0 2 * * ? *)"
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    target = schedule["Target"]
    assert text(target["Arn"]) == "<ExporterProgramFunction.Arn>"
    assert text(target["DeadLetterConfig"]["Arn"]) == "<ExporterFailures.Arn>"
    assert target["RetryPolicy"]["MaximumRetryAttempts"] == 2
    assert "Input" not in target, "an input of its own would hide the time of the event"


def test_exporter_limits(aws: Synthesized) -> None:
    """The exporter has five minutes a unit, and may go on by ordering the rest."""
    exporter = aws.properties(KIND)[EXPORTER]
    assert (exporter["MemorySize"], exporter["Timeout"]) == (1024, 300)
    assert exporter["RecursiveLoop"] == "Allow"


def test_room_of_exporters(synthesize: Callable[..., Synthesized], aws: Synthesized) -> None:
    """The exporter has room for a chunk's files, and allocators that give back what is free."""
    exporter = aws.properties(KIND)[EXPORTER]
    assert exporter["EphemeralStorage"] == {"Size": 2048}
    variables = exporter["Environment"]["Variables"]
    assert {key: variables.get(key) for key in ALLOCATORS} == ALLOCATORS
    made = synthesize(exporter_storage_mb="512").properties(KIND)
    assert made[EXPORTER]["EphemeralStorage"] == {"Size": 512}
    others = {name for name, function in made.items() if "EphemeralStorage" in function}
    assert others == {EXPORTER}


def test_orders_of_exporters(synthesize: Callable[..., Synthesized]) -> None:
    """Orders come one at a time, to so many exporters at most, and back soon after a death."""
    made = synthesize(exporter_concurrency_max="7", exporter_timeout_s="200")
    sources = made.properties("AWS::Lambda::EventSourceMapping")
    (source,) = (source for name, source in sources.items() if name.startswith("Exporter"))
    assert text(source["EventSourceArn"]) == "<ExporterOrders.Arn>"
    assert text(source["FunctionName"]) == "<ExporterProgramFunction>"
    assert source["BatchSize"] == 1
    assert source["ScalingConfig"] == {"MaximumConcurrency": 7}
    queue = made.properties("AWS::SQS::Queue")["ExporterOrders"]
    assert queue["VisibilityTimeout"] == 260
    assert text(queue["RedrivePolicy"]["deadLetterTargetArn"]) == "<ExporterDeadLetters.Arn>"


@pytest.mark.parametrize(
    ("part", "queue"),
    [
        ("Exporter", "ExporterFailures"),
        ("Starter", "FailedCallsQueue"),
        ("Notifier", "FailedCallsQueue"),
    ],
)
def test_what_keeps_failing_is_put_aside(local: Synthesized, part: str, queue: str) -> None:
    """Lambda tries twice more what nobody waits for, and then says where it failed for good."""
    retries = local.properties("AWS::Lambda::EventInvokeConfig")[f"{part}Retries"]
    assert text(retries["FunctionName"]) == f"<{part}ProgramFunction>"
    assert retries["MaximumRetryAttempts"] == 2
    destination = retries["DestinationConfig"]["OnFailure"]["Destination"]
    assert text(destination) == f"<{queue}.Arn>"


def test_schedules_of_crawls(aws: Synthesized) -> None:
    """They have a group of their own, for which alone the role may be assumed."""
    assert aws.only("AWS::Scheduler::ScheduleGroup")["Name"] == "Orbweaver"
    role = aws.properties("AWS::IAM::Role")["StarterFiringRole"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    conditions = {key: text(value) for key, value in trust["Condition"]["StringEquals"].items()}
    group = f"{HERE}:scheduler:<AWS::Region>:<AWS::AccountId>:schedule-group/Orbweaver"
    assert conditions == {"aws:SourceAccount": "<AWS::AccountId>", "aws:SourceArn": group}


def test_crawls_that_name_a_webhook_invoke_the_notifier(
    aws: Synthesized, local: Synthesized
) -> None:
    """The rule lets those through and no others; what cannot be delivered is put aside."""
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
def test_environment(local: Synthesized, name: str) -> None:
    """Every variable is a setting that the functions know, with a value that they take."""
    variables = local.properties(KIND)[name]["Environment"]["Variables"]
    ours = {key: text(value) for key, value in variables.items() if key not in ALLOCATORS}
    known = {PREFIX + field.upper() for field in Settings.__dataclass_fields__}
    assert set(ours) <= known
    assert Settings.from_environment(ours).allow_addresses == "127.0.0.1/32"


def test_rounds_are_long_where_waiting_is_billed(aws: Synthesized, local: Synthesized) -> None:
    """On AWS a trip costs more than a moment's wait; on a local stack neither costs anything.

    Nor do look-ups there, so claims travel where waits are billed.
    """
    found = {}
    for target, made in (("aws", aws), ("local", local)):
        variables = made.properties(KIND)[WORKER]["Environment"]["Variables"]
        settings = Settings.from_environment(
            {key: text(value) for key, value in variables.items() if key not in ALLOCATORS}
        )
        found[target] = (settings.waits_billed, settings.claims_travel, settings.round_s)
    assert found == {"aws": ("yes", "", 60.0), "local": ("no", "", 10.0)}


@pytest.mark.parametrize(("target", "asked"), [("aws", "no"), ("local", "yes")])
def test_claims_travel_as_is_asked_for(
    synthesize: Callable[..., Synthesized], target: str, asked: str
) -> None:
    """On a local stack, too; what is so by itself takes no room in the environment."""
    variables = synthesize(target=target, claims_travel=asked).properties(KIND)[WORKER]
    assert variables["Environment"]["Variables"]["ORBWEAVER_CLAIMS_TRAVEL"] == asked


def test_worker_knows_all_parts(aws: Synthesized) -> None:
    """The worker is told the name of everything that it may use."""
    variables = aws.properties(KIND)[WORKER]["Environment"]["Variables"]
    named = {text(value) for value in variables.values()}
    parts = {
        resource.partition("/")[0].removesuffix(">").removesuffix(".Arn") + ">"
        for resource in ALLOWED["WorkerProgramRole"]
        if resource.startswith(("<Frontier", "<Storage"))
    }
    assert parts <= named
    assert "ORBWEAVER_ALLOW_ADDRESSES" not in variables


def test_logs(aws: Synthesized) -> None:
    """Every function and the gateway have a log group, which forgets."""
    groups = aws.properties("AWS::Logs::LogGroup")
    assert {group["RetentionInDays"] for group in groups.values()} == {14}
    functions = aws.properties(KIND).values()
    used = {text(function["LoggingConfig"]["LogGroup"]) for function in functions}
    assert {f"<{name}>" for name in groups} == used | {"<ApiAccess>"}
