"""Accepted findings of rule packs, each with its resource and reason.

The packs run in the tests, not at deployment. CDK stores the accepted findings for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Validations

if TYPE_CHECKING:
    from constructs import Construct

NOT_TRACED = (
    "A trace ends at every queue, which is where a crawl's questions begin; `orbweaver explain`,"
    " logs and metrics answer them. Tracing is billed per invocation."
)
TRACES_HAVE_NO_RESOURCE = "What X-Ray takes traces by knows no resources; it can do nothing else."
NOT_LATEST = (
    "Python 3.13 is what all pinned libraries have wheels and a record of use for; `runtime` takes"
    " a newer one."
)
FENCED = "Names of files follow from days and crawls; the prefix is the narrowest fence."


def accept(construct: Construct, rule: str, reason: str) -> None:
    """Accept a rule's finding about a resource and its children."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def accept_files(role: Construct, folder: str) -> None:
    """Accept that a role's permissions in a folder apply to every file in it."""
    accept(role, f"AwsSolutions-IAM5[Resource::{folder}*]", FENCED)
