"""All checks, in the order in which they run: what only reads first, the crawl at the end.

docs/aws-assumptions.md names them beside what they try; a test holds both to each other.
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
    """List all checks; with a stack of the kit's own around those that look at one."""
    first, last = own.checks(stack)
    return (*account.CHECKS, first, account.PREPARED, *READING, *PROBES, last)
