"""Cases 45 to 47: statuses, and hosts that request delays."""

from __future__ import annotations

import time
from collections.abc import Iterable
from email.utils import formatdate

from tests.sites.hostile.model import (
    ATTEMPTS,
    Asked,
    Place,
    Row,
    Script,
    answer,
    head,
    html_of,
    link,
    page,
    then,
)
from tests.sites.steps import Step

HTML = "Content-Type: text/html"
BUSY = {429: "Too Many Requests", 503: "Service Unavailable"}
REST_S = 2
PATIENCE = {"ten-years": str(10 * 365 * 86_400), "garbage": "soon, I promise"}
PASSING = (500, 502, 504, 520, 521, 522, 523, 524, 525, 526)
LASTING = {404: "http_client_error", 410: "http_client_error", 451: "http_client_error"}
REFUSING = (401, 403)


def _busy(status: int, *lines: str) -> tuple[Step, ...]:
    return (answer(b"", *lines, status=f"{status} {BUSY[status]}"),)


def _busy_until(status: int, offset_s: int) -> Script:
    def say(asked: Asked) -> Iterable[Step]:
        date = formatdate(time.time() + offset_s, usegmt=True)
        yield from _busy(status, f"Retry-After: {date}")

    return say


def _rest(place: str, serves: str, first: Script) -> Row:
    return Row(45, "/busy", serves, then(first, page("/busy")), place=place, asks=2, title="/busy")


def _storm(place: str, status: int, reason: str) -> Row:
    say = _busy(status, "Retry-After: 1")
    serves = f"{status} for ever, with Retry-After: 1"
    return Row(45, "/busy", serves, say, f"failed: {reason}", place=place, asks=ATTEMPTS)


def _status(status: int, reason: str, asks: int = 1, place: str = "failing") -> Row:
    return Row(
        46,
        f"/status/{status}",
        f"status {status}",
        (answer(link("/status/ghost"), HTML, status=f"{status} No"),),
        f"failed: {reason}",
        place=place,
        asks=asks,
        ghosts=("/status/ghost",),
    )


ROWS = (
    _rest("busy-seconds", "429 with Retry-After in seconds", _busy(429, f"Retry-After: {REST_S}")),
    _rest("busy-date", "503 with Retry-After as a date", _busy_until(503, REST_S + 1)),
    _rest("busy-past", "429 with a date that is past", _busy_until(429, -3_600)),
    _storm("storm-429", 429, "blocked"),
    _storm("storm-503", 503, "http_server_error"),
    *(
        Row(45, "/busy", f"429 with Retry-After: {value}", _busy(429, f"Retry-After: {value}"),
            "skipped: cancelled", place=name)
        for name, value in PATIENCE.items()
    ),
    *(_status(status, "http_server_error", ATTEMPTS) for status in PASSING),
    *(_status(status, "http_server_error") for status in (501, 505)),
    *(_status(status, reason) for status, reason in LASTING.items()),
    *(_status(status, "forbidden", place="forbidding") for status in REFUSING),
    _status(300, "http_status"),
    _status(999, "http_server_error", ATTEMPTS),
    Row(46, "/status/304", "304 though nobody has a copy",
        (head('ETag: "x"', status="304 Not Modified"),), "failed: http_status", place="failing"),
    Row(47, "/nothing/204", "no content", (head(status="204 No Content"),), "skipped: empty"),
    Row(47, "/nothing/205", "reset content", (answer(status="205 Reset Content"),),
        "skipped: empty"),
    Row(47, "/nothing/206", "a part that nobody asked for",
        (answer(link("/nothing/seen-in-part"), HTML, "Content-Range: bytes 0-50/5000",
                status="206 Partial Content"),),
        "fetched: truncated", children=("/nothing/seen-in-part",)),
    Row(47, "/nothing/empty", "200 and nothing", html_of(b"", HTML)),
)  # fmt: skip

PLACES = (
    *(
        Place(name=name)
        for name in ("busy-seconds", "busy-date", "busy-past", "storm-429", "storm-503")
    ),
    *(Place(name=name, crawl="patient") for name in PATIENCE),
    Place(name="failing"),
    Place(name="forbidding"),
)
