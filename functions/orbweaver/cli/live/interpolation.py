"""Interpolate the numbers on the screen. Otherwise they jump, because a commit has many URLs.

Shown values are between the last two readings whose number of done URLs differs. They change from
one to the other in about the time between these readings, so they lag by that time. If the crawl
has ended, is paused or completed no URL for a while, the last reading is shown without
interpolation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orbweaver.control.progress.hosts import rows_of
from orbweaver.control.progress.spending import budgets_of
from orbweaver.control.progress.status import WORKING, View
from orbweaver.model.crawl import Counters

# Maximum time between two readings that are interpolated.
SPAN_MS_MAX = 8_000
EARLY = 0.75


class ViewInterpolator:
    """Interpolates the numbers between successive views."""

    def __init__(self) -> None:
        self._from: Mapping[str, int] = {}
        self._to: Mapping[str, int] | None = None
        self._done = 0
        self._began_ms = 0
        self._span_ms = 0

    def show(self, view: View) -> View:
        now_ms, total = view.now_ms, view.total
        if view.crawl.state not in WORKING:
            self._to = None
            return view
        done = view.reading.status.counters.done
        if self._to is None:
            self._from, self._began_ms, self._span_ms = total, now_ms, 0
        elif done != self._done:
            shown, apart_ms = self._at(now_ms), now_ms - self._began_ms
            glides = 0 < apart_ms <= SPAN_MS_MAX
            self._from, self._began_ms = (shown if glides else total), now_ms
            # If this reading came early, the next reading still comes after about the usual
            # interval.
            self._span_ms = max(apart_ms, round(self._span_ms * EARLY)) if glides else 0
        self._to, self._done = total, done
        return _with(view, self._at(now_ms))

    def _at(self, now_ms: int) -> Mapping[str, int]:
        to, passed_ms = self._to or {}, now_ms - self._began_ms
        if passed_ms >= self._span_ms:
            return to
        old, share = self._from, max(0, passed_ms) / self._span_ms
        return {
            key: old.get(key, 0) + int((number - old.get(key, 0)) * share)
            for key, number in to.items()
        }


def _with(view: View, total: Mapping[str, int]) -> View:
    if total == view.total:
        return view
    status = view.reading.status
    counters = Counters(shards=status.counters.shards, total=total)
    status = replace(status, counters=counters)
    hosts = rows_of(status, view.reading.hosts)
    return replace(
        view,
        reading=replace(view.reading, status=status),
        hosts=hosts,
        budgets=budgets_of(status, hosts),
    )
