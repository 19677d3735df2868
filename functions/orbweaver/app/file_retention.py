"""Retention of stored files: lifecycle rules of a bucket, and deletion in a store."""

from __future__ import annotations

from orbweaver.exporting import manifest
from orbweaver.frontier import body_file, known_claims

BODIES, CLAIMED, EXPORTS = body_file.PREFIX, known_claims.PREFIX, manifest.PREFIX
WORK = f"{EXPORTS}{manifest.WORK}"
SNAPSHOTS = f"{EXPORTS}{manifest.SNAPSHOTS}"
# Days by prefix. Other files are kept forever.
KEPT_D = {
    BODIES: 30,
    CLAIMED: 14,  # longer than most runs; without the file, a run looks its links up in the table
    WORK: 7,  # a finished export removes its own files here
    SNAPSHOTS: 365,  # without snapshots, the next change feed reports all pages as created
}
