"""Retention of the bucket's prefixes, in days. This module does not import CDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.config import Config

BODIES = "bodies/"
CLAIMED = "claimed/"  # digests of URLs that runs have already claimed, by host
EXPORTS = "exports/"
WORK = f"{EXPORTS}_work/"  # files of running exports
SNAPSHOTS = f"{EXPORTS}_snapshots/"  # snapshots of runs, with which the next run is compared
ATHENA_RESULTS = "athena-results/"
FOREVER = "forever"
WORK_D = 7  # a finished export removes its own files here
SNAPSHOTS_D = 365  # if no snapshot exists, the next change feed reports all pages as created
ATHENA_D = 7  # a query can be run again
CLAIMED_D = 14  # longer than most runs; without the file, a run looks its links up in the table
UPLOAD_D = 1  # a multipart upload that is incomplete after a day was left by a crash


def kept_d(config: Config) -> dict[str, int]:
    """Return the retention in days by prefix, without prefixes that are kept forever."""
    days = {
        BODIES: config.body_retention_d,
        CLAIMED: CLAIMED_D,
        WORK: WORK_D,
        SNAPSHOTS: SNAPSHOTS_D,
        ATHENA_RESULTS: ATHENA_D,
    }
    if config.export_retention_d != FOREVER:
        days[EXPORTS] = int(config.export_retention_d)
    return days
