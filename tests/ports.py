"""Ports of a container that a test assembles, metered as those on AWS."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

from orbweaver.app.aws_ports import Ports


class OpenedPorts(SimpleNamespace):
    """Given ports with `settings` and `meter`."""

    metrics = Ports.metrics
    refuse_without_proxies = Ports.refuse_without_proxies
    watched = Ports.watched
    of_crawl = Ports.of_crawl

    @property
    def delivery_random(self) -> Random:
        random: Random = self.random
        return random
