"""Sample crawls, page records, packs (batches of URLs) and journals (their results)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from orbweaver.frontier.journal import Journal, Ledger, OutgoingPack
from orbweaver.frontier.messages import Pack, child_id
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target

NOW_MS = 1_768_478_400_000
"""2026-01-15T12:00:00Z: the middle of a day, so that no test spans two days."""


def crawl(name: str = "shop", **changes: Any) -> Crawl:
    fields: dict[str, Any] = {"id": f"{name}-1", "name": name, "started_at_ms": NOW_MS}
    return Crawl(**(fields | changes))


def record(number: int, **changes: Any) -> PageRecord:
    fields: dict[str, Any] = {
        "crawl": "shop-1",
        "url": f"https://example.com/{number}",
        "outcome": Outcome.FETCHED,
        "reason": Reason.OK,
        "fetched_at": NOW_MS,
        "depth": 1,
    }
    return PageRecord(**(fields | changes))


def target(number: int, depth: int = 1) -> Target:
    return Target(url=f"https://example.com/{number}", depth=depth, referrer="https://example.com/")


def journal(links: int = 3, *, at_ms: int = NOW_MS, pages: int = 2) -> Journal:
    return Journal(
        at_ms=at_ms,
        records=tuple(record(number) for number in range(pages)),
        candidates=tuple(target(number) for number in range(links)),
        counts={"fetched": pages, "fetched.ok": pages},
    )


def large_journal(seed: int, links: int) -> Journal:
    """Build a journal that compresses badly: about 60 bytes per link."""
    random = Random(seed)
    return Journal(
        at_ms=NOW_MS,
        candidates=tuple(
            Target(url=f"https://example.com/{random.randbytes(48).hex()}", depth=1)
            for _ in range(links)
        ),
        counts={"fetched": 1},
    )


def pack_ids(count: int, origin: str = "pack") -> list[str]:
    """Build pack ids in the format that the outbox uses."""
    return [child_id(origin, place) for place in range(count)]


def ledger(pack_id: str, children: Sequence[int] = (0, 2)) -> Ledger:
    return Ledger(pack=pack_id, children=tuple(children))


def outgoing(
    place: int = 0, *, crawl_id: str = "shop-1", delay_s: int = 0, urls: int = 2
) -> OutgoingPack:
    targets = tuple(target(number) for number in range(urls))
    pack = Pack(id=child_id("letter", place), crawl=crawl_id, at_ms=NOW_MS, targets=targets)
    return OutgoingPack(pack=pack, delay_s=delay_s)


def nonzero(counts: Counts) -> dict[str, int]:
    """Drop zero counts, which a store may omit."""
    return {key: count for key, count in counts.items() if count}
