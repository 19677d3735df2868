"""What an answer means: the page is read, leads elsewhere, comes back later, or has ended.

Sources: RFC 9110 (status codes, Retry-After), RFC 9309 for nothing here. A captcha or soft 404 is
not told apart from a page yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from orbweaver.core.exchange import Failure, Response
from orbweaver.core.outcome import Outcome, Reason
from orbweaver.core.retry import ATTEMPTS_MAX, TOO_MANY_REQUESTS, TRANSIENT, transient_status

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
NO_CONTENT = frozenset({204, 205})
PARTIAL_CONTENT = 206
SERVICE_UNAVAILABLE = 503
CLIENT_ERROR_MIN, SERVER_ERROR_MIN = 400, 500
SUCCESS_MIN, REDIRECT_MIN = 200, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A page to parse."""

    body: bytes
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """A redirect, `location` as the server wrote it."""

    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Worth asking again; `block` slows the whole host down, by `retry_after_s` if it said so."""

    reason: Reason
    error: str
    block: bool = False
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An outcome."""

    outcome: Outcome
    reason: Reason
    error: str | None = None


Verdict: TypeAlias = Read | Lead | Retry | End


def judge(answer: Response | Failure, *, attempt: int, now_ms: int) -> Verdict:
    """Decide on an answer to attempt number `attempt`."""
    verdict = (
        _judge_failure(answer) if isinstance(answer, Failure) else _judge_response(answer, now_ms)
    )
    if isinstance(verdict, Retry) and not verdict.block and attempt >= ATTEMPTS_MAX:
        return End(outcome=Outcome.FAILED, reason=verdict.reason, error=verdict.error)
    return verdict


def exhausted(retry: Retry, attempt: int) -> End | None:
    """The end of a URL that has had all its attempts, though its host is to be left alone."""
    if attempt < ATTEMPTS_MAX:
        return None
    return End(outcome=Outcome.FAILED, reason=retry.reason, error=retry.error)


def media_type(content_type: str | None) -> str:
    """The type and subtype of a Content-Type header, in lower case; empty if there is none."""
    return (content_type or "").partition(";")[0].strip().lower()


def retry_after_s(value: str | None, now_ms: int) -> float | None:
    """Read a Retry-After header, seconds or a date; None if there is none that makes sense."""
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


def _judge_failure(failure: Failure) -> Verdict:
    if failure.reason in TRANSIENT:
        return Retry(reason=failure.reason, error=failure.detail)
    return End(outcome=Outcome.FAILED, reason=failure.reason, error=failure.detail)


def _judge_response(answer: Response, now_ms: int) -> Verdict:
    status = answer.status
    error = f"HTTP {status}"
    if SUCCESS_MIN <= status < REDIRECT_MIN:
        return _judge_success(answer)
    if status in REDIRECTS and answer.headers.get("location"):
        return Lead(location=answer.headers["location"])
    if transient_status(status):
        wait_s = retry_after_s(answer.headers.get("retry-after"), now_ms)
        block = status in (TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE)
        reason = Reason.BLOCKED if status == TOO_MANY_REQUESTS else Reason.HTTP_SERVER_ERROR
        return Retry(reason=reason, error=error, block=block, retry_after_s=wait_s)
    if status >= SERVER_ERROR_MIN:
        return End(outcome=Outcome.FAILED, reason=Reason.HTTP_SERVER_ERROR, error=error)
    if status >= CLIENT_ERROR_MIN:
        return End(outcome=Outcome.FAILED, reason=Reason.HTTP_CLIENT_ERROR, error=error)
    return End(outcome=Outcome.FAILED, reason=Reason.HTTP_STATUS, error=error)


def _judge_success(answer: Response) -> Verdict:
    if answer.status in NO_CONTENT:
        return End(outcome=Outcome.SKIPPED, reason=Reason.EMPTY)
    if answer.body is None:
        return End(outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE)
    cut = answer.truncated or answer.status == PARTIAL_CONTENT
    return Read(body=answer.body, reason=Reason.TRUNCATED if cut else Reason.OK)
