"""An HTTP client for tests of the sites: no redirects, no decoding, URLs unchanged."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import aiohttp
import pytest
from yarl import URL

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """An answer as received."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


class Client:
    """A session with one connection."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, url: str, method: str = "GET", **headers: str) -> Got:
        """Send a request; `_` in header names becomes `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        target = URL(url, encoded=True)
        async with self._session.request(
            method, target, headers=named, allow_redirects=False
        ) as answer:
            return Got(status=answer.status, headers=answer.headers, body=await answer.read())


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    connector = aiohttp.TCPConnector(limit=1)
    headers = {"User-Agent": "test-client", "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(
        connector=connector, headers=headers, auto_decompress=False
    ) as session:
        yield Client(session)
