"""Results as a table on the terminal, and as docs/benchmarks.md with its plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.bench import contest, figures, plot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.bench.figures import Ratio, Row

PAGE, PLOT = "benchmarks.md", "benchmarks.svg"
NONE = "-"
HEADS = ("client", "pages/s", "x floor", "x best peer", "CPU ms a page", "peak MB", "in all", "± %")
MONEY = "$ a million"


def write(results: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    """Write the page and its plot; where they are."""
    page, picture = folder / PAGE, folder / PLOT
    page.write_text(markdown(results))
    picture.write_text(plot.svg(results["sites"], results["clients"], counted(results)))
    return page, picture


def counted(results: Mapping[str, Any]) -> list[Row]:
    """Take the medians of the rounds that are not void, clients in the order of the contest."""
    places = list(results["clients"])
    found = figures.rows(run for run in results["runs"] if not run["void"])
    sites = list(results["sites"])
    return sorted(found, key=lambda row: (sites.index(row.site), places.index(row.client)))


# --- the terminal ---------------------------------------------------------------------------------


def table(results: Mapping[str, Any]) -> str:
    """Write the medians as aligned text."""
    blocks: list[str] = []
    for site, rows in _by_site(counted(results)).items():
        cells = [HEADS, *_cells(rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(HEADS))]
        lines = [
            "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        blocks.append(
            "\n".join([f"{results['sites'][site]['title']}, {rows[0].pages:,} pages", *lines])
        )
    blocks += _voids(results)
    return "\n\n".join(blocks) or "nothing was measured"


# --- the page -------------------------------------------------------------------------------------


def markdown(results: Mapping[str, Any]) -> str:
    """Write the page."""
    rows = counted(results)
    parts = [_opening(results)]
    for site, group in _by_site(rows).items():
        parts.append(_section(results["sites"][site], group, results["clients"]))
    parts += [_ratios(results, rows), _units(results, rows), *_void_part(results), _method(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(results: Mapping[str, Any]) -> str:
    machine = results["machine"]
    memory = round(machine["memory_bytes"] / 2**30)
    return f"""# Benchmarks

One job for every client: begin at one URL, follow all links of its host, read each page's title;
{results["at_once"]} requests at once, no delay, robots.txt obeyed. Medians of {results["rounds"]}
rounds on {results["at"][:10]}; {machine["cpu"]}, {machine["cores"]} cores, {memory} GB,
{machine["system"]}, Python {machine["python"]}. The server runs on the same machine.

![Pages a second, by site and client]({PLOT})

`make bench` measures anew, `python -m tests.bench --render` writes this page from what it found."""


def _section(site: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    size = rows[0].bytes / max(1, rows[0].pages) / 1000
    lines = [f"## {site['title']}", "", f"{rows[0].pages:,} pages of {size:,.0f} KB.", ""]
    lines += _grid(
        HEADS,
        [(titles[row.client], *cells[1:]) for row, cells in zip(rows, _cells(rows), strict=True)],
    )
    if server := site.get("server"):
        rate, cpu_us = server["requests_per_s"], server["cpu_us"]
        lines += [
            "",
            f"The server alone gives {rate:,.0f} of these pages a second, {cpu_us:,.0f} µs",
        ]
        lines[-1] += " of CPU each, which is in nobody's figures."
    return "\n".join(lines)


def _ratios(results: Mapping[str, Any], rows: Sequence[Row]) -> str:
    found = figures.ratios(rows, contest.OURS)
    if not found:
        return ""
    peers = [peer for peer in figures.PEERS if any(peer in ratio.to_peers for ratio in found)]
    heads = ("site", "client", "x floor", *(f"x {results['clients'][peer]}" for peer in peers))
    body = [
        (
            results["sites"][ratio.site]["title"],
            results["clients"][ratio.client],
            _times(ratio.to_floor),
            *(_times(ratio.to_peers.get(peer)) for peer in peers),
        )
        for ratio in found
    ]
    return "\n".join(["## How many times as fast", "", *_grid(heads, body, left=2)])


def _units(results: Mapping[str, Any], rows: Sequence[Row]) -> str:
    # A worker alone has nothing that AWS would bill, but an estimate all the same.
    billed = [row for row in rows if any(row.units_per_page.values())]
    priced = [row for row in billed if row.dollars_per_million is not None]
    if not priced:
        return ""
    names = list(dict.fromkeys(name for row in priced for name in row.units_per_page))
    heads = ("site", "client", MONEY, *(f"{name} a page" for name in names))
    body = [
        (
            results["sites"][row.site]["title"],
            results["clients"][row.client],
            f"${row.dollars_per_million:,.2f}",
            *(f"{row.units_per_page.get(name, 0.0):,.3f}" for name in names),
        )
        for row in priced
    ]
    said = (
        "By the crawls' own books, at AWS's list prices; time is paid for as it passed here.\n"
        "All of these are crawls **without a delay**. One that waits a second between requests to\n"
        "a host costs more, the fewer hosts it has: [cost](cost.md#before-a-crawl)."
    )
    return "\n".join(["## What it would cost on AWS", "", said, "", *_grid(heads, body, left=2)])


def _void_part(results: Mapping[str, Any]) -> list[str]:
    lines = _voids(results)
    return [
        "\n".join(["## Rounds that do not count", "", *(f"- {line}" for line in lines)])
    ] * bool(lines)


def _method(results: Mapping[str, Any]) -> str:
    versions = dict[str, str]()
    for run in results["runs"]:
        versions |= run["versions"]
    listed = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    often = "".join(
        f", {turns} times {results['clients'][name]}"
        for name, turns in results.get("turns", {}).items()
    )
    return f"""## How it is measured

- Pages, bytes and times are the server's: from the first request to the last. It has every answer
  in memory, runs as a process of its own, and is measured alone first.
- A round in which a client failed, or in which not all got the same pages, is void and in no
  figure.
- *Floor*: a loop over aiohttp, lexbor and ada with a set in memory; not a crawler but a bound.
- *Worker alone*: the deployed worker's code and its real fetcher over tables and queues in memory.
- *Whole stack*: `orbweaver crawl`, with queues, tables and functions emulated and all their CPU
  counted; *emulated* has the stack standing before, *from nothing* starts and deploys it.
- CPU is that of a client and all its processes from the first request on, memory the most that
  was resident at once; *in all* is from its start to its end, ± % the span of the turns.
- Clients take turns, in an order that changes: in each round once{often}.
- Over HTTPS all verify the server's certificate.
- Versions: {listed}."""


def _cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    ratios: dict[str, Ratio] = {
        ratio.client: ratio for ratio in figures.ratios(rows, [row.client for row in rows])
    }
    return [
        (
            row.client,
            f"{row.pages_per_s:,.1f}",
            _times(ratios[row.client].to_floor),
            _times(ratios[row.client].to_best),
            f"{row.cpu_ms_per_page:,.2f}",
            f"{row.resident_bytes_max / 2**20:,.0f}",
            f"{row.overall_s:,.1f} s",
            f"{100 * row.spread:,.0f}" if row.rounds > 1 else NONE,
        )
        for row in rows
    ]


def _grid(heads: Sequence[str], body: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    rule = ["---" if column < left else "---:" for column in range(len(heads))]
    return ["| " + " | ".join(row) + " |" for row in (heads, rule, *body)]


def _voids(results: Mapping[str, Any]) -> list[str]:
    titles = {name: about["title"] for name, about in results["sites"].items()}
    return [
        f"{titles[void['site']]}, round {void['round'] + 1} is void: {void['why']}"
        for void in results["void"]
    ]


def _by_site(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.site, []).append(row)
    return found


def _times(ratio: float | None) -> str:
    if ratio is None:
        return NONE
    return f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"
