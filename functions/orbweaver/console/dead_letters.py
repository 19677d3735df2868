"""Dead letters grouped by cause, each with hosts and an example.

While letters are read, other readers cannot receive them. Afterwards they are released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbweaver.frontier.dead_letters import EVERYTHING, Case, group_by_cause, outline
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from orbweaver.control.dead_letter_admin import DeadLetterAdmin

URLS_SHOWN, HOSTS_SHOWN = 3, 10


async def letters_by_cause(
    undertaker: DeadLetterAdmin, *, limit: int, bodies: bool = True
) -> dict[str, Any]:
    """Group dead letters by cause. If `bodies` is False, only URLs of messages are quoted."""
    found = await undertaker.find(EVERYTHING, limit=limit)
    groups = [
        {
            "cause": group.cause,
            "count": group.count,
            "kinds": group.kinds,
            "oldest_ms": group.oldest_ms,
            "newest_ms": group.newest_ms,
            "hopeless": group.sample.is_hopeless,
            "hosts": _hosts([case for case in found.cases if case.cause == group.cause]),
            "sample": letter_of(group.sample, bodies=bodies),
        }
        for group in group_by_cause(found.cases)
    ]
    return {
        "letters": len(found.cases),
        "cut": found.cut,
        "looked_ms": undertaker.clock.now_ms(),
        "groups": groups,
    }


def letter_of(case: Case, *, bodies: bool = True) -> dict[str, Any]:
    quoted = bodies and not case.references
    urls = case.references if bodies else [one for one in case.references if "://" in one]
    return {
        "id": case.letter.id,
        "kind": case.kind,
        "crawl": case.crawl,
        "reason": case.letter.reason,
        "receives": case.letter.receives,
        "failures": case.failures,
        "urls": [redacted(url) for url in urls[:URLS_SHOWN]],
        "urls_more": max(0, len(urls) - URLS_SHOWN),
        "body": outline(case) if quoted else None,
    }


def _hosts(cases: list[Case]) -> list[list[Any]]:
    """Count letters by the hosts of their URLs, most frequent first."""
    counts: dict[str, int] = {}
    for case in cases:
        for name in case.hosts():
            if "://" in name:
                counts[name] = counts.get(name, 0) + 1
    most = sorted(counts.items(), key=lambda one: -one[1])
    return [[name, number] for name, number in most][:HOSTS_SHOWN]
