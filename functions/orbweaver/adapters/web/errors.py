"""Map the HTTP client's exceptions to reasons.

aiohttp 3.14 raises ClientResponseError with status 400, which no server sent, for a response that
it cannot parse. The parser's own error is the cause of that error's cause.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator

import aiohttp
from aiodns.error import DNSError
from aiohttp.http_exceptions import ContentLengthError, LineTooLong, TransferEncodingError
from pycares.errno import ARES_ENODATA, ARES_ENONAME, ARES_ENOTFOUND

from orbweaver.adapters.web.address_guard import AddressRefusedError
from orbweaver.adapters.web.decompression import CodingError
from orbweaver.adapters.web.socks import SocksReplyError
from orbweaver.adapters.web.tls_errors import tls_words
from orbweaver.adapters.web.wire import FramingFloodError, HeadFloodError
from orbweaver.model.http_exchange import one_line
from orbweaver.model.outcome import Reason

DETAIL_CHARS_MAX = 200
# Statuses of a proxy that does not accept the user and password. tinyproxy sends 401.
REJECTING = frozenset({401, 407})
REJECTED = "it needs another user and password"


class DroppedError(aiohttp.ClientError):
    """The connection ended before the response was complete."""


class SurplusError(aiohttp.ClientError):
    """The response might belong to another request."""


# Reasons of exceptions. The first matching type counts.
_REASONS: tuple[tuple[type[BaseException], Reason], ...] = (
    (CodingError, Reason.ENCODING),
    (aiohttp.ClientHttpProxyError, Reason.PROXY),
    (SocksReplyError, Reason.PROXY),
    (aiohttp.ClientProxyConnectionError, Reason.PROXY),
    (aiohttp.ClientConnectorDNSError, Reason.DNS),
    (aiohttp.ClientConnectorCertificateError, Reason.TLS),
    (aiohttp.ClientConnectorSSLError, Reason.TLS),
    (aiohttp.ClientConnectorError, Reason.CONNECT),
    (aiohttp.ConnectionTimeoutError, Reason.CONNECT),
    (TimeoutError, Reason.TIMEOUT),
    (aiohttp.InvalidURL, Reason.ADDRESS),  # 127.1 and 2130706433 are not canonicalized
    (DroppedError, Reason.DISCONNECTED),
    # Includes errors in an established TLS connection, such as a late request for a client
    # certificate.
    (aiohttp.ClientConnectionError, Reason.DISCONNECTED),
    (aiohttp.ClientError, Reason.PROTOCOL),
)
FAILURES = (aiohttp.ClientError, CodingError, TimeoutError)

# Reasons of causes. They override `_REASONS` wherever they occur in an exception's chain of causes.
_CAUSES: tuple[tuple[type[BaseException], Reason], ...] = (
    (AddressRefusedError, Reason.ADDRESS),
    (ssl.SSLEOFError, Reason.TLS_HANDSHAKE),
    (ssl.SSLError, Reason.TLS),
    (LineTooLong, Reason.HEADERS_TOO_LARGE),
    (HeadFloodError, Reason.HEADERS_TOO_LARGE),
    (FramingFloodError, Reason.PROTOCOL),
    (ContentLengthError, Reason.DISCONNECTED),
    (TransferEncodingError, Reason.DISCONNECTED),  # the body ended before its last chunk
)
# The only error that is recognized by its text, because the parser has no type for it.
_TOO_MANY_HEADERS = "Too many headers received"


def reason_of(error: BaseException) -> Reason:
    """Return the reason of an exception from `FAILURES`."""
    if _hung_up_on_handshake(error):
        return Reason.TLS_HANDSHAKE
    for cause in _chain(error):
        if _is_unknown_name(cause):
            return Reason.DNS_UNKNOWN
        if getattr(cause, "message", None) == _TOO_MANY_HEADERS:
            return Reason.HEADERS_TOO_LARGE
        for kind, reason in _CAUSES:
            if isinstance(cause, kind):
                return reason
    return next(reason for kind, reason in _REASONS if isinstance(error, kind))


def unresolved_reason(error: OSError) -> Reason:
    """Return the reason of a resolver's exception that no connection attempt has wrapped."""
    unknown = any(_is_unknown_name(cause) for cause in _chain(error))
    return Reason.DNS_UNKNOWN if unknown else Reason.DNS


def detail_of(error: BaseException) -> str:
    """Describe an error in one short, printable line."""
    match error:
        case _ if _hung_up_on_handshake(error):
            text = "the server closed the connection within the TLS handshake"
        case aiohttp.ClientHttpProxyError():
            # without the proxy's own text
            why = f": {REJECTED}" if error.status in REJECTING else ""
            text = f"the proxy answered {error.status} to CONNECT{why}"
        case aiohttp.ClientConnectorError():
            text = words_of(error.os_error)
        case aiohttp.ClientResponseError():
            text = error.message
        case aiohttp.ClientPayloadError():
            text = getattr(error.__cause__, "message", "") or str(error)
        case _:
            late = next((one for one in _chain(error) if isinstance(one, ssl.SSLError)), None)
            text = (late and tls_words(late)) or str(error)
    return one_line(text or type(error).__name__)[:DETAIL_CHARS_MAX]


def words_of(error: OSError) -> str:
    """Describe a connection error without asyncio's "Connect call failed" and the address."""
    if isinstance(error, ssl.SSLError) and (words := tls_words(error)):
        return words
    if error.errno is None or isinstance(error, socket.gaierror | ssl.SSLError):
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()


def _hung_up_on_handshake(error: BaseException) -> bool:
    # asyncio reports it as a reset without errno.
    return (
        isinstance(error, aiohttp.ClientConnectorError)
        and isinstance(error.os_error, ConnectionResetError)
        and error.os_error.errno is None
    )


def _is_unknown_name(cause: BaseException) -> bool:
    """Whether DNS reports that a name does not exist or has no address."""
    match cause:
        case socket.gaierror(errno=code):
            return code in {socket.EAI_NONAME, socket.EAI_NODATA}
        case DNSError(args=(int(code), *_)):
            return code in {ARES_ENODATA, ARES_ENOTFOUND, ARES_ENONAME}
    return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
