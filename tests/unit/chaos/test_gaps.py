"""How gaps between requests are measured, and what excuses a small one."""

from __future__ import annotations

import pytest

from tests.chaos.gaps import TOLERANCE_MS, Arrival, Gaps, measure


def gaps(*arrivals: tuple[int, str], **sent: int) -> Gaps:
    """Measure arrivals at a host that wants 40 ms, 20 ms behind its robots.txt."""
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
        # Held up by 30 ms: sent in time, it came late.
        (gaps((30, "/a"), (45, "/b"), a=0, b=44), 1, 0),
        # Not held up at all: the next one came too soon.
        (gaps((0, "/a"), (20, "/b"), a=0, b=20), 1, 1),
        (gaps((0, "/a"), (40 - TOLERANCE_MS, "/b"), a=0), 1, 0),
        # Without a row: as long as the longest was held up, and no longer.
        (gaps((0, "/a"), (20, "/x"), (60, "/b"), a=0), 1, 1),
        (gaps((0, "/lost"), (20, "/a"), (70, "/b"), a=0), 1, 0),
        # Whoever asks for robots.txt does not know the delay yet.
        (gaps((0, "/robots.txt"), (20, "/a"), a=20), 0, 0),
        (gaps((0, "/robots.txt"), (10, "/a"), a=10), 1, 1),
    ],
)
def test_a_gap_is_short_if_nothing_excuses_it(found: Gaps, close: int, short: int) -> None:
    """Only what was sent too soon is short; what was held up on its way is close."""
    assert (found.close, found.short) == (close, short)


def test_the_request_of_a_row_is_the_one_sent_then() -> None:
    """Of several requests for one page, the row's is the first that came after its sending."""
    found = gaps((0, "/a"), (100, "/a"), (130, "/b"), a=85)

    assert (found.held_up_ms, found.fair_ms, found.smallest_ms) == (15, 45, 30)
    assert found.short == 0


def test_a_host_that_was_not_asked_has_no_gaps() -> None:
    """Nothing is measured where nothing was asked."""
    found = gaps()

    assert (found.requests, found.smallest_ms, found.fair_ms, found.short) == (0, None, None, 0)
