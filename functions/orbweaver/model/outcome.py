"""Define the five outcomes of a URL, and the reasons for them.

`fetched unchanged redirected skipped failed` partition the claimed URLs of a finished crawl: their
counts add up to `claimed`. A link that was never claimed is *refused*, with a `Refusal`. The
attributes of a reason define its meaning and consequences. The order of members has no meaning. The
guide uses the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Self, TypeVar

from orbweaver.model.backoff import ATTEMPTS_FEW, ATTEMPTS_MAX

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


@dataclass(frozen=True, slots=True)
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
_unasked = partial(_skipped, resumable=True)
# Permanent until a person changes something.
_lasting = partial(_failed, robots_attempts=1)
# Rarely recovers: an unknown name may belong to a zone that is being moved, an aborted handshake to
# a busy load balancer.
_twice = partial(_failed, attempts=ATTEMPTS_FEW, robots_attempts=ATTEMPTS_FEW)
_passing = partial(_failed, attempts=ATTEMPTS_MAX)
_silent = partial(_passing, silence=True)


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
        "truncated", "it was cut at body_bytes_max, or the server sent a part (206)"
    )
    SITEMAP = _fetched("sitemap", "a sitemap was read")
    NOINDEX = _fetched("noindex", "read, and it asks not to be indexed (--noindex skip: skipped)")
    REPEATED = _fetched(
        "repeated", "read, but the same content came 50 times before: its links are not followed"
    )
    SOFT_404 = _fetched("soft_404", 'read, and it looks like a "not found" with status 200')
    NOT_MODIFIED = _unchanged(
        "not_modified", "fetched by an earlier run, and the server says it is still the same (304)"
    )
    REDIRECT = _redirected(
        "redirect", "it leads elsewhere; the target is a URL of its own, if it belongs to the crawl"
    )
    REFRESH = _redirected(
        "refresh", "likewise, by <meta http-equiv=refresh> or the Refresh header, within 10 s"
    )
    WIDENED = _redirected(
        "widened", "a seed that leads out of the scope: the crawl goes on there as well"
    )
    ROBOTS = _skipped("robots", "robots.txt forbids it")
    ROBOTS_UNREACHABLE = _skipped(
        "robots_unreachable",
        "robots.txt could not be had: error says why; up to four times, once where only a"
        " person can mend that",
    )
    CONTENT_TYPE = _skipped(
        "content_type",
        "an image, a PDF or another file that is not HTML; error says what it looks like where it"
        " was said to be something else; archives and the like are not asked for, if their names"
        " say what they are",
    )
    EMPTY = _skipped("empty", "204 or 205")
    CANONICAL = _skipped(
        "canonical",
        "it names another page of the crawl as canonical (--canonical), which is asked for",
    )
    CANCELLED = _unasked("cancelled", "the crawl was stopped first")
    DURATION = _unasked("duration", "the crawl had run as long as it may")
    BYTES = _unasked("bytes", "the crawl had received as much as it may (--max-bytes)")
    DOLLARS = _unasked("dollars", "the crawl had spent as much as it may (--max-dollars)")
    HOST_PAGES = _unasked(
        "host_pages", "its host had been asked for as many URLs as it may (--max-host-pages)"
    )
    FORGOTTEN = _skipped("forgotten", "it was erased (orbweaver forget) before it was asked for")
    # A message held it that does not fit its crawl (frontier/belonging.py).
    INVALID = _skipped("invalid", "a message held it, and it is no canonical URL")
    SCOPE = _skipped("scope", "a message held it, and it is outside of the scope")
    DEPTH = _skipped("depth", "it lies deeper than the crawl goes, since an edit or by its message")
    REDIRECT_INVALID = _failed("redirect_invalid", "it leads to what is no http or https URL")
    REDIRECT_LIMIT = _failed(
        "redirect_limit", "the tenth redirect in a row led on, or it leads to itself"
    )
    SITEMAP_INVALID = _failed("sitemap_invalid", "what was to be a sitemap is none")
    FORBIDDEN = _failed("forbidden", "401, 403 or 407")
    HTTP_CLIENT_ERROR = _failed(
        "http_client_error",
        "the server has no such page or refuses the request: 404, 410 or another 4xx",
    )
    HTTP_SERVER_ERROR = _passing(
        "http_server_error", "5xx, 408 or 425, four times where it may help"
    )
    HTTP_STATUS = _failed(
        "http_status", "304, a redirect without a target, or another answer that is none"
    )
    DNS = _silent("dns", "its name could not be looked up, four times", short="name not looked up")
    DNS_UNKNOWN = _twice(
        "dns_unknown", "its name does not exist or has no address, twice", short="unknown name"
    )
    CONNECT = _silent("connect", "refused or unreachable, four times", short="no connection")
    PROXY = _passing("proxy", "no proxy reached it, four times", short="no proxy reached it")
    TLS = _lasting(
        "tls",
        "the certificate is not in order, or no way of encrypting is shared",
        short="certificate or encryption",
    )
    TLS_HANDSHAKE = _twice(
        "tls_handshake",
        "the server cut the handshake short, twice",
        silence=True,
        short="handshake cut short",
    )
    TIMEOUT = _silent(
        "timeout",
        "it took longer than fetch_total_s, or came at less than 100 bytes/s, four times",
        short="no answer in time",
    )
    DISCONNECTED = _silent(
        "disconnected", "the connection ended in the middle, four times", short="connection lost"
    )
    PROTOCOL = _failed("protocol", "the answer is no HTTP, or hardly anything but framing")
    ENCODING = _failed("encoding", "the body is not in the encoding that it says")
    HEADERS_TOO_LARGE = _failed("headers_too_large", "the head of the answer is too large")
    ADDRESS = _lasting(
        "address",
        "the address is not public, or the port not the web's",
        short="address not allowed",
    )
    BLOCKED = _passing(
        "blocked", "429, four times; or a captcha, challenge or block page, whose rule error names"
    )
    HOST_DOWN = _failed(
        "host_down", "its host did not answer nine times in a row; it was not asked"
    )
    COSTLY = _failed(
        "costly",
        "reading it took more than 1 s of CPU or 200 MB, or crashed; error says what is left"
        " out (failed: all of it)",
    )
    UNREADABLE = _failed(
        "unreadable",
        "an error in Orbweaver ended its reading; error names it, and the log has page.unreadable"
        " with the traceback",
    )


class Refusal(StrEnum):
    """Reason why a reference was never claimed. Counted at its page, not recorded.

    `short` is for a line, `means` for a table.
    """

    short: str
    means: str

    def __new__(cls, name: str, short: str, means: str) -> Self:
        member = str.__new__(cls, name)
        member._value_, member.short, member.means = name, short, means
        return member

    INVALID = "invalid", "no web address", "it is no http or https URL"
    SCOPE = "scope", "outside the scope", "it does not belong to the crawl"
    EXCLUDE = "exclude", "excluded", "a pattern of --exclude is found in it"
    INCLUDE = "include", "not included", "no pattern of --include is found in it"
    DEPTH = "depth", "too deep", "it is deeper than --max-depth, or than a rule says"
    NOFOLLOW = "nofollow", "nofollow", "link, page or X-Robots-Tag forbid to follow it"
    SEED_NOFOLLOW = (
        "seed_nofollow",
        "withdrawn by a first page",
        (
            "a first page asks not to follow its links, or marks each of them so"
            " (--ignore-nofollow: they are followed)"
        ),
    )
    UNFOLLOWED = (
        "unfollowed",
        "not followed by a rule",
        "a rule says that links of its page are not followed",
    )
    CUT = (
        "cut",
        "too many on a page",
        "the page has more links than links_per_page_max, or too long ones",
    )
    BUDGET = "budget", "beyond the limit of pages", "--max-pages was used up"
    DOLLARS = (
        "dollars",
        "beyond the limit of dollars",
        "what was left of --max-dollars would not have paid for it",
    )
    REDIRECTS = "redirects", "behind too many redirects", "it stands behind ten redirects"
    CLOSED = "closed", "after the end", "the crawl was over when it was seeded"
    # crawler traps: frontier/crawler_traps.py
    PATH_DEPTH = (
        "path_depth",
        "path too long",
        "its path has more than path_segments_max segments, or its host so many labels",
    )
    REPETITION = (
        "repetition",
        "path repeats itself",
        "a segment of its path, or a label of its host, comes more than repeats_max times",
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
            "its folder, or its path with these parameters, has had folder_urls_max or"
            " query_urls_max URLs in this container"
        ),
    )
    INDEX_ORDER = (
        "index_order",
        "another order of an index",
        "it is the index of a folder that links to it, in another order (?C=M;O=D)",
    )
    REPEATED = (
        "repeated",
        "on pages of the same content",
        "the page has content that came 50 times before",
    )


# Counted in addition to reasons (`robots_unreachable.answered`): a response to robots.txt that
# contains no rules and does not mean their absence.
ANSWERED = "answered"
# Reasons for failed URLs.
FAILURES = tuple(reason for reason in Reason if reason.outcome is Outcome.FAILED)


def known(kind: type[E], word: str | None) -> E | None:
    """Return a reason or refusal by name. None if it belongs to another release."""
    return next((member for member in kind if member == word), None)


def short_of(kind: type[E], word: str) -> str:
    """Return the short form of a reason or refusal, or its name."""
    found = known(kind, word)
    return word if found is None else found.short or word


def robots_attempts_max(reason: str | None) -> int:
    """Return the maximum number of attempts for a robots.txt that fails for this reason."""
    found = known(Reason, reason)
    return ATTEMPTS_MAX if found is None else found.robots_attempts
