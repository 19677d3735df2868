"""Errors of the HTTP client: the one table from their types to reasons.

Two things in aiohttp 3.14 need care: a response it cannot parse is raised as a ClientResponseError
with status 400 *that no server sent*, with the parser's own error two causes down; and an error
in an established TLS connection (a client certificate asked for late) is a plain ClientOSError.
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
from orbweaver.adapters.web.wire import FramingFloodError, HeadFloodError
from orbweaver.model.http_headers import one_line
from orbweaver.model.outcome import Reason

DETAIL_CHARS_MAX = 200


class DroppedError(aiohttp.ClientError):
    """The connection ended before an answer did."""


class SurplusError(aiohttp.ClientError):
    """An answer that may belong to another request."""


# In order: the first that fits is the reason.
_REASONS: tuple[tuple[type[BaseException], Reason], ...] = (
    (CodingError, Reason.ENCODING),
    (aiohttp.ClientHttpProxyError, Reason.PROXY),
    (aiohttp.ClientProxyConnectionError, Reason.PROXY),
    (aiohttp.ClientConnectorDNSError, Reason.DNS),
    (aiohttp.ClientConnectorCertificateError, Reason.TLS),
    (aiohttp.ClientConnectorSSLError, Reason.TLS),
    (aiohttp.ClientConnectorError, Reason.CONNECT),
    (aiohttp.ConnectionTimeoutError, Reason.CONNECT),
    (TimeoutError, Reason.TIMEOUT),
    (aiohttp.InvalidURL, Reason.ADDRESS),  # 127.1 and 2130706433, not canonicalized
    (DroppedError, Reason.DISCONNECTED),
    (aiohttp.ClientConnectionError, Reason.DISCONNECTED),
    (aiohttp.ClientError, Reason.PROTOCOL),
)
FAILURES = (aiohttp.ClientError, CodingError, TimeoutError)

# These override the table wherever they stand in the chain of causes.
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
# The one text that is looked at: the parser has no type of its own for it.
_TOO_MANY_HEADERS = "Too many headers received"


def reason_of(error: BaseException) -> Reason:
    """Say which reason an exception out of `FAILURES` stands for."""
    if _hung_up_on_handshake(error):
        return Reason.TLS_HANDSHAKE
    for cause in _chain(error):
        if _nobody_knows(cause):
            return Reason.DNS_UNKNOWN
        if getattr(cause, "message", None) == _TOO_MANY_HEADERS:
            return Reason.HEADERS_TOO_LARGE
        for kind, reason in _CAUSES:
            if isinstance(cause, kind):
                return reason
    return next(reason for kind, reason in _REASONS if isinstance(error, kind))


def unresolved_reason(error: OSError) -> Reason:
    """Say which reason a resolver's exception stands for, outside of a connection."""
    unknown = any(_nobody_knows(cause) for cause in _chain(error))
    return Reason.DNS_UNKNOWN if unknown else Reason.DNS


def detail_of(error: BaseException) -> str:
    """Say in one short, printable line what happened, for people."""
    match error:
        case _ if _hung_up_on_handshake(error):
            text = "the server closed the connection within the TLS handshake"
        case aiohttp.ClientHttpProxyError():
            text = f"the proxy answered {error.status} to CONNECT"  # not in words of its own
        case aiohttp.ClientConnectorError():
            text = words_of(error.os_error)
        case aiohttp.ClientResponseError():
            text = error.message
        case aiohttp.ClientPayloadError():
            text = getattr(error.__cause__, "message", "") or str(error)
        case _:
            text = str(error)
    return one_line(text or type(error).__name__)[:DETAIL_CHARS_MAX]


def words_of(error: OSError) -> str:
    """Say why there is no connection: asyncio puts "Connect call failed" before the address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not in order: {error.verify_message}"
    if error.errno is None or isinstance(error, socket.gaierror | ssl.SSLError):
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()


def _hung_up_on_handshake(error: BaseException) -> bool:
    """Whether a server ended a handshake without a word: asyncio's own reset, without a number."""
    return (
        isinstance(error, aiohttp.ClientConnectorError)
        and isinstance(error.os_error, ConnectionResetError)
        and error.os_error.errno is None
    )


def _nobody_knows(cause: BaseException) -> bool:
    """Whether a name is known not to exist, or to have no address: NXDOMAIN, or no data."""
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
