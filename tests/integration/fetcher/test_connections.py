"""Connections over time: containers that stay warm or were frozen, and stale pooled connections."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import pytest

from orbweaver.adapters.web.client import HttpFetcher, Limits
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.origin import (
    LOOPBACK,
    Asked,
    Names,
    Origin,
    answer,
    fetching,
    request,
    serving,
)
from tests.sites.steps import Act, Step


def echo(asked: Asked) -> tuple[Step, ...]:
    return (answer(asked.target.encode()),)


async def body_of(fetcher: HttpFetcher, url: str) -> bytes | None:
    result = await fetcher.fetch(request(url))
    assert isinstance(result, Response), result
    return result.body


@pytest.fixture
def elsewhere() -> Iterator[Origin]:
    """Run a server in a thread, so that it outlives a test's loops."""
    over = threading.Event()
    found: SimpleQueue[Origin] = SimpleQueue()

    async def run() -> None:
        async with serving(echo) as origin:
            found.put(origin)
            await asyncio.to_thread(over.wait, 60)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(asyncio.run, run())
        yield found.get(timeout=5)
        over.set()
        done.result(5)


def test_two_loops_in_sequence_work(elsewhere: Origin) -> None:
    """A warm container with a new loop per invocation leaks no connection (case 29)."""
    fetcher = HttpFetcher(allowed=LOOPBACK, resolver=lambda: Names({}))
    for target in (b"/first", b"/second", b"/third"):
        assert asyncio.run(body_of(fetcher, elsewhere.url(target.decode()))) == target
    gc.collect()  # An open connection would raise a ResourceWarning, which is an error here.


def test_one_loop_for_all_invocations_keeps_connections(elsewhere: Origin) -> None:
    """A warm container with one loop (case 29)."""
    fetcher = HttpFetcher(allowed=LOOPBACK, resolver=lambda: Names({}))
    with asyncio.Runner() as runner:
        for _ in range(3):
            assert runner.run(body_of(fetcher, elsewhere.url("/x"))) == b"/x"
        assert elsewhere.connections == 1
        runner.run(fetcher.aclose())


def test_alternating_loops_get_new_sessions(elsewhere: Origin) -> None:
    fetcher = HttpFetcher(allowed=LOOPBACK, resolver=lambda: Names({}))
    with asyncio.Runner() as one, asyncio.Runner() as other:
        for _ in range(2):
            assert one.run(body_of(fetcher, elsewhere.url("/1"))) == b"/1"
            assert other.run(body_of(fetcher, elsewhere.url("/2"))) == b"/2"


def test_session_of_closed_loop_is_closed_later() -> None:
    async def once(fetcher: HttpFetcher) -> bytes | None:
        async with serving([answer(b"bye", "Connection: close")]) as origin:
            return await body_of(fetcher, origin.url())

    fetcher = HttpFetcher(allowed=LOOPBACK, resolver=lambda: Names({}))
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(once(fetcher)) == b"bye"
    loop.close()
    assert asyncio.run(once(fetcher)) == b"bye"
    gc.collect()


async def test_fetch_after_aclose() -> None:
    async with serving(echo) as origin, fetching() as fetcher:
        await fetcher.aclose()
        assert await body_of(fetcher, origin.url("/a")) == b"/a"
        await fetcher.aclose()
        await fetcher.aclose()
        assert await body_of(fetcher, origin.url("/b")) == b"/b"
        assert origin.connections == 2


async def test_connection_is_used_again() -> None:
    async with serving(echo) as origin, fetching() as fetcher:
        for number in range(5):
            assert await body_of(fetcher, origin.url(f"/{number}")) == b"/%d" % number
        assert origin.connections == 1


def dies_when_asked_again(act: Act) -> Callable[[Asked], tuple[Step, ...]]:
    """Answer once on each connection, then break it."""
    seen: set[int] = set()

    def say(asked: Asked) -> tuple[Step, ...]:
        if asked.connection in seen:
            return (act,)
        seen.add(asked.connection)
        return (answer(asked.target.encode()),)

    return say


@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
async def test_dead_pooled_connection_costs_one_silent_retry(act: Act) -> None:
    """The server closes or resets an idle connection at the next request (case 30)."""
    async with serving(dies_when_asked_again(act)) as origin, fetching() as fetcher:
        assert await body_of(fetcher, origin.url("/1")) == b"/1"
        assert await body_of(fetcher, origin.url("/2")) == b"/2"
        assert [asked.target for asked in origin.asked] == ["/1", "/2", "/2"]
        assert origin.connections == 2


@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
async def test_all_pooled_connections_are_dead(act: Act) -> None:
    """The container was frozen meanwhile; no request fails (case 30)."""
    limits = Limits(connections_per_host=4)
    async with serving(dies_when_asked_again(act)) as origin, fetching(limits) as fetcher:
        for round_of in range(3):
            paths = [f"/{round_of}/{number}" for number in range(4)]
            bodies = await asyncio.gather(*(body_of(fetcher, origin.url(p)) for p in paths))
            assert bodies == [path.encode() for path in paths]


@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
async def test_url_breaking_connections_is_requested_twice(act: Act) -> None:
    """One pooled connection is tried, then a new one (case 32)."""

    def say(asked: Asked) -> tuple[Step, ...]:
        return (act,) if asked.target == "/bad" else (0.05, answer(b"x"))

    limits = Limits(connections_per_host=8)
    async with serving(say) as origin, fetching(limits) as fetcher:
        await asyncio.gather(*(body_of(fetcher, origin.url(f"/{n}")) for n in range(8)))
        assert origin.connections == 8
        result = await fetcher.fetch(request(origin.url("/bad")))
        assert isinstance(result, Failure)
        assert result.reason is Reason.DISCONNECTED
        assert sum(asked.target == "/bad" for asked in origin.asked) == 2
        assert await body_of(fetcher, origin.url("/good")) == b"x"


@pytest.mark.parametrize("last", [(Act.CLOSE,), (0.02, Act.RESET)])
async def test_connection_closed_while_idle_is_not_used(last: tuple[Step, ...]) -> None:
    """The server closed the connection between two requests (case 30)."""
    async with (
        serving(lambda asked: (answer(asked.target.encode()), *last)) as origin,
        fetching() as fetcher,
    ):
        for number in range(3):
            assert await body_of(fetcher, origin.url(f"/{number}")) == b"/%d" % number
            async with asyncio.timeout(2):
                await origin.quiet.wait()
        assert [asked.target for asked in origin.asked] == ["/0", "/1", "/2"]


async def test_break_within_head_is_failure() -> None:
    def say(asked: Asked) -> tuple[Step, ...]:
        if asked.target == "/2":
            return (b"HTTP/1.1 200 OK\r\nX: ", Act.CLOSE)
        return echo(asked)

    async with serving(say) as origin, fetching() as fetcher:
        assert await body_of(fetcher, origin.url("/1")) == b"/1"
        result = await fetcher.fetch(request(origin.url("/2")))
        assert len(origin.asked) == 2
    assert isinstance(result, Failure)
    assert result.reason is Reason.DISCONNECTED
    assert result.detail == "the connection was closed within the head of the answer"


@pytest.mark.parametrize(
    ("pause_s", "surplus"),
    [
        (0.0, answer(b"an answer to nobody")),
        (0.02, answer(b"an answer to nobody")),
        (0.02, b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n"),
        (0.02, b"surplus"),
        (0.02, b"\r\n\r\n"),
    ],
    ids=["at once", "another answer", "idle for too long", "garbage", "line ends"],
)
async def test_unsolicited_answer_closes_idle_connection(pause_s: float, surplus: bytes) -> None:
    """The unsolicited answer is not returned for the next URL (case 52)."""

    def say(asked: Asked) -> tuple[Step, ...]:
        return (*echo(asked), pause_s, surplus) if asked.target == "/1" else echo(asked)

    async with serving(say) as origin, fetching() as fetcher:
        assert await body_of(fetcher, origin.url("/1")) == b"/1"
        await asyncio.sleep(0.05)
        assert await body_of(fetcher, origin.url("/2")) == b"/2"
        assert await body_of(fetcher, origin.url("/3")) == b"/3"


EVIL = answer(b"an answer to nobody")


@pytest.mark.parametrize(
    "surplus",
    [
        EVIL,
        answer(b"an answer to nobody", "Connection: close"),
        b"HTTP/1.1 200 OK\r\n\r\nan answer to nobody",
        b"no answer at all\r\n\r\n",
    ],
    ids=["an answer", "the last one", "without an end", "garbage"],
)
async def test_surplus_answer_after_next_request_is_discarded(
    surplus: bytes,
) -> None:
    def say(asked: Asked) -> Iterator[Step]:
        if asked.target == "/3" and asked.connection == 1:
            yield surplus
            yield 0.05
        yield from echo(asked)

    async with serving(say) as origin, fetching() as fetcher:
        for number in range(6):
            assert await body_of(fetcher, origin.url(f"/{number}")) == b"/%d" % number
        targets = [asked.target for asked in origin.asked]
        assert targets == ["/0", "/1", "/2", "/3", "/3", "/4", "/5"]
        assert [asked.connection for asked in origin.asked] == [1, 1, 1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "behind",
    [EVIL, b"H", b"HTTP/1.1 200 OK\r\nContent-Le", b"surplus"],
    ids=["an answer", "a byte", "half a head", "garbage"],
)
@pytest.mark.parametrize("head", ["Content-Length: 1", "Transfer-Encoding: chunked"])
async def test_surplus_after_body_ends_connection_reuse(head: str, behind: bytes) -> None:
    body = b"x" if head.startswith("C") else b"1\r\nx\r\n0\r\n\r\n"
    whole = f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body

    def say(asked: Asked) -> tuple[Step, ...]:
        return (whole + behind,) if asked.target == "/0" else (whole,)

    async with serving(say) as origin, fetching() as fetcher:
        for number in range(3):
            assert await body_of(fetcher, origin.url(f"/{number}")) == b"x"
        assert [asked.connection for asked in origin.asked] == [1, 2, 3]


async def test_unsolicited_answer_in_socket_buffer_is_detected() -> None:
    """The answer arrived while the container was frozen (case 52)."""
    sent, over = threading.Event(), threading.Event()

    def say(asked: Asked) -> Iterator[Step]:
        yield from echo(asked)
        if asked.target == "/1":
            yield 0.05
            yield answer(b"an answer to nobody")
            sent.set()

    found: SimpleQueue[Origin] = SimpleQueue()

    async def run() -> None:
        async with serving(say) as origin:
            found.put(origin)
            await asyncio.to_thread(over.wait, 10)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(asyncio.run, run())
        origin = found.get(timeout=5)
        async with fetching() as fetcher:
            assert await body_of(fetcher, origin.url("/1")) == b"/1"
            assert sent.wait(5)  # This loop is frozen meanwhile, the server's is not.
            assert await body_of(fetcher, origin.url("/2")) == b"/2"
        over.set()
        done.result(5)


async def test_connections_per_host_are_limited() -> None:
    limits = Limits(connections_per_host=1, connect_s=0.3)
    async with serving([0.1, answer(b"x")]) as origin, fetching(limits) as fetcher:
        bodies = await asyncio.gather(*(body_of(fetcher, origin.url("/")) for _ in range(5)))
        assert bodies == [b"x"] * 5
        assert origin.connections == 1


async def test_total_connections_are_limited() -> None:
    book = {f"h{number}.test": ["127.0.0.1"] for number in range(6)}
    limits = Limits(connections=2)
    most = 0
    async with serving([0.02, answer(b"x", "Connection: close")]) as origin:

        async def one(fetcher: HttpFetcher, host: str) -> None:
            nonlocal most
            assert await body_of(fetcher, origin.url("/", host)) == b"x"
            most = max(most, origin.open)

        async with fetching(limits, book=book) as fetcher:
            await asyncio.gather(*(one(fetcher, host) for host in book))
    assert 1 <= most <= 2


async def test_connection_idle_beyond_keep_alive_is_not_used() -> None:
    async with serving(echo) as origin, fetching(Limits(keepalive_s=0.02)) as fetcher:
        assert await body_of(fetcher, origin.url("/1")) == b"/1"
        await asyncio.sleep(0.05)
        assert await body_of(fetcher, origin.url("/2")) == b"/2"
        assert origin.connections == 2
