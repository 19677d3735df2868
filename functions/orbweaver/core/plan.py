"""What a person asks of a crawl, and the crawl that it becomes; or which part of it does not fit.

- Every seed is canonical or the plan is refused, with the seed, what is wrong with it, and the
  URL that was probably meant. A seed given twice counts once.
- The name defaults to the first seed's host, so that the same site crawled again finds its claims.
- A page budget is exact when somebody asked for it: one counter shard. Nobody counts a default of
  a million to the page, so the default budget is spread over 16 shards, which commit faster.
- Parameters of a person's choice are taken out of URLs beside the usual ones, or instead of them.
- A seed that a pattern leaves out is a contradiction, and refused: the crawl would be empty.
- With a delay one request at a time is polite; without one the concurrency is the only brake.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orbweaver.core.crawl import WEEK_S, Crawl, Scope, run_id
from orbweaver.core.identity import IdentityError, check_agents, check_headers
from orbweaver.core.message import CRAWL_ID_CHARS_MAX, DEFAULT_CRAWL, SEEDS_REFERENCES_MAX
from orbweaver.core.patterns import first_match, matches
from orbweaver.core.patterns import problems_of as problems_of_patterns
from orbweaver.core.spelling import meant_by
from orbweaver.core.url import TRACKING_PARAMETERS, canonicalize, host_of, redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orbweaver.core.identity import Headers

SEEDS_MAX = 10_000
# The definition is one item of at most 400 KB; the rest of it is small.
SEEDS_BYTES_MAX = 256 * 1024
PAGES_MAX_DEFAULT = 1_000_000
SHARDS_DEFAULT = 16
CONCURRENCY_DEFAULT = 16
NAME = re.compile(r"[a-z0-9._-]{1,80}")
ID = re.compile(rf"[a-z0-9._-]{{1,{CRAWL_ID_CHARS_MAX}}}")
# As canonical URLs spell it; a star at the end stands for any rest.
PARAMETER = re.compile(r"[!-\"$-%'-)+-<>-~]{1,64}\*?|\*")
PARAMETERS_MAX = 100
# Of the items of one part; nobody reads more.
PROBLEMS_MAX = 20
# Field, least, most, and how the numbers are spelled; the most is far above what makes sense.
BOUNDS = (
    ("depth_max", 0, 1_000, ""),
    ("pages_max", 1, 100_000_000, ""),
    ("delay_ms", 0, 86_400_000, " ms"),
    ("concurrency", 1, 64, ""),
    ("window_s", 0, 366 * 86_400, " s"),
    ("duration_s", 60, WEEK_S, " s"),
)


class PlanError(ValueError):
    """A part of a plan does not fit: `field` names it, the text says the value and the fix."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to crawl and how; None leaves the choice to the rules above.

    `id` names the run itself: the same plan under the same id is the same crawl, however often
    it is started.
    """

    seeds: tuple[str, ...] = ()
    name: str | None = None
    id: str | None = None
    scope: Scope = Scope.HOST
    depth_max: int = 20
    pages_max: int | None = None
    delay_ms: int = 1_000
    concurrency: int | None = None
    window_s: int = WEEK_S
    duration_s: int = WEEK_S
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    obey_robots: bool = True
    express: bool = False
    user_agents: tuple[str, ...] = ()
    headers: Headers = field(default=(), repr=False)
    proxied: bool = True
    strip_parameters: tuple[str, ...] = ()
    keep_parameters: bool = False
    sitemaps: bool = True
    sitemap_urls: tuple[str, ...] = ()
    canonical_only: bool = False
    noindex_skipped: bool = False


def crawl_of(plan: Plan, now_ms: int) -> Crawl:
    """Make the crawl that a plan asks for, started now; raises PlanError."""
    for problem in _problems(plan):
        raise problem
    tracking = _tracking(plan)
    seeds, sitemap_urls = _references(plan, tracking)
    name = name_of((seeds + sitemap_urls)[0]) if plan.name is None else plan.name
    concurrency = plan.concurrency
    if concurrency is None:
        concurrency = 1 if plan.delay_ms else CONCURRENCY_DEFAULT
    return Crawl(
        id=plan.id or run_id(name, now_ms),
        name=name,
        started_at_ms=now_ms,
        seeds=seeds,
        # A sitemap that is a seed as well is one reference.
        seeds_planned=-(-len({*seeds, *sitemap_urls}) // SEEDS_REFERENCES_MAX),
        sitemaps=plan.sitemaps,
        sitemap_urls=sitemap_urls,
        scope=plan.scope,
        depth_max=plan.depth_max,
        pages_max=plan.pages_max or PAGES_MAX_DEFAULT,
        delay_ms=plan.delay_ms,
        concurrency=concurrency,
        window_s=plan.window_s,
        duration_max_s=plan.duration_s,
        include=plan.include,
        exclude=plan.exclude,
        obey_robots=plan.obey_robots,
        user_agents=plan.user_agents,
        headers=plan.headers,
        proxied=plan.proxied,
        tracking=tracking,
        canonical_only=plan.canonical_only,
        noindex_skipped=plan.noindex_skipped,
        express=plan.express,
        shards=1 if plan.pages_max else SHARDS_DEFAULT,
    )


def problems_of(plan: Plan) -> tuple[PlanError, ...]:
    """Find all that does not fit in a plan; `crawl_of` raises the first of them."""
    return tuple(_problems(plan))


def name_of(url: str) -> str:
    """Name a crawl after a URL's host: `example.com`, `127.0.0.1-8000`."""
    host = host_of(url).partition("://")[2].strip("[]")
    name = re.sub(r"[^a-z0-9._]+", "-", host.lower())[:80].strip("-")
    return name if name not in ("", DEFAULT_CRAWL) else "crawl"


# --- what does not fit --------------------------------------------------------------------------


def _problems(plan: Plan) -> Iterator[PlanError]:
    for part, low, high, unit in BOUNDS:
        value = getattr(plan, part)
        if value is not None and not low <= value <= high:
            fix = f"give {low} to {high:,}{unit}"
            yield PlanError(part, f"{value}{unit} does not fit: {fix}")
    parameters = tuple(_of_parameters(plan))
    yield from parameters
    patterns = tuple(
        PlanError(part, str(error))
        for part in ("include", "exclude")
        for error in problems_of_patterns(getattr(plan, part))
    )
    yield from patterns
    references = tuple(_of_references(plan, None if parameters else _tracking(plan)))
    yield from references
    if not (parameters or patterns or references):
        yield from _of_seeds_left_out(plan)
    yield from _of_names(plan)
    yield from _of_identity(plan, "user_agents", check_agents)
    yield from _of_identity(plan, "headers", check_headers)


def _of_parameters(plan: Plan) -> Iterator[PlanError]:
    for name in plan.strip_parameters:
        if not PARAMETER.fullmatch(name):
            yield PlanError(
                "strip_parameters",
                f"{name[:100]!r} is not a parameter's name: give one as URLs spell it, like ref or"
                " my_* (a * at the end stands for any rest)",
            )
    if len(plan.strip_parameters) > PARAMETERS_MAX:
        number = len(plan.strip_parameters)
        yield PlanError("strip_parameters", f"{number:,} are too many: at most {PARAMETERS_MAX}")


def _of_references(plan: Plan, tracking: tuple[str, ...] | None) -> Iterator[PlanError]:
    count = len(plan.seeds) + len(plan.sitemap_urls)
    if not count:
        yield PlanError("seeds", "there is no seed: give at least one URL")
    elif count > SEEDS_MAX:
        yield PlanError("seeds", f"{count:,} seeds are too many: at most {SEEDS_MAX:,} a crawl")
    else:
        problems = [
            problem
            for part in ("seeds", "sitemap_urls")
            for reference in getattr(plan, part)
            if (problem := _of_reference(reference, part, tracking)) is not None
        ]
        yield from problems[:PROBLEMS_MAX]
        if len(problems) > PROBLEMS_MAX:
            yield PlanError("seeds", f"{len(problems) - PROBLEMS_MAX:,} more cannot be crawled")
        if not problems:
            yield from _of_size(*_references(plan, tracking))


def _of_size(seeds: tuple[str, ...], sitemaps: tuple[str, ...]) -> Iterator[PlanError]:
    size = sum(len(seed.encode()) for seed in seeds + sitemaps)
    if size > SEEDS_BYTES_MAX:
        yield PlanError(
            "seeds",
            f"the seeds take {size:,} bytes, and a crawl holds {SEEDS_BYTES_MAX:,}: start two"
            " crawls of one name, which share what they have seen",
        )


def _of_reference(reference: str, field: str, tracking: tuple[str, ...] | None) -> PlanError | None:
    try:
        _canonical_of(reference, tracking)
    except ValueError as error:
        meant = meant_by(reference)
        hint = f"; did you mean {meant}?" if meant else ""
        return PlanError(field, f"{redacted(reference)!r} cannot be crawled: {error}{hint}")
    return None


def _of_seeds_left_out(plan: Plan) -> Iterator[PlanError]:
    seeds, _ = _references(plan, _tracking(plan))
    for seed in seeds if plan.exclude else ():
        if matches(plan.exclude, seed):
            pattern = first_match(plan.exclude, seed) or ""
            text = f"{pattern[:100]!r} leaves out the seed {redacted(seed)!r}: change one of them"
            yield PlanError("exclude", text)
            return


def _of_names(plan: Plan) -> Iterator[PlanError]:
    name = plan.name
    if name is not None and not NAME.fullmatch(name):
        near = re.sub(r"[^a-z0-9._-]+", "-", name.lower())[:80].strip("-")
        hint = f"; {near} would do" if near else ""
        fits = "1 to 80 of a-z, 0-9, dot, hyphen and underscore"
        yield PlanError("name", f"{name[:100]!r} does not fit: {fits}{hint}")
    elif name == DEFAULT_CRAWL:
        yield PlanError("name", f"{name!r} is the crawl of bare URLs on the queue: give another")
    if plan.id is not None and (not ID.fullmatch(plan.id) or plan.id == DEFAULT_CRAWL):
        fits = "a-z, 0-9, dot, hyphen, underscore"
        yield PlanError("id", f"{plan.id!r} is not a crawl's id: {fits}")


def _of_identity(plan: Plan, part: str, check: Callable[[Any], None]) -> Iterator[PlanError]:
    try:
        check(getattr(plan, part))
    except IdentityError as error:
        yield PlanError(part, str(error))


# --- what it becomes ----------------------------------------------------------------------------


def _tracking(plan: Plan) -> tuple[str, ...] | None:
    """Name the parameters that are taken out; None for the usual ones."""
    mine = {name.lower() for name in plan.strip_parameters}
    if plan.keep_parameters:
        return tuple(sorted(mine))
    return tuple(sorted(mine | TRACKING_PARAMETERS)) if mine - TRACKING_PARAMETERS else None


def _references(
    plan: Plan, tracking: tuple[str, ...] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the seeds of a plan, and the sitemaps that it names; ValueError if one is none."""
    seeds = dict.fromkeys(_canonical_of(url, tracking) for url in plan.seeds)
    sitemaps = dict.fromkeys(_canonical_of(url, tracking) for url in plan.sitemap_urls)
    return tuple(seeds), tuple(sitemaps)


def _canonical_of(reference: str, tracking: tuple[str, ...] | None) -> str:
    stripped = TRACKING_PARAMETERS if tracking is None else frozenset(tracking)
    return canonicalize(reference, tracking=stripped)
