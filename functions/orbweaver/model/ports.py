"""Define interfaces to the outside world: files, the web, time, secrets, metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.model.metrics import Metric


@value_class
class Print:
    """Identity of a file's contents. Files with the same size and SHA-256 are equal."""

    bytes: int
    sha256: str


class Files(Protocol):
    """Storage of bodies and exports: a bucket or a folder."""

    async def put(self, key: str, body: bytes) -> None:
        """Write a file atomically."""

    async def put_file(self, key: str, path: Path, sha256: str) -> None:
        """Write a local file with this SHA-256 atomically, without holding it in memory."""

    async def print_of(self, key: str) -> Print | None:
        """Return a file's size and hash, or None. Reads its contents only if necessary."""

    async def get(self, key: str, bytes_max: int | None = None) -> bytes | None:
        """Read a file. Return None if it does not exist. Raises TooLarge above `bytes_max`."""

    async def cut(self, key: str, offset: int, length: int) -> bytes | None:
        """Read a part of a file, or None. Raises Permanent for a range outside of the file."""

    async def link(self, key: str, seconds: int) -> str:
        """Return a URL with which anyone can read one file for a number of seconds."""

    async def list(self, prefix: str) -> tuple[str, ...]:
        """Return the sorted names of the files below a prefix."""

    async def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the sorted folders directly below a prefix, each with a final slash.

        The prefix is empty or ends in a slash. Folders without files are not included.
        """

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete files. Missing files are ignored."""


class Events(Protocol):
    """Publishes events of workers on the event bus."""

    async def completed(self, crawl: Crawl, total: Counts) -> None:
        """Announce that a crawl is finished. The event's id is the crawl's id."""


class Secrets(Protocol):
    """Storage of secrets."""

    async def read(self, name: str) -> str:
        """Read the current text of a secret by name or ARN. Raises Permanent if there is none."""


class Fetcher(Protocol):
    """HTTP client. Never raises because of a server, a network or a page."""

    async def fetch(self, request: Request) -> Response | Failure:
        """Send one request. Redirects are not followed."""


class Clock(Protocol):
    """Source of the time. Stored and compared times are wall-clock ms."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""

    async def sleep(self, seconds: float) -> None: ...


class Metrics(Protocol):
    """Counters of an invocation. `model/metrics.py` lists the metrics."""

    def add(self, metric: Metric, value: float) -> None: ...

    def observe(self, metric: Metric, value: float) -> None:
        """Record one value of a metric with percentiles."""

    def fail(self, reason: Reason, number: int) -> None: ...

    def flush(self) -> None:
        """Write the counters. Called once at the end of an invocation."""
