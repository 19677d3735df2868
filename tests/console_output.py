"""Command output as the console's screens show it: rows, sums and words.

The console is not involved: everything is computed from the JSON of commands.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.console_numbers import FORMS, UNKNOWN, duration, moment, size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

OUTCOMES = ("fetched", "unchanged", "redirected", "skipped", "failed")
SECTIONS_SHOWN = 40


def run_of(status: Mapping[str, Any]) -> dict[str, Any]:
    """Add table rows of a run: outcomes with reasons, and refusals."""
    rows = []
    for outcome in OUTCOMES:
        number, reasons = status["outcomes"][outcome], status["reasons"][outcome]
        if not number:
            continue
        alone = f" {next(iter(reasons))}" if len(reasons) == 1 else ""
        rows.append({"name": f"{outcome}{alone}", "count": number, "of": status["done"]})
        inner = {} if alone else reasons
        rows += [{"name": one, "count": n, "of": status["done"]} for one, n in inner.items()]
    skipped = status["reasons"]["skipped"]
    left_out = [
        *({"text": f"link refused: {one}", "count": n} for one, n in status["refused"].items()),
        *({"text": f"URL skipped: {one}", "count": n} for one, n in skipped.items()),
        *({"text": f"part left out: {one}", "count": n} for one, n in status["incomplete"].items()),
    ]
    if status["needs_rendering"]:
        number = status["needs_rendering"]
        left_out.append({"text": "page needs its scripts", "count": number})
    left = [status] if status["left_text"] else []
    return {**status, "outcome_rows": rows, "left_out": left_out, "left": left}


def runs_of(newest: Sequence[Mapping[str, Any]], names: Mapping[str, int]) -> dict[str, Any]:
    """Return rows of all runs: the newest of each name, with the number of its runs."""
    rows = []
    for status in newest:
        took = duration(status["elapsed_s"])
        last = f"took {took}" if status["state"] == "finished" else status["left_text"]
        stop = None if status["stop"] == status["state"] else status["stop"]
        rows.append({**status, "runs": names[status["name"]], "last": last, "stop": stop})
    return {"runs_of": rows, "total": len(rows)}


def report_of(said: Mapping[str, Any]) -> dict[str, Any]:
    told = said["requests"]
    kinds = [one for one in told["kinds"] if one["requests"]]
    rows = [
        {
            **one,
            "failed": one["outcomes"].get("failed", 0),
            "told_texts": f"{one['texts']:,} of {one['texts_read']:,}"
            if one["texts_read"]
            else UNKNOWN,
        }
        for one in kinds
    ]
    by_pattern = {one["exclude"]: one for one in told["kinds"]}
    excluded = [by_pattern[pattern] for pattern in told["suggested"]]
    advice = [told] if excluded else []
    named = {"named": len(kinds), "kinds": rows, "excluded": excluded, "advice": advice}
    spared = said["spared"]
    waiting = [{"waiting": spared["links"]}] if spared["links"] else []
    return {**told, **named, "waiting": waiting, "spared": spared["kinds"] if waiting else []}


def data_of(pages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = [
        {
            **page,
            "told": page["title"] or page["error"] or "",
            "ended": page["outcome"] + (f": {page['reason']}" if page["reason"] != "ok" else ""),
            "told_status": "" if page["status"] is None else str(page["status"]),
            "told_bytes": UNKNOWN if page["bytes"] is None else size(page["bytes"]),
        }
        for page in pages
    ]
    return {"pages": rows, "number": len(rows)}


ABOUT = {
    "url": "URL",
    "changed": "normalised",
    "trap": "crawler trap",
    "robots": "robots.txt",
    "asked": "request",
    "claim": "scheduled",
    "ended": "result",
    "means": "meaning",
    "cut": "left out",
    "body": "stored body",
    "again": "next request",
}
UTC_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC")
REASON = re.compile(r"^(fetched|unchanged|redirected|skipped|failed): \w+")
PACK = re.compile(r"\b(pack [0-9a-f]{8})[0-9a-f]{24}\b")
RECORD = (
    *("outcome", "reason", "status", "content_type", "bytes", "latency_ms", "attempt", "title"),
    *("description", "language", "canonical", "links", "items", "error", "cut"),
)


def explained_of(said: Mapping[str, Any]) -> dict[str, Any]:
    record = said["record"]
    forms: Mapping[str, Callable[[Any], str]] = {"bytes": size, "latency_ms": FORMS["ms"]}
    cells = [
        {"value": forms.get(name, str)(record[name])}
        for name in RECORD
        if record.get(name) is not None
    ]
    told = [
        {"told_about": f"{about} " if about else "", "told_words": words}
        for about, words in statements_of(said)
    ]
    found = said["backlinks"]
    here = "page links here" if found["pages"] == 1 else "pages link here"
    return {
        **said,
        "cells": cells,
        "told": told,
        "told_verdict": sentence(said["verdict"]),
        "told_backlinks": f"{found['pages']} {here}",
        "linking": [{**one, "told_text": one["text"] or ""} for one in found["first"]],
    }


COMPARED = {
    "new": "not in the earlier run",
    "remaining": "in both runs",
    "fixed": "no longer there",
}


def audit_of(said: Mapping[str, Any]) -> dict[str, Any]:
    compared = COMPARED if said["since"] else {}
    urls = sum(said["outcomes"].values())
    figures = [
        *({"label": f"{kind.title()}s", "count": n} for kind, n in said["severities"].items()),
        *(
            {"label": one.title(), "count": said["statuses"].get(one, 0), "below": f" {means}"}
            for one, means in compared.items()
        ),
        {"label": "Readable pages", "count": said["pages"], "below": f" of {urls} URLs"},
    ]
    ran = [one for one in said["checks"] if not one["not_run"]]
    found = [
        {**one, "told_counts": " | ".join(map(str, counts))}
        for one in ran
        if one["counts"]
        for counts in [(one["faults"], *(one["counts"].get(name, 0) for name in compared))]
    ]
    return {
        **said,
        "figures": [{"below": "", **one} for one in figures],
        "found": found,
        "not_run": len(said["checks"]) - len(ran),
        "clean": len(ran) - len(found),
    }


def statements_of(said: Mapping[str, Any]) -> list[list[str]]:
    """Label and write the statements of an explanation; a repeated label is left out."""
    found, before = [], None
    for one in said["statements"]:
        about = "" if one["about"] == before else ABOUT.get(one["about"], one["about"])
        found.append([about, sentence(one["words"])])
        before = one["about"]
    return found


def sentence(text: str) -> str:
    """Write a sentence of an explanation: local times, reasons as words, short ids of packs."""
    text = UTC_TIME.sub(lambda found: moment(f"{found[1]}T{found[2]}Z"), text)
    text = REASON.sub(lambda found: found[0].replace("_", " "), text)
    return PACK.sub(r"\1…", text).replace("`", "")


def letters_of(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    *causes, told = lines
    rows = []
    for cause in causes:
        since = moment(cause["oldest"])
        if cause["newest"] != cause["oldest"]:
            since += f", the newest {moment(cause['newest'])}"
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in cause["kinds"].items())
        rows.append({**cause, "told_since": since, "told_kinds": kinds})
    return {**told, "causes": rows}


def days_of(
    status: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], day: str
) -> dict[str, Any]:
    pages = sum(one["outcomes"]["fetched"] + one["outcomes"]["unchanged"] for one in runs)
    usd = sum(one["spent_dollars"] or 0.0 for one in runs)
    return {**status, "days": [{"day": day, "runs": len(runs), "pages": pages, "usd": usd}]}


def sections_of(pages: Sequence[Mapping[str, Any]], host: str, drawn: int) -> dict[str, Any]:
    """Return the sums of a host's pages by first path segment, for the drawn areas."""
    sections: dict[str, list[Mapping[str, Any]]] = {}
    for page in pages:
        path = page["url"].removeprefix(host).partition("?")[0]
        sections.setdefault(path.strip("/").split("/")[0], []).append(page)
    rows = []
    for name, some in sorted(sections.items(), key=lambda one: (-len(one[1]), one[0])):
        times = [page["latency_ms"] for page in some if page["latency_ms"] is not None]
        rows.append(
            {
                "name": name,
                "urls": len(some),
                "failed": sum(page["outcome"] == "failed" for page in some),
                "latency_ms": round(sum(times) / len(times)) if times else None,
                "depth": min(page["depth"] for page in some),
                "bytes": sum(page["bytes"] or 0 for page in some),
            }
        )
    rest = [row["urls"] for row in rows[SECTIONS_SHOWN:]]
    more = [{"count": len(rest), "urls": sum(rest)}] if rest else []
    rows = areas = rows[:SECTIONS_SHOWN]
    if drawn < len(rows):
        small = rows[drawn - 1 :]
        sums = {key: sum(row[key] for row in small) for key in ("urls", "failed")}
        areas = [*rows[: drawn - 1], {"name": f"{len(small)} smaller sections", **sums}]
        areas.sort(key=lambda row: -row["urls"])
    return {"urls": len(pages), "sections": rows, "more": more, "areas": areas}


def differences_of(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Count page differences between two runs, also of pages in one run only."""
    first, second = ({page["url"]: page for page in one} for one in (before, after))
    read = {url for url, page in first.items() if page["outcome"] == "fetched"}
    counts: Counter[str] = Counter(not_seen=len(read - second.keys()))
    for url, page in second.items():
        if page["outcome"] == "fetched":
            same = url in read and page["sha256"] == first[url]["sha256"]
            counts["new" if url not in read else "unchanged" if same else "changed"] += 1
        elif url in read:
            counts["failed"] += 1
    kinds = ("new", "changed", "moved", "gone", "failed", "not_seen", "unchanged")
    return {"differences": [{"name": kind, "count": counts[kind]} for kind in kinds]}
