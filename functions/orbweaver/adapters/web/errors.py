"""Map the HTTP client's exceptions to reasons.

aiohttp 3.14 raises ClientResponseError with status 400, which no server sent, for a response that
it cannot parse. The parser's own error is the cause of that error's cause.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiodns.error import DNSError
from aiohttp.http_exceptions import ContentLengthError, LineTooLong, TransferEncodingError
from pycares.errno import ARES_ENODATA, ARES_ENONAME, ARES_ENOTFOUND

from orbweaver.adapters.web.address_guard import AddressRefusedError
from orbweaver.adapters.web.decompression import CodingError
from orbweaver.adapters.web.socks import SocksReplyError
from orbweaver.adapters.web.wire import FramingFloodError, HeadFloodError, TlsAlertError
from orbweaver.model.http_exchange import one_line
from orbweaver.model.outcome import Reason

NAMES_SHOWN_MAX = 3
# Codes of OpenSSL (x509_vfy.h).
_NOT_YET_VALID, _EXPIRED, _SELF_SIGNED = 9, 10, 18
_UNKNOWN_AUTHORITY = frozenset({19, 20, 21})
_OTHER_NAME = frozenset({62, 64})
_CERTIFICATE = "--ca-bundle FILE trusts it, --insecure HOST verifies nothing"
_IGNORED = "--insecure HOST ignores this"
# Words for the ends of OpenSSL's reasons.
_TLS_REASONS = (
    ("CERTIFICATE_REQUIRED", "the server requires a client certificate: give --client-cert FILE"),
    ("PROTOCOL_VERSION", "the server offers only TLS versions before 1.2"),
    ("UNSUPPORTED_PROTOCOL", "the server offers only TLS versions before 1.2"),
    ("HANDSHAKE_FAILURE", "no common cipher, or the server requires a client certificate"),
    ("UNKNOWN_CA", "the server does not accept the client certificate"),
    ("BAD_CERTIFICATE", "the server does not accept the client certificate"),
    ("WRONG_VERSION_NUMBER", "the server does not speak TLS at this port: try http://"),
)
DETAIL_CHARS_MAX = 200
# Statuses of a proxy that does not accept the user and password. tinyproxy sends 401.
REJECTING = frozenset({401, 407})
REJECTED = "it needs a valid user and password"


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
    (TlsAlertError, Reason.TLS),
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


# --- TLS errors -----------------------------------------------------------------------------------


def tls_words(error: ssl.SSLError) -> str:
    """Describe an error, or return an empty text for an unknown one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not in order: {_verification(error)}"
    reason = error.reason or ""
    words = next((words for end, words in _TLS_REASONS if reason.endswith(end)), "")
    return f"{words} ({reason})" if words else ""


def _verification(error: ssl.SSLCertVerificationError) -> str:
    certificates: list[dict[str, Any]] = getattr(error, "certificates", [])
    leaf, top = (certificates[0], certificates[-1]) if certificates else ({}, {})
    match error.verify_code:
        case code if code == _SELF_SIGNED:
            return f"it is self-signed: {_CERTIFICATE}"
        case code if code in _UNKNOWN_AUTHORITY:
            who = _common_name(top.get("issuer", ())) or "its issuer"
            return f"{who} is an unknown authority, or the chain is incomplete: {_CERTIFICATE}"
        case code if code == _EXPIRED and leaf:
            # An authority's certificate can have expired instead.
            ends = min(map(_ends_s, certificates))
            return f"it expired on {datetime.fromtimestamp(ends, UTC):%Y-%m-%d}: {_IGNORED}"
        case code if code == _NOT_YET_VALID and leaf:
            begins = datetime.fromtimestamp(ssl.cert_time_to_seconds(leaf["notBefore"]), UTC)
            return f"it is valid from {begins:%Y-%m-%d}: check the clock; {_IGNORED}"
        case code if code in _OTHER_NAME:
            names = [value for _, value in leaf.get("subjectAltName", ())]
            more = f" and {len(names) - NAMES_SHOWN_MAX:,} more" if names[NAMES_SHOWN_MAX:] else ""
            shown = f"{', '.join(names[:NAMES_SHOWN_MAX])}{more}" if names else "no name"
            return f"it is for other names ({shown}): {_IGNORED}"
    return error.verify_message


def _ends_s(certificate: dict[str, Any]) -> int:
    return ssl.cert_time_to_seconds(certificate["notAfter"])


def _common_name(name: tuple[tuple[tuple[str, str], ...], ...]) -> str:
    parts = dict(part for parts in name for part in parts)
    return parts.get("commonName") or parts.get("organizationName") or ""
