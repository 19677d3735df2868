"""AWS clients of a container, and the mapping of AWS errors to port errors.

A client takes 20 ms to make, so a container has one per service. Timeouts are short and attempts
are few, so that the caller has time to react to errors. All requests can be repeated without
further effects.
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
# Read timeout of S3, because one request transfers a whole file, in either direction.
READ_FILE_S = 30
CALL_TRIES = 3
CONNECTIONS_MAX = 64
ONE_GO_BYTES_MAX = 256 * 1024

# Sources of the region, in botocore's format: key in a profile, variables, no default, no
# conversion. By default, botocore ignores AWS_REGION.
REGION = ("region", ["AWS_REGION", "AWS_DEFAULT_REGION"], None, None)

# If AWS accepts part of a batch, the rest is sent again after a random pause ("Exponential Backoff
# And Jitter", AWS Architecture Blog, 2015).
BATCH_TRIES = 8
BACKOFF_BASE_S = 0.025
BACKOFF_CAP_S = 1.0

SERVER_ERROR_MIN = 500
TOO_MANY_REQUESTS = 429

# Codes of transient errors. Other errors are permanent, because a retry would hide them.
TRANSIENT_CODES = frozenset(
    {
        "BandwidthLimitExceeded",
        "ConcurrentModificationException",  # Glue: another writer changed the same table
        "ConditionalRequestConflict",
        "EC2ThrottledException",
        "ExpiredToken",  # fresh credentials may be available in a moment
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
        "RequestTimeTooSkewed",  # botocore corrects its clock from the response
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
    """aiobotocore's HTTP session, with one set of certificate authorities for all clients."""

    # Private attributes of aiobotocore 2.25, missing from its stubs.
    _connector_args: dict[str, Any]
    _max_pool_connections: int
    _verify: bool | str | None

    async def send(self, request: Any) -> Any:
        # aiohttp sends bytes in one write, and warns that a large body blocks the event loop.
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
    """Return a client's configuration.

    With `validates`, the client checks parameters (in tests).
    """
    # Validation takes a tenth of a call's CPU time. `tcp_keepalive` is not set, because aiobotocore
    # 2.25 ignores it.
    return AioConfig(
        http_session_cls=_HttpSession,
        connect_timeout=CONNECT_S,
        read_timeout=read_s,
        max_pool_connections=CONNECTIONS_MAX,
        parameter_validation=validates,
        retries={"mode": "standard", "total_max_attempts": CALL_TRIES},
    )


class Watcher(Protocol):
    """Observer of all requests that clients send."""

    def watch(self, client: Any) -> None: ...


class Aws:
    """The AWS clients of one container, opened at first use and closed by `async with`."""

    def __init__(
        self, session: AioSession | None = None, *watchers: Watcher, validates: bool = False
    ) -> None:
        """By default, the session is made from the environment. `watchers` observe all clients."""
        # boto3 would take 50 ms to import.
        self._session = session or AioSession(session_vars={"region": REGION})
        self._validates = validates
        self._stack = AsyncExitStack()
        self._clients: dict[str, Any] = {}
        self._watchers = watchers
        self._opening = asyncio.Lock()

    async def client(self, service: str) -> Any:
        if service not in self._clients:
            async with self._opening:
                if service not in self._clients:  # another task may have opened it
                    self._clients[service] = await self._open(service)
        return self._clients[service]

    async def open(self, *services: str) -> None:
        """Open clients before their first calls, and load the certificate authorities."""
        tls.context()
        for service in services:
            await self.client(service)

    async def _open(self, service: str) -> Any:
        read_s = READ_FILE_S if service == "s3" else READ_S
        settings = config(read_s, validates=self._validates)
        if service == "s3":  # presigned URLs with the default signature fail on encrypted buckets
            settings = settings.merge(AioConfig(signature_version="s3v4"))
        opening = self._session.create_client(service, config=settings)  # type: ignore[call-overload]
        client = await self._stack.enter_async_context(opening)
        for watcher in self._watchers:
            watcher.watch(client)
        return client

    def later(self, service: str) -> Any:
        """Return a proxy of the client, which opens the client at the first call."""
        return _LaterClient(self, service)

    async def close(self) -> None:
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
    if code in TRANSIENT_CODES or status >= SERVER_ERROR_MIN or status == TOO_MANY_REQUESTS:
        return Transient(message)
    return Permanent(message)


@contextmanager
def translated(operation: str) -> Iterator[None]:
    """Raise `Transient` or `Permanent` for errors of botocore and aiohttp."""
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
    return str(error.response.get("Error", {}).get("Code", "unknown"))


async def call(client: Any, operation: str, **parameters: Any) -> dict[str, Any]:
    """Call a method of a client. Raises port errors."""
    with translated(operation):
        answer: dict[str, Any] = await getattr(client, operation)(**parameters)
    return answer


async def pause(clock: Clock, random: Random, attempt: int) -> None:
    """Sleep before attempt `attempt` + 1, with full jitter. Attempts count from 1."""
    ceiling_s = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2 ** (attempt - 1))
    await clock.sleep(ceiling_s * random.random())


async def all_of(calls: Iterable[Awaitable[T]], limit: int) -> list[T]:
    """Await all calls, `limit` at a time. The first error is raised after all have ended."""
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
