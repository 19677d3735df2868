"""The commands `robots` and `url`, which apply the rules of a crawl. They need no stack.

If a stack is named or runs on this machine, `url` reports whether that stack would connect to the
URL's host.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from orbweaver.cli import crawl_options, text
from orbweaver.cli.command import answer, command, json_option, option, repeated
from orbweaver.cli.commands.crawl import checked
from orbweaver.cli.commands.init_check import plan_in
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import given
from orbweaver.cli.exit_codes import OK, UsageError
from orbweaver.cli.ruling import ruling_of
from orbweaver.cli.session import environment_in
from orbweaver.cli.stack import settings_of
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.diagnostics.rule_texts import (
    never_requested_reason,
    rules_words,
    scope_rule,
    trap_rule,
)
from orbweaver.diagnostics.url_changes import changes, suggest_url
from orbweaver.frontier.admission import admit_link
from orbweaver.model.address_policy import PUBLIC_ONLY, THIS_MACHINE, Allowed, parse_allowed
from orbweaver.model.crawl import Crawl
from orbweaver.model.host_access import applied_words
from orbweaver.model.named_origins import origins_of
from orbweaver.model.outcome import Refusal
from orbweaver.model.request_url import canonical_seed
from orbweaver.model.settings import USER_AGENT, Settings
from orbweaver.model.target import Target
from orbweaver.model.url import canonicalize, host_of, hostname_of, redacted, site_of, url_hash
from orbweaver.model.user_agent import identity_of, token_of
from orbweaver.politeness.robots_cache import RobotsUnreachable, Ruling
from orbweaver.politeness.robots_txt import Robots


def url(arguments: Namespace, around: CliContext) -> int:
    base = canonical(arguments.base) if arguments.base else None
    first = canonical(arguments.reference, base)
    if arguments.config is None:
        seeds = tuple(arguments.seed) or (base or first,)
        plan = CrawlSpec(**{**given(arguments), "seeds": seeds})
    else:
        plan = plan_in(arguments.config, around)
    crawl = checked(plan, around)
    found = canonicalize(arguments.reference, base, tracking=crawl.removed_parameters)
    page = base or crawl.references[0]
    admitted = admit_link(crawl, found, Target(url=page, depth=0))
    refusal = admitted if isinstance(admitted, Refusal) else None
    body = {
        "url": found,
        "changes": changes(arguments.reference, base, tracking=crawl.removed_parameters),
        "host": host_of(found),
        "site": site_of(hostname_of(found)),
        "hash": url_hash(found),
        "followed": refusal is None,
        "refusal": refusal,
        "rule": (refusal and trap_rule(refusal)) or scope_rule(crawl, found, page),
        "rules": tuple(f"[{place}] {words}" for place, words in rules_words(crawl.rules, found)),
        "headers": tuple(
            name for name, _ in identity_of(crawl, host_of(found), USER_AGENT).headers
        ),
        "limits": applied_words(crawl, host_of(found)) or None,
        "cookies": "cookies that its site sets in the crawl" if crawl.cookies else None,
        **_asked(found, crawl, _allowed(arguments, around)),
    }
    answer(arguments, around, body, found, *_lines({**body, "url": None}, indent=2))
    return OK


def _asked(url: str, crawl: Crawl, allowed: Allowed | None) -> dict[str, str | None]:
    """Return why no stack would request a URL, or that only a stack on this machine would.

    `allowed` are the addresses that the named or running stack can connect to.
    """
    named = origins_of(crawl)
    why = never_requested_reason(url, PUBLIC_ONLY if allowed is None else allowed, named)
    local = parse_allowed(THIS_MACHINE)
    if why is None or allowed is not None or never_requested_reason(url, local, named) is not None:
        return {"never_asked": why}
    asked = f"only by a stack on this machine, because the seeds name this server: {why}"
    return {"never_asked": None, "asked_by": asked}


def _allowed(arguments: Namespace, around: CliContext) -> Allowed | None:
    """Return the addresses that a named or running stack can connect to. None: no stack."""
    named = arguments.target is not None or arguments.port is not None
    if not named and not around.machine.local():
        return None
    environment = environment_in(arguments, around)
    return settings_of(arguments.stack, around.machine, environment, around.note).fetching.allowed


async def robots(arguments: Namespace, around: CliContext) -> int:
    target = canonical(arguments.url)
    host = host_of(target)
    agent = arguments.user_agent or Settings().fetching.user_agent
    crawl = Crawl(id="robots", name="robots", started_at_ms=0, delay_ms=0, user_agent=agent)
    async with around.web() as fetcher:
        ruling, entry = await ruling_of(host, crawl, fetcher, around.clock, Settings())
    body = {
        "url": target,
        "robots": f"{host}/robots.txt",
        "user_agent": agent,
        **_decision(ruling, target, token_of(agent)),
        "bytes": len(entry.body) if entry and entry.body is not None else None,
    }
    # `line` and `rule` are not printed, because the text of `why` contains both.
    answer(arguments, around, body, *_lines({**body, "line": None, "rule": None}))
    return OK


def _decision(ruling: Ruling, target: str, agent: str) -> dict[str, Any]:
    match ruling:
        case None:
            return {"allowed": True, "why": "there is no robots.txt, so everything is allowed"}
        case RobotsUnreachable(detail=detail):
            return {"allowed": False, "why": f"unreachable, so nothing is allowed: {detail}"}
        case Robots():
            decided = ruling.decide(agent, target)
            return {
                "allowed": decided.allowed,
                "why": decided.why or "no rule matches",
                "line": decided.line,
                "rule": decided.rule,
                "group": decided.group and f"User-agent: {decided.group}",
                "crawl_delay_s": ruling.crawl_delay(agent),
                "sitemaps": list(ruling.sitemaps),
            }
        case _:
            return {"allowed": False, "why": "the host blocks crawlers for now"}


def canonical(reference: str, base: str | None = None) -> str:
    """Return the canonical form of a typed URL. Raises UsageError for an invalid URL."""
    try:
        return canonical_seed(reference) if base is None else canonicalize(reference, base)
    except ValueError as error:
        near = None if base else suggest_url(reference)
        like = f": did you mean {near}?" if near else ": give one like https://example.com/page"
        shown = text.cut(redacted(reference), 200)
        raise UsageError(f"{shown!r}: {error}{'' if base else like}") from error


def _lines(body: dict[str, Any], indent: int = 0) -> list[str]:
    known = (
        (key, _word(one))
        for key, value in body.items()
        for one in (value if isinstance(value, tuple) else (value,))
    )
    return text.table(text.labelled(row for row in known if row[1]), indent=indent)


def _word(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return " ".join(map(str, value))
        case _:
            return str(value)


_CONFIG = "definition of the crawl that decides; it replaces --seed and the options below"
COMMANDS = (
    command(
        "robots",
        robots,
        option("url URL"),
        option("--user-agent NAME", "decide for this user agent"),
        parents=(json_option,),
    ),
    command(
        "url",
        url,
        option("reference REFERENCE"),
        option("--base URL", "the page with the reference"),
        option("--config FILE", _CONFIG),
        repeated("--seed URL", "seed of the crawl that decides; may be repeated"),
        crawl_options.add_links,
    ),
)
