"""Ports of a container that a test assembles, metered as those on AWS."""

from __future__ import annotations

from types import SimpleNamespace

from orbweaver.app.aws_ports import Ports


class OpenedPorts(SimpleNamespace):
    """Given ports with `settings` and `meter`."""

    metrics = Ports.metrics
    watched = Ports.watched
    of_crawl = Ports.of_crawl
