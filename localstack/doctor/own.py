"""The stack that `--full` deploys, crawls with and removes, and a search for its leftovers."""

from __future__ import annotations

import contextlib
import functools
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from infra.config import Config
from localstack import cdk, deployed, deployment, removal
from localstack.doctor.ground import Finding, Ground, Seen, failed, judged, passed, skipped
from localstack.doctor.script import Script
from localstack.errors import LocalStackError
from localstack.removal import BUCKET, TABLE
from orbweaver.model.address_policy import THIS_MACHINE

STACK = "OrbweaverDoctor"
OURS = {
    "stack_name": STACK,
    "removal": "destroy",
    "worker_enabled": "no",
    **dict.fromkeys(("worker_concurrency_max", "express_concurrency_max"), "2"),
    "exporter_concurrency_max": "2",
}
SWITCH_S_MAX = 120
# SQS can list a deleted queue for up to a minute.
LISTED_TRIES, LISTED_PAUSE_S = 9, 10
LOG_GROUPS = ("/aws/lambda/{}-", "/aws/apigateway/{}")
PAGES = 5


def context(environment: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the context of this stack: small limits, workers off, no retained resources."""
    local = {"target": "local", "allow_addresses": THIS_MACHINE}
    return {**given, **OURS, **(local if cdk.is_emulator(environment) else {})}


def deploy(script: Script) -> Seen | Finding:
    """Deploy the stack, and store its outputs and resources in the script's `ground`."""
    ground = script.ground
    account = {} if ground.emulator else ground.call("apigateway.get_account")
    # If API Gateway has a role for its logs already, the stack does not replace it.
    role = {"api_account_role": "no" if account.get("cloudwatchRoleArn") else "yes"}
    ground.given = {**context(ground.environment, ground.context), **role}
    ground.config, ground.deployed = Config.from_context(ground.given), True
    try:
        ground.outputs = cdk.deploy(ground.environment, ground.given, say=ground.say, yes=True)
    except LocalStackError as error:
        ground.say(str(error))
        return failed("it could not be deployed: see the messages of CDK")
    ground.resources = tuple(removal.resources_of(STACK, ground.lend))
    # An emulator's CloudFormation enables event sources, even if the template disables them.
    is_off = switch(ground, on=False)
    limits = deployment.default_limits(renders=ground.config.renders)
    seen = {key: getattr(ground.config, key) for key in limits}
    return {"resources": len(ground.resources), **seen, "workers_off": is_off}


def remove(script: Script) -> Finding:
    return remove_stack(script.ground)


def remove_stack(ground: Ground) -> Finding:
    """Remove the doctor's stack and its contents, if it is deployed.

    Fails if resources are left.
    """
    if not ground.deployed:
        return passed(left=0)
    ground.deployed = False
    held = [*removal.resources_of(STACK, ground.lend), *ground.resources]
    try:
        cdk.destroy(ground.environment, ground.given, say=ground.say, yes=True)
    except LocalStackError as error:
        ground.say(str(error))
    left = leftovers(ground, held)
    for _ in range(0 if ground.emulator else LISTED_TRIES):
        if not left:
            break
        ground.pause(LISTED_PAUSE_S)
        left = leftovers(ground, held)
    for kind, name in left:
        ground.say(f"left: {kind} {name}")
    problems = ["resources are left: see the messages"] if left else []
    return judged(problems, left=len(left), **Counter(kind for kind, _ in left))


def leftovers(ground: Ground, held: list[removal.Resource]) -> list[tuple[str, str]]:
    logs, prefix = ground.client("logs"), f"{STACK}-"
    for start in LOG_GROUPS:  # Only the doctor's functions write there.
        found = logs.describe_log_groups(logGroupNamePrefix=start.format(STACK))["logGroups"]
        for group in found:
            logs.delete_log_group(logGroupName=group["logGroupName"])
    queues = ground.call("sqs.list_queues", QueueNamePrefix=prefix).get("QueueUrls", ())
    pages = ground.client("lambda").get_paginator("list_functions").paginate()
    names = [one["FunctionName"] for page in pages for one in page["Functions"]]
    left = {("queue", url.rpartition("/")[2]) for url in queues}
    left |= {("function", name) for name in names if name.startswith(prefix)}
    for one in held:
        if one.kind == TABLE and exists(ground, "dynamodb.describe_table", TableName=one.name):
            left.add(("table", one.name))
        if one.kind == BUCKET and exists(ground, "s3.head_bucket", Bucket=one.name):
            left.add(("bucket", one.name))
    if cdk.stack_outputs(STACK, ground.environment) is not None:
        left.add(("stack", STACK))
    return sorted(left)


def exists(ground: Ground, operation: str, **named: str) -> bool:
    try:
        ground.call(operation, **named)
    except (BotoCoreError, ClientError):
        return False
    return True


class _Site(SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Log nothing."""


@contextlib.contextmanager
def site() -> Iterator[str]:
    """Serve a few pages that link to each other, and yield the URL of the first page."""
    with tempfile.TemporaryDirectory() as folder:
        links = "".join(f'<a href="/{place}.html">{place}</a>' for place in range(PAGES))
        for place in range(PAGES):
            page = f"<!doctype html><title>{place}</title>{links}"
            Path(folder, f"{place}.html").write_text(page, encoding="utf-8")
        handler = functools.partial(_Site, directory=folder)
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}/0.html"
            finally:
                server.shutdown()
                thread.join()


def switch(ground: Ground, *, on: bool) -> bool:
    """Enable or disable the workers, and wait. Return whether the change was completed in time."""
    wanted = deployed.ON if on else deployed.OFF

    def switched() -> bool:
        found = deployed.read_sources(ground.outputs["WorkerFunction"], ground.environment)
        for one in found:
            if one.is_off == on:
                deployed.switch(one, ground.environment, on=on)
        return bool(found) and all(one.state == wanted for one in found)

    return ground.until(switched, SWITCH_S_MAX)


def crawl(script: Script) -> Seen | Finding:
    ground = script.ground
    if ground.crawl is None or (ground.url is None and not ground.emulator):
        return skipped("no site was named: give one of your own by --url")
    if not switch(ground, on=True):
        return failed("the workers cannot be switched on")
    try:
        with contextlib.ExitStack() as serving:
            url = ground.url or serving.enter_context(site())
            pages, failures = ground.crawl(ground.outputs, url)
    finally:
        is_off = switch(ground, on=False)
    seen = {"complete": pages == PAGES or bool(ground.url and pages)}
    return {**seen, "pages": pages, "failures": failures, "switched_off": is_off}
