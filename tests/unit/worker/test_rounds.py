"""Duration of a worker's round (about a minute), and the packs that it takes on."""

from __future__ import annotations

from orbweaver.frontier.messages import Pack
from orbweaver.model.settings import Settings
from orbweaver.worker.rounds import LEAST_MS, Round
from orbweaver.worker.shutdown import ShutdownSignal
from tests.memory import ManualClock
from tests.unit.stage import CRAWL, NOW_MS, pack_of

SETTINGS = Settings.of(waits_billed="yes")
ROUND_MS = round(SETTINGS.worker.round_s * 1000)
ENOUGH_MS = 900_000


async def _none(_pack: Pack) -> None: ...


async def _begun(clock: ManualClock, ending: ShutdownSignal | None = None) -> Round:
    round_ = Round(
        clock=clock,
        settings=SETTINGS,
        deadline_ms=clock.at_ms + ENOUGH_MS,
        ending=ending or ShutdownSignal(),
    )
    await round_.run(_none(pack_of()), _none)
    return round_


async def test_rounds_end_at_same_time_of_crawl() -> None:
    ends = set()
    for began_ms in range(0, ROUND_MS, 5_000):
        clock = ManualClock(NOW_MS + began_ms)
        end_ms = (await _begun(clock)).until_ms(CRAWL.id, long=True)
        assert LEAST_MS <= end_ms - clock.at_ms <= ROUND_MS + LEAST_MS
        ends.add(end_ms % ROUND_MS)
    assert len(ends) == 1
    other_ms = (await _begun(ManualClock(NOW_MS))).until_ms("another", long=True)
    assert other_ms % ROUND_MS not in ends


async def test_invocation_takes_part_in_one_round() -> None:
    clock = ManualClock(NOW_MS)
    round_ = await _begun(clock)
    end_ms = round_.until_ms(CRAWL.id, long=True)
    assert round_.accepts_more(CRAWL.id)
    clock.at_ms = end_ms + 500
    assert round_.until_ms(CRAWL.id, long=True) == end_ms
    assert not round_.accepts_more(CRAWL.id)
    assert round_.rest_s(CRAWL.id, alone=False) == 0


async def test_longer_requests_start_earlier() -> None:
    round_ = await _begun(ManualClock(NOW_MS))
    default_s = Settings().fetching.fetch_total_s
    usual_ms, same_ms, early_ms, earlier_ms = (
        round_.until_ms(CRAWL.id, long=True, request_s=request_s)
        for request_s in (1.0, default_s, 1_000.0, 1_001.0)
    )
    assert usual_ms == same_ms == round_.until_ms(CRAWL.id, long=True)
    assert early_ms - earlier_ms == 1_000


async def test_pack_near_round_end_rests_until_end() -> None:
    clock, ending = ManualClock(NOW_MS), ShutdownSignal()
    round_ = await _begun(clock, ending)
    end_ms = round_.until_ms(CRAWL.id, long=True)
    clock.at_ms = end_ms - LEAST_MS
    assert round_.accepts_more(CRAWL.id)
    assert round_.rest_s(CRAWL.id, alone=False) == 0
    clock.at_ms = end_ms - 1_200
    assert not round_.accepts_more(CRAWL.id)
    assert round_.rest_s(CRAWL.id, alone=False) == 2
    assert round_.rest_s(CRAWL.id, alone=True) == 1, "it is there when the next one begins"
    ending.announce()
    assert round_.rest_s(CRAWL.id, alone=False) == 0
