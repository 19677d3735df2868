"""What a person asks of a crawl, and the crawl that it becomes; or which part of it does not fit.

- Every seed is canonical or the plan is refused, with the seed, what is wrong with it, and the
  URL that was probably meant. A seed given twice counts once.
- The name defaults to the first seed's host, so that the same site crawled again finds its claims.
- A page budget is exact when somebody asked for it: one counter shard. Nobody counts a default of
  a million to the page, so the default budget is spread over 16 shards, which commit faster.
- Parameters of a person's choice are taken out of URLs beside the usual ones, or instead of them.
- With a delay one request at a time is polite; without one the concurrency is the only brake.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.core.crawl import WEEK_S, Crawl, Scope, run_id
from orbweaver.core.identity import IdentityError, check_agents, check_headers
from orbweaver.core.message import CRAWL_ID_CHARS_MAX, DEFAULT_CRAWL, SEEDS_REFERENCES_MAX
from orbweaver.core.url import TRACKING_PARAMETERS, canonicalize, host_of, redacted

if TYPE_CHECKING:
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
# Field, least, most, and how the numbers are spelled; the most is far above what makes sense.
BOUNDS = (
    ("depth_max", 0, 1_000, ""),
    ("pages_max", 1, 100_000_000, ""),
    ("delay_ms", 0, 86_400_000, " ms"),
    ("concurrency", 1, 64, ""),
    ("window_s", 0, 366 * 86_400, " s"),
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
    for part, low, high, unit in BOUNDS:
        value = getattr(plan, part)
        if value is not None and not low <= value <= high:
            raise PlanError(part, f"{value}{unit} does not fit: give {low} to {high:,}{unit}")
    tracking = _tracking(plan)
    seeds, sitemap_urls = _references(
        plan, TRACKING_PARAMETERS if tracking is None else frozenset(tracking)
    )
    name = _name(plan.name, (seeds + sitemap_urls)[0])
    if plan.id is not None and (not ID.fullmatch(plan.id) or plan.id == DEFAULT_CRAWL):
        raise PlanError("id", f"{plan.id!r} is not a crawl's id: a-z, 0-9, dot, hyphen, underscore")
    _check_identity(plan)
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


def name_of(url: str) -> str:
    """Name a crawl after a URL's host: `example.com`, `127.0.0.1-8000`."""
    host = host_of(url).partition("://")[2].strip("[]")
    name = re.sub(r"[^a-z0-9._]+", "-", host.lower())[:80].strip("-")
    return name if name not in ("", DEFAULT_CRAWL) else "crawl"


def _check_identity(plan: Plan) -> None:
    try:
        check_agents(plan.user_agents)
    except IdentityError as error:
        raise PlanError("user_agents", str(error)) from error
    try:
        check_headers(plan.headers)
    except IdentityError as error:
        raise PlanError("headers", str(error)) from error


def _name(name: str | None, seed: str) -> str:
    if name is None:
        return name_of(seed)
    if not NAME.fullmatch(name):
        near = re.sub(r"[^a-z0-9._-]+", "-", name.lower())[:80].strip("-")
        hint = f"; {near} would do" if near else ""
        raise PlanError(
            "name",
            f"{name[:100]!r} does not fit: 1 to 80 of a-z, 0-9, dot, hyphen and underscore{hint}",
        )
    if name == DEFAULT_CRAWL:
        raise PlanError("name", f"{name!r} is the crawl of bare URLs on the queue: give another")
    return name


def _tracking(plan: Plan) -> tuple[str, ...] | None:
    """Name the parameters that are taken out; None for the usual ones."""
    for name in plan.strip_parameters:
        if not PARAMETER.fullmatch(name):
            raise PlanError(
                "strip_parameters",
                f"{name[:100]!r} is not a parameter's name: give one as URLs spell it, like ref or"
                " my_* (a * at the end stands for any rest)",
            )
    if len(plan.strip_parameters) > PARAMETERS_MAX:
        number = len(plan.strip_parameters)
        raise PlanError("strip_parameters", f"{number:,} are too many: at most {PARAMETERS_MAX}")
    mine = {name.lower() for name in plan.strip_parameters}
    if plan.keep_parameters:
        return tuple(sorted(mine))
    return tuple(sorted(mine | TRACKING_PARAMETERS)) if mine - TRACKING_PARAMETERS else None


def _references(plan: Plan, tracking: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the seeds of a plan, and the sitemaps that it names."""
    count = len(plan.seeds) + len(plan.sitemap_urls)
    if not count:
        raise PlanError("seeds", "there is no seed: give at least one URL")
    if count > SEEDS_MAX:
        raise PlanError("seeds", f"{count:,} seeds are too many: at most {SEEDS_MAX:,} a crawl")
    seeds = tuple(dict.fromkeys(_seed(url, "seeds", tracking) for url in plan.seeds))
    sitemaps = tuple(
        dict.fromkeys(_seed(url, "sitemap_urls", tracking) for url in plan.sitemap_urls)
    )
    size = sum(len(seed.encode()) for seed in seeds + sitemaps)
    if size > SEEDS_BYTES_MAX:
        raise PlanError(
            "seeds",
            f"the seeds take {size:,} bytes, and a crawl holds {SEEDS_BYTES_MAX:,}: start two"
            " crawls of one name, which share what they have seen",
        )
    return seeds, sitemaps


def _seed(reference: str, field: str, tracking: frozenset[str]) -> str:
    try:
        return canonicalize(reference, tracking=tracking)
    except ValueError as error:
        meant = _meant(reference.strip())
        hint = f"; did you mean {meant}?" if meant else ""
        problem = f"{redacted(reference)!r} cannot be crawled: {error}{hint}"
        raise PlanError(field, problem) from error


def _meant(reference: str) -> str | None:
    """Guess the URL behind a seed without a scheme, or with one that is mistyped."""
    scheme, sign, rest = reference.partition("://")
    if sign:
        near = difflib.get_close_matches(scheme.lower(), ("https", "http"), n=1, cutoff=0.7)
        return _canonical(f"{near[0]}://{rest}") if near else None
    host = re.split(r"[/?#]", reference, maxsplit=1)[0]
    if re.match(r"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$", host):
        return _canonical(f"http://{reference}")
    if "." in host and "@" not in host:
        return _canonical(f"https://{reference}")
    return None


def _canonical(reference: str) -> str | None:
    try:
        return canonicalize(reference)
    except ValueError:
        return None
