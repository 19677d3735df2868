"""Per-host counters agree with the crawl's totals for its first hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from orbweaver.model.crawl import State, Stop
from orbweaver.model.outcome import Outcome
from orbweaver.model.url import host_of
from tests.memory import World
from tests.simulation.check_web import Violation


def check_hosts(world: World, totals: Mapping[str, Counter[str]]) -> Iterator[Violation]:
    """I8: a host's counters match its URLs and balance at the end."""
    failed: Counter[tuple[str, str]] = Counter(
        (record.crawl, host_of(record.url))
        for record in world.pages.values()
        if record.outcome is Outcome.FAILED
    )
    failed.update(
        (crawl_id, host_of(end.url))
        for crawl_id, ledger, _ in world.commits
        for end in world.journals[ledger.pack].unrecorded
        if end.outcome is Outcome.FAILED
    )
    for crawl in list(world.crawls.values()):
        total = totals[crawl.id]
        # A journal that replaced another can lack a claimed URL.
        claimed = Counter(host_of(url) for url, _ in world.claimed(crawl.id) if url != "?")
        # A worker died between storing and committing, and the crawl was cancelled meanwhile.
        whole = crawl.state is State.FINISHED and crawl.stop is not Stop.CANCELLED
        for place, host in enumerate(crawl.hosts_counted):
            counts = {key: total[f"host.{place}.{key}"] for key in ("claimed", "done", "failed")}
            due = {"claimed": claimed[host], "done": claimed[host]}
            due["failed"] = failed[crawl.id, host]
            if counts["claimed"] != due["claimed"] or (whole and counts != due):
                yield Violation("I8 host", f"{crawl.id} {host}: {counts} not {due}")
