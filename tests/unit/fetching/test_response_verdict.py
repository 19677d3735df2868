"""Verdicts on responses: page, redirect, retry, skip or failure."""

from __future__ import annotations

import pytest

from orbweaver.fetching.response_verdict import (
    SPEAKS_TLS,
    End,
    Read,
    Redirect,
    Retry,
    Verdict,
    exhausted,
    judge,
    retry_after_s,
)
from orbweaver.model.backoff import ATTEMPTS_FEW, ATTEMPTS_MAX
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Outcome, Reason

NOW_MS = 1_795_251_600_000  # Sat, 21 Nov 2026 09:00:00 GMT
PAGE = {"content-type": "text/html"}


def failed(reason: Reason, error: str) -> End:
    return End(outcome=Outcome.FAILED, reason=reason, error=error)


@pytest.mark.parametrize(
    ("status", "body", "truncated", "verdict"),
    [
        (200, b"x", False, Read(body=b"x", reason=Reason.OK)),
        (200, b"", False, Read(body=b"", reason=Reason.OK)),
        (203, b"x", False, Read(body=b"x", reason=Reason.OK)),
        (200, b"x", True, Read(body=b"x", reason=Reason.TRUNCATED)),
        (206, b"x", False, Read(body=b"x", reason=Reason.TRUNCATED)),
        (200, None, False, End(outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE)),
        (204, b"", False, End(outcome=Outcome.SKIPPED, reason=Reason.EMPTY)),
        (205, None, False, End(outcome=Outcome.SKIPPED, reason=Reason.EMPTY)),
        (400, b"no such page", False, failed(Reason.HTTP_CLIENT_ERROR, "HTTP 400")),
        *(
            (400, body, False, failed(Reason.HTTP_CLIENT_ERROR, f"HTTP 400: {SPEAKS_TLS}"))
            for body in (
                b"<title>400 The plain HTTP request was sent to HTTPS port</title>",
                b"Reason: You're speaking plain HTTP to an SSL-enabled server port.<br>",
                b"Client sent an HTTP request to an HTTPS server.\n",
                b"Bad Request\r\nThis combination of host and port requires TLS.\r\n",
            )
        ),
        (401, None, False, failed(Reason.FORBIDDEN, "HTTP 401")),
        (403, None, False, failed(Reason.FORBIDDEN, "HTTP 403")),
        (407, None, False, failed(Reason.FORBIDDEN, "HTTP 407")),
        (404, b"x", False, failed(Reason.HTTP_CLIENT_ERROR, "HTTP 404")),
        (410, None, False, failed(Reason.HTTP_CLIENT_ERROR, "HTTP 410")),
        (451, None, False, failed(Reason.HTTP_CLIENT_ERROR, "HTTP 451")),
        (501, None, False, failed(Reason.HTTP_SERVER_ERROR, "HTTP 501")),
        (304, None, False, failed(Reason.HTTP_STATUS, "HTTP 304")),
        (300, None, False, failed(Reason.HTTP_STATUS, "HTTP 300")),
        (301, None, False, failed(Reason.HTTP_STATUS, "HTTP 301")),
    ],
)
def test_answer_gives_verdict(
    status: int, body: bytes | None, verdict: Verdict, *, truncated: bool
) -> None:
    """Pages are read, other content is skipped, permanent errors are final (cases 46, 47)."""
    answer = Response(status=status, headers=PAGE, body=body, truncated=truncated)
    assert judge(answer, attempt=1, now_ms=NOW_MS) == verdict


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_leads_to_location(status: int) -> None:
    """The location is used unchanged (case 41)."""
    answer = Response(status=status, headers={"location": "/b "}, body=None)
    assert judge(answer, attempt=1, now_ms=NOW_MS) == Redirect(location="/b ")


@pytest.mark.parametrize(
    ("status", "reason", "block"),
    [
        (429, Reason.BLOCKED, True),
        (503, Reason.HTTP_SERVER_ERROR, True),
        (500, Reason.HTTP_SERVER_ERROR, False),
        *((status, Reason.HTTP_SERVER_ERROR, False) for status in (502, 504, *range(520, 527))),
        (408, Reason.HTTP_SERVER_ERROR, False),
    ],
)
def test_temporary_status_is_retried(status: int, reason: Reason, *, block: bool) -> None:
    """429 and 503 slow the host down, other errors only delay the URL (cases 45, 46)."""
    answer = Response(status=status, headers={"retry-after": "7"}, body=None)
    assert judge(answer, attempt=1, now_ms=NOW_MS) == Retry(
        reason=reason, error=f"HTTP {status}", block=block, retry_after_s=7.0
    )


@pytest.mark.parametrize(
    ("reason", "again"),
    [
        (Reason.DNS, True),
        (Reason.DNS_UNKNOWN, True),
        (Reason.CONNECT, True),
        (Reason.TLS_HANDSHAKE, True),
        (Reason.TIMEOUT, True),
        (Reason.DISCONNECTED, True),
        (Reason.TLS, False),
        (Reason.ADDRESS, False),
        (Reason.PROTOCOL, False),
        (Reason.HEADERS_TOO_LARGE, False),
    ],
)
def test_network_failure_is_retried_unless_final(reason: Reason, *, again: bool) -> None:
    """Faults of the server or the address are final (cases 31, 32, 39)."""
    verdict = judge(Failure(reason=reason, detail="why"), attempt=1, now_ms=NOW_MS)
    expected = Retry(reason=reason, error="why") if again else failed(reason, "why")
    assert verdict == expected


def test_last_attempt_is_final() -> None:
    trouble = Failure(reason=Reason.DNS, detail="why")
    assert isinstance(judge(trouble, attempt=ATTEMPTS_MAX - 1, now_ms=NOW_MS), Retry)
    assert judge(trouble, attempt=ATTEMPTS_MAX, now_ms=NOW_MS) == failed(Reason.DNS, "why")
    for reason in (Reason.DNS_UNKNOWN, Reason.TLS_HANDSHAKE):
        again = Failure(reason=reason, detail="why")
        assert isinstance(judge(again, attempt=ATTEMPTS_FEW - 1, now_ms=NOW_MS), Retry)
        assert judge(again, attempt=ATTEMPTS_FEW, now_ms=NOW_MS) == failed(reason, "why")
    verdict = judge(
        Response(status=429, headers={}, body=None), attempt=ATTEMPTS_MAX, now_ms=NOW_MS
    )
    assert isinstance(verdict, Retry)
    assert exhausted(verdict, ATTEMPTS_MAX - 1) is None
    assert exhausted(verdict, ATTEMPTS_MAX) == failed(Reason.BLOCKED, "HTTP 429")


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        (None, None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("315360000", 315_360_000.0),
        ("9" * 400, 999_999_999.0),
        ("Sat, 21 Nov 2026 09:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 10:00:30 +0100", 30.0),
        ("Sat, 21 Nov 2026 09:00:30 -0000", 30.0),
        ("Sat, 21 Nov 2020 09:00:30 GMT", 0.0),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("\u0663", None),
        ("²", None),
    ],
)
def test_retry_after_accepts_seconds_and_dates(value: str | None, wait_s: float | None) -> None:
    """Dates of any zone and past dates are accepted. Other values are ignored (case 45)."""
    assert retry_after_s(value, NOW_MS) == wait_s


@pytest.mark.parametrize(
    ("content_type", "body", "error"),
    [
        ("text/html", b"\x89PNG\r\n\x1a\n", "looks like image/png"),
        ("application/octet-stream", b"words", "looks like text/plain"),
        ("application/octet-stream", b"\0\1", None),
        ("text/plain", b"words", None),
        ("", b"words", "looks like text/plain"),
        ("application/pdf", b"%PDF-1", None),
        *((other, b"<html>x", None) for other in ("", "application/octet-stream", "text/plain")),
        ("*/*", b"<html>x", None),
    ],
)
def test_body_decides_whether_other_content_type_is_read(
    content_type: str, body: bytes, error: str | None
) -> None:
    """The record states a body type that contradicts the Content-Type (case 59)."""
    answer = Response(status=200, headers={"content-type": content_type}, body=body)
    skipped = End(outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE, error=error)
    expected = Read(body=body, reason=Reason.OK) if body == b"<html>x" else skipped
    assert judge(answer, attempt=1, now_ms=NOW_MS) == expected


@pytest.mark.parametrize(
    ("body", "truncated", "status_only", "verdict"),
    [
        (b"%PDF-1.7", False, False, End(outcome=Outcome.FETCHED, reason=Reason.OK)),
        (b"%PDF-1.7", True, False, End(outcome=Outcome.FETCHED, reason=Reason.TRUNCATED)),
        (None, False, False, End(outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE)),
        (None, False, True, End(outcome=Outcome.FETCHED, reason=Reason.OK)),
    ],
)
def test_kept_file_or_status_alone_is_fetched(
    body: bytes | None, verdict: End, *, truncated: bool, status_only: bool
) -> None:
    headers = {"content-type": "application/pdf"}
    answer = Response(status=200, headers=headers, body=body, truncated=truncated)
    kept = not status_only
    assert judge(answer, attempt=1, now_ms=0, others_kept=kept, status_only=status_only) == verdict
