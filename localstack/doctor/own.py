"""The stack that `--full` deploys for its probes and then removes, and resources it left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.config import Config
from localstack import cdk, concurrency, removal
from localstack.doctor.ground import Check, Finding, Ground, Seen, expect, failed, passed
from localstack.doctor.probe_crawl import switch
from localstack.errors import LocalStackError
from localstack.retained import BUCKET, TABLE
from orbweaver.model.address_policy import THIS_MACHINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from localstack.cdk import Say

STACK = "OrbweaverDoctor"
OURS = {
    "stack_name": STACK,
    "removal": "destroy",
    "worker_enabled": "no",
    **dict.fromkeys(("worker_concurrency_max", "express_concurrency_max"), "2"),
    "exporter_concurrency_max": "2",
}
# SQS still lists a deleted queue for up to a minute.
LISTED_TRIES, LISTED_PAUSE_S = 9, 10
LOG_GROUPS = ("/aws/lambda/{}-", "/aws/apigateway/{}")


def context(environment: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the stack's context: small limits, workers off, no retained resources."""
    local = {"target": "local", "allow_addresses": THIS_MACHINE}
    return {**given, **OURS, **(local if cdk.is_emulator(environment) else {})}


def role(ground: Ground) -> str:
    """Return whether the stack sets API Gateway's log role. An existing role is kept."""
    if ground.emulator:
        return "yes"
    found = ground.client("apigateway").get_account()
    return "no" if found.get("cloudwatchRoleArn") else "yes"


class Own:
    """The stack of one run. The first check deploys it, the last one removes it."""

    def __init__(self, given: Mapping[str, str], say: Say) -> None:
        self._given = dict(given)
        self._say = say
        self._begun = False

    def deploy(self, ground: Ground) -> Finding:
        """Deploy the stack, and store its outputs and resources in `ground`."""
        wanted = {**self._given, "api_account_role": role(ground)}
        ground.config, ground.given = Config.from_context(wanted), frozenset(wanted)
        self._given, self._begun = wanted, True
        try:
            ground.outputs = cdk.deploy(ground.environment, wanted, say=self._say, yes=True)
        except LocalStackError as error:
            self._say(str(error))
            return failed("it could not be deployed: see what CDK says")
        ground.resources = tuple(removal.resources_of(STACK, ground.lend))
        # An emulator's CloudFormation enables event sources, whatever the template contains.
        quiet = switch(ground, on=False)
        limits: dict[str, Seen] = {
            key: getattr(ground.config, key)
            for key in concurrency.default_limits(renders=ground.config.renders)
        }
        seen: dict[str, Seen] = {"resources": len(ground.resources), **limits}
        return expect(quiet, "its workers cannot be switched off", **seen)

    def remove(self, ground: Ground) -> Finding:
        """Remove the stack and its contents. Fails if resources are left."""
        if not self._begun:
            return passed(left=0)
        self._begun = False
        held = removal.resources_of(STACK, ground.lend)
        try:
            cdk.destroy(ground.environment, self._given, say=self._say, yes=True)
        except LocalStackError as error:
            self._say(str(error))
        left = leftovers(ground, [*held, *ground.resources])
        for _ in range(0 if ground.emulator else LISTED_TRIES):
            if not left:
                break
            ground.pause(LISTED_PAUSE_S)
            left = leftovers(ground, [*held, *ground.resources])
        for kind, name in left:
            self._say(f"left: {kind} {name}")
        kinds: dict[str, Any] = {}
        for kind, _ in left:
            kinds[kind] = kinds.get(kind, 0) + 1
        return expect(not left, "something is left: see what was said", left=len(left), **kinds)


def leftovers(ground: Ground, held: list[removal.Resource]) -> list[tuple[str, str]]:
    tables = {one.name for one in held if one.kind == TABLE}
    buckets = {one.name for one in held if one.kind == BUCKET}
    dynamodb, s3, logs = (ground.client(name) for name in ("dynamodb", "s3", "logs"))
    queues = ground.client("sqs").list_queues(QueueNamePrefix=f"{STACK}-").get("QueueUrls", ())
    listed = ground.client("lambda").get_paginator("list_functions").paginate()
    functions = [one["FunctionName"] for page in listed for one in page["Functions"]]
    groups = [
        group["logGroupName"]
        for prefix in LOG_GROUPS
        for group in logs.describe_log_groups(logGroupNamePrefix=prefix.format(STACK))["logGroups"]
    ]
    for group in groups:  # The probes' functions made them, and no other program writes there.
        logs.delete_log_group(logGroupName=group)
    found = [("queue", url.rpartition("/")[2]) for url in queues]
    found += [("function", name) for name in functions if name.startswith(f"{STACK}-")]
    found += [
        ("table", name) for name in tables if _exists(dynamodb.describe_table, TableName=name)
    ]
    found += [("bucket", name) for name in buckets if _exists(s3.head_bucket, Bucket=name)]
    standing = cdk.stack_outputs(STACK, ground.environment) is not None
    return found + ([("stack", STACK)] if standing else [])


def _exists(call: Callable[..., Any], **named: str) -> bool:
    try:
        call(**named)
    except (BotoCoreError, ClientError):
        return False
    return True


def checks(own: Own) -> tuple[Check, Check]:
    """Return the first and the last check of a full run."""
    return (
        Check(
            id="own.deployed",
            title="a stack of the kit's own is deployed",
            run=own.deploy,
            assumptions=("A26", "A27", "A72", "A76"),
            full=True,
            stack=False,
            do="read what CDK says, mend it, and run the doctor again",
        ),
        Check(
            id="own.removed",
            title="it is removed again, with all that was in it",
            run=own.remove,
            assumptions=("A50",),
            full=True,
            stack=False,
            do=f"run `orbweaver destroy --stack {STACK}`, and remove what is named by hand",
        ),
    )
