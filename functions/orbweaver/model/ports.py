"""Ports of the outside world: files, the web, time, metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.model.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Print:
    """What a file is, without its contents: two of the same size and SHA-256 are the same."""

    bytes: int
    sha256: str


class Files(Protocol):
    """Where bodies and exports are written: a bucket, or a folder."""

    async def put(self, key: str, body: bytes) -> None:
        """Write a file whole; readers see all of it or nothing."""

    async def put_file(self, key: str, path: Path, sha256: str) -> None:
        """Write a local file whole, of which this is the SHA-256, without holding it in memory."""

    async def print_of(self, key: str) -> Print | None:
        """Say what a file is, None if there is none; contents are read only where need be."""

    async def get(self, key: str, bytes_max: int | None = None) -> bytes | None:
        """Read a file, None if there is none; raises TooLarge for one of more than `bytes_max`."""

    async def cut(self, key: str, offset: int, length: int) -> bytes | None:
        """Read a part of a file, None if there is none; raises Permanent if it is no part of it."""

    async def link(self, key: str, seconds: int) -> str:
        """Return an address by which its holder may read one file, for so long at most."""

    async def list(self, prefix: str) -> tuple[str, ...]:
        """Names of the files below a prefix, sorted."""

    async def folders(self, prefix: str) -> tuple[str, ...]:
        """Names of the folders right below a prefix, each ending in a slash, sorted.

        The prefix is empty or ends in a slash; of folders without any file nothing is said.
        """

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove files; those that are absent are passed over."""


class Events(Protocol):
    """The event bus, as workers need it."""

    async def completed(self, crawl: Crawl, total: Counts) -> None:
        """Announce that a crawl is finished; the event's id is the crawl's."""


class Secrets(Protocol):
    """Where secrets are kept."""

    async def read(self, name: str) -> str:
        """Read the current text of a secret, by its name or ARN; Permanent if there is none."""


class Fetcher(Protocol):
    """The web. Never raises for what a server, a network or a page does."""

    async def fetch(self, request: Request) -> Response | Failure:
        """Ask once; redirects are not followed."""


class Clock(Protocol):
    """Time: wall-clock ms for everything that is compared or stored."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class Metrics(Protocol):
    """Counters of an invocation; which there are: `model/metrics.py`."""

    def add(self, metric: Metric, value: float) -> None:
        """Add to a counter."""

    def observe(self, metric: Metric, value: float) -> None:
        """Note one value of many, each of which counts: of them there are percentiles."""

    def fail(self, reason: Reason, number: int) -> None:
        """Note why URLs failed."""

    def flush(self) -> None:
        """Write the counters out; called once at the end of an invocation."""
