"""Read-only checks of the services other than queues, functions and tables."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from localstack.doctor.ground import (
    Check,
    Finding,
    Ground,
    expect,
    failed,
    judged,
    number,
    passed,
    skipped,
    word,
)
from localstack.doctor.queues import DEPLOY

FREE_ALARMS, FREE_DASHBOARDS = 10, 3
FORBIDDEN = 403
NAMESPACE = "Orbweaver"
EVENT = {
    "id": "1",
    "account": "123456789012",
    "source": "orbweaver",
    "detail-type": "crawl finished",
    "time": "2026-01-01T00:00:00Z",
    "region": "us-east-1",
    "resources": [],
    "detail": {"stack": "Orbweaver", "webhook": True},
}
# The actions that the worker's role must allow on these tables.
NEEDED = {
    "PagesTable": ("dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"),
    "UrlsTable": ("dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:PartiQLInsert"),
    "CrawlsTable": ("dynamodb:ConditionCheckItem", "dynamodb:UpdateItem"),
}


def schedule(ground: Ground) -> Finding:
    """Check that the export schedule is enabled and has the configured time."""
    found = ground.of_kind("AWS::Scheduler::Schedule")
    if not found:
        return failed("there is no schedule for exports")
    one = ground.client("scheduler").get_schedule(Name=found[0].name.rpartition("|")[2])
    state = word(one.get("State"), "ENABLED", "DISABLED")
    window = word(one.get("FlexibleTimeWindow", {}).get("Mode"), "OFF", "FLEXIBLE")
    timely = one.get("ScheduleExpression") == ground.config.exporter_cron
    right = (state, window, timely) == ("ENABLED", "OFF", True)
    seen = {"state": state, "window": window, "as_configured": timely}
    return expect(right, "the schedule is another one, or off", **seen)


def group(ground: Ground) -> Finding:
    found = ground.client("scheduler").get_schedule_group(Name=ground.outputs["ScheduleGroup"])
    state = word(found.get("State"), "ACTIVE", "DELETING")
    return expect(state == "ACTIVE", "it is going away", state=state)


def rules(ground: Ground) -> Finding:
    """Check that event rules are enabled and have a queue for failed deliveries."""
    client = ground.client("events")
    found = ground.of_kind("AWS::Events::Rule")
    if not found:
        return skipped("the stack has no rule: neither webhooks nor delivery")
    problems, targets = [], 0
    for one in found:
        name = one.name.rpartition("|")[2].rpartition("/")[2]
        if client.describe_rule(Name=name).get("State") != "ENABLED":
            problems.append("a rule is off")
        for target in client.list_targets_by_rule(Rule=name)["Targets"]:
            targets += 1
            if "DeadLetterConfig" not in target:
                problems.append("a target has no dead-letter queue")
    return judged(problems, rules=len(found), targets=targets)


def pattern(ground: Ground) -> Finding:
    """Check that event patterns match exactly, and distinguish `true` from "true"."""
    client = ground.client("events")

    def matches(detail: dict[str, Any]) -> bool:
        return bool(
            client.test_event_pattern(
                EventPattern=json.dumps({"detail": detail}), Event=json.dumps(EVENT)
            )["Result"]
        )

    same = matches({"stack": ["Orbweaver"], "webhook": [True]})
    other = matches({"stack": ["Orbweaver"], "webhook": ["true"]})
    prefix = matches({"stack": ["Orb"]})
    right = same and not other and not prefix
    return expect(right, "it compares in another way", same=same, text=other, prefix=prefix)


def alarms(ground: Ground) -> Finding:
    """Check that only free alarms exist, unless more are configured."""
    found = ground.of_kind("AWS::CloudWatch::Alarm")
    names = [one.name for one in found]
    client = ground.client("cloudwatch")
    read = [
        one
        for start in range(0, len(names), 50)
        for one in client.describe_alarms(AlarmNames=names[start : start + 50])["MetricAlarms"]
    ]
    acting = sum(bool(one.get("AlarmActions")) for one in read)
    raised = sum(one.get("StateValue") == "ALARM" for one in read)
    problems = [] if len(read) == len(found) else ["some are missing"]
    problems += [] if acting == len(read) else ["some tell nobody"]
    dashboards = len(ground.of_kind("AWS::CloudWatch::Dashboard"))
    seen = {"alarms": len(read), "acting": acting, "raised": raised, "dashboards": dashboards}
    return judged(problems, **seen, free=len(read) <= FREE_ALARMS)


def logs(ground: Ground) -> Finding:
    client, wrong, groups = ground.client("logs"), 0, ground.of_kind("AWS::Logs::LogGroup")
    for one in groups:
        found = client.describe_log_groups(logGroupNamePrefix=one.name)["logGroups"]
        days = [
            group.get("retentionInDays") for group in found if group["logGroupName"] == one.name
        ]
        wrong += days != [ground.config.log_retention_d]
    return judged(
        [f"{wrong} groups are kept for another time"] if wrong else [],
        groups=len(groups),
        days=ground.config.log_retention_d,
    )


def metrics(ground: Ground) -> Finding:
    """Check that metrics exist. They come from log lines (EMF), not from PutMetricData."""
    if ground.config.is_frugal:
        return skipped("a frugal stack sends no metrics")
    found = ground.client("cloudwatch").list_metrics(Namespace=NAMESPACE)["Metrics"]
    ours = [
        one
        for one in found
        if any(each.get("Value") == ground.config.stack_name for each in one.get("Dimensions", ()))
    ]
    if not ours:
        return skipped("no metric has come in the last two weeks: crawl something")
    return passed(metrics=len(ours))


def signed(ground: Ground) -> Finding:
    try:
        with urllib.request.urlopen(f"{ground.outputs['ApiUrl']}crawls", timeout=30) as answer:  # noqa: S310 - the stack's own API
            return failed("an unsigned request was answered", status=int(answer.status))
    except urllib.error.HTTPError as error:
        right = error.code == FORBIDDEN
        return expect(right, "it was refused in another way", status=error.code)


def account_role(ground: Ground) -> Finding:
    found = ground.client("apigateway").get_account()
    there = bool(found.get("cloudwatchRoleArn"))
    return expect(there, "it has none", role=there)


def projected(ground: Ground) -> Finding:
    """Check that the catalogue's tables find days by partition projection."""
    found = ground.client("glue").get_tables(DatabaseName=ground.outputs["Database"])["TableList"]
    on = sum(one.get("Parameters", {}).get("projection.enabled") == "true" for one in found)
    right = bool(found) and on == len(found)
    return expect(right, "some tables have no projection", tables=len(found), projected=on)


def workgroup(ground: Ground) -> Finding:
    """Check that queries have a limit that clients cannot lift."""
    found = ground.client("athena").get_work_group(WorkGroup=ground.outputs["Workgroup"])
    settings = found["WorkGroup"]["Configuration"]
    limit = number(settings.get("BytesScannedCutoffPerQuery", -1))
    enforced = bool(settings.get("EnforceWorkGroupConfiguration"))
    right = enforced and limit == int(ground.config.athena_bytes_max)
    return expect(right, "queries have another limit", bytes_max=limit, enforced=enforced)


def policies(ground: Ground) -> Finding:
    """Check that the worker's role allows the actions of its batches and transactions."""
    function = ground.client("lambda").get_function_configuration(
        FunctionName=ground.outputs["WorkerFunction"]
    )
    dynamodb, iam, denied, asked = ground.client("dynamodb"), ground.client("iam"), [], 0
    for key, actions in NEEDED.items():
        table = dynamodb.describe_table(TableName=ground.outputs[key])["Table"]["TableArn"]
        results = iam.simulate_principal_policy(
            PolicySourceArn=function["Role"], ActionNames=list(actions), ResourceArns=[table]
        )["EvaluationResults"]
        asked += len(actions)
        allowed = {one["EvalActionName"] for one in results if one["EvalDecision"] == "allowed"}
        denied += [f"{action} on {key} is denied" for action in actions if action not in allowed]
    return judged(denied, asked=asked)


CHECKS = (
    Check(
        id="schedule.export",
        title="exports are scheduled",
        run=schedule,
        assumptions=("A56",),
        do=DEPLOY,
    ),
    Check(
        id="schedule.group",
        title="the group of schedules is there",
        run=group,
        do=DEPLOY,
    ),
    Check(
        id="events.rules",
        title="rules are on and put aside what fails",
        run=rules,
        assumptions=("A53",),
        do=DEPLOY,
    ),
    Check(
        id="events.pattern",
        title="patterns of rules compare exactly",
        run=pattern,
        assumptions=("A54",),
        stack=False,
        do="report it: webhooks and deliveries of one stack may be another's",
    ),
    Check(
        id="watch.alarms",
        title="alarms are there and tell somebody",
        run=alarms,
        assumptions=("A67",),
        do=DEPLOY,
        not_on_emulator="its CloudFormation passes over what alarms do",
    ),
    Check(
        id="watch.logs",
        title="logs are kept for as long as configured",
        run=logs,
        do=DEPLOY,
    ),
    Check(
        id="watch.metrics",
        title="lines of logs become metrics",
        run=metrics,
        assumptions=("A65",),
        do="look at the worker's log group for lines with `_aws`",
        not_on_emulator="it makes no metrics of logs",
    ),
    Check(
        id="api.signed",
        title="the API refuses requests that are not signed",
        run=signed,
        assumptions=("A59",),
        do="report it, and remove the API's stage: it may be open to all",
        not_on_emulator="the address that it names for the API is one of AWS's",
    ),
    Check(
        id="api.account",
        title="API Gateway may write logs",
        run=account_role,
        assumptions=("A60",),
        do="deploy with `-c api_account_role=yes`",
    ),
    Check(
        id="catalogue.projected",
        title="days of the catalogue are projected",
        run=projected,
        assumptions=("A69",),
        do=DEPLOY,
    ),
    Check(
        id="catalogue.limit",
        title="queries have a limit",
        run=workgroup,
        assumptions=("A71",),
        do=DEPLOY,
    ),
    Check(
        id="roles.worker",
        title="the worker's role allows what the code asks for",
        run=policies,
        assumptions=("A61",),
        do=DEPLOY,
    ),
)
