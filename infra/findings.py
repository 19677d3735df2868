"""Accepted findings of security rule packs, each with its resource and reason.

The packs run in the tests, not in a deployment. CDK stores the accepted findings for them in the
template's metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Validations

if TYPE_CHECKING:
    from constructs import Construct

NOT_TRACED = (
    "A trace ends at every queue, so it cannot follow a crawl; `orbweaver explain`, logs and"
    " metrics can. Tracing is billed per invocation."
)
NOT_LATEST = "All pinned libraries have wheels for Python 3.13 and are proven on it."
FENCED = "File names depend on days and crawls; the prefix is the narrowest possible limit."


def accept(construct: Construct, rule: str, reason: str) -> None:
    """Accept a rule's finding about a construct and the constructs in it."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def accept_files(role: Construct, folder: str) -> None:
    """Accept the finding that a role is allowed to use every file in a folder."""
    accept(role, f"AwsSolutions-IAM5[Resource::{folder}*]", FENCED)
