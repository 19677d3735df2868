"""Results as a table on the terminal, and as docs/benchmarks.md with its plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import contest, figures, plot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bench.figures import Ratio, Row, Spread

PAGE, PLOT = "benchmarks.md", "benchmarks.svg"
NONE = "-"
HEADS = ("client", "pages/s", "x floor", "x best peer", "CPU ms a page", "peak MB", "in all", "± %")
MONEY = "$ a million"


def write(benchmarks: Sequence[Mapping[str, Any]], folder: Path) -> tuple[Path, Path]:
    page, picture = folder / PAGE, folder / PLOT
    page.write_text(markdown(benchmarks))
    sites, clients = _known(benchmarks, "sites"), _known(benchmarks, "clients")
    picture.write_text(plot.svg(sites, clients, _spreads(benchmarks)))
    return page, picture


def counted(results: Mapping[str, Any]) -> list[Row]:
    """Return the medians of valid rounds. Clients have the order of the contest."""
    places = list(results["clients"])
    found = figures.rows(run for run in results["runs"] if not run["void"])
    sites = list(results["sites"])
    return sorted(found, key=lambda row: (sites.index(row.site), places.index(row.client)))


# --- the terminal ---------------------------------------------------------------------------------


def table(results: Mapping[str, Any]) -> str:
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


def markdown(benchmarks: Sequence[Mapping[str, Any]]) -> str:
    last = max(benchmarks, key=lambda results: results["at"])
    rows = counted(last)
    parts = [_opening(benchmarks), _ratios(benchmarks), _repeat(benchmarks), _yardstick(benchmarks)]
    parts.append(_absolute(last))
    for site, group in _by_site(rows).items():
        parts.append(_section(last["sites"][site], group, last["clients"]))
    parts += [_units(last, rows), *_void_part(last), _method(last)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(benchmarks: Sequence[Mapping[str, Any]]) -> str:
    at_once = benchmarks[0]["at_once"]
    return f"""# Benchmarks

This page compares the speed of Orbweaver with Scrapy, with Crawlee and with a bare loop. Each
client has the same job: start at one URL, follow all links of its host, and read each page's
title. It sends {at_once} requests at once without a delay, and obeys robots.txt. The web server
runs on the same machine.

![How many times as fast as Scrapy, by site and client]({PLOT})"""


def _ratios(benchmarks: Sequence[Mapping[str, Any]]) -> str:
    bases = [base for base in (*figures.PEERS[::-1], figures.FLOOR) if _spreads(benchmarks, base)]
    if not bases:
        return ""
    sites, clients = _known(benchmarks, "sites"), _known(benchmarks, "clients")
    by_base = {base: _spreads(benchmarks, base) for base in bases}
    keys = dict.fromkeys(key for spreads in by_base.values() for key in spreads)
    heads = ("site", "client", *(f"x {clients[base]}" for base in bases))
    body = [
        (
            sites[site],
            clients[client],
            *(_spread(by_base[base].get((site, client))) for base in bases),
        )
        for site in sites
        for client in contest.OURS
        if (site, client) in keys
    ]
    said = f"""The table divides the pages a second of a client by those of another client
**in the same benchmark**. It shows the median of {len(benchmarks)} benchmarks, with minimum and
maximum in brackets. The *floor* is a bare loop that fetches and parses pages, as a bound for any
crawler. Its CPU time per page differed by a factor of 2.6 between two machines of one kind, and
also differed between two builds of one Python. Ratios differ less. So compare clients within one
benchmark only, never a figure of your own with a figure of this page."""
    return "\n".join(["## How many times as fast", "", said, "", *_grid(heads, body, left=2)])


def _repeat(benchmarks: Sequence[Mapping[str, Any]]) -> str:
    heads = ("benchmark", "Python", "machine", "load before", "rounds", "took")
    body = [
        (
            results["at"][:16].replace("T", " "),
            f"{machine['python']}, {machine.get('build', NONE)}",
            _machine(machine),
            f"{machine['load']:.1f}",
            f"{results['rounds']}",
            f"{results['took_s'] / 60:,.0f} min" if "took_s" in results else NONE,
        )
        for results in sorted(benchmarks, key=lambda results: results["at"])
        for machine in [results["machine"]]
    ]
    said = (
        'To repeat the benchmark, run `make bench ARGS="--save"`. It saves the result in\n'
        "[benchmarks](benchmarks), and writes this page from all saved results. For another\n"
        "interpreter, use `make PYTHON=/usr/bin/python3 …` in a separate clone. Use a machine\n"
        "without other work. These benchmarks exist:"
    )
    return "\n".join(["## The benchmarks", "", said, "", *_grid(heads, body, left=3)])


def _machine(machine: Mapping[str, Any]) -> str:
    memory = round(machine["memory_bytes"] / 2**30)
    return f"{machine['cpu']}, {machine['cores']} cores, {memory} GB, {machine['system']}"


def _yardstick(benchmarks: Sequence[Mapping[str, Any]]) -> str:
    """The floor's CPU per page, which shows differences of machines and interpreters."""
    sites = _known(benchmarks, "sites")
    ordered = sorted(benchmarks, key=lambda results: results["at"])
    floors = [
        {row.site: row for row in counted(results) if row.client == figures.FLOOR}
        for results in ordered
    ]
    if not any(floors):
        return ""
    heads = ("site", *(results["at"][:16].replace("T", " ") for results in ordered))
    body = [
        (
            title,
            *(f"{floor[site].cpu_ms_per_page:,.2f}" if site in floor else NONE for floor in floors),
        )
        for site, title in sites.items()
    ]
    said = """The next table shows the floor's CPU time per page in each benchmark, in ms.
Differences come from the machine and the interpreter."""
    return "\n".join([said, "", *_grid(heads, body)])


def _absolute(results: Mapping[str, Any]) -> str:
    machine = results["machine"]
    return f"""## Absolute figures

Of one benchmark, {results["at"][:10]}, with Python {machine["python"]}: medians of its
{results["rounds"]} rounds. Compare each figure with the floor, in the first line of each table."""


def _section(site: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    size = rows[0].bytes / max(1, rows[0].pages) / 1000
    lines = [f"### {site['title']}", "", f"{rows[0].pages:,} pages of {size:,.0f} KB.", ""]
    lines += _grid(
        HEADS,
        [(titles[row.client], *cells[1:]) for row, cells in zip(rows, _cells(rows), strict=True)],
    )
    if server := site.get("server"):
        rate, cpu_us = server["requests_per_s"], server["cpu_us"]
        lines += [
            "",
            f"The server alone gives {rate:,.0f} of these pages a second, with {cpu_us:,.0f} µs",
        ]
        lines[-1] += " of CPU each. The figures above do not include this CPU time."
    return "\n".join(lines)


def _units(results: Mapping[str, Any], rows: Sequence[Row]) -> str:
    # The worker alone uses nothing that AWS bills, but has an estimate.
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
        "Units are from the crawls' own counters, prices from AWS's list. The time of functions\n"
        "is the time that they took on this machine. All of these crawls run **without a delay**.\n"
        "A crawl that waits a second between requests to a host costs more, in particular with\n"
        "few hosts: see [cost](cost.md#before-a-crawl)."
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
        f"; {results['clients'][name]} runs {turns} times"
        for name, turns in results.get("turns", {}).items()
    )
    return f"""## How it is measured

- The web server counts pages, bytes and time, from the first request to the last. It keeps all
  responses in memory and runs in a separate process. Its own speed is measured first.
- A round is void if a client failed, or if clients got different pages. No figure includes it.
- *Floor* (the bare loop) is a loop over aiohttp, lexbor and ada with a set of URLs in memory.
  It is not a full crawler, but a bound.
- *Worker alone* runs the code of the deployed worker and its real fetcher, with tables and
  queues in memory.
- *Whole stack* is `orbweaver crawl` with emulated queues, tables and functions, whose CPU time
  is included. *Emulated* uses a running stack, *from nothing* also starts and deploys it.
- *CPU* is the CPU time of all processes of a client after its first request. *Peak MB* is their
  largest resident memory at one time. *In all* is the time from the client's start to its end.
  *± %* is the range over the rounds.
- In each round, clients run in a changing order, once each if not stated otherwise{often}.
- Over HTTPS all clients verify the server's certificate.
- All Python code is compiled to bytecode before the measurement.
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


def _known(benchmarks: Sequence[Mapping[str, Any]], what: str) -> dict[str, str]:
    return {
        name: about["title"] if what == "sites" else about
        for results in benchmarks
        for name, about in results[what].items()
    }


def _spreads(
    benchmarks: Sequence[Mapping[str, Any]], base: str = figures.PEERS[0]
) -> dict[tuple[str, str], Spread]:
    return figures.spreads(map(counted, benchmarks), contest.OURS, base)


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return NONE
    if spread.benchmarks == 1:
        return _times(spread.median)
    return f"{_times(spread.median)} ({_times(spread.low)} to {_times(spread.high)})"


def _times(ratio: float | None) -> str:
    if ratio is None:
        return NONE
    return f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"
