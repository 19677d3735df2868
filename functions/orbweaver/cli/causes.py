"""Exit code of a page that was not fetched, and of a crawl without pages, by their reasons."""

from __future__ import annotations

from collections import Counter

from orbweaver.cli import exit_codes
from orbweaver.control.progress.status import View
from orbweaver.model.outcome import ANSWERED, Outcome, Reason

# All other reasons: `NO_PAGE`.
_CODES = {
    reason: code
    for code, reasons in {
        exit_codes.NETWORK: (
            Reason.DNS,
            Reason.DNS_UNKNOWN,
            Reason.CONNECT,
            Reason.TIMEOUT,
            Reason.DISCONNECTED,
            Reason.PROXY,
            Reason.PROXY_REJECTED,
            Reason.ADDRESS,
            Reason.HOST_DOWN,
            Reason.ROBOTS_UNREACHABLE,
        ),
        exit_codes.TLS: (Reason.TLS, Reason.TLS_HANDSHAKE),
        exit_codes.REFUSED: (Reason.ROBOTS, Reason.FORBIDDEN, Reason.BLOCKED, Reason.LOGIN),
        exit_codes.ERROR_STATUS: (
            Reason.HTTP_CLIENT_ERROR,
            Reason.HTTP_SERVER_ERROR,
            Reason.HTTP_STATUS,
            ANSWERED,
        ),
    }.items()
    for reason in reasons
}


def code_of(reason: str) -> int:
    """Return the exit code for a page that was not fetched for this reason."""
    return _CODES.get(reason, exit_codes.NO_PAGE)


def code_without_pages(view: View) -> int:
    """Return the exit code of a crawl without pages: the most frequent cause."""
    counts = Counter({**view.reasons(Outcome.FAILED), **view.reasons(Outcome.SKIPPED)})
    if robots := view.reasons(Reason.ROBOTS_UNREACHABLE):
        counts.pop(Reason.ROBOTS_UNREACHABLE, None)
        counts.update(robots)
    causes = Counter[int]()
    for reason, number in counts.items():
        causes[code_of(reason)] += number
    return causes.most_common(1)[0][0] if causes else exit_codes.NO_PAGE
