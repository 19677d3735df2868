"""Define one HTTP request and its result as values, and decode header values of responses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Protocol, TypeAlias

from orbweaver.model.outcome import Reason
from orbweaver.model.value import value_class

# Maximum time without a head, or without more of a body.
IDLE_S = 10.0
Headers: TypeAlias = tuple[tuple[str, str], ...]
# By origin, or by host as in a definition.
HostHeaders: TypeAlias = tuple[tuple[str, Headers], ...]
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")


@value_class
class Condition:
    """Validators of the stored version: `If-None-Match` and `If-Modified-Since`, as received."""

    etag: str | None
    last_modified: str | None


class BodyBudget(Protocol):
    """Part of a byte limit that one body may use. The body's reader can request more."""

    @property
    def bytes_max(self) -> int:
        """Size of a body that the budget allows now, in decoded bytes."""

    async def grow(self, size: int) -> None:
        """Reserve budget for a body of this size, or less if the limit is exhausted."""


@value_class
class Trust:
    """TLS settings of a request: files on this machine, and whether certificates are verified.

    `ca_bundle` has authorities in addition to the system's. `client_cert` is `FILE` or `FILE:KEY`.
    """

    ca_bundle: str | None = None
    client_cert: str | None = None
    insecure: bool = False


SYSTEM_TRUST = Trust()


@value_class
class Request:
    """One GET or HEAD, or a POST of `body`. `direct` bypasses proxies.

    Bodies are read only if their media type is in `accept`. Other responses end after the headers.
    `named` are the non-public origins to which a user allowed connections
    (`model/named_origins.py`). `room` is the body's part of the crawl's byte limit, if there is
    one.
    """

    url: str
    user_agent: str
    accept: frozenset[str]
    body_bytes_max: int
    total_s: float
    # Limit of the time without data. None: the fetcher's.
    idle_s: float | None = None
    condition: Condition | None = None
    headers: Headers = field(default=(), repr=False)
    direct: bool = False
    head: bool = False
    body: bytes | None = None
    named: frozenset[str] = frozenset()
    room: BodyBudget | None = field(default=None, repr=False, compare=False)
    # Called when the response has arrived, while the fetcher verifies that it belongs to the
    # request.
    answered: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    sent: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    trust: Trust = SYSTEM_TRUST
    paced: bool = True  # whether the host has a delay, which leaves time to verify responses


@value_class
class Response:
    """A response. Header names are in lower case, values as received (`model/http_exchange.py`).

    `body` is decoded, and None if it was not read. `truncated`: the body was cut at
    `body_bytes_max` decoded bytes. `received`: bytes of the body on the wire, including unwanted
    ones (`adapters/web/wire.py`). `headers_cut`: number of header lines that were dropped. `asked`:
    headers of the request in a form that may be stored (`model/user_agent.py`). `proxy`: host and
    port of the proxy that was used.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    truncated: bool = False
    latency_ms: int = 0
    received: int = 0
    # Header values that are not UTF-8, as bytes by header name.
    octets: Mapping[str, bytes] = field(default_factory=dict)
    # Set-Cookie lines, which may be secrets.
    cookies: tuple[bytes, ...] = field(default=(), repr=False)
    asked: Headers = ()
    headers_cut: int = 0
    # Whether the body is the rendered page, and whether its scripts were stopped.
    rendered: bool = False
    render_cut: bool = False
    # Screenshot as WebP.
    screenshot: bytes | None = field(default=None, repr=False)
    proxy: str | None = None


@value_class
class Failure:
    """A request without a usable response: the reason, and a short text for people.

    If `later_s` is set, the crawler itself postponed or aborted the request. The request is
    repeated after that many seconds, and does not count as an attempt.
    """

    reason: Reason
    detail: str
    latency_ms: int = 0
    later_s: float | None = None
    received: int = 0
    proxy: str | None = None


def received_of(answer: Response | Failure) -> int:
    """Return the size of a body: bytes on the wire or decoded bytes, whichever is larger."""
    body = answer.body if isinstance(answer, Response) else None
    return max(answer.received, len(body or b""))


def text_of(value: bytes) -> str:
    try:
        # RFC 9110 section 5.5. All characters are kept, because an invisible one may be part of a
        # URL.
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def one_line(text: str) -> str:
    """Replace unprintable characters, including line ends and terminal controls, by spaces."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return text.strip()


def location_of(response: Response) -> str | None:
    """Return the redirect target of a response, a URL or relative reference. None: it has none."""
    raw = response.octets.get("location")
    if raw is None:
        return response.headers.get("location") or None
    # Bytes that are not UTF-8 are percent-encoded one by one, as in browsers (web-platform tests,
    # "redirect-location-escape"). In another charset they would mean another URL.
    text = raw.decode("utf-8", "surrogateescape")
    return _ESCAPED_BYTE.sub(lambda stray: f"%{ord(stray[0]) - 0xDC00:02X}", text)
