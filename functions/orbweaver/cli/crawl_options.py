"""The options that say what to crawl and how, and the parts of a plan that they are.

Options that are not given are None or empty, so that a definition's values, or the plan's own
defaults, stand. A switch can only be turned one way: what a definition has set stays set.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbweaver.cli import option_types
from orbweaver.frontier.refetch import MISSING
from orbweaver.model.crawl_settings import WEEK_S, Bodies, Scope
from orbweaver.parsing.pii_redaction import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

DEFINITION = Path("crawl.toml")
# What is estimated of a crawl whose definition does not limit its pages.
PAGES_ASSUMED = 10_000
# What a part of a plan is called on the command line.
OPTIONS = {
    "seeds": "URL",
    "name": "--name",
    "id": "--id",
    "idempotency_key": "--idempotency-key",
    "depth_max": "--max-depth",
    "pages_max": "--max-pages",
    "host_pages_max": "--max-host-pages",
    "bytes_max": "--max-bytes",
    "nanodollars_max": "--max-dollars",
    "duration_max_s": "--duration",
    "delay_ms": "--delay",
    "concurrency": "--concurrency",
    "window_s": "--window",
    "include": "--include",
    "exclude": "--exclude",
    "user_agents": "--user-agent",
    "headers": "--header",
    "strip_parameters": "--strip-parameter",
    "sitemap_urls": "--sitemap",
    "redacted": "--redact",
}
_SCOPES = (
    "those on their page's host (default), on any host of its domain, below a seed's folder, or any"
)


def given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parts of a plan that were given as options."""
    parts = {
        "seeds": tuple(arguments.seeds),
        "name": arguments.name,
        "id": getattr(arguments, "id", None),
        "scope": arguments.scope and Scope(arguments.scope),
        "include": tuple(arguments.include),
        "exclude": tuple(arguments.exclude),
        "depth_max": arguments.max_depth,
        "pages_max": arguments.max_pages,
        "host_pages_max": arguments.max_host_pages,
        "bytes_max": arguments.max_bytes,
        "nanodollars_max": arguments.max_dollars,
        "duration_max_s": arguments.duration,
        "delay_ms": arguments.delay,
        "concurrency": arguments.concurrency,
        "window_s": arguments.window,
        "obey_robots": False if arguments.ignore_robots else None,
        "express": arguments.priority and arguments.priority == "high",
        "user_agents": tuple(arguments.user_agent),
        "headers": tuple(arguments.header),
        "cookies": arguments.cookies or None,
        "proxied": arguments.proxies and arguments.proxies == "yes",
        "strip_parameters": tuple(arguments.strip_parameter),
        "keep_parameters": arguments.keep_parameters or None,
        "sitemaps": False if arguments.no_sitemaps else None,
        "sitemap_urls": tuple(arguments.sitemap),
        "canonical_only": arguments.canonical or None,
        "noindex_skipped": arguments.noindex and arguments.noindex == "skip",
        "bodies": arguments.bodies and Bodies(arguments.bodies),
        "texts": arguments.text or None,
        "redacted": tuple(kind for kind in KINDS if kind in arguments.redact),
    }
    return {part: value for part, value in parts.items() if value is not None and value != ()}


def changed(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parts of a plan that were given to a command that takes only some options."""
    plan = argparse.ArgumentParser(add_help=False)
    add_plan(plan.add_argument)
    return given(argparse.Namespace(**{**vars(plan.parse_args([])), **vars(arguments)}))


def add_plan(add: Callable[..., Any]) -> None:
    """Add the options of a crawl that is to be started."""
    add("seeds", nargs="*", metavar="URL", help="where to begin; - reads a list from the input")
    config = "what to crawl, as a file says it; other options come before what it says"
    add("--config", type=Path, metavar="FILE", help=config)
    sitemap = "begin with a sitemap, too, or with it alone; may be repeated"
    add("--sitemap", action="append", default=[], metavar="URL", help=sitemap)
    no_sitemaps = "pass over the sitemaps that robots.txt names"
    add("--no-sitemaps", action="store_true", help=no_sitemaps)
    canonical = "leave out pages that name another one as canonical; that one is asked for"
    add("--canonical", action="store_true", help=canonical)
    noindex = "pages that ask not to be indexed: mark them (default), or leave them out"
    kinds = option_types.one_of(["record", "skip"])
    add("--noindex", type=kinds, metavar="record|skip", help=noindex)
    add("--name", help="runs of one name share what they have seen; default: the first host")
    add_scope(add)
    add_changeable(add)
    add_parameters(add)
    _add_manners(add)


def add_changeable(add: Callable[..., Any]) -> None:
    """Add the options that may also change while a crawl runs (`control/edits.py`)."""
    add("--max-depth", type=option_types.count, metavar="N", help="links from a seed (20)")
    add("--max-pages", type=option_types.count, metavar="N", help="never more URLs than this")
    host_pages = "never ask for more URLs of one host than this"
    add("--max-host-pages", type=option_types.count, metavar="N", help=host_pages)
    add(
        "--max-bytes",
        type=option_types.size_bytes,
        metavar="SIZE",
        help="never receive more than this",
    )
    dollars = "never spend more on AWS than this, by an estimate"
    add("--max-dollars", type=option_types.nanodollars, metavar="$", help=dollars)
    add(
        "--duration",
        type=option_types.duration_s,
        metavar="TIME",
        help="never longer than this (7d)",
    )
    add("--delay", type=option_types.duration_ms, metavar="TIME", help="per host (1s)")
    add("--concurrency", type=option_types.count, metavar="N", help="per host; 1, without delay 16")
    include = "links that match this regular expression only; may be repeated"
    add("--include", action="append", default=[], metavar="RE", help=include)
    exclude = "no links that match this one; may be repeated"
    add("--exclude", action="append", default=[], metavar="RE", help=exclude)
    bodies = "whose bodies are stored: those of HTML pages (default), of all there is, or of none"
    kept = option_types.one_of([str(one) for one in Bodies])
    add("--bodies", type=kept, metavar="|".join(Bodies), help=bodies)
    add("--text", action="store_true", help="keep the main text of pages, also as Markdown")
    redact = "take these out of pages before they are stored; may be repeated"
    kinds = option_types.one_of(KINDS)
    add("--redact", type=kinds, action="append", default=[], metavar="|".join(KINDS), help=redact)


def _add_manners(add: Callable[..., Any]) -> None:
    window = f"ask again for what was seen before this long ({WEEK_S // 86_400}d); 0s: for all"
    add("--window", type=option_types.duration_s, metavar="TIME", help=window)
    refetch = "ask again for pages that earlier runs have without --text or --bodies, and no others"
    add("--refetch", type=option_types.one_of([MISSING]), metavar=MISSING, help=refetch)
    add("--ignore-robots", action="store_true", help="only on sites of your own")
    agents = "who asks; given several times, each host sees one of them"
    add("--user-agent", action="append", default=[], metavar="AGENT", help=agents)
    add(
        "--header",
        type=option_types.header,
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="sent along; what may be a secret to the seeds' own origins only",
    )
    cookies = "send cookies that a site sets back to it, within the crawl"
    add("--cookies", action="store_true", help=cookies)
    through = option_types.one_of(["yes", "no"])
    add("--proxies", type=through, metavar="no", help="ask past the stack's proxies")
    lane = option_types.one_of(["normal", "high"])
    add("--priority", type=lane, metavar="high", help="past other crawls")
    most = "exit with 1 if more URLs failed (default: never)"
    add("--fail-above", type=option_types.threshold, metavar="N|N%", help=most)


def add_scope(add: Callable[..., Any], default: str | None = None) -> None:
    """Add the option that says which links belong."""
    scope = option_types.one_of([str(scope) for scope in Scope])
    text = f"links that belong: {_SCOPES}"
    add("--scope", type=scope, default=default, metavar="|".join(Scope), help=text)


def add_parameters(add: Callable[..., Any]) -> None:
    """Add the options that say which parameters are taken out of URLs."""
    strip = "take this parameter out of URLs, too (my_*: all that begin so); may be repeated"
    add("--strip-parameter", action="append", default=[], metavar="NAME", help=strip)
    keep = "keep those that are taken out otherwise (utm_*, gclid, phpsessid, …)"
    add("--keep-parameters", action="store_true", help=keep)


def add_changing(add: Callable[..., argparse.ArgumentParser], *parents: Any) -> None:
    """Add the commands about a crawl's work: edit, retry."""
    edit = add("edit", "change limits, pace, patterns or rules of a crawl that runs", *parents)
    edit.add_argument("which", metavar="ID", help="an id or a name")
    config = "what is to hold from now on; what cannot change has to be as it is"
    edit.add_argument("--config", type=Path, metavar="FILE", help=config)
    add_changeable(edit.add_argument_group("what is to change").add_argument)
    retry = add("retry", "ask again for what failed in a crawl, and for that alone", *parents)
    retry.add_argument("which", metavar="ID", help="an id, or a name: its newest run")
    reason = "what failed for this reason; may be repeated"
    retry.add_argument("--reason", action="append", default=[], metavar="REASON", help=reason)
    retry.add_argument("--host", metavar="HOST", help="what failed on this host")
    retry.add_argument("--wait", action="store_true", help="show its progress until it ends")


def add_asking(add: Callable[..., argparse.ArgumentParser], *parents: Any) -> None:
    """Add the commands that ask why: hosts, report, cost."""
    hosts = add("hosts", "show how a crawl does at its hosts: counts, pace, blocks", *parents)
    hosts.add_argument("which", nargs="?", metavar="ID", help="an id or a name; default: newest")
    host = "this one, too: a name, or a URL's beginning; may be repeated"
    hosts.add_argument("--host", action="append", default=[], metavar="HOST", help=host)
    report = add("report", "say what a crawl left out and why, with examples", *parents)
    report.add_argument("which", nargs="?", metavar="ID", help="an id or a name; default: newest")
    cost = add("cost", "show what a crawl has used of AWS, and what that costs", *parents)
    cost.add_argument("which", metavar="ID", help="an id or a name")


def add_definition(add: Callable[..., argparse.ArgumentParser], lines: Any) -> None:
    """Add the commands about definitions: init, check, estimate."""
    init = add("init", "write the definition of a crawl to begin with")
    what = f"where to; what is there stays ({DEFINITION})"
    init.add_argument("file", nargs="?", type=Path, default=DEFINITION, metavar="FILE", help=what)
    check = add("check", "say what the definition of a crawl would do, or what is wrong", lines)
    what = f"TOML; JSON if it ends in .json ({DEFINITION})"
    check.add_argument("file", nargs="?", type=Path, default=DEFINITION, metavar="FILE", help=what)
    functions = "a module with functions of your own (cdk.json says which is deployed)"
    check.add_argument("--extractor", type=Path, metavar="FILE", help=functions)
    what = "say what a crawl would use of AWS, and what that would cost, before it begins"
    _add_assumptions(add("estimate", what, lines).add_argument)


def _add_assumptions(add: Callable[..., Any]) -> None:
    file = f"what to crawl ({DEFINITION})"
    add("file", nargs="?", type=Path, default=DEFINITION, metavar="FILE", help=file)
    limit = f"so many pages; default: the definition's limit, or {PAGES_ASSUMED:,}"
    add("--pages", type=option_types.count, metavar="N", help=limit)
    add(
        "--hosts",
        type=option_types.count,
        metavar="N",
        help="on so many hosts; default: the seeds'",
    )
    add("--links", type=option_types.count, default=50, metavar="N", help="on a page (50)")
    size = "of a page, as it comes over the wire (30kB)"
    add("--body-bytes", type=option_types.size_bytes, default=30_000, metavar="SIZE", help=size)
    answer = "how long a host takes to answer (200ms)"
    add("--answer", type=option_types.duration_ms, default=200, metavar="TIME", help=answer)
    memory = "what the worker has (this folder's cdk.json, or 1024)"
    add("--memory", type=option_types.count, metavar="MB", help=memory)
    workers = "how many there may be at once (this folder's cdk.json, or 50)"
    add("--workers", type=option_types.count, metavar="N", help=workers)
    batch = "messages that a worker takes at once (this folder's cdk.json, or 10)"
    add("--batch-size", type=option_types.count, metavar="N", help=batch)
