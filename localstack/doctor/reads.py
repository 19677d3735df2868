"""Steps of read-only checks that checks.txt cannot express, derived settings, and masks of reports.

Account ids, ARNs, keys and addresses never appear in a report. Checks return no text from AWS. As a
second safeguard, this module masks every text of a report, also names that the user has given.
"""

from __future__ import annotations

import json
import platform
import re
import urllib.error
import urllib.request
from typing import Any

import boto3

from infra.config import Config
from localstack import deployed, deployment, layout
from localstack.doctor.ground import Finding, Seen, failed, judged, safe, skipped
from localstack.doctor.script import Script
from localstack.removal import BUCKET, TABLE

REGION = re.compile(r"[a-z]{2}(-[a-z]{2,12}){1,3}-\d")
SERVICES = (
    *("apigateway", "athena", "cloudwatch", "dynamodb", "events", "glue", "lambda", "logs"),
    *("s3", "scheduler", "secretsmanager", "sns", "sqs", "ssm"),
)
LIMITS = {
    "CrawlEventSource": "worker_concurrency_max",
    "ExpressEventSource": "express_concurrency_max",
    "RenderEventSource": "renderer_concurrency_max",
}
AT_ONCE, WINDOW_S, BATCH_FREE = range(2, 1_001), range(301), 10
MEMORY_MB = range(128, 10_241)
ALARMS_FREE = 10
REPORT = re.compile(r"Billed Duration: (\d+) ms.*Init Duration: ([\d.]+) ms", re.DOTALL)
_PATTERNS = (
    (re.compile(r"arn:[\w-]*:[^\s\"',]*"), "arn:…"),
    (re.compile(r"\b(?:A[KS]IA|AIDA|AROA)[A-Z0-9]{12,}\b"), "…"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "…@…"),
    (re.compile(r"\bhttps?://[^\s\"',]+"), "https://…"),
)
_ACCOUNT = re.compile(r"(?<!\d)\d{8}(\d{4})(?!\d)")


def restorable(config: Config) -> bool:
    return config.kept and not config.is_frugal


def lifecycle_rules(config: Config) -> int:
    from infra.retention import kept_d

    return 1 + len(kept_d(config))  # plus one rule for incomplete uploads


def bootstrap_qualifier(config: Config) -> str:
    return config.qualifier or "hnb659fds"  # CDK's default


def versions(_script: Script) -> Seen:
    file = layout.CDK.parent.parent / "package.json"
    cdk = json.loads(file.read_text())["version"] if file.is_file() else "(missing)"
    return {"python": platform.python_version(), "boto3": boto3.__version__, "cdk": cdk}


def credentials(script: Script) -> Seen:
    found = script.ground.call("sts.get_caller_identity")
    return {"account": account(str(found["Account"]))}


def region(script: Script) -> Seen:
    named = script.ground.environment.get("AWS_REGION", "")
    shown = named if REGION.fullmatch(named) else "(not a region's name)"
    session = boto3.Session()
    partition = session.get_partition_for_region(named) if shown == named else "aws"
    missing = [
        service
        for service in SERVICES
        if named not in session.get_available_regions(service, partition_name=partition)
    ]
    return {"region": shown, "named_by": script.ground.region_from, "missing": missing}


def quota(script: Script) -> Finding:
    ground = script.ground
    limits = ground.call("lambda.get_account_settings")["AccountLimit"]
    free = int(limits["UnreservedConcurrentExecutions"])
    keys = deployment.default_limits(renders=ground.config.renders)
    wanted = {key: int(getattr(ground.config, key)) for key in keys}
    given = {key: str(value) for key, value in wanted.items() if key in ground.given}
    # Each deployment chooses the limits that the user has not given.
    chosen, _ = deployment.choose(free, wanted, given)
    total = sum((wanted | {key: int(value) for key, value in chosen.items()}).values())
    why = f"the stack's limits add up to {total:,}, and Lambda's quota is {free:,}"
    fits = total + deployment.ROOM_MIN <= free
    return judged([] if fits else [why], quota=free, limits=total)


def state(script: Script) -> Seen | Finding:
    found = deployed.describe(script.ground.stack, script.ground.environment)
    if found is None:
        return failed("the stack does not exist")
    counts = {"resources": len(script.ground.resources), "outputs": len(found.outputs)}
    return {"state": safe(found.status), "complete": found.is_settled, **counts}


def retention(script: Script) -> Seen:
    ground = script.ground
    body = ground.call("cloudformation.get_template", StackName=ground.stack)["TemplateBody"]
    text = body if isinstance(body, str) else json.dumps(body)
    resources = json.loads(text)["Resources"].values()
    stored = [one for one in resources if one["Type"] in (TABLE, BUCKET)]
    policies = sorted({safe(one.get("DeletionPolicy") or "Delete") for one in stored})
    wanted = ["RetainExceptOnCreate" if ground.config.kept else "Delete"]
    seen = {"policies": policies, "template_bytes": len(text)}
    return seen | {"as_configured": policies == wanted}


def compare(script: Script, wanted: dict[str, Seen], every: Seen) -> Finding:
    """Compare values by name with `wanted`, or all with `every`: values or ranges of numbers."""
    problems = []
    for name, seen in script.seen.items():
        for key, value in {**every, **wanted.get(name, {})}.items():
            if seen[key] not in (value if isinstance(value, range) else [value]):
                problems.append(f"{key} of {name} is {seen[key]}, expected {value}")
    return judged(problems, **script.seen)


def compare_sources(script: Script) -> Finding:
    config = script.ground.config
    every: Seen = {"at_once": AT_ONCE, "window_s": WINDOW_S, "reports": True}
    every |= {"state": "Enabled"} if config.worker_enabled == "yes" else {}
    # Each deployment chooses the limits that the user has not given, so they are not compared. In a
    # frugal stack, the crawl queue is also the express queue.
    limits = {name: limit for name, limit in LIMITS.items() if limit in script.ground.given}
    if config.is_frugal:
        limits.pop("ExpressEventSource", None)
    wanted: dict[str, Seen] = {name: {"at_once": getattr(config, limits[name])} for name in limits}
    for name, seen in script.seen.items():
        window = {"window_s": range(1, 301)} if seen["batch"] > BATCH_FREE else {}
        wanted[name] = {**wanted.get(name, {}), **window}
    return compare(script, wanted, every)


def compare_runtimes(script: Script) -> Finding:
    config = script.ground.config
    every, renderer = (
        {
            "runtime": f"python{one.python}",
            "state": "Active",
            # An emulator runs functions on this machine, so the processor that it reports means
            # nothing.
            **({} if script.ground.emulator else {"processor": one.architecture}),
        }
        for one in (config.functions_run_on, config.renderer_runs_on)
    )
    return compare(script, {"renderer": renderer}, every)


def compare_memory(script: Script) -> Finding:
    config = script.ground.config
    names, keys = ("worker", "renderer", "exporter"), ("memory_mb", "timeout_s")
    wanted = {name: {key: getattr(config, f"{name}_{key}") for key in keys} for name in names}
    wanted["exporter"]["room_mb"] = config.exporter_storage_mb
    if not config.local:
        wanted["renderer"]["room_mb"] = config.renderer_storage_mb
    return compare(script, wanted, {"memory_mb": MEMORY_MB})


def variable_bytes(script: Script) -> Seen:
    return {
        name: sum(len(f"{key}{value}".encode()) for key, value in (found or {}).items())
        for name, found in script.raw.items()
    }


def init(script: Script) -> Seen | Finding:
    lines = script.ground.call(
        "logs.filter_log_events",
        logGroupName=script.ground.outputs["WorkerLogGroup"],
        filterPattern='"REPORT" "Init Duration"',
        limit=50,
    )["events"]
    found = [match for one in lines if (match := REPORT.search(one["message"]))]
    if not found:
        return skipped("no worker has started yet: crawl a page")
    billed_ms, init_ms = int(found[-1][1]), round(float(found[-1][2]))
    return {"init_ms": init_ms, "billed_ms": billed_ms, "starts": len(found)}


def count_alarms(script: Script) -> Seen:
    found = [one for one in script.raw.values() if one]
    acting = sum(bool(one.get("AlarmActions")) for one in found)
    return {
        "alarms": len(found),
        "missing": len(script.raw) - len(found),
        "acting": acting,
        "silent": len(found) - acting,
        "raised": sum(one.get("StateValue") == "ALARM" for one in found),
        "dashboards": len(script.ground.of_kind("AWS::CloudWatch::Dashboard")),
        "free": len(found) <= ALARMS_FREE,
    }


def unsigned(script: Script) -> Seen:
    url = f"{script.ground.outputs['ApiUrl']}crawls"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - the stack's own API
            return {"status": int(answer.status)}
    except urllib.error.HTTPError as error:
        return {"status": error.code}


def account(number: str) -> str:
    """Return an account id with only its last four digits."""
    found = re.fullmatch(r"\d{8}(\d{4})", number)
    return f"********{found[1]}" if found else "(not an account id)"


def text(given: str) -> str:
    """Mask the parts of a text that could be secret."""
    for pattern, shown in _PATTERNS:
        given = pattern.sub(shown, given)
    return _ACCOUNT.sub(r"********\1", given)


def everything(given: Any) -> Any:
    """Mask every text in a report. Numbers and booleans are not changed."""
    match given:
        case str():
            return text(given)
        case dict():
            return {text(str(key)): everything(value) for key, value in given.items()}
        case list() | tuple():
            return [everything(value) for value in given]
        case _:
            return given
