"""Memory that a worker or renderer needs at most: the sum of all that its settings allow at once.

Measured: a container before its first batch has 74 MB resident, and its process for reading pages
27 MB. The modules imported below limit the remaining parts.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from orbweaver.adapters.web.large_bodies import SMALL_BYTES
from orbweaver.rendering.asset_cache import BYTES_MAX as ASSETS_BYTES_MAX
from orbweaver.rendering.browser import BEYOND
from orbweaver.rendering.task import RenderLimits
from orbweaver.worker.host_claims import LOADING_BYTES_MAX
from orbweaver.worker.page_reading import MEMORY_BYTES
from orbweaver.worker.seen_store import HOSTS_BYTES_MAX
from orbweaver.worker.sitemap_handling import KEPT_BYTES_MAX, SITEMAPS_AT_ONCE

if TYPE_CHECKING:
    from orbweaver.model.settings import Settings

MB = 1024 * 1024
PROGRAMS_MB = 101


def needed_mb(settings: Settings, *, renders: bool = False) -> tuple[int, str]:
    """Return the MB that a worker, or a renderer if `renders`, may need at once.

    The second value shows how they add up, in words.
    """
    parts = _parts(settings)
    if renders:
        limits = RenderLimits()
        parts |= {
            "of a browser before it is killed": ceil(BEYOND * limits.memory_bytes_max / MB),
            f"of what {limits.tabs} pages load": ceil(limits.tabs * limits.bytes_max / MB),
            "of shared scripts and styles": ceil(ASSETS_BYTES_MAX / MB),
        }
    return sum(parts.values()), " + ".join(f"{mb} {what}" for what, mb in parts.items())


def _parts(settings: Settings) -> dict[str, int]:
    """Return the parts that can be in memory at once: MB by description."""
    # The first bytes of every body being fetched, and all bytes of a few large bodies.
    small = ceil(settings.fetching.fetch_concurrency * SMALL_BYTES / MB)
    large = ceil(settings.fetching.large_bodies * settings.fetching.body_bytes_max / MB)
    sitemaps = ceil((SITEMAPS_AT_ONCE * settings.fetching.sitemap_bytes_max + KEPT_BYTES_MAX) / MB)
    # The buffer for the file grows by an eighth at a time.
    file = ceil(9 / 8 * settings.worker.segment_bytes_max / MB)
    claims = ceil((HOSTS_BYTES_MAX + LOADING_BYTES_MAX) / MB)
    return {
        "of programs": PROGRAMS_MB,
        "for a page being read": MEMORY_BYTES // MB,
        "of bodies waiting for that": ceil(settings.worker.waiting_bytes_max / MB),
        f"of {settings.fetching.fetch_concurrency} bodies at once": small,
        f"of {settings.fetching.large_bodies} large ones": large,
        "of sitemaps": sitemaps,
        "of pages to store": ceil(settings.worker.held_bytes_max / MB),
        "of the file for them": file,
        "of known claims": claims,
    }
