"""State of a crawl's login at one origin, which all workers share, and how it changes.

A worker that logs in holds a lease until `until_ms`. Every change is one conditional write, so only
one worker logs in. The state contains no secret.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from enum import StrEnum

from orbweaver.model.value import value_class

# A login takes few requests, each with the delay of its host.
LEASE_MS = 180_000
# Failed logins before the host's URLs fail. Sites lock accounts after more.
TRIES_MAX = 2
TRY_AGAIN_MS = 5_000
# Logins without a response, and the delay before the next one.
ERRORS_MAX = 4
ERROR_MS = 10_000
LOGINS_MAX = 1_000


class SessionStage(StrEnum):
    """Whether a session is valid: not yet, yes, perhaps no more, or never."""

    NEW = "new"
    VALID = "valid"
    LOST = "lost"
    FAILED = "failed"


@value_class
class SessionState:
    """A session. `epoch` counts its logins, `landing` is the URL at which the last one ended.

    Before `until_ms`, only `holder` may log in.
    """

    stage: SessionStage = SessionStage.NEW
    epoch: int = 0
    holder: str = ""
    until_ms: int = 0
    tries: int = 0
    errors: int = 0
    landing: str | None = None
    error: str | None = None

    def leased(self, holder: str, now_ms: int) -> SessionState:
        return replace(self, holder=holder, until_ms=now_ms + LEASE_MS)

    def released(self) -> SessionState:
        return replace(self, holder="", until_ms=0)

    def verified(self) -> SessionState:
        return replace(self.released(), stage=SessionStage.VALID, tries=0, errors=0)

    def logged_in(self, landing: str | None) -> SessionState:
        if self.epoch >= LOGINS_MAX:
            return self.failed(f"the crawl has logged in {LOGINS_MAX:,} times")
        return SessionState(stage=SessionStage.VALID, epoch=self.epoch + 1, landing=landing)

    def lost(self) -> SessionState:
        return replace(self, stage=SessionStage.LOST)

    def failed(self, error: str) -> SessionState:
        return replace(self.released(), stage=SessionStage.FAILED, error=error)

    def rejected(self, error: str, now_ms: int) -> SessionState:
        """Return the state after a failed login: the last try has failed, or one is left."""
        if self.tries + 1 >= TRIES_MAX:
            return self.failed(error)
        return replace(self, holder="", until_ms=now_ms + TRY_AGAIN_MS, tries=self.tries + 1)

    def unreachable(self, error: str, now_ms: int) -> SessionState:
        if self.errors + 1 >= ERRORS_MAX:
            return self.failed(error)
        wait_ms = ERROR_MS << self.errors
        return replace(self, holder="", until_ms=now_ms + wait_ms, errors=self.errors + 1)


def to_text(state: SessionState) -> str:
    return json.dumps(asdict(state), separators=(",", ":"))


def from_text(text: str | None) -> SessionState:
    if text is None:
        return SessionState()
    fields = json.loads(text)
    return SessionState(**{**fields, "stage": SessionStage(fields["stage"])})
