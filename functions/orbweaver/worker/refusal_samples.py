"""Examples of what was refused, kept for people who ask why: best effort, and no part of the work.

A container writes of each crawl and reason once, the first that it comes upon; the first of all
containers stays. Whether that succeeds is nobody's concern.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from orbweaver.model.errors import PortError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orbweaver.frontier.ports import Crawls
    from orbweaver.model.crawl import Crawl

_log = logging.getLogger(__name__)
# Then it begins anew: what is written twice stays what it was.
KNOWN_MAX = 10_000


class Samples:
    """Keeps examples; one a container."""

    def __init__(self, crawls: Crawls) -> None:
        """Take the port; nothing is known to be kept."""
        self._crawls = crawls
        self._known: set[tuple[str, str]] = set()

    async def keep(self, crawl: Crawl, samples: Mapping[str, Sequence[str]]) -> None:
        """Keep examples of reasons of which this container has kept none."""
        new = {
            reason: urls
            for reason, urls in samples.items()
            if (crawl.id, reason) not in self._known
        }
        if not new:
            return
        if len(self._known) + len(new) > KNOWN_MAX:
            self._known.clear()
        self._known.update((crawl.id, reason) for reason in new)
        try:
            await self._crawls.keep_samples(crawl, new)
        except PortError as error:
            _log.warning("samples.not_kept", extra={"crawl": crawl.id, "error": str(error)})
