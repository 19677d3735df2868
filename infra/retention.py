"""Retention of the bucket's prefixes, in days; known without CDK and its Node."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.config import Config

BODIES = "bodies/"
CLAIMED = "claimed/"  # digests of the URLs that runs have claimed of hosts
EXPORTS = "exports/"
WORK = f"{EXPORTS}_work/"  # where running exports stand
SNAPSHOTS = f"{EXPORTS}_snapshots/"  # what change feeds compare with
ATHENA_RESULTS = "athena-results/"
FOREVER = "forever"
CLAIMED_D = 14  # longer than a run goes on, as a rule: who finds none looks its links up
UPLOAD_D = 1  # an upload in parts that is not done after a day is left over from a crash


def kept_d(config: Config) -> dict[str, int]:
    """Return for how many days each prefix is kept; what is kept forever is not among them."""
    days = {
        BODIES: config.body_retention_d,
        CLAIMED: CLAIMED_D,
        WORK: config.work_retention_d,
        SNAPSHOTS: config.snapshot_retention_d,
        ATHENA_RESULTS: config.athena_retention_d,
    }
    if config.export_retention_d != FOREVER:
        days[EXPORTS] = int(config.export_retention_d)
    return days
