"""Permissions of a deployed stack's roles; each can be removed and restored.

A grant is written `role action resource`: `worker dynamodb:GetItem table/crawls`. A statement with
two actions and two resources is four grants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from tests.e2e.stand import Stand

ROLE = re.compile(
    r"(Worker|Renderer|Exporter|Api|Starter|Notifier|Delivery)(Program|Schedule|Firing)Role[0-9A-F]{8}"
)
POLICY = "Needs"
# Output names, and their short names.
WORDS = {
    "CrawlQueueUrl": "seeds",
    "PackQueueUrl": "crawl",
    "ExpressQueueUrl": "express",
    "RenderQueueUrl": "render",
    "DeadLetterQueueUrl": "dead-letters",
    "ExporterFailuresQueueUrl": "failures",
    "ExportQueueUrl": "exports",
    "FailedCallsQueueUrl": "failed-calls",
    "DeliveryDeadLetterQueueUrl": "delivery-letters",
    "DeliveryQueueUrl": "delivery",
    "WebhookSecret": "webhook-key",
    "UrlsTable": "urls",
    "PagesTable": "pages",
    "HostsTable": "hosts",
    "CrawlsTable": "crawls",
    "PacksTable": "packs",
    "Bucket": "bucket",
}
# AWS authorises these by single actions. MiniStack (1.5.33) uses the call's name, and names no
# table for a batch of statements. These entries map AWS's
# grants to MiniStack's.
SPELLED = {
    "sqs:SendMessage": ("sqs:SendMessageBatch", None),
    "dynamodb:PartiQLInsert": ("dynamodb:BatchExecuteStatement", "*"),
}
ONLY_HERE = frozenset(action for action, _ in SPELLED.values())


class Roles:
    """Roles of the stack's functions and schedules."""

    def __init__(self, stand: Stand) -> None:
        """Read the grants, and add the action names that the emulator checks."""
        self._stand = stand
        self._names: dict[str, str] = {}
        self._grants: dict[str, tuple[str, str, str]] = {}
        with stand.client("cloudformation") as cloudformation, stand.client("iam") as iam:
            resources = cloudformation.describe_stack_resources(StackName="Orbweaver")
            for resource in resources["StackResources"]:
                found = ROLE.fullmatch(resource["LogicalResourceId"])
                if found is None:
                    continue
                role = found[1].lower() if found[2] == "Program" else found[2].lower()
                self._names[role] = resource["PhysicalResourceId"]
                answer = iam.get_role_policy(RoleName=self._names[role], PolicyName=POLICY)
                for action, arn in _pairs(answer["PolicyDocument"]["Statement"]):
                    if action not in ONLY_HERE:
                        self._grants[f"{role} {action} {self.word(arn.split(':', 5)[5])}"] = (
                            role,
                            action,
                            arn,
                        )
        for role in self._names:
            self._put(role)

    @property
    def grants(self) -> frozenset[str]:
        return frozenset(self._grants)

    @contextmanager
    def without(self, *taken: str) -> Iterator[None]:
        """Remove grants for a block; functions are affected from their next call."""
        roles = {self._grants[grant][0] for grant in taken}
        for role in roles:
            self._put(role, taken)
        try:
            yield
        finally:
            for role in roles:
                self._put(role)

    def _put(self, role: str, taken: Sequence[str] = ()) -> None:
        statements = [
            {"Effect": "Allow", "Action": spelling, "Resource": resource}
            for grant, (owner, action, arn) in self._grants.items()
            if owner == role and grant not in taken
            for spelling, resource in _spellings(action, arn)
        ]
        policy = {"RoleName": self._names[role], "PolicyName": POLICY}
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        with self._stand.client("iam") as iam:
            if statements:
                iam.put_role_policy(**policy, PolicyDocument=document)
            else:  # A policy needs a statement.
                iam.delete_role_policy(**policy)

    def word(self, resource: str) -> str:
        """Return the short name of an ARN's last part."""
        for output, word in WORDS.items():
            name = self._stand.outputs.get(output, "").rpartition("/")[2].rpartition(":")[2]
            if name:
                resource = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", word, resource)
        return resource


def _pairs(statements: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for statement in statements:
        yield from product(_listed(statement["Action"]), _listed(statement["Resource"]))


def _spellings(action: str, arn: str) -> Iterator[tuple[str, str]]:
    yield action, arn
    if action in SPELLED:
        other, resource = SPELLED[action]
        yield other, resource or arn


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
