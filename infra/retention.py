"""Retention of the bucket's prefixes, in days. This module does not import CDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.app.file_retention import BODIES, EXPORTS, KEPT_D

if TYPE_CHECKING:
    from infra.config import Config

ATHENA_RESULTS = "athena-results/"
FOREVER = "forever"
ATHENA_D = 7  # a query can be run again
UPLOAD_D = 1  # a multipart upload that is incomplete after a day was left by a crash


def kept_d(config: Config) -> dict[str, int]:
    """Return the retention in days by prefix, without prefixes that are kept forever."""
    days = {**KEPT_D, BODIES: config.body_retention_d, ATHENA_RESULTS: ATHENA_D}
    if config.export_retention_d != FOREVER:
        days[EXPORTS] = int(config.export_retention_d)
    return days
