"""What a container uses: counted at its clients, by crawl and stage, until a commit takes it."""

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
from tests.unit.metering import PUT, Clock, FakeClient, meter_by


@pytest.fixture
def clock() -> Clock:
    """Start a clock."""
    return Clock()


@pytest.fixture
def meter(clock: Clock) -> UsageMeter:
    """Make a meter by that clock."""
    return meter_by(clock)


def test_a_container_begins_once(meter: UsageMeter, clock: Clock) -> None:
    """Its beginning is billed like its work, and is the first invocation's alone."""
    meter.begun(0.75)
    totals = []
    for _ in range(2):
        with meter.invocation():
            clock.now_s += 2
            totals.append(meter.total[Term.MB_MS, Stage.RUN])
    memory_mb = 1_000
    assert totals == [2_750 * memory_mb, 2_000 * memory_mb]
    with meter.booking("a") as counts:
        assert counts["units.mb_ms.run"] == 4_750 * memory_mb


# --- for whom -----------------------------------------------------------------------------------


async def test_tasks_are_at_work_for_crawls(meter: UsageMeter) -> None:
    """Each task's uses are its crawl's, whatever runs beside it; a commit takes that crawl's."""

    async def work(crawl: str, number: int) -> None:
        with meter.of(crawl):
            for _ in range(number):
                await asyncio.sleep(0)
                meter.use(Term.WRITE, Stage.CLAIM, 1)
            with meter.at(Stage.ROBOTS):
                meter.use(Term.SQS, Stage.SEND, number)

    await asyncio.gather(work("a", 2), work("b", 3))
    with meter.booking("a") as counts:
        assert counts == {"units.write.claim": 2, "units.sqs.send": 2}
    with meter.booking("b") as counts:
        assert counts == {"units.write.claim": 3, "units.sqs.send": 3}


def test_a_stage_may_be_named(meter: UsageMeter) -> None:
    """Whoever knows better than the table says so, for the crawl that is at work."""
    client = FakeClient("dynamodb")
    meter.watch(client)
    with meter.of("a"), meter.at(Stage.ROBOTS):
        client.ask("PutItem", dict(PUT), {})
    with meter.booking("a") as counts:
        assert counts == {"units.write.robots": 2}


def test_a_commit_that_fails_books_nothing(meter: UsageMeter) -> None:
    """What was used stays to be booked by the next one, and is booked once."""
    with meter.of("a"):
        meter.use(Term.WRITE, Stage.CLAIM, 1)
    with pytest.raises(RuntimeError), meter.booking("a"):
        raise RuntimeError
    with meter.of("a"):
        meter.use(Term.WRITE, Stage.CLAIM, 1)
    with meter.booking("a") as counts:
        assert counts == {"units.write.claim": 2}
    with meter.booking("a") as counts:
        assert counts == {}


def test_what_is_nobodys_goes_along(meter: UsageMeter, clock: Clock) -> None:
    """Time, the invocation and its messages are of whoever commits next; the rest, of the next."""
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


def test_the_total_is_of_one_invocation(meter: UsageMeter) -> None:
    """It begins anew with each."""
    with meter.invocation():
        meter.use(Term.WRITE, Stage.CLAIM, 5)
    with meter.invocation():
        assert Term.WRITE not in meter.total.by_term


def test_crawls_that_never_commit_are_forgotten(meter: UsageMeter) -> None:
    """A container remembers so many; what the first of more used becomes nobody's."""
    for number in range(CRAWLS_MAX + 5):
        with meter.of(f"crawl-{number}"):
            meter.use(Term.WRITE, Stage.CLAIM, 1)
    with meter.booking("another") as counts:
        assert units_of(counts).by_term[Term.WRITE] == 5 + 1


# --- what is sent, what is logged ---------------------------------------------------------------


async def test_what_is_sent_to_the_web(meter: UsageMeter) -> None:
    """The request, by what it holds, and packets that acknowledge the answer."""

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


def test_what_is_logged(meter: UsageMeter) -> None:
    """Every line, and what CloudWatch adds to it."""
    below = io.StringIO()
    stream = MeteredStream(below, meter)
    stream.write("größe\n")
    stream.flush()
    assert below.getvalue() == "größe\n"
    assert meter.total.by_term == {Term.LOG_BYTES: 8 + LINE_BYTES}
