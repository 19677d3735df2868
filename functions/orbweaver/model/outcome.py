"""How a URL ended: five outcomes, each with a reason that is an enum shared by code and docs.

`fetched unchanged redirected skipped failed` partition the claimed URLs of a finished crawl:
their counts add up to `claimed`. A link that was never claimed is *refused*, with a `Refusal`.
"""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How a claimed URL ended."""

    FETCHED = "fetched"
    UNCHANGED = "unchanged"
    REDIRECTED = "redirected"
    SKIPPED = "skipped"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a claimed URL ended the way it did."""

    OK = "ok"
    TRUNCATED = "truncated"
    SITEMAP = "sitemap"
    # fetched, and noteworthy
    NOINDEX = "noindex"  # skipped, where a crawl wants that
    REPEATED = "repeated"
    SOFT_404 = "soft_404"
    NOT_MODIFIED = "not_modified"
    # redirected: by status, or by the page itself
    REDIRECT = "redirect"
    REFRESH = "refresh"
    WIDENED = "widened"
    # skipped: we decided not to ask, or not to read the answer
    ROBOTS = "robots"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    CONTENT_TYPE = "content_type"
    EMPTY = "empty"
    CANONICAL = "canonical"
    CANCELLED = "cancelled"
    DURATION = "duration"
    BYTES = "bytes"
    DOLLARS = "dollars"
    HOST_PAGES = "host_pages"
    FORGOTTEN = "forgotten"
    # A message held it that does not fit its crawl (frontier/belonging.py).
    INVALID = "invalid"
    SCOPE = "scope"
    DEPTH = "depth"
    # failed: the server, the network or the address policy
    REDIRECT_INVALID = "redirect_invalid"
    REDIRECT_LIMIT = "redirect_limit"
    SITEMAP_INVALID = "sitemap_invalid"
    FORBIDDEN = "forbidden"
    HTTP_CLIENT_ERROR = "http_client_error"
    HTTP_SERVER_ERROR = "http_server_error"
    HTTP_STATUS = "http_status"
    DNS = "dns"
    DNS_UNKNOWN = "dns_unknown"
    CONNECT = "connect"
    PROXY = "proxy"
    TLS = "tls"
    TLS_HANDSHAKE = "tls_handshake"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    PROTOCOL = "protocol"
    ENCODING = "encoding"
    HEADERS_TOO_LARGE = "headers_too_large"
    ADDRESS = "address"
    BLOCKED = "blocked"
    HOST_DOWN = "host_down"
    COSTLY = "costly"  # fetched, where only its items or texts could not be had


class Refusal(StrEnum):
    """Why a reference was never claimed: counted at the page that held it, not recorded."""

    INVALID = "invalid"
    SCOPE = "scope"
    EXCLUDE = "exclude"
    INCLUDE = "include"
    DEPTH = "depth"
    NOFOLLOW = "nofollow"
    UNFOLLOWED = "unfollowed"
    CUT = "cut"
    BUDGET = "budget"
    DOLLARS = "dollars"
    REDIRECTS = "redirects"
    CLOSED = "closed"
    # what traps look like: frontier/crawler_traps.py
    PATH_DEPTH = "path_depth"
    REPETITION = "repetition"
    QUERY = "query"
    PATTERN = "pattern"
    REPEATED = "repeated"


# Counted beside reasons (`robots_unreachable.answered`): a robots.txt that was answered, but not
# with rules, nor with their absence.
ANSWERED = "answered"
