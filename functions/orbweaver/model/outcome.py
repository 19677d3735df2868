"""Define the five outcomes of a URL, and the reasons for them.

`fetched unchanged redirected skipped failed` partition the claimed URLs of a finished crawl: their
counts add up to `claimed`. A link that was never claimed is *refused*, with a `Refusal`. The
attributes of a reason define its meaning and consequences. The order of members has no meaning.
docs/operations.md has the same words.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Any, Self, TypeVar

from orbweaver.model.backoff import ATTEMPTS_FEW, ATTEMPTS_MAX
from orbweaver.model.value import positional_value_class

E = TypeVar("E", "Reason", "Refusal")


class Outcome(StrEnum):
    """Result of a claimed URL."""

    FETCHED = "fetched"
    UNCHANGED = "unchanged"
    REDIRECTED = "redirected"
    SKIPPED = "skipped"
    FAILED = "failed"


# Outcomes with a usable response.
SUCCESSES = (Outcome.FETCHED, Outcome.UNCHANGED, Outcome.REDIRECTED)


@positional_value_class
class _Facts:
    """Attributes of a reason: the outcome it is listed under, its meaning and consequences."""

    outcome: Outcome
    name: str
    means: str
    # Maximum number of attempts for a URL that keeps failing for this reason.
    attempts: int = 1
    # The same, for a robots.txt that fails for this reason.
    robots_attempts: int = ATTEMPTS_MAX
    # Whether the host is in trouble, not only one of its URLs.
    silence: bool = False
    # Whether the URL was not requested, so that a later run may request it.
    resumable: bool = False
    # Short form, for a robots.txt that cannot be fetched.
    short: str = ""


_fetched = partial(_Facts, Outcome.FETCHED)
_unchanged = partial(_Facts, Outcome.UNCHANGED)
_redirected = partial(_Facts, Outcome.REDIRECTED)
_skipped = partial(_Facts, Outcome.SKIPPED)
_failed = partial(_Facts, Outcome.FAILED)
_unrequested = partial(_skipped, resumable=True)
# Permanent until a person changes something.
_permanent = partial(_failed, robots_attempts=1)
# Rarely recovers: an unknown name may belong to a zone that is being moved, an aborted handshake to
# a busy load balancer.
_twice = partial(_failed, attempts=ATTEMPTS_FEW, robots_attempts=ATTEMPTS_FEW)
_transient = partial(_failed, attempts=ATTEMPTS_MAX)
_silent = partial(_transient, silence=True)


class Reason(StrEnum):
    """Reason for the outcome of a claimed URL.

    `noindex` is listed under `fetched`, and is `skipped` if a crawl is set to skip such pages.
    `costly` is listed under `failed`, and is `fetched` if only items or texts are missing.
    """

    outcome: Outcome
    means: str
    short: str
    attempts: int
    robots_attempts: int
    silence: bool
    resumable: bool

    def __new__(cls, facts: Any) -> Self:
        """Create a member whose value is its name. Type checkers need the value, too."""
        member = str.__new__(cls, facts.name)
        member._value_, member.outcome = facts.name, facts.outcome
        member.means, member.short = facts.means, facts.short
        member.attempts, member.robots_attempts = facts.attempts, facts.robots_attempts
        member.silence, member.resumable = facts.silence, facts.resumable
        return member

    OK = _fetched("ok", "the page was read")
    TRUNCATED = _fetched(
        "truncated", "the body was cut at body_bytes_max, or the server sent only a part (206)"
    )
    SITEMAP = _fetched("sitemap", "a sitemap was read")
    NOINDEX = _fetched("noindex", "read, and it has noindex (--noindex skip: skipped)")
    REPEATED = _fetched(
        "repeated",
        "read, but 50 earlier pages had the same content: its links are not followed",
    )
    SOFT_404 = _fetched("soft_404", 'read, and it looks like a "not found" page with status 200')
    NOT_MODIFIED = _unchanged(
        "not_modified", "fetched by an earlier run, and not modified since (304)"
    )
    REDIRECT = _redirected(
        "redirect", "it redirects; the target is a separate URL, if it belongs to the crawl"
    )
    REFRESH = _redirected(
        "refresh", "it redirects by <meta http-equiv=refresh> or the Refresh header, within 10 s"
    )
    WIDENED = _redirected(
        "widened", "a seed that redirects out of the scope: the crawl also follows links there"
    )
    ROBOTS = _skipped("robots", "robots.txt forbids it")
    ROBOTS_UNREACHABLE = _skipped(
        "robots_unreachable",
        "robots.txt could not be fetched (error has the reason), after up to four "
        "attempts, or one attempt if only an operator can fix the cause",
    )
    CONTENT_TYPE = _skipped(
        "content_type",
        "not HTML, such as an image or a PDF; error has the detected type if it "
        "differs from Content-Type; archives and the like are skipped by their "
        "extension",
    )
    EMPTY = _skipped("empty", "no content: 204 or 205")
    CANONICAL = _skipped(
        "canonical",
        "it names another page of the crawl as canonical (--canonical), which is requested instead",
    )
    CANCELLED = _unrequested("cancelled", "the crawl was cancelled before the request")
    DURATION = _unrequested("duration", "the crawl had reached its time limit (--duration)")
    BYTES = _unrequested("bytes", "the crawl had reached its byte limit (--max-bytes)")
    DOLLARS = _unrequested("dollars", "the crawl had reached its cost limit (--max-dollars)")
    HOST_PAGES = _unrequested(
        "host_pages", "its host had reached its limit of URLs (--max-host-pages)"
    )
    ERASED = _skipped("erased", "it was erased (orbweaver forget) before it was requested")
    # Reasons for a URL in a message that does not fit its crawl (frontier/crawl_scope.py).
    INVALID = _skipped("invalid", "a message contained it, and it is not a canonical URL")
    SCOPE = _skipped("scope", "a message contained it, and it is outside the scope")
    DEPTH = _skipped("depth", "it is deeper than the depth limit, after an edit or from a message")
    REDIRECT_INVALID = _failed(
        "redirect_invalid", "its redirect target is not an http or https URL"
    )
    REDIRECT_LIMIT = _failed("redirect_limit", "ten redirects in a row, or a redirect to itself")
    SITEMAP_INVALID = _failed("sitemap_invalid", "it was expected to be a sitemap and is not")
    JSON_INVALID = _failed(
        "json_invalid", "a rule expects JSON, and the body is not JSON, or too large or too deep"
    )
    PAGING = _failed(
        "paging",
        "a page of an API does not show the next page as paging describes; error has the cause",
    )
    FORBIDDEN = _failed("forbidden", "401, 403 or 407")
    HTTP_CLIENT_ERROR = _failed(
        "http_client_error",
        "the server has no such page or refuses the request: 404, 410 or another 4xx",
    )
    HTTP_SERVER_ERROR = _transient(
        "http_server_error", "5xx, 408 or 425, after up to four attempts"
    )
    HTTP_STATUS = _failed(
        "http_status", "304, a redirect without a target, or another unusable status"
    )
    DNS = _silent(
        "dns",
        "its host name could not be resolved, after four attempts",
        short="DNS lookup failed",
    )
    DNS_UNKNOWN = _twice(
        "dns_unknown",
        "its host name does not exist or has no address, after two attempts",
        short="unknown host name",
    )
    CONNECT = _silent(
        "connect",
        "connection refused or host unreachable, after four attempts",
        short="no connection",
    )
    PROXY = _transient(
        "proxy", "no proxy reached it, after four attempts", short="no proxy reached it"
    )
    PROXY_REJECTED = _permanent(
        "proxy_rejected",
        "no proxy accepts its user and password (407), in five attempts within 150 s or more",
        short="proxies reject the user and password",
    )
    TLS = _permanent(
        "tls",
        "invalid certificate, no common TLS version or cipher, or TLS at one side only",
        short="TLS or certificate error",
    )
    TLS_HANDSHAKE = _twice(
        "tls_handshake",
        "the server aborted the TLS handshake, after two attempts",
        silence=True,
        short="TLS handshake aborted",
    )
    TIMEOUT = _silent(
        "timeout",
        "it took longer than a request may, or was slower than 100 bytes/s, after four attempts",
        short="no answer in time",
    )
    DISCONNECTED = _silent(
        "disconnected", "the connection ended early, after four attempts", short="connection lost"
    )
    PROTOCOL = _failed(
        "protocol",
        "the response is not valid HTTP, or consists mostly of chunk headers and the like",
    )
    ENCODING = _failed("encoding", "the body does not match its Content-Encoding")
    HEADERS_TOO_LARGE = _failed("headers_too_large", "the response headers are too large")
    ADDRESS = _permanent(
        "address",
        "the address is not public, or the port is not a web port",
        short="address not allowed",
    )
    BLOCKED = _transient(
        "blocked",
        "429, after four attempts; or a captcha, challenge or block page (error has its kind)",
    )
    LOGIN = _transient(
        "login",
        "the login at its host failed, or it asked for a login in each of four attempts or "
        "despite imported cookies; error has the step, and orbweaver check --login tries it",
    )
    HOST_DOWN = _failed(
        "host_down", "its host did not answer nine times in a row, so the URL was not requested"
    )
    COSTLY = _failed(
        "costly",
        "parsing took more than 1 s of CPU or 200 MB, or crashed; error lists the missing parts",
    )
    UNREADABLE = _failed(
        "unreadable",
        "parsing failed because of an error in Orbweaver (named in error); the log "
        "event page.unreadable has the traceback",
    )


class Refusal(StrEnum):
    """Reason why a link was never claimed for the crawl. Counted at its page, not recorded.

    `short` is the text for one line, `means` the text for a table.
    """

    short: str
    means: str

    def __new__(cls, name: str, short: str, means: str) -> Self:
        member = str.__new__(cls, name)
        member._value_, member.short, member.means = name, short, means
        return member

    INVALID = "invalid", "not a web URL", "it is not an http or https URL"
    SCOPE = "scope", "outside the scope", "it does not belong to the crawl"
    EXCLUDE = "exclude", "excluded", "it matches an exclude pattern"
    INCLUDE = "include", "not included", "it matches no include pattern"
    DEPTH = "depth", "too deep", "it is deeper than --max-depth, or than a rule allows"
    LOGOUT = "logout", "login or logout link", "it would end the session of the login"
    NOFOLLOW = "nofollow", "nofollow", "the link, its page or X-Robots-Tag has nofollow"
    SEED_NOFOLLOW = (
        "seed_nofollow",
        "nofollow on a first page",
        (
            "a seed's page has nofollow, or each of its links has it (--ignore-nofollow "
            "follows them)"
        ),
    )
    UNFOLLOWED = (
        "unfollowed",
        "not followed by a rule",
        "a rule has follow = false for its page",
    )
    CUT = (
        "cut",
        "too many on a page",
        "the page has more links than links_per_page_max, or too long ones",
    )
    BUDGET = "budget", "beyond the limit of pages", "the page limit was reached (--max-pages)"
    DOLLARS = (
        "dollars",
        "beyond the limit of dollars",
        "the rest of the cost limit is less than its cost (--max-dollars)",
    )
    REDIRECTS = "redirects", "behind too many redirects", "ten redirects lead to it"
    ERASED = "erased", "erased", "it was erased (orbweaver forget), so it is not claimed again"
    CLOSED = "closed", "after the end", "the crawl had ended when a worker received the URL"
    API_REPEATED = (
        "api_repeated",
        "page of an API again",
        "an API names it as its next page, and it was requested already",
    )
    API_PAGES = (
        "api_pages",
        "beyond the pages of an API",
        "the limit of pages of its API was reached (pages in [[api]])",
    )
    # crawler traps: frontier/crawler_traps.py
    PATH_DEPTH = (
        "path_depth",
        "path too long",
        "its path has more than path_segments_max segments, or its host more labels",
    )
    REPETITION = (
        "repetition",
        "path repeats itself",
        ("a segment of its path or a label of its host occurs more than repeats_max times"),
    )
    QUERY = (
        "query",
        "query too long",
        (
            "its query has more than query_parameters_max parameters, more than query_chars_max"
            " characters, or one of them more than repeats_max times"
        ),
    )
    PATTERN = (
        "pattern",
        "endless pattern",
        (
            "the worker has seen folder_urls_max URLs of its folder, or query_urls_max URLs "
            "of its path with these parameters"
        ),
    )
    INDEX_ORDER = (
        "index_order",
        "sorted directory index",
        ("it is a directory index in another sort order, linked by the directory (?C=M;O=D)"),
    )
    REPEATED = (
        "repeated",
        "on repeated pages",
        "the page that contains it has the same content as 50 earlier pages",
    )


# Counted in addition to the reason (`robots_unreachable.answered`): robots.txt got a response that
# contains no rules and does not mean their absence.
ANSWERED = "answered"
# Reasons for failed URLs.
FAILURES = tuple(reason for reason in Reason if reason.outcome is Outcome.FAILED)


def known(kind: type[E], word: str | None) -> E | None:
    """Return the member of `kind` with this name. None: this release does not define it."""
    return next((member for member in kind if member == word), None)


def short_of(kind: type[E], word: str) -> str:
    found = known(kind, word)
    return word if found is None else found.short or word


def robots_attempts_max(reason: str | None) -> int:
    found = known(Reason, reason)
    return ATTEMPTS_MAX if found is None else found.robots_attempts
