"""Results as a table on the terminal, and as the generated parts of docs/benchmarks.md."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from bench import contest, figures
from bench.pages import fill, grid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bench.figures import Row

    Results = Mapping[str, Any]

NONE = "-"
HEADS = ("client", "pages/s", "x floor", "x best peer", "CPU ms a page", "peak MB", "in all", "± %")


def write(benchmarks: Sequence[Results], page: Path) -> None:
    """Write tables of all benchmarks, and figures of the last one, into the page."""
    ordered = sorted(benchmarks, key=lambda results: str(results["at"]))
    rows = counted(ordered[-1])
    parts = {
        "cpu": _cpu(ordered),
        "ratios": _ratios(ordered),
        "benchmarks": _benchmarks(ordered),
        "floor": _floors(ordered),
        "absolute": _absolute(ordered[-1], rows),
        "units": _units(ordered[-1], rows),
        "versions": _versions(ordered[-1]),
    }
    fill(page, parts)


def counted(results: Results) -> list[Row]:
    """Return the medians of valid rounds. Clients have the order of the contest."""
    places = list(results["clients"])
    found = figures.rows(run for run in results["runs"] if not run["void"])
    sites = list(results["sites"])
    return sorted(found, key=lambda row: (sites.index(row.site), places.index(row.client)))


def table(results: Results) -> str:
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


def _cpu(benchmarks: Sequence[Results]) -> str:
    """Return the CPU per page of whole commands: of the last benchmark, and ratios to the floor."""
    last = counted(benchmarks[-1])
    titles, sites = benchmarks[-1]["clients"], _by_site(last)
    by_client = {
        (site, row.client): row.cpu_ms_per_page_overall
        for site, rows in sites.items()
        for row in rows
    }
    body = [
        (title, contest.ALL[client].stores, *(_cpu_cell(by_client, site, client) for site in sites))
        for client, title in titles.items()
    ]
    heads = [
        f"{benchmarks[-1]['sites'][site]['title']}, {sites[site][0].pages:,}" for site in sites
    ]
    return grid(("client", "stores", *heads), body, left=2)


def _cpu_cell(by_client: Mapping[tuple[str, str], float], site: str, client: str) -> str:
    cost, floor = by_client.get((site, client)), by_client.get((site, figures.FLOOR))
    if cost is None:
        return NONE
    return f"{cost:,.2f} ms" + (f" ({_times(cost / floor)} x)" if floor else "")


def _ratios(benchmarks: Sequence[Results]) -> str:
    sites, clients = _known(benchmarks, "sites"), _known(benchmarks, "clients")
    tables = list(map(counted, benchmarks))
    by_base = {
        base: figures.ratios(tables, contest.OURS, base)
        for base in (*figures.PEERS[::-1], figures.FLOOR)
    }
    bases = [base for base, found in by_base.items() if found]
    keys = {key for found in by_base.values() for key in found}
    heads = ("site", "client", *(f"x {clients[base]}" for base in bases))
    body = [
        (
            sites[site],
            clients[client],
            *(_spread(by_base[base].get((site, client), ())) for base in bases),
        )
        for site in sites
        for client in contest.OURS
        if (site, client) in keys
    ]
    return grid(heads, body, left=2)


def _benchmarks(benchmarks: Sequence[Results]) -> str:
    heads = ("benchmark", "Python", "machine", "load before", "rounds", "took")
    body = [
        (
            _moment(results),
            f"{machine['python']}, {machine.get('build', NONE)}",
            _machine(machine),
            f"{machine['load']:.1f}",
            f"{results['rounds']}",
            f"{results['took_s'] / 60:,.0f} min" if "took_s" in results else NONE,
        )
        for results in benchmarks
        for machine in [results["machine"]]
    ]
    return grid(heads, body, left=3)


def _moment(results: Results) -> str:
    return str(results["at"])[:16].replace("T", " ")


def _machine(machine: Mapping[str, Any]) -> str:
    memory = round(machine["memory_bytes"] / 2**30)
    return f"{machine['cpu']}, {machine['cores']} cores, {memory} GB, {machine['system']}"


def _floors(benchmarks: Sequence[Results]) -> str:
    """Return the floor's CPU per page, which shows differences of machines and interpreters."""
    floors = [
        {row.site: row for row in counted(results) if row.client == figures.FLOOR}
        for results in benchmarks
    ]
    body = [
        (
            title,
            *(f"{floor[site].cpu_ms_per_page:,.2f}" if site in floor else NONE for floor in floors),
        )
        for site, title in _known(benchmarks, "sites").items()
    ]
    return grid(("site", *map(_moment, benchmarks)), body)


def _absolute(results: Results, rows: Sequence[Row]) -> str:
    at, python = results["at"][:10], results["machine"]["python"]
    medians = f"medians of its {results['rounds']} rounds"
    parts = [f"Of one benchmark, {at}, with Python {python}: {medians}."]
    for site, group in _by_site(rows).items():
        parts.append(_section(results["sites"][site], group, results["clients"]))
    return "\n\n".join([*parts, *_voids(results)])


def _section(site: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    size = rows[0].bytes / max(1, rows[0].pages) / 1000
    cells = [(titles[row.client], *more[1:]) for row, more in zip(rows, _cells(rows), strict=True)]
    parts = [f"### {site['title']}", f"{rows[0].pages:,} pages of {size:,.0f} KB."]
    parts.append(grid(HEADS, cells))
    if server := site.get("server"):
        rate, cpu_us = server["requests_per_s"], server["cpu_us"]
        parts.append(
            f"The server alone gives {rate:,.0f} of these pages a second, with {cpu_us:,.0f} µs\n"
            "of CPU each. The figures above do not include this CPU time."
        )
    return "\n\n".join(parts)


def _units(results: Results, rows: Sequence[Row]) -> str:
    # The worker alone uses nothing that AWS bills, but has an estimate.
    billed = [row for row in rows if any(row.units_per_page.values())]
    priced = [row for row in billed if row.dollars_per_million is not None]
    names = list(dict.fromkeys(name for row in priced for name in row.units_per_page))
    heads = ("site", "client", "$ a million", *(f"{name} a page" for name in names))
    body = [
        (
            results["sites"][row.site]["title"],
            results["clients"][row.client],
            f"${row.dollars_per_million:,.2f}",
            *(f"{row.units_per_page.get(name, 0.0):,.3f}" for name in names),
        )
        for row in priced
    ]
    return grid(heads, body, left=2)


def _versions(results: Results) -> str:
    versions = dict[str, str]()
    for run in results["runs"]:
        versions |= run["versions"]
    listed = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return f"Versions: {listed}."


def _cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    speeds = {row.client: row.pages_per_s for row in rows}
    floor = speeds.get(figures.FLOOR)
    best = max((speeds[peer] for peer in figures.PEERS if peer in speeds), default=None)
    return [
        (
            row.client,
            f"{row.pages_per_s:,.1f}",
            _times(row.pages_per_s / floor if floor else None),
            _times(row.pages_per_s / best if best else None),
            f"{row.cpu_ms_per_page:,.2f}",
            f"{row.resident_bytes_max / 2**20:,.0f}",
            f"{row.overall_s:,.1f} s",
            f"{100 * row.spread:,.0f}" if row.rounds > 1 else NONE,
        )
        for row in rows
    ]


def _voids(results: Results) -> list[str]:
    titles = {name: about["title"] for name, about in results["sites"].items()}
    return [
        f"{titles[void['site']]}, round {void['round'] + 1}:"
        f" the run of {results['clients'][void['client']]} is void, as it {void['why']}."
        for void in results["void"]
    ]


def _by_site(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.site, []).append(row)
    return found


def _known(benchmarks: Sequence[Results], what: str) -> dict[str, str]:
    return {
        name: about["title"] if what == "sites" else about
        for results in benchmarks
        for name, about in results[what].items()
    }


def _spread(found: Sequence[float]) -> str:
    """Format the median of several benchmarks, with minimum and maximum."""
    if not found:
        return NONE
    ends = f" ({_times(min(found))} to {_times(max(found))})" * (len(found) > 1)
    return _times(median(found)) + ends


def _times(ratio: float | None) -> str:
    if ratio is None:
        return NONE
    return f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"
