"""Keep the cookies of a crawl: read them before a host is visited, store them with its responses.

A jar holds the cookies of one crawl and site. All workers of the crawl share it. robots.txt is
requested without cookies, and its response sets none.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from orbweaver.fetching.cookies import (
    apply_set_cookie,
    differs,
    from_text,
    header_of,
    jar_of,
    join_cookies,
    to_text,
)
from orbweaver.fetching.cookies_file import joined_jar
from orbweaver.model.http_exchange import Headers
from orbweaver.model.ports import Clock

if TYPE_CHECKING:
    from orbweaver.fetching.cookies import Jar
    from orbweaver.politeness.ports import Hosts

JARS_MAX = 1_000
COOKIE = "cookie"


class Cookies:
    """Reads, sends and stores the cookie jars of the crawls of this container."""

    def __init__(self, *, hosts: Hosts, clock: Clock) -> None:
        self._hosts = hosts
        self._clock = clock
        self._jars: OrderedDict[tuple[str, str], Jar] = OrderedDict()
        # A lock exists only while a task writes its jar.
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def load(self, crawl_id: str, url: str) -> None:
        # The jar is read again, because another worker may have received cookies meanwhile (for
        # example, a login).
        await self._read((crawl_id, jar_of(url)))

    async def headers(self, crawl_id: str, url: str, given: Headers) -> Headers:
        """Return the request headers `given`, with the cookies of the URL's site added."""
        header = await self._header(crawl_id, url)
        if header is None:
            return given
        own = next((value for name, value in given if name.lower() == COOKIE), None)
        others = tuple(pair for pair in given if pair[0].lower() != COOKIE)
        return (*others, ("Cookie", header if own is None else join_cookies(own, header)))

    async def names(self, crawl_id: str, url: str) -> frozenset[str]:
        """Return the names of the cookies that a request to the URL would have."""
        header = await self._header(crawl_id, url) or ""
        return frozenset(pair.partition("=")[0] for pair in header.split("; ") if pair)

    async def add(self, crawl_id: str, url: str, cookies: Jar) -> None:
        """Store cookies from elsewhere than a response. They replace cookies of the same name."""
        key = (crawl_id, jar_of(url))
        async with self._locks.setdefault(key, asyncio.Lock()):
            jar = joined_jar(await self._read(key), cookies)
            await self._hosts.keep_cookies(*key, to_text(jar), self._clock.now_ms())
            self._jars[key] = jar

    async def _header(self, crawl_id: str, url: str) -> str | None:
        key = (crawl_id, jar_of(url))
        jar = self._jars.get(key)
        if jar is None:
            jar = await self._read(key)
        return header_of(jar, url, self._clock.now_ms())

    async def store(self, crawl_id: str, url: str, lines: Iterable[bytes]) -> int:
        """Store the cookies in `lines` (Set-Cookie). Return the number of refused cookies."""
        key = (crawl_id, jar_of(url))
        async with self._locks.setdefault(key, asyncio.Lock()):
            before, now_ms = await self._read(key), self._clock.now_ms()
            jar, refused = apply_set_cookie(before, lines, url, now_ms)
            # Cookies are stored before any other effect of the response. So a redirect's target is
            # never requested without them. If two workers write at the same time, the last write
            # wins.
            if differs(jar, before, now_ms):
                await self._hosts.keep_cookies(*key, to_text(jar), now_ms)
                self._jars[key] = jar
        return refused

    async def _read(self, key: tuple[str, str]) -> Jar:
        text = await self._hosts.cookies(*key)
        jar = self._jars[key] = from_text(text) if text is not None else ()
        self._jars.move_to_end(key)
        while len(self._jars) > JARS_MAX:
            self._jars.popitem(last=False)
        return jar
