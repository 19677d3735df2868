"""Raw servers that send scripted bytes, valid HTTP or not.

An answer is a sequence of steps (`tests/sites/steps.py`), and no connection lasts longer than
`TALK_S_MAX`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import ssl
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from tests.sites.server import HOST
from tests.sites.steps import Step, play

CONNECTIONS_MAX = 512
TALK_S_MAX = 60.0
HEAD_BYTES_MAX = 65_536
LOG_RECORDS_MAX = 100_000
# Headers that could leak secrets.
SECRETS = ("authorization", "cookie", "proxy-authorization")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A received request; `turn` counts the requests for this target from 1."""

    origin: str
    target: str
    turn: int
    connection: int
    at_s: float
    headers: tuple[tuple[str, str], ...] = ()

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(name for name in SECRETS if self.header(name) is not None)


class Log:
    """Requests to all servers of a site, in order of arrival."""

    def __init__(self) -> None:
        self._heard: deque[Heard] = deque(maxlen=LOG_RECORDS_MAX)

    def add(self, heard: Heard) -> None:
        self._heard.append(heard)

    def of(self, origin: str | None = None) -> list[Heard]:
        return [heard for heard in list(self._heard) if origin in (None, heard.origin)]

    def targets(self, origin: str) -> list[str]:
        return [heard.target for heard in self.of(origin)]


class Server:
    """One port: `say` returns a request's answer, `greet` is sent before any request."""

    def __init__(
        self,
        name: str,
        log: Log,
        say: Callable[[Heard], Iterable[Step]],
        *,
        greet: Callable[[], Iterable[Step]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.port = 0
        self.connections = 0
        self.faults: list[BaseException] = []  # Exceptions raised by scripts.
        self._log = log
        self._say = say
        self._greet = greet
        self._tls = tls
        self._turns: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[None]:
        """Serve on a port, a free one if it is 0."""
        server = await asyncio.start_server(
            self._meet, HOST, port, ssl=self._tls, limit=HEAD_BYTES_MAX, backlog=256
        )
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            if len(self._tasks) <= CONNECTIONS_MAX:
                await self._converse(reader, writer, number)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # The client left or timed out (TimeoutError is an OSError).
        except asyncio.CancelledError:
            pass  # The site is closing; a raised error would be logged.
        except Exception as error:  # noqa: BLE001 - told to the tests, which would never see it
            self.faults.append(error)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        if self._greet is not None:
            async with asyncio.timeout(TALK_S_MAX):
                await play(self._greet(), reader, writer)
            return
        going_on = True
        while going_on:
            head = await reader.readuntil(b"\r\n\r\n")
            heard = self._heard(head, number)
            self._log.add(heard)
            async with asyncio.timeout(TALK_S_MAX):
                going_on = await play(self._say(heard), reader, writer)

    def _heard(self, head: bytes, number: int) -> Heard:
        line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        target = [*line.split(" "), ""][1]
        self._turns[target] += 1
        pairs = (field.partition(":") for field in fields)
        return Heard(
            origin=self.name,
            target=target,
            turn=self._turns[target],
            connection=number,
            at_s=time.monotonic(),
            headers=tuple((name.lower(), value.strip()) for name, _, value in pairs),
        )


@contextlib.contextmanager
def deaf() -> Iterator[int]:
    """Reserve a port without a listener, so that connections are refused."""
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        yield unused.getsockname()[1]


@contextlib.contextmanager
def hole() -> Iterator[int]:
    """Open a port that swallows connection requests: its backlog of one is full."""
    with socket.socket() as listener, contextlib.ExitStack() as fillers:
        listener.bind((HOST, 0))
        listener.listen(0)
        for _ in range(3):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
