"""All checks, in order.

A test compares them with docs/aws-assumptions.md, which lists each assumption with its checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from localstack.doctor import (
    account,
    functions,
    own,
    probe_batches,
    probe_crawl,
    probe_events,
    probe_files,
    probe_lambda,
    probe_queues,
    probe_sqs,
    probe_tables,
    queues,
    services,
    stacks,
    stores,
)

if TYPE_CHECKING:
    from localstack.doctor.ground import Check

READING = (
    *stacks.CHECKS,
    *queues.CHECKS,
    *functions.CHECKS,
    *stores.CHECKS,
    *services.CHECKS,
)
PROBES = (
    *probe_sqs.CHECKS,
    *probe_queues.CHECKS,
    *probe_tables.CHECKS,
    *probe_batches.CHECKS,
    *probe_files.CHECKS,
    *probe_events.CHECKS,
    *probe_lambda.CHECKS,
    *probe_crawl.CHECKS,
)


def checks(stack: own.Own) -> tuple[Check, ...]:
    """Return all checks: read-only ones first, the crawl last."""
    first, last = own.checks(stack)
    return (*account.CHECKS, first, account.PREPARED, *READING, *PROBES, last)
