"""Exit codes of commands by cause, and errors whose message contains the fix.

wget uses codes 4, 5, 6 and 8 for the same causes. docs/exit-codes.md has the same table.
"""

from __future__ import annotations

from collections.abc import Mapping

OK, FAILED, USAGE, UNREACHABLE = 0, 1, 2, 3
NETWORK, TLS, REFUSED, NO_PAGE, ERROR_STATUS = 4, 5, 6, 7, 8
NOT_WRITTEN, STALLED, NOT_FOUND = 9, 10, 11
INTERRUPTED = 130

MEANS: Mapping[int, str] = {
    OK: "done",
    FAILED: "a check failed (`--fail-above`, `--fail-on`, an invalid item, a broken link), or the "
    "answer to a question was no",
    USAGE: "the options, arguments or an input file are wrong",
    UNREACHABLE: "the stack or the store cannot be reached",
    NETWORK: "no page: hosts could not be reached (DNS, connection, time limit, proxy)",
    TLS: "no page: TLS failed, mostly because of a certificate",
    REFUSED: "no page: robots.txt, a login (401, 403, 407) or a block (429) refused it",
    NO_PAGE: "no page for another reason: no HTML, invalid HTTP, a limit of the crawl",
    ERROR_STATUS: "no page: the servers answered with errors (404, 410, 500, …)",
    NOT_WRITTEN: "files could not be written",
    STALLED: "the crawl is stalled: some URLs have no outcome, and the queue is empty",
    NOT_FOUND: "the requested record, body, dead letter or export does not exist",
    INTERRUPTED: "interrupted (Ctrl-C)",
    143: "ended by SIGTERM; `crawl` has paused its crawl",
    129: "ended by SIGHUP; `crawl` has paused its crawl",
    141: "the reader of the output has ended, as in `orbweaver pages ID \\| head`, or standard "
    "output is closed; `crawl` has paused its crawl",
}


class UsageError(Exception):
    """The command line or an input file is invalid. The message contains the fix."""


class PageError(Exception):
    """A command needs a page that could not be fetched. `code` is the exit code by cause."""

    def __init__(self, said: str, code: int) -> None:
        super().__init__(said)
        self.code = code


class WriteError(Exception):
    """Files could not be written. The message contains the path and the reason."""
