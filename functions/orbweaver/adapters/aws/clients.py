"""AWS clients of a container, and the one table that turns AWS's errors into ours.

Rules
- One session and one client a service for the life of a container: signing keys, connections and
  parsed service models are made once (a client costs about 20 ms to make).
- A session of aiobotocore's own: what aioboto3 and boto3 put around it is unused here, and
  took 50 ms to import.
- Time limits are short and tries few, so that an unknown outcome shows up early, while there is
  still time to do something about it: every effect is idempotent.
- Errors are told apart by their code, their type or the status of the answer, never by text. What
  is in no table is `Permanent`: repeating what is not understood hides it.
- Where AWS takes a batch in part, only the rest is sent again, after a pause of random length
  (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015), a bounded number of times.

The region is that of `AWS_REGION`, `AWS_DEFAULT_REGION` or the profile, in this order; by itself
botocore does not read the first. The endpoint of an emulator comes from `AWS_ENDPOINT_URL`, which
botocore reads by itself.
Socket options (`tcp_keepalive`) are not set: aiobotocore 2.25 ignores them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from io import BytesIO
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import aiohttp
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from orbweaver.adapters.web import tls
from orbweaver.model.errors import Permanent, PortError, Transient

if TYPE_CHECKING:
    from random import Random

    from orbweaver.model.ports import Clock

T = TypeVar("T")

CONNECT_S = 2
READ_S = 5
# A whole file travels in one S3 request, in either direction.
READ_FILE_S = 30
CALL_TRIES = 3
CONNECTIONS_MAX = 64
ONE_GO_BYTES_MAX = 256 * 1024

# Key in a profile, variables, no default, no conversion: as botocore writes its own.
REGION = ("region", ["AWS_REGION", "AWS_DEFAULT_REGION"], None, None)

BATCH_TRIES = 8
BACKOFF_BASE_S = 0.025
BACKOFF_CAP_S = 1.0

SERVER_ERROR_MIN = 500
TOO_MANY_REQUESTS = 429

TRANSIENT_CODES = frozenset(
    {
        "BandwidthLimitExceeded",
        "ConcurrentModificationException",  # Glue: another writer was at the same table
        "ConditionalRequestConflict",
        "EC2ThrottledException",
        "ExpiredToken",  # another container, or this one in a moment, has fresh credentials
        "ExpiredTokenException",
        "InternalError",
        "InternalException",
        "InternalFailure",
        "InternalServerError",
        "KMS.ThrottlingException",
        "KmsThrottled",
        "LimitExceededException",
        "OperationAborted",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeTooSkewed",  # botocore corrects its clock by the answer
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
TRANSIENT_TYPES: tuple[type[Exception], ...] = (
    boto.ConnectionError,
    boto.CredentialRetrievalError,
    boto.HTTPClientError,
    boto.IncompleteReadError,
    ResponseParserError,
    aiohttp.ClientError,
    TimeoutError,
)


class _HttpSession(AIOHTTPSession):
    """aiobotocore's connections, all clients' with the same certificate authorities."""

    # Private to aiobotocore 2.25, and so in none of its stubs.
    _connector_args: dict[str, Any]
    _max_pool_connections: int
    _verify: bool | str | None

    async def send(self, request: Any) -> Any:
        # aiohttp sends bytes in one go, and warns that a large body holds the event loop up.
        if isinstance(request.body, bytes) and len(request.body) > ONE_GO_BYTES_MAX:
            request.body = BytesIO(request.body)
        return await super().send(request)

    def _create_connector(self, proxy_url: str | None) -> aiohttp.TCPConnector:
        if proxy_url is not None or not self._verify:
            connector: aiohttp.TCPConnector = super()._create_connector(proxy_url)  # type: ignore[misc]
            return connector
        context = tls.context()
        if isinstance(self._verify, str):  # `AWS_CA_BUNDLE`
            context = ssl.create_default_context(cafile=self._verify)
        limit = self._max_pool_connections
        return aiohttp.TCPConnector(limit=limit, ssl=context, **self._connector_args)


def config(read_s: int = READ_S, *, validates: bool = False) -> AioConfig:
    """Make a client's settings.

    Parameters are not validated on every call: it costs about a tenth of a call's CPU, and what
    they are is up to this code alone. Tests have them validated.
    """
    return AioConfig(
        http_session_cls=_HttpSession,
        connect_timeout=CONNECT_S,
        read_timeout=read_s,
        max_pool_connections=CONNECTIONS_MAX,
        parameter_validation=validates,
        retries={"mode": "standard", "total_max_attempts": CALL_TRIES},
    )


class Watcher(Protocol):
    """What follows the requests of clients."""

    def watch(self, client: Any) -> None:
        """Follow a client's requests from now on."""


class Aws:
    """The clients of one container, opened at first use; `async with` closes them."""

    def __init__(
        self, session: AioSession | None = None, *watchers: Watcher, validates: bool = False
    ) -> None:
        """Take a session, or make one from the environment; and what follows its clients.

        `validates`: parameters are validated before they are sent.
        """
        self._session = session or AioSession(session_vars={"region": REGION})
        self._validates = validates
        self._stack = AsyncExitStack()
        self._clients: dict[str, Any] = {}
        self._watchers = watchers
        self._opening = asyncio.Lock()

    async def client(self, service: str) -> Any:
        """Hand out the client of a service, the same one every time."""
        if service not in self._clients:
            async with self._opening:
                if service not in self._clients:  # nor meanwhile
                    self._clients[service] = await self._open(service)
        return self._clients[service]

    async def open(self, *services: str) -> None:
        """Open clients ahead of their first calls, and read whom they may believe."""
        tls.context()
        for service in services:
            await self.client(service)

    async def _open(self, service: str) -> Any:
        read_s = READ_FILE_S if service == "s3" else READ_S
        settings = config(read_s, validates=self._validates)
        if service == "s3":  # else links are signed in a way that encrypted buckets refuse
            settings = settings.merge(AioConfig(signature_version="s3v4"))
        opening = self._session.create_client(service, config=settings)  # type: ignore[call-overload]
        client = await self._stack.enter_async_context(opening)
        for watcher in self._watchers:
            watcher.watch(client)
        return client

    def later(self, service: str) -> Any:
        """Hand out what does for a client, and opens it at the first call."""
        return _LaterClient(self, service)

    async def close(self) -> None:
        """Close all clients and their connections."""
        self._clients.clear()
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class _LaterClient:
    """A client's operations, of a client that may not be open yet."""

    def __init__(self, clients: Aws, service: str) -> None:
        self._clients = clients
        self._service = service

    def __getattr__(self, operation: str) -> Callable[..., Awaitable[dict[str, Any]]]:
        async def asked(**parameters: Any) -> dict[str, Any]:
            client = await self._clients.client(self._service)
            answer: dict[str, Any] = await getattr(client, operation)(**parameters)
            return answer

        return asked


def error_of(code: str, status: int, message: str) -> PortError:
    """Say what an error code and the status it came with mean for the caller."""
    if code in TRANSIENT_CODES or status >= SERVER_ERROR_MIN or status == TOO_MANY_REQUESTS:
        return Transient(message)
    return Permanent(message)


@contextmanager
def translated(operation: str) -> Iterator[None]:
    """Turn whatever botocore and aiohttp raise within into `Transient` or `Permanent`."""
    try:
        yield
    except boto.ClientError as error:
        code = code_of(error)
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        raise error_of(code, status, f"{operation}: {code}") from error
    except TRANSIENT_TYPES as error:
        raise Transient(f"{operation}: {type(error).__name__}") from error
    except boto.BotoCoreError as error:
        raise Permanent(f"{operation}: {type(error).__name__}") from error


def code_of(error: boto.ClientError) -> str:
    """Name the error code of an answer."""
    return str(error.response.get("Error", {}).get("Code", "unknown"))


async def call(client: Any, operation: str, **parameters: Any) -> dict[str, Any]:
    """Call a client's method; its answer, or one of our errors."""
    with translated(operation):
        answer: dict[str, Any] = await getattr(client, operation)(**parameters)
    return answer


async def pause(clock: Clock, random: Random, attempt: int) -> None:
    """Wait before try `attempt` + 1, counted from 1: full jitter below a doubling ceiling."""
    ceiling_s = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2 ** (attempt - 1))
    await clock.sleep(ceiling_s * random.random())


async def all_of(calls: Iterable[Awaitable[T]], limit: int) -> list[T]:
    """Await all, `limit` at a time; raises the first error only after every one has ended.

    So a redelivery finds as much done as could be done.
    """
    gate = asyncio.Semaphore(limit)

    async def one(awaitable: Awaitable[T]) -> T:
        async with gate:
            return await awaitable

    results = await asyncio.gather(*(one(item) for item in calls), return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
