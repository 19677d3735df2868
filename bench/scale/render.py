"""Writes figures of runs as tables in `docs/scale.md` and plots in `docs/scale/*.svg`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bench.scale.experiments import DELAYS_MS, HOSTS, PART
from bench.scale.plot import Axis, Line, svg
from bench.scale.quotas import loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    Figures = Mapping[str, Mapping[str, Mapping[str, Any]]]

MILLION_A_MINUTE = 1_000_000
PAGES_MAX = 100_000_000
TERMS = ("write", "read_halves", "sqs", "s3_put", "log_bytes", "sent_bytes", "mb_ms", "all")
NAMES = ("writes", "reads", "SQS", "S3", "logs", "sent", "Lambda", "**all**")
SAMPLE_AT, SAMPLE_ENDED, SAMPLE_VISIBLE, SAMPLE_DELAYED, SAMPLE_FLYING, SAMPLE_WORKERS = range(6)
SMOOTH = 6


def render(figures: Figures, docs: Path) -> None:
    """Draw the available figures, and write the tables into the page."""
    page = docs / "scale.md"
    text = page.read_text()
    for name, rows in _tables(figures):
        block = f"<!-- {name} -->\n{_markdown(rows)}<!-- end -->"
        text = re.sub(rf"<!-- {name} -->\n.*?<!-- end -->", lambda _: block, text, flags=re.DOTALL)  # noqa: B023
    page.write_text(text)
    for name, picture in _plots(figures):
        (docs / "scale" / f"{name}.svg").write_text(picture)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rest]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _tables(figures: Figures) -> Iterator[tuple[str, list[list[str]]]]:
    makers = {
        "growth": _growth_rows,
        "grid": _grid_rows,
        "skew": _skew_rows,
        "costs": _cost_rows,
        "crowd": _crowd_rows,
        "books": _books_rows,
    }
    for name, maker in makers.items():
        if name in figures:
            yield name, maker(figures[name])
    if "whole" in figures:
        yield "whole", _quota_rows(figures["whole"]["whole"])
        yield "rates", _rate_rows(figures["whole"]["whole"])


def _growth_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["fleet", "pages a minute", "a worker", "pages a delivery", "packs waiting for slots"]]
    for name, run in runs.items():
        workers = int(name.split()[0])
        rate = run["pages_a_minute"]
        share = f"{run['wait_share']:.0%} of their time"
        each = [f"{rate:,.0f}", f"{rate / workers:,.0f}", f"{run['pages_a_delivery']:.1f}", share]
        rows.append([name, *each])
    return rows


def _grid_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["hosts", *(f"delay {delay / 1000:g} s" for delay in DELAYS_MS)]]
    for hosts in HOSTS:
        cells = []
        for delay_ms in DELAYS_MS:
            rate = runs[f"{hosts}/{delay_ms}"]["pages_a_minute"]
            share = rate / (hosts * 60_000 / delay_ms)
            cells.append(f"{rate:,.0f} ({share:.0%})")
        rows.append([f"{hosts:,}", *cells])
    return rows


def _skew_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["crawl", "minutes", "deferrals a page", "pages a pack taken on", "$ a million"]]
    for name, run in runs.items():
        end_min = "-" if run["end_min"] is None else f"{run['end_min']:.0f}"
        taken_on = f"{1 / run['taken_on_a_page']:.0f}" if run["taken_on_a_page"] else "-"
        deferrals = f"{run['deferrals_a_page']:.2f}"
        rows.append([name, end_min, deferrals, taken_on, f"{run['dollars']['all']:.2f}"])
    return rows


def _cost_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["pages, batches of", *NAMES, "minutes"]]
    for name, run in runs.items():
        pages, size = name.split("/")
        cells = [f"{run['dollars'].get(term, 0):.2f}" for term in TERMS]
        rows.append([f"{int(pages):,}, {size}", *cells, f"{run['end_min'] or 0:.0f}"])
    return rows


def _crowd_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["15 workers, 1,500 hosts", "pages in 3 minutes", "slots missed a page", "$ a million"]]
    for name, run in runs.items():
        cells = [f"{run['ended']:,}", f"{run['forfeited_a_page']:.2f}"]
        rows.append([name, *cells, f"{run['dollars']['all']:.2f}"])
    return rows


def _books_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["shards, packs commit", "pages a minute", "transactions a page", "conflicts a commit"]]
    for name, run in runs.items():
        cells = [f"{run['pages_a_minute']:,.0f}", f"{run['transactions_a_page']:.3f}"]
        rows.append([name.replace("/", ", "), *cells, f"{run['conflicts_a_transaction']:.2f}"])
    return rows


def _rate_rows(run: Mapping[str, Any]) -> list[list[str]]:
    rows = [["of 1,000 workers over 100,000 hosts", ""]]
    rate, flying = run["pages_a_minute"] * PART, run["in_flight_most"] * PART
    units = run["units"]
    for name, said in (
        ("pages a minute", f"{rate:,.0f}"),
        ("pages a delivery of a pack", f"{run['pages_a_delivery']:.1f}"),
        ("deferrals a page", f"{run['deferrals_a_page']:.2f}"),
        ("messages in flight, at most", f"{flying:,}"),
        ("write units a page", f"{units['write']:.2f}"),
        ("read units a page", f"{units['read_halves'] / 2:.2f}"),
        ("SQS requests a page", f"{units['sqs']:.3f}"),
        ("S3 PUTs a page", f"{units['s3_put']:.4f}"),
        ("log bytes a page", f"{units['log_bytes']:.0f}"),
        ("GB-seconds a page", f"{units['mb_ms'] / 1_024_000:.4f}"),
        ("$ a million pages", f"{run['dollars']['all']:.2f}"),
    ):
        rows.append([name, said])
    return rows


def _quota_rows(run: Mapping[str, Any]) -> list[list[str]]:
    rows = [["limit", "taken", "of", "share", "what to do"]]
    rate = run["pages_a_minute"] * PART
    found = loads(
        run,
        pages_a_s=MILLION_A_MINUTE / 60,
        workers=-(-MILLION_A_MINUTE * 1_000 // max(1, int(rate))),
        batch_size=40,
        shards=16,
        pages_shards=16,
    )
    for load in found:
        share = f"**{load.share:.0%}**" if load.share > 1 else f"{load.share:.0%}"
        remedy = load.remedy if load.share > 0.7 else ""
        amounts = [f"{load.load:,.0f} {load.unit}", f"{load.limit:,.0f}"]
        rows.append([load.what, *amounts, share, remedy])
    return rows


def _plots(figures: Figures) -> Iterator[tuple[str, str]]:
    if "growth" in figures:
        yield "growth", _growth_plot(figures["growth"])
    if "grid" in figures:
        yield "grid", _grid_plot(figures["grid"])
    if "course" in figures:
        yield from _course_plots(figures["course"]["course"])
    if "costs" in figures:
        yield "costs", _cost_plot(figures["costs"])


def _growth_plot(runs: Mapping[str, Any]) -> str:
    lines = []
    for hue, size in enumerate(("10", "40")):
        points = [
            (float(name.split()[0]), run["pages_a_minute"])
            for name, run in runs.items()
            if name.endswith(f" {size}")
        ]
        lines.append(Line(name=f"batches of {size}", hue=hue, points=points))
        most, rate = points[-1]
        reckoned = [points[-1], (1_000.0, rate * 1_000 / most)]
        lines.append(Line(name="", hue=hue, points=reckoned, dashed=True))
    return svg(
        "Pages a minute, by workers",
        "A hundred hosts a worker, delay 1 s. Dashed: reckoned, not run.",
        Axis(title="workers", powers=True),
        Axis(title="pages a min", powers=True),
        lines,
    )


def _grid_plot(runs: Mapping[str, Any]) -> str:
    lines = [
        Line(
            name=f"{delay / 1000:g} s",
            hue=hue,
            points=[(float(hosts), runs[f"{hosts}/{delay}"]["pages_a_minute"]) for hosts in HOSTS],
        )
        for hue, delay in enumerate(DELAYS_MS)
    ]
    return svg(
        "Pages a minute, by hosts and delay",
        "30 workers, batches of 40; hosts of the same size.",
        Axis(title="hosts", powers=True),
        Axis(title="pages a min", powers=True),
        lines,
    )


def _course_plots(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    samples = run["samples"]
    across = Axis(title="minutes since the first seed")

    def of(place: int, scale: float = 1.0) -> list[tuple[float, float]]:
        return [(row[SAMPLE_AT] / 60_000, row[place] * scale) for row in samples]

    later = zip(samples, samples[SMOOTH:], strict=False)
    rates = [
        (
            row[SAMPLE_AT] / 60_000,
            (row[SAMPLE_ENDED] - old[SAMPLE_ENDED]) * 60_000 / (row[SAMPLE_AT] - old[SAMPLE_AT]),
        )
        for old, row in later
    ]
    yield (
        "rate",
        svg(
            "Pages a minute while a fleet grows",
            "Up to 50 workers, 15 more a minute (a twentieth of what Lambda gives), 5,000 hosts.",
            across,
            Axis(title="pages a min"),
            [
                Line(name="pages a minute", hue=0, points=rates),
                Line(name="workers x 1,000", hue=1, points=of(SAMPLE_WORKERS, 1_000)),
            ],
        ),
    )
    yield (
        "queue",
        svg(
            "Messages on the queue",
            "The same crawl: packs that wait to be taken, are held back, are being worked on.",
            across,
            Axis(title="messages"),
            [
                Line(name="waiting", hue=0, points=of(SAMPLE_VISIBLE)),
                Line(name="held back", hue=1, points=of(SAMPLE_DELAYED)),
                Line(name="in flight", hue=2, points=of(SAMPLE_FLYING)),
            ],
        ),
    )


def _cost_plot(runs: Mapping[str, Any]) -> str:
    def of(size: str, *, lambdas: bool) -> list[tuple[float, float]]:
        points = []
        for name, run in runs.items():
            pages, batch = name.split("/")
            dollars = run["dollars"]
            cost = dollars["mb_ms"] if lambdas else dollars["all"] - dollars["mb_ms"]
            if batch == size:
                points.append((float(pages), cost))
        return points

    lines = []
    for hue, (name, points) in enumerate(
        (
            ("all but Lambda", of("40", lambdas=False)),
            ("Lambda, batches of 10", of("10", lambdas=True)),
            ("Lambda, batches of 40", of("40", lambdas=True)),
        )
    ):
        lines.append(Line(name=name, hue=hue, points=points))
        reckoned = [points[-1], (float(PAGES_MAX), points[-1][1])]
        lines.append(Line(name="", hue=hue, points=reckoned, dashed=True))
    return svg(
        "$ a million pages, by pages of the crawl",
        "A hundred pages a host. Dashed: reckoned from units a page and pack, which do not grow.",
        Axis(title="pages", powers=True),
        Axis(title="$ a million"),
        lines,
    )
