"""Figures from runs: valid runs, medians, ratios.

A round is one run of each client on one site. A run is void if the client failed or got other pages
than the floor, because a client that fetches less must not look fast.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from statistics import median
from typing import TYPE_CHECKING, Any

from orbweaver.model.amounts import in_dollars

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SHOWN_MAX = 3
FLOOR, WORKER = "floor", "worker"
PEERS = ("scrapy", "crawlee", "wget2", "spider-rs")
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one client on one site. `paths` are the pages that the server sent."""

    site: str
    client: str
    round: int
    paths: frozenset[str] = field(repr=False, default=frozenset())
    pages: int = 0
    requests: int = 0
    bytes: int = 0
    crawl_s: float = 0.0  # from the first request to the last, as the server measured
    overall_s: float = 0.0  # from start to end of the client, including start-up and shutdown
    cpu_s: float = 0.0  # CPU time from the first request on
    cpu_overall_s: float = 0.0
    resident_bytes_max: int = 0
    load_before: float = 0.0
    failure: str = ""
    nanodollars: int | None = None
    units: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the run with a digest instead of the list of pages."""
        body = asdict(self)
        paths = sorted(body.pop("paths"))
        body["pages_given"] = len(paths)
        body["paths_sha256"] = sha256("\n".join(paths).encode()).hexdigest()
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Medians of a client's rounds on a site. None if there is no data."""

    site: str
    client: str
    rounds: int
    pages: int
    pages_per_s: float
    spread: float  # (fastest - slowest) / median
    cpu_ms_per_page: float
    cpu_ms_per_page_overall: float  # with start-up and shutdown
    overall_s: float
    resident_bytes_max: int
    bytes: int
    dollars_per_million: float | None = None
    units_per_page: Mapping[str, float] = field(default_factory=dict)


def faults(runs: Sequence[Run], served: int | None = None) -> list[str]:
    """Return why each run is void, or "". `served` is the number of pages to fetch, if known.

    A client must get the pages of the floor. Without a floor, it must get all pages that any
    client got.
    """
    well = [run for run in runs if not run.failure]
    floors = [run.paths for run in well if run.client == FLOOR]
    wanted = floors[0] if floors else frozenset[str]().union(*(run.paths for run in well))
    whole = "" if wanted else "no pages were fetched"
    if served is not None and len(wanted) != served:
        whole = f"{len(wanted)} of {served} pages were fetched"
    return [whole or _fault(run, wanted) for run in runs]


def _fault(run: Run, wanted: frozenset[str]) -> str:
    if run.failure:
        return f"failed: {run.failure}"
    if run.pages < len(run.paths):
        return f"was given {len(run.paths)} pages and saw {run.pages}"
    if lacking := wanted - run.paths:
        return f"lacks {len(lacking)} of {len(wanted)} pages: {_shown(lacking)}"
    if beyond := run.paths - wanted:
        return f"got {len(beyond)} pages more than the others: {_shown(beyond)}"
    return ""


def _shown(paths: frozenset[str]) -> str:
    return ", ".join(sorted(paths)[:SHOWN_MAX])


def rows(runs: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the medians of valid runs, in order of first occurrence."""
    groups: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for run in runs:
        groups[run["site"], run["client"]].append(run)
    return [_row(site, client, group) for (site, client), group in groups.items()]


def _row(site: str, client: str, group: Sequence[Mapping[str, Any]]) -> Row:
    def middle(name: str) -> float:
        return float(median(run[name] for run in group))

    # By pages sent, not by pages that the client counted: a client may count a page twice.
    speeds = [run["pages_given"] / run["crawl_s"] for run in group]
    pages = group[0]["pages_given"]
    spent = [run["nanodollars"] for run in group if run["nanodollars"] is not None]
    names = dict.fromkeys(name for run in group for name in run["units"])
    return Row(
        site=site,
        client=client,
        rounds=len(group),
        pages=pages,
        pages_per_s=median(speeds),
        spread=(max(speeds) - min(speeds)) / median(speeds),
        cpu_ms_per_page=1000 * middle("cpu_s") / pages,
        cpu_ms_per_page_overall=1000 * middle("cpu_overall_s") / pages,
        overall_s=middle("overall_s"),
        resident_bytes_max=round(middle("resident_bytes_max")),
        bytes=round(middle("bytes")),
        dollars_per_million=in_dollars(median(spent)) / pages * MILLION if spent else None,
        units_per_page={
            name: median(run["units"].get(name, 0) for run in group) / pages for name in names
        },
    )


def ratios(
    tables: Iterable[Sequence[Row]], clients: Sequence[str], base: str
) -> dict[tuple[str, str], list[float]]:
    """Divide clients' speeds by a base client's speed in one benchmark, by site and client."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for table in tables:
        speeds = {(row.site, row.client): row.pages_per_s for row in table}
        for (site, client), speed in speeds.items():
            if client in clients and (site, base) in speeds:
                found[site, client].append(speed / speeds[site, base])
    return dict(found)


def sequence(turns: Mapping[str, int], number: int) -> list[str]:
    """Return the order of turns in a round. Further turns of the same client come last."""
    rest = range(1, max(turns.values(), default=1))
    return order(list(turns), number) + [
        name for done in rest for name, wanted in turns.items() if wanted > done
    ]


def order(clients: Sequence[str], number: int) -> list[str]:
    """Return the order of clients in a round: each starts once, then in reverse."""
    at = number % len(clients)
    turned = [*clients[at:], *clients[:at]]
    return turned[::-1] if (number // len(clients)) % 2 else turned
