"""Gaps between requests to one host, and the accepted reasons for a short gap."""

from __future__ import annotations

import pytest

from tests.chaos.gaps import TOLERANCE_MS, Arrival, Gaps, measure


def gaps(*arrivals: tuple[int, str], **sent: int) -> Gaps:
    """Measure the gaps between requests to a host.

    The host has a delay of 40 ms, and the first request after robots.txt may come after 20 ms.
    """
    return measure(
        [Arrival(at_ms=at_ms, path=path) for at_ms, path in arrivals],
        {f"/{name}": at_ms for name, at_ms in sent.items()},
        delay_ms=40,
        robots_delay_ms=20,
    )


@pytest.mark.parametrize(
    ("found", "close", "short"),
    [
        (gaps((0, "/a"), (40, "/b"), a=0, b=40), 0, 0),
        # Delayed by 30 ms: sent in time, but late at the host.
        (gaps((30, "/a"), (45, "/b"), a=0, b=44), 1, 0),
        # Not delayed: the next request was too early.
        (gaps((0, "/a"), (20, "/b"), a=0, b=20), 1, 1),
        (gaps((0, "/a"), (40 - TOLERANCE_MS, "/b"), a=0), 1, 0),
        # Without a row, the longest delay counts.
        (gaps((0, "/a"), (20, "/x"), (60, "/b"), a=0), 1, 1),
        (gaps((0, "/lost"), (20, "/a"), (70, "/b"), a=0), 1, 0),
        # The delay is unknown when robots.txt is requested.
        (gaps((0, "/robots.txt"), (20, "/a"), a=20), 0, 0),
        (gaps((0, "/robots.txt"), (10, "/a"), a=10), 1, 1),
    ],
)
def test_gap_is_short_only_without_excuse(found: Gaps, close: int, short: int) -> None:
    assert (found.close, found.short) == (close, short)


def test_row_belongs_to_first_request_after_its_sending() -> None:
    found = gaps((0, "/a"), (100, "/a"), (130, "/b"), a=85)

    assert (found.held_up_ms, found.fair_ms, found.smallest_ms) == (15, 45, 30)
    assert found.short == 0


def test_host_without_requests_has_no_gaps() -> None:
    found = gaps()

    assert (found.requests, found.smallest_ms, found.fair_ms, found.short) == (0, None, None, 0)
