"""Headers of requests, and the headers kept from responses.

Proxy credentials go to the proxy only: with CONNECT, or with a plain request, which the proxy
forwards without them. A response header is kept as one line. Values that are not UTF-8 are also
kept as bytes (`model/http_exchange.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from multidict import CIMultiDict, CIMultiDictProxy

from orbweaver.adapters.web.decompression import ACCEPT_ENCODING
from orbweaver.fetching.block_page import STATUSES
from orbweaver.fetching.response_verdict import BAD_REQUEST, REDIRECT_MIN, SUCCESS_MIN
from orbweaver.model.http_exchange import Condition, Headers, Request, one_line, text_of
from orbweaver.parsing.robots_tag import is_agent
from orbweaver.parsing.sniffing import ANY_TYPE, HTML_TYPES, TEXT, VAGUE, declared_in

if TYPE_CHECKING:
    from yarl import URL

    from orbweaver.fetching.proxy_pool import Proxy

HEADERS_CHARS_MAX = 65_536
# List headers, whose lines can be joined with commas (RFC 9110 section 5.3).
LISTS = frozenset(
    {
        "cache-control",
        "content-encoding",
        "content-language",
        "link",
        "transfer-encoding",
        "vary",
        "x-robots-tag",
    }
)
# Header whose lines can begin with an agent's name. The name applies to that line only. A line
# without a name applies to all agents (`robots`).
ROBOTS_TAG = "x-robots-tag"


def request_headers(
    request: Request, url: URL, proxy: Proxy | None
) -> CIMultiDict[str] | CIMultiDictProxy[str]:
    """Return a request's headers. They replace headers of the same name that the crawl sets."""
    said = _common_headers(request.headers, request.user_agent, request.accept)
    # A plain request through SOCKS is received by the target itself.
    forwarded = proxy is not None and url.scheme == "http" and not proxy.is_socks
    authorization = proxy.authorization if proxy is not None and forwarded else None
    if request.condition is None and not authorization:
        return said
    headers = CIMultiDict(said)
    headers.update(_conditions(request.condition))
    if authorization:
        headers["Proxy-Authorization"] = authorization
    return headers


@lru_cache(maxsize=64)
def _common_headers(own: Headers, agent: str, accept: frozenset[str]) -> CIMultiDictProxy[str]:
    """Return the headers that all requests of a crawl to a host share."""
    headers = CIMultiDict(own)
    headers["User-Agent"] = agent
    headers["Accept"] = _accept(accept)
    headers["Accept-Encoding"] = ACCEPT_ENCODING
    return CIMultiDictProxy(headers)


def connecting(request: Request, proxy: Proxy | None) -> dict[str, str] | None:
    if proxy is None:
        return None
    credentials = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
    return {"User-Agent": request.user_agent, **credentials}


def is_body_wanted(status: int, headers: dict[str, str], accept: frozenset[str]) -> bool:
    """Whether the body of a response must be read."""
    if not accept or not SUCCESS_MIN <= status < REDIRECT_MIN:
        return False
    kind = declared_in(headers)
    if not kind or ANY_TYPE in accept or kind in accept:
        return True
    # The first bytes will show whether it is a page.
    return kind in VAGUE and not HTML_TYPES.isdisjoint(accept)


def is_error_body_wanted(status: int, headers: dict[str, str], accept: frozenset[str]) -> bool:
    """Whether the body of an error response might show the cause of the error.

    It can be a page that blocks crawlers, or report a plain request at a TLS port.
    """
    kind = declared_in(headers)
    if status == BAD_REQUEST:  # some servers send it without a type
        return bool(accept) and kind in {"", TEXT, *HTML_TYPES}
    return status in STATUSES and kind in accept & HTML_TYPES


def _conditions(condition: Condition | None) -> dict[str, str]:
    if condition is None:
        return {}
    headers = {"If-None-Match": condition.etag, "If-Modified-Since": condition.last_modified}
    return {name: value for name, value in headers.items() if value}


def _accept(accept: frozenset[str]) -> str:
    # Some servers answer 406 without `*/*`.
    named = sorted(accept - {ANY_TYPE})
    return ", ".join((*named, f"{ANY_TYPE};q=0.1" if named else ANY_TYPE))


def response_headers(raw: Iterable[tuple[bytes, bytes]]) -> tuple[dict[str, str], int]:
    """Return the headers of a response, and the number of dropped lines."""
    # A name keeps its first line, a list header all lines. Equal lines and cookies do not count as
    # dropped.
    headers: dict[str, str] = {}
    left, cut = HEADERS_CHARS_MAX, 0
    for raw_name, raw_value in raw:
        name, value = _name(raw_name), text_of(raw_value)
        left -= len(name) + len(value)
        if left < 0:
            cut += 1
        elif name not in headers:
            headers[name] = value
        elif name in LISTS:
            to_all = name == ROBOTS_TAG and ":" in headers[name] and not _names_agent(value)
            headers[name] += f", {'robots: ' if to_all else ''}{value}"
        else:
            cut += headers[name] != value and name != "set-cookie"
    return headers, cut


def _names_agent(robots_tag: str) -> bool:
    """Whether a line of X-Robots-Tag begins with an agent's name."""
    name, colon, _ = robots_tag.partition(":")
    return bool(colon) and is_agent(name)


def octets(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, bytes]:
    """Return the header values that are not UTF-8, as bytes: the first one of each name."""
    odd = [(name, value) for name, value in raw if not value.isascii() and not _is_utf8(value)]
    return {_name(name): value for name, value in reversed(odd)}


def cookies(raw: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, ...]:
    return tuple(value for name, value in raw if name.lower() == b"set-cookie")


@lru_cache(maxsize=256)
def _name(raw: bytes) -> str:
    return one_line(raw.decode("latin-1").lower())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
