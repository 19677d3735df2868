"""Texts about dead letters, with nothing of a body that may be a secret."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from orbweaver.cli import text
from orbweaver.frontier.dead_letters import outline
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from orbweaver.frontier.dead_letters import Case, DeadLetterGroup

URLS_SHOWN = 25
SAMPLE_CHARS = 100
HEAD = ("letters", "cause", "oldest", "newest", "for example")


def group_row(group: DeadLetterGroup) -> tuple[str, ...]:
    """Say what a cause came to, as the cells of a row."""
    sample = group.sample
    parts = (sample.letter.id, sample.crawl or "", _first_url(sample) or outline(sample))
    words = " ".join(word for word in parts if word)
    return (
        f"{group.count:,}",
        text.clean(group.cause),
        _moment(group.oldest_ms),
        _moment(group.newest_ms),
        text.cut(words, SAMPLE_CHARS),
    )


def group_json(group: DeadLetterGroup) -> dict[str, Any]:
    """Say the same for a machine."""
    sample = group.sample
    return {
        "type": "cause",
        "cause": group.cause,
        "letters": group.count,
        "kinds": dict(group.kinds),
        "oldest": _moment(group.oldest_ms),
        "newest": _moment(group.newest_ms),
        "sample": {
            "id": sample.letter.id,
            "crawl": sample.crawl,
            "url": _first_url(sample),
            "body": None if sample.references else outline(sample),
        },
    }


def _first_url(case: Case) -> str | None:
    return redacted(case.references[0]) if case.references else None


def _moment(at_ms: int) -> str:
    """Write a moment to the second, UTC; what a body says of time may be anything."""
    try:
        return datetime.fromtimestamp(at_ms // 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def own_id(case: Case) -> str | None:
    """Name the pack or the seeds that a dead letter holds, as logs and tables do."""
    return getattr(case.message, "id", None)


def told(case: Case) -> dict[str, Any]:
    """Say everything of one dead letter; of its URLs the first."""
    letter = case.letter
    return {
        "id": letter.id,
        "kind": case.kind,
        "message": own_id(case),
        "crawl": case.crawl,
        "cause": case.cause,
        "reason": letter.reason,
        "receives": letter.receives,
        "failures": case.failures,
        "first_seen": _moment(case.first_seen_ms),
        "last_seen": _moment(case.last_seen_ms),
        "body": None if case.references else outline(case),
        "urls": [redacted(url) for url in case.references[:URLS_SHOWN]],
    }
