"""Decide whether a link is fine, broken or not verified.

A refusal of the crawler, a limit, a time-out and a fault of a server prove nothing about a link, so
such a link is not verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from orbweaver.cli.audit.judgement import JUDGED, meaning_of
from orbweaver.cli.check_links.links import CUT, NO_PAGE, SCRIPTED
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.value import value_class

HOPS_MAX = 10
ENDLESS = "endless redirect"
# Statuses that describe the request, not the URL: payment, method, media type, legal reasons.
_OF_REQUEST = frozenset({402, 405, 406, 451})
NOT_REQUESTED, LEFT_OUT = "not_requested", "left_out"
_MEANINGS = {
    NOT_REQUESTED: "no result within --duration; its host may have asked for a longer delay",
    LEFT_OUT: "a limit of the crawl left it out",
    CUT: "links beyond the limits of a page, which are not read",
    SCRIPTED: "pages that scripts fill, so that their links and anchors are not read",
    NO_PAGE: "the start URL is no HTML page, so it has no links to check",
    Reason.ADDRESS: "its address is not public, so a check of other pages does not request it",
    Reason.BLOCKED: "429, or a captcha or block page",
    Reason.HTTP_CLIENT_ERROR: "402, 405, 406 or 451",
    Reason.HTTP_SERVER_ERROR: "5xx, 408 or 425",
    Reason.ROBOTS_UNREACHABLE: "robots.txt of its host could not be fetched",
}


class LinkState(StrEnum):
    """Result for a link."""

    FINE = "fine"
    BROKEN = "broken"
    UNVERIFIED = "not verified"


@value_class
class Verdict:
    """Result for a URL. `url` is the URL at which its redirects end. `reason` is for counts."""

    state: LinkState
    url: str
    reason: str = ""
    detail: str = ""


def means(reason: str) -> str:
    return _MEANINGS.get(reason) or meaning_of(reason)


def last_url(url: str, records: Mapping[str, PageRecord]) -> str:
    """Follow the recorded redirects of a URL."""
    for _ in range(HOPS_MAX):
        record = records.get(url)
        if record is None or record.outcome is not Outcome.REDIRECTED or not record.error:
            break
        url = record.error
    return url


def settled(records: Mapping[str, PageRecord]) -> dict[str, PageRecord]:
    """Return the records of URLs that are fine or broken. Other results can pass."""
    return {
        url: record
        for url, record in records.items()
        if judge(url, records).state is not LinkState.UNVERIFIED
    }


def unverified(url: str, reason: str, detail: str = "") -> Verdict:
    return Verdict(
        state=LinkState.UNVERIFIED, url=url, reason=reason, detail=detail or means(reason)
    )


def judge(url: str, records: Mapping[str, PageRecord]) -> Verdict:
    """Judge a URL by the records of the requests for it and for its redirects."""
    last = last_url(url, records)
    record = records.get(last)
    if record is None:
        return unverified(last, NOT_REQUESTED)
    through = "" if last == url else f"redirects to {last}: "
    reason = record.reason
    if record.outcome in (Outcome.FETCHED, Outcome.UNCHANGED) or (
        record.outcome is Outcome.SKIPPED and reason in JUDGED
    ):
        return Verdict(state=LinkState.FINE, url=last)
    said = f"HTTP {record.status}" if record.status else record.error or reason.means
    if reason is Reason.REDIRECT_INVALID:
        said = reason.means
    if reason is Reason.REDIRECT_LIMIT or (record.outcome is Outcome.REDIRECTED and record.error):
        through, said = "", ENDLESS
    detail = f"{through}{said}"
    is_fault = reason in JUDGED and reason is not Reason.HTTP_SERVER_ERROR
    if is_fault and record.status not in _OF_REQUEST:
        if reason is Reason.DNS_UNKNOWN:
            detail = f"{through}unknown host name"
        return Verdict(state=LinkState.BROKEN, url=last, reason=reason, detail=detail)
    return unverified(last, reason, detail)
