"""Texts that explain why a queued URL waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.control.progress.hosts import QueuedUrl, words_of
from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.crawl import Crawl
from orbweaver.model.target import Target

NOW_MS = 1_000_000
CRAWL = Crawl(id="a-1", name="a", started_at_ms=0)


def queued(
    url: str, after_s: float, *, attempt: int = 1, why: str | None = None, in_work: bool = False
) -> QueuedUrl:
    """Return a queued URL that is due or in flight since `after_s` seconds from now."""
    target = Target(url=url, depth=0, attempt=attempt, failed=why)
    return QueuedUrl(target=target, at_ms=NOW_MS + round(after_s * 1000), in_work=in_work)


LIMITS = "given up after 10 s without data or 20 s in total"
A, B = "http://a.test/1", "http://a.test/2"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], []),
        ([queued(A, 5)], []),
        (
            [queued(B, 50, attempt=2), queued(A, 37, attempt=4, why="HTTP 500")],
            [f"waiting to retry {A} (HTTP 500), attempt 4 in 37 s; 1 more"],
        ),
        ([queued(A, -1, attempt=2)], [f"waiting to retry {A}, attempt 2 now"]),
        ([queued(A, -4, in_work=True)], []),
        ([queued(A, -8, in_work=True)], [f"no answer from {A} for 8 s; {LIMITS}, then retried"]),
        (
            [queued(A, -8, attempt=ATTEMPTS_MAX, in_work=True)],
            [f"no answer from {A} for 8 s; {LIMITS}"],
        ),
        ([queued(A, -25, in_work=True)], [f"no answer from {A} for 25 s"]),
    ],
)
def test_words_of_queued_urls_name_reason_and_time(
    found: list[QueuedUrl], expected: list[str]
) -> None:
    assert words_of(found, NOW_MS, CRAWL, 20.0) == expected


def test_words_of_silent_url_name_limits_of_its_crawl() -> None:
    crawl = replace(CRAWL, timeout_ms=60_000, retries=0)
    (said,) = words_of([queued(A, -8, in_work=True)], NOW_MS, crawl, 20.0)
    assert said.endswith("given up after 60 s without data or 60 s in total")


def test_words_of_long_url_cut_it() -> None:
    (said,) = words_of([queued(f"http://a.test/{'x' * 200}", 3, attempt=2)], NOW_MS, CRAWL, 20.0)
    assert "x…, attempt 2 in 3 s" in said
