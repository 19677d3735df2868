"""Clock of this machine while the system time is changed."""

from __future__ import annotations

import pytest

from orbweaver.adapters.local.clock import SteadyClock

NOW_MS = 1_795_251_600_000


@pytest.mark.parametrize("by_ms", [-86_400_000, -60_000, 60_000, 31_536_000_000])
def test_steady_clock_after_a_jump_goes_on_and_reports_it_once(by_ms: int) -> None:
    wall_ms, passed_ms = NOW_MS, 5_000
    jumps: list[int] = []
    clock = SteadyClock(on_jump=jumps.append, wall_ms=lambda: wall_ms, passed_ms=lambda: passed_ms)
    wall_ms, passed_ms = wall_ms + 1_000, passed_ms + 1_000
    assert (clock.now_ms(), jumps) == (NOW_MS + 1_000, [])
    wall_ms, passed_ms = wall_ms + by_ms + 1_000, passed_ms + 1_000
    assert (clock.now_ms(), jumps) == (NOW_MS + 2_000, [by_ms])
    assert (clock.now_ms(), jumps) == (NOW_MS + 2_000, [by_ms])
