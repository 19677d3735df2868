"""The verdict on a run: one line per promise, with its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.chaos.evidence import Evidence
from tests.chaos.faults import Fault
from tests.chaos.gaps import Gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A promise, the finding, and whether it holds."""

    promise: str
    found: str
    holds: bool


def judge(evidence: Evidence) -> tuple[Line, ...]:
    return (
        *_records(evidence),
        *_books(evidence),
        *_requests(evidence),
        *(_gap(host, gaps) for host, gaps in sorted(evidence.gaps.items())),
        *_dead(evidence),
        *_announcements(evidence),
        _suffered(evidence),
    )


def _records(evidence: Evidence) -> list[Line]:
    lines = []
    for key, urls in evidence.expected.outcomes.items():
        rows = Counter(row.url for row in evidence.rows if f"{row.outcome}.{row.reason}" == key)
        lost = urls - rows.keys()
        twice = sum(rows.values()) - len(rows)
        more = rows.keys() - urls
        lines.append(
            Line(
                promise=f"{key}: each URL has one record",
                found=f"expected {len(urls)}, recorded {sum(rows.values())}, duplicated {twice},"
                f" lost {len(lost)}, unexpected {len(more)}{_some(lost | more)}",
                holds=not lost and not more and not twice,
            )
        )
    other = [
        row.url
        for row in evidence.rows
        if f"{row.outcome}.{row.reason}" not in evidence.expected.outcomes
    ]
    lines.append(
        Line(
            promise="no record has another outcome",
            found=f"{len(other)}{_some(other)}",
            holds=not other,
        )
    )
    return lines


def _books(evidence: Evidence) -> list[Line]:
    main, total = evidence.main, evidence.expected.total
    claimed, ended, rows = main.counts.get("claimed", 0), main.outcomes, len(evidence.rows)
    wanted = {key: len(urls) for key, urls in evidence.expected.outcomes.items()}
    counted = {key: main.counts.get(key, 0) for key in wanted}
    return [
        Line(
            promise="the crawl is finished, and nothing is left on its queues",
            found=f"{main.state}, {evidence.queued} queued",
            holds=main.state == "finished" and evidence.queued == 0,
        ),
        Line(
            promise="claimed = ended = rows = expected",
            found=f"{claimed} = {ended} = {rows} = {total}",
            holds=claimed == ended == rows == total,
        ),
        Line(
            promise="counters are exact, by outcome",
            found=", ".join(f"{key} {number}" for key, number in counted.items()),
            holds=counted == wanted,
        ),
        Line(
            promise="late copies count nothing",
            found=f"{evidence.storm.replayed_late} copies after the end",
            holds=dict(evidence.counts_before_late) == dict(main.counts),
        ),
    ]


def _requests(evidence: Evidence) -> list[Line]:
    expected, asked = evidence.expected, evidence.requests
    missed = [url for url in expected.pages | expected.redirects if not asked.get(url)]
    trespassed = [url for url in expected.forbidden if asked.get(url)]
    needed = len(expected.pages) + len(expected.redirects) + expected.requests_in_vain
    return [
        Line(
            promise="every page was asked for, nothing that robots.txt forbids",
            found=f"{sum(asked.values())} requests, {sum(asked.values()) - needed} repeated,"
            f" {len(missed)} missed, {len(trespassed)} forbidden{_some([*missed, *trespassed])}",
            holds=not missed and not trespassed,
        )
    ]


def _gap(host: str, gaps: Gaps) -> Line:
    return Line(
        promise=f"{host} is asked every {gaps.delay_ms} ms at most",
        found=f"{gaps.requests} requests, smallest gap {gaps.smallest_ms} ms"
        f" ({gaps.fair_ms} ms from sending, held up {gaps.held_up_ms} ms at most),"
        f" {gaps.close} close, {gaps.short} short",
        holds=gaps.short == 0 and gaps.requests > 1,
    )


def _dead(evidence: Evidence) -> list[Line]:
    found: Counter[str] = Counter()
    strange: list[str] = []
    for letter in evidence.dead:
        name = next(
            (
                planted.name
                for planted in evidence.planted
                if planted.text in letter.body and letter.reason.startswith(planted.reason)
            ),
            None,
        )
        if name is None:
            strange.append(f"{letter.reason}: {letter.body[:120]}")
        else:
            found[name] += 1
    # A dead-letter write without an answer is repeated: dead letters are delivered at least once.
    reasons = sorted({letter.reason for letter in evidence.dead})
    said = ", ".join(f"{name} x{number}" for name, number in sorted(found.items()))
    return [
        Line(
            promise="what was planted lies with the dead letters, with its reason, and it alone",
            found=f"{said or 'none'} ({'; '.join(reasons)}), {len(strange)} others{_some(strange)}",
            holds=not strange and found.keys() == {planted.name for planted in evidence.planted},
        ),
        Line(
            promise="no dead letter comes later",
            found=str(evidence.dead_left),
            holds=evidence.dead_left == 0,
        ),
    ]


def _announcements(evidence: Evidence) -> list[Line]:
    lines = []
    for ended in (evidence.main, *evidence.others):
        true = [counts for counts in ended.announced if dict(counts) == dict(ended.counts)]
        lines.append(
            Line(
                promise=f"CrawlCompleted of {ended.crawl}, with its counts",
                found=f"{len(ended.announced)} events, {len(true)} true;"
                f" claimed {ended.counts.get('claimed', 0)}, ended {ended.outcomes}",
                holds=bool(true)
                and len(true) == len(ended.announced)
                and ended.state == "finished"
                and ended.counts.get("claimed", 0) == ended.outcomes,
            )
        )
    return lines


def _suffered(evidence: Evidence) -> Line:
    storm, wanted = evidence.storm, evidence.wanted
    kinds = ", ".join(f"{kind} {storm.faults.get(kind, 0)}" for kind in Fault)
    return Line(
        promise=f"enough went wrong: every kind of fault, {wanted.kills} kills,"
        f" {wanted.replayed} copies",
        found=f"{kinds} of {storm.calls} calls; {storm.kills} kills and {storm.lethal_kills} by"
        f" the lethal page, {storm.timeouts} time-outs; {storm.replayed} copies",
        holds=all(storm.faults.get(kind, 0) for kind in wanted.kinds)
        and storm.kills >= wanted.kills
        and storm.replayed >= wanted.replayed,
    )


def _some(items: Sequence[str] | frozenset[str] | set[str]) -> str:
    shown = sorted(items)[:3]
    return f": {', '.join(shown)}{' …' if len(items) > len(shown) else ''}" if shown else ""


def text(evidence: Evidence, lines: Sequence[Line]) -> str:
    width = max(len(line.promise) for line in lines)
    rows = [
        f"{'ok  ' if line.holds else 'FAIL'}  {line.promise:<{width}}  {line.found}"
        for line in lines
    ]
    storm = evidence.storm
    rows.append(
        f"seed {evidence.seed}: {storm.storm_s:.0f} s of storm, {storm.total_s:.0f} s in all"
    )
    violated = [line.promise for line in lines if not line.holds]
    rows += [f"violated: {promise}" for promise in violated] or ["everything holds"]
    return "\n".join(rows)


def document(evidence: Evidence, lines: Sequence[Line]) -> dict[str, Any]:
    storm = evidence.storm
    return {
        "seed": evidence.seed,
        "holds": all(line.holds for line in lines),
        "lines": [
            {"promise": line.promise, "found": line.found, "holds": line.holds} for line in lines
        ],
        "faults": {str(kind): number for kind, number in storm.faults.items()},
        "calls": storm.calls,
        "kills": storm.kills,
        "storm_s": round(storm.storm_s, 1),
        "total_s": round(storm.total_s, 1),
    }
