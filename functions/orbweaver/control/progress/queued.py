"""Describe URLs that delay a crawl: queued retries, and requests without a response.

This works for a store only. In a stack, only workers can read the messages in SQS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.control.progress import figures
from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.http_exchange import IDLE_S

if TYPE_CHECKING:
    from orbweaver.model.target import Target

# A request without a response is shown from this age on.
SILENT_MS_MIN = 5_000
URL_CHARS_MAX = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedUrl:
    """A URL without an outcome.

    `at_ms` is the time when it is due or, if `in_work`, when its request started.
    """

    target: Target
    at_ms: int
    in_work: bool = False


def words_of(queued: Sequence[QueuedUrl], now_ms: int, request_s: float) -> list[str]:
    """Describe the next retry, and the longest request without a response.

    `request_s` is the time limit of a request in seconds.
    """
    said = []
    retries = sorted(
        (one for one in queued if one.target.attempt > 1 and not one.in_work),
        key=lambda one: one.at_ms,
    )
    if retries:
        said.append(_retry(retries[0], now_ms) + _more(len(retries) - 1))
    silent = [one for one in queued if one.in_work and now_ms - one.at_ms >= SILENT_MS_MIN]
    if silent:
        first = min(silent, key=lambda one: one.at_ms)
        said.append(_silent(first, now_ms, request_s) + _more(len(silent) - 1))
    return said


def _retry(one: QueuedUrl, now_ms: int) -> str:
    why = f" ({one.target.failed})" if one.target.failed else ""
    left_s = (one.at_ms - now_ms) / 1000
    when = f"in {figures.roughly(left_s)}" if left_s > 0 else "now"
    return f"waiting to retry {_short(one.target.url)}{why}, attempt {one.target.attempt} {when}"


def _silent(one: QueuedUrl, now_ms: int, request_s: float) -> str:
    waited_s = (now_ms - one.at_ms) / 1000
    said = f"no answer from {_short(one.target.url)} for {figures.roughly(waited_s)}"
    if waited_s >= request_s:
        return said
    said += f"; given up after {IDLE_S:g} s without data or {request_s:g} s in total"
    return said if one.target.attempt >= ATTEMPTS_MAX else f"{said}, then retried"


def _more(number: int) -> str:
    return f"; {number:,} more" if number else ""


def _short(url: str) -> str:
    return url if len(url) <= URL_CHARS_MAX else f"{url[: URL_CHARS_MAX - 1]}…"
