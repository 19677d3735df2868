"""Decide what to do with a response: read the page, follow a redirect, retry, or end the URL.

Source: RFC 9110 (status codes, Retry-After).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from orbweaver.fetching.block_page import STATUSES as KEEPING_OUT
from orbweaver.fetching.block_page import BlockPageRule, rule_of
from orbweaver.model.backoff import TOO_MANY_REQUESTS, attempts_of, transient_status
from orbweaver.model.http_exchange import Failure, Response, location_of
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.value import value_class
from orbweaver.parsing.sniffing import HTML_TYPES, declared_in, is_json, kind_of

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Redirects that repeat method and body (RFC 9110, 15.4).
REPEATING = frozenset({307, 308})
NO_CONTENT = frozenset({204, 205})
PARTIAL_CONTENT = 206
NOT_MODIFIED = 304
SERVICE_UNAVAILABLE = 503
FORBIDDEN = frozenset({401, 403, 407})
BAD_REQUEST = 400
CLIENT_ERROR_MIN, SERVER_ERROR_MIN = 400, 500
SUCCESS_MIN, REDIRECT_MIN = 200, 300
SPEAKS_TLS = "the server speaks TLS at this port: try https://"
# Texts of a 400 for a plain request at a TLS port: nginx, Apache httpd, Go, Tomcat.
_SENT_TO_TLS = (
    b"plain http request was sent to https port",
    b"speaking plain http to an ssl-enabled server port",
    b"client sent an http request to an https server",
    b"combination of host and port requires tls",
)


@value_class
class Read:
    """The page must be parsed."""

    body: bytes
    reason: Reason


@value_class
class Redirect:
    """A redirect. `location` is the raw Location header."""

    location: str


@value_class
class Retry:
    """The URL must be requested again."""

    reason: Reason
    error: str
    block: bool = False  # delay all requests to the host
    retry_after_s: float | None = None


@value_class
class End:
    """The URL ends with this outcome."""

    outcome: Outcome
    reason: Reason
    error: str | None = None


Verdict: TypeAlias = Read | Redirect | Retry | End


def judge(  # noqa: PLR0913 - facts of a request
    answer: Response | Failure,
    *,
    attempt: int,
    now_ms: int,
    conditional: bool = False,
    any_type: bool = False,
    json: bool = False,
    others_kept: bool = False,
    status_only: bool = False,
    retries: int | None = None,
) -> Verdict:
    """Decide what to do with the result of a request. `attempt` counts from 1.

    `conditional`: the request had a condition. `any_type`: bodies of any type are read, not only
    pages. `json`: JSON is read, too. `others_kept`: bodies of other types count as fetched.
    `status_only`: responses have no body. `retries` limits the further attempts, if it is given.
    """
    if conditional and isinstance(answer, Response) and answer.status == NOT_MODIFIED:
        return End(outcome=Outcome.UNCHANGED, reason=Reason.NOT_MODIFIED)
    verdict: Verdict
    if isinstance(answer, Failure):
        verdict = _judge_failure(answer)
    elif status_only and SUCCESS_MIN <= answer.status < REDIRECT_MIN:
        rule = rule_of(answer.status, answer.headers, None)
        ok = End(outcome=Outcome.FETCHED, reason=Reason.OK)
        verdict = ok if rule is None else _blocked_end(rule)
    else:
        any_type = any_type or (json and is_json(answer.headers, answer.body or b""))
        verdict = _judge_response(answer, now_ms, any_type=any_type, others_kept=others_kept)
    if isinstance(verdict, Retry) and not verdict.block:
        return exhausted(verdict, attempt, retries) or verdict
    return verdict


def exhausted(retry: Retry, attempt: int, retries: int | None = None) -> End | None:
    """Return the end of a URL if its reason or `retries` allow no further attempt, or None."""
    if attempt < attempts_of(retry.reason.attempts, retries):
        return None
    return End(outcome=Outcome.FAILED, reason=retry.reason, error=retry.error)


def retry_after_s(value: str | None, now_ms: int) -> float | None:
    """Parse a Retry-After header (seconds or a date). Return None if it is missing or invalid."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now_ms / 1000)


def page_or_block(read: Read, answer: Response | Failure, links: int) -> Read | End:
    """Return `read`, or an End if the page blocks crawlers.

    `links` is the page's number of links.
    """
    if not isinstance(answer, Response):
        return read
    rule = rule_of(answer.status, answer.headers, read.body, links=links)
    return read if rule is None else _blocked_end(rule)


def bare(answer: Response | Failure) -> Response | Failure:
    return replace(answer, body=None) if isinstance(answer, Response) else answer


def bare_of_cookies(answer: Response, *, stored: bool) -> Response:
    """Remove cookies from a response.

    If its Set-Cookie header must not be `stored`, remove that too.
    """
    if not answer.cookies and "set-cookie" not in answer.headers:
        return answer
    if stored:
        return replace(answer, cookies=())
    headers = {name: value for name, value in answer.headers.items() if name != "set-cookie"}
    octets = {name: value for name, value in answer.octets.items() if name != "set-cookie"}
    return replace(answer, headers=headers, octets=octets, cookies=())


def _blocked_end(rule: BlockPageRule) -> End:
    return End(outcome=Outcome.FAILED, reason=Reason.BLOCKED, error=rule.name)


def _judge_failure(failure: Failure) -> Verdict:
    if failure.reason.attempts > 1:
        return Retry(reason=failure.reason, error=failure.detail)
    return End(outcome=Outcome.FAILED, reason=failure.reason, error=failure.detail)


def _judge_response(answer: Response, now_ms: int, *, any_type: bool, others_kept: bool) -> Verdict:
    status = answer.status
    error = f"HTTP {status}"
    if SUCCESS_MIN <= status < REDIRECT_MIN:
        return _judge_success(answer, any_type=any_type, others_kept=others_kept)
    if status in REDIRECTS and (location := location_of(answer)):
        return Redirect(location=location)
    rule = rule_of(status, answer.headers, answer.body) if status in KEEPING_OUT else None
    if rule is not None:
        error = f"{error}: {rule.name}"
    if transient_status(status):
        wait_s = retry_after_s(answer.headers.get("retry-after"), now_ms)
        block = status in (TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE)
        reason = Reason.BLOCKED if status == TOO_MANY_REQUESTS else Reason.HTTP_SERVER_ERROR
        return Retry(reason=reason, error=error, block=block, retry_after_s=wait_s)
    if status >= SERVER_ERROR_MIN:
        return End(outcome=Outcome.FAILED, reason=Reason.HTTP_SERVER_ERROR, error=error)
    if status >= CLIENT_ERROR_MIN:
        reason = Reason.FORBIDDEN if status in FORBIDDEN else Reason.HTTP_CLIENT_ERROR
        reason = reason if rule is None else Reason.BLOCKED
        if status == BAD_REQUEST and _is_sent_to_tls(answer.body or b""):
            error = f"{error}: {SPEAKS_TLS}"
        return End(outcome=Outcome.FAILED, reason=reason, error=error)
    return End(outcome=Outcome.FAILED, reason=Reason.HTTP_STATUS, error=error)


def _is_sent_to_tls(body: bytes) -> bool:
    looks = body.lower()
    return any(text in looks for text in _SENT_TO_TLS)


def _judge_success(answer: Response, *, any_type: bool, others_kept: bool) -> Verdict:
    rule = rule_of(answer.status, answer.headers, None)
    if rule is not None:
        return _blocked_end(rule)
    if answer.status in NO_CONTENT:
        return End(outcome=Outcome.SKIPPED, reason=Reason.EMPTY)
    if answer.body is None:
        return End(outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE)
    cut = answer.truncated or answer.status == PARTIAL_CONTENT
    reason = Reason.TRUNCATED if cut else Reason.OK
    kind = kind_of(answer.headers, answer.body)
    if kind in HTML_TYPES or any_type:
        return Read(body=answer.body, reason=reason)
    if others_kept:
        return End(outcome=Outcome.FETCHED, reason=reason)
    error = None if kind == declared_in(answer.headers) else f"looks like {kind}"
    return End(outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE, error=error)


def failure_of(answer: Response | Failure) -> str:
    return f"HTTP {answer.status}" if isinstance(answer, Response) else str(answer.reason)


def sets_cookies(answer: Response | Failure) -> bool:
    return isinstance(answer, Response) and bool(answer.cookies)


def why_to_itself(answer: Response | Failure, *, cookies: bool) -> str:
    """Return why a redirect to its own URL is not followed. `cookies`: the crawl sends cookies."""
    if not sets_cookies(answer):
        return "it leads to itself"
    if cookies:
        return "it leads to itself, also with the cookies that it sets"
    return "it leads to itself and sets a cookie: --cookies sends the cookie back"
