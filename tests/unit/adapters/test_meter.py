"""Usage of AWS services, counted by crawl and stage until a commit stores it."""

from __future__ import annotations

import asyncio
import io

import pytest

from orbweaver.adapters.aws.usage_meter import (
    CRAWLS_MAX,
    LINE_BYTES,
    PLATFORM_BYTES,
    MeteredFetcher,
    MeteredStream,
    UsageMeter,
)
from orbweaver.budget.billing_units import Stage, Term, units_of
from orbweaver.model.http_exchange import Request, Response
from tests.unit.metering import Clock, meter_by


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def meter(clock: Clock) -> UsageMeter:
    return meter_by(clock)


def test_container_start_is_billed_once(meter: UsageMeter, clock: Clock) -> None:
    meter.record_init(0.75)
    totals = []
    for _ in range(2):
        with meter.invocation():
            clock.now_s += 2
            totals.append(meter.total[Term.MB_MS, Stage.RUN])
    memory_mb = 1_000
    assert totals == [2_750 * memory_mb, 2_000 * memory_mb]
    with meter.booking("a") as counts:
        assert counts["units.mb_ms.run"] == 4_750 * memory_mb


# --- crawls and stages --------------------------------------------------------------------------


async def test_usage_of_concurrent_tasks_belongs_to_their_crawls(meter: UsageMeter) -> None:
    async def work(crawl: str, number: int) -> None:
        with meter.for_crawl(crawl):
            for _ in range(number):
                await asyncio.sleep(0)
                meter.use(Term.WRITE, Stage.CLAIM, 1)
            meter.use(Term.SQS, Stage.SEND, number)

    await asyncio.gather(work("a", 2), work("b", 3))
    with meter.booking("a") as counts:
        assert counts == {"units.write.claim": 2, "units.sqs.send": 2}
    with meter.booking("b") as counts:
        assert counts == {"units.write.claim": 3, "units.sqs.send": 3}


def test_failed_commit_books_nothing(meter: UsageMeter) -> None:
    with meter.for_crawl("a"):
        meter.use(Term.WRITE, Stage.CLAIM, 1)
    with pytest.raises(RuntimeError), meter.booking("a"):
        raise RuntimeError
    with meter.for_crawl("a"):
        meter.use(Term.WRITE, Stage.CLAIM, 1)
    with meter.booking("a") as counts:
        assert counts == {"units.write.claim": 2}
    with meter.booking("a") as counts:
        assert counts == {}


def test_unassigned_usage_is_booked_by_next_commit(meter: UsageMeter, clock: Clock) -> None:
    with meter.invocation(["x" * 70_000, "y"]):
        clock.now_s += 1.5
        with meter.booking("a") as counts:
            assert counts == {
                "units.invocations.run": 1,
                "units.log_bytes.run": PLATFORM_BYTES,
                "units.sqs.receive": 2 + 1,
                "units.mb_ms.run": 1_500_000,
            }
        clock.now_s += 0.5
        assert meter.total.by_term[Term.MB_MS] == 2_000_000
        assert meter.dollars() > 0
    clock.now_s += 3_600  # between invocations
    with meter.booking("b") as counts:
        assert counts == {"units.mb_ms.run": 500_000}


def test_total_restarts_with_each_invocation(meter: UsageMeter) -> None:
    with meter.invocation():
        meter.use(Term.WRITE, Stage.CLAIM, 5)
    with meter.invocation():
        assert Term.WRITE not in meter.total.by_term


def test_usage_of_uncommitted_crawls_is_reassigned(meter: UsageMeter) -> None:
    for number in range(CRAWLS_MAX + 5):
        with meter.for_crawl(f"crawl-{number}"):
            meter.use(Term.WRITE, Stage.CLAIM, 1)
    with meter.booking("another") as counts:
        assert units_of(counts).by_term[Term.WRITE] == 5 + 1


# --- sent and logged bytes ----------------------------------------------------------------------


async def test_bytes_sent_to_web_are_counted(meter: UsageMeter) -> None:
    class Web:
        async def fetch(self, _request: Request) -> Response:
            return Response(status=200, headers={}, body=b"", received=100 * 2_896)

    request = Request(
        url="https://example.com/",
        user_agent="spider",
        accept=frozenset(),
        body_bytes_max=1,
        total_s=1,
        headers=(("a", "b"),),
    )
    await MeteredFetcher(Web(), meter).fetch(request)
    assert meter.total.by_term == {Term.SENT_BYTES: 180 + 20 + 6 + 2 + 100 * 52}


def test_logged_bytes_are_counted(meter: UsageMeter) -> None:
    below = io.StringIO()
    stream = MeteredStream(below, meter)
    stream.write("größe\n")
    stream.flush()
    assert below.getvalue() == "größe\n"
    assert meter.total.by_term == {Term.LOG_BYTES: 8 + LINE_BYTES}
