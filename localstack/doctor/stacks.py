"""Checks of the stack in CloudFormation."""

from __future__ import annotations

import json

from localstack import deployed
from localstack.doctor.ground import Check, Finding, Ground, Seen, expect, failed, judged, word
from localstack.retained import BUCKET, TABLE

RESOURCES_MAX, OUTPUTS_MAX, TEMPLATE_BYTES_MAX = 500, 200, 1_000_000
STATES: tuple[str, ...] = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
)
STATES += ("UPDATE_IN_PROGRESS", "UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED", "ROLLBACK_COMPLETE")
KEPT, GOES = "RetainExceptOnCreate", ("Delete", "")
POLICIES = (KEPT, "Delete", "Retain", "Snapshot", "")


def state(ground: Ground) -> Finding:
    """Check that the stack is complete and within CloudFormation's limits."""
    found = deployed.describe(ground.stack, ground.environment)
    if found is None:
        return failed("there is no such stack")
    outputs, resources = len(found.outputs), len(ground.resources)
    problems = [] if found.is_settled else ["its last change is not complete"]
    problems += ["it has too many resources"] if resources > RESOURCES_MAX else []
    problems += ["it has too many outputs"] if outputs > OUTPUTS_MAX else []
    seen = {"resources": resources, "outputs": outputs}
    return judged(problems, state=word(found.status, *STATES), **seen)


def retention(ground: Ground) -> Finding:
    """Check that the deployed template keeps or deletes stored data as `removal` requires."""
    body = ground.client("cloudformation").get_template(StackName=ground.stack)["TemplateBody"]
    text = body if isinstance(body, str) else json.dumps(body)
    resources = json.loads(text)["Resources"].values()
    policies = {
        word(one.get("DeletionPolicy", ""), *POLICIES)
        for one in resources
        if one["Type"] in (TABLE, BUCKET)
    }
    wanted = {KEPT} if ground.config.kept else set(GOES)
    right = bool(policies) and policies <= wanted and len(text) <= TEMPLATE_BYTES_MAX
    seen: dict[str, Seen] = {"policies": sorted(policies), "template_bytes": len(text)}
    return expect(right, "tables or bucket have another policy", **seen)


DEPLOY = "run `orbweaver deploy`"
CHECKS = (
    Check(
        id="stack.state",
        title="the stack stands",
        run=state,
        assumptions=("A72",),
        do=DEPLOY,
    ),
    Check(
        id="stack.retention",
        title="tables and bucket stay, or go, as `removal` says",
        run=retention,
        assumptions=("A73",),
        do=DEPLOY,
    ),
)
