"""Limits on concurrent large bodies, which must not delay small bodies or other hosts."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

from orbweaver.adapters.web.client import Limits
from orbweaver.adapters.web.large_bodies import LATER_S, SMALL_BYTES, LargeBodies
from orbweaver.model.http_exchange import Failure, Response
from tests.integration.fetcher.origin import Asked, answer, fetching, request, serving
from tests.sites.steps import Act, Step

if TYPE_CHECKING:
    from orbweaver.adapters.web.client import HttpFetcher

HTML = "Content-Type: text/html"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
# Steps of a slow body, sent once it counts as large.
DROP: list[Step] = [b"<p>drop", 0.1]
BOOK = {f"{name}.test": ["127.0.0.1"] for name in ("a", "b", "c")}
LIMITS = Limits(connections=16, connections_per_host=8)
LARGE = b"<p>large " * (2 * SMALL_BYTES // 9)


async def get(
    fetcher: HttpFetcher, port: int, name: str, path: str, total_s: float = 60.0
) -> Response | Failure:
    url = f"http://{name}.test:{port}/{path}"
    return await fetcher.fetch(request(url, body_bytes_max=5_000_000, total_s=total_s))


async def test_host_with_slow_large_bodies_delays_only_itself() -> None:
    begun = asyncio.Semaphore(0)

    def say(asked: Asked) -> list[Step]:
        if asked.target == "/slow":
            # More than the first bytes, then drop by drop.
            begun.release()
            return [HEAD, LARGE, *DROP * 600, Act.CLOSE]
        return [answer(LARGE if asked.target == "/large" else b"<p>small", HTML)]

    async with serving(say) as origin, fetching(LIMITS, book=BOOK, large=LargeBodies(3)) as fetcher:
        port = origin.port
        slow = [asyncio.create_task(get(fetcher, port, "a", "slow")) for _ in range(2)]
        for _ in slow:
            await begun.acquire()
        await asyncio.sleep(0.3)
        small = await get(fetcher, port, "a", "small")
        others = await asyncio.gather(*(get(fetcher, port, "b", "large") for _ in range(4)))
        crowded = await get(fetcher, port, "a", "large", total_s=1.5)
        for task in slow:
            task.cancel()
        await asyncio.wait(slow)
        after = await get(fetcher, port, "a", "large")
    assert isinstance(small, Response)
    assert [isinstance(one, Response) and one.body == LARGE for one in others] == [True] * 4
    assert isinstance(crowded, Failure)
    assert crowded.later_s == LATER_S
    assert crowded.received > 0
    assert isinstance(after, Response)
    assert after.body == LARGE


async def test_paused_body_beyond_idle_limit_is_read() -> None:
    def say(asked: Asked) -> list[Step]:
        if asked.target == "/slow":
            return [HEAD, LARGE, *DROP * 40, Act.CLOSE]
        return [answer(LARGE, HTML)]

    limits = Limits(connections=8, connections_per_host=8, idle_s=1.5)
    async with serving(say) as origin, fetching(limits, book=BOOK, large=LargeBodies(1)) as fetcher:
        slow = asyncio.create_task(get(fetcher, origin.port, "a", "slow"))
        await asyncio.sleep(0.2)
        waited = await get(fetcher, origin.port, "b", "large")
        first = await slow
    assert isinstance(first, Response)
    assert isinstance(waited, Response)
    assert waited.body == LARGE


async def test_small_answer_decoding_to_large_body_waits() -> None:
    packed = gzip.compress(b"<p>" + bytes(4_000_000), mtime=0)

    def say(asked: Asked) -> list[Step]:
        if asked.target == "/slow":
            return [HEAD, LARGE, *DROP * 600, Act.CLOSE]
        return [answer(packed, HTML, "Content-Encoding: gzip")]

    async with serving(say) as origin, fetching(LIMITS, book=BOOK, large=LargeBodies(1)) as fetcher:
        slow = asyncio.create_task(get(fetcher, origin.port, "a", "slow"))
        await asyncio.sleep(0.3)
        crowded = await get(fetcher, origin.port, "b", "packed", total_s=1.0)
        slow.cancel()
        await asyncio.wait([slow])
        after = await get(fetcher, origin.port, "b", "packed")
    assert isinstance(crowded, Failure)
    assert crowded.later_s == LATER_S
    assert isinstance(after, Response)
    assert after.body is not None
    assert len(after.body) == 4_000_003
