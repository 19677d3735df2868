"""What outcomes, reasons and refusals mean, in words: what the tables of the guide say, too.

And which rule decides on where a URL leads, in a sentence that fits both decisions; what the rules
of a crawl say, and what it keeps of pages.
"""

from __future__ import annotations

from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from orbweaver.frontier.admission import prefixes
from orbweaver.model.address_policy import PUBLIC_ONLY, verdict
from orbweaver.model.crawl import Bodies, Crawl, Scope
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.redacted_names import LOOPBACK, NO_ORIGINS, local_of, named_by, port_of
from orbweaver.model.registrable_domain import site_of
from orbweaver.model.url import host_of, hostname_of
from orbweaver.model.url_limits import DEFAULT_BOUNDS
from orbweaver.model.url_rules import THINGS, deciding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from orbweaver.model.address_policy import Allowed
    from orbweaver.model.url_limits import Bounds
    from orbweaver.model.url_rules import Rule

PUBLIC = "1.1.1.1"  # stands for the addresses that a name may have
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400

REASONS: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.OK: "the page was read",
        Reason.TRUNCATED: "it was cut at body_bytes_max, or the server sent a part (206)",
        Reason.SITEMAP: "a sitemap was read",
        Reason.NOINDEX: "read, and it asks not to be indexed (--noindex skip: skipped)",
        Reason.REPEATED: "read, but the same content came 50 times before: its links are not"
        " followed",
        Reason.SOFT_404: 'read, and it looks like a "not found" with status 200',
        Reason.NOT_MODIFIED: "fetched by an earlier run, and the server says it is still the same"
        " (304)",
        Reason.REDIRECT: "it leads elsewhere; the target is a URL of its own, if it belongs to the"
        " crawl",
        Reason.REFRESH: "likewise, by <meta http-equiv=refresh> or the Refresh header, within 10 s",
        Reason.WIDENED: "a seed that leads out of the scope: the crawl goes on there as well",
        Reason.ROBOTS: "robots.txt forbids it",
        Reason.ROBOTS_UNREACHABLE: "robots.txt could not be had: error says why; up to four"
        " times, once where only a person can mend that",
        Reason.CONTENT_TYPE: "it is not HTML; error says what it looks like where it was said to"
        " be something else",
        Reason.EMPTY: "204 or 205",
        Reason.CANONICAL: "it names another page of the crawl as canonical (--canonical), which is"
        " asked for",
        Reason.CANCELLED: "the crawl was stopped first",
        Reason.DURATION: "the crawl had run as long as it may",
        Reason.BYTES: "the crawl had received as much as it may (--max-bytes)",
        Reason.DOLLARS: "the crawl had spent as much as it may (--max-dollars)",
        Reason.HOST_PAGES: "its host had been asked for as many URLs as it may (--max-host-pages)",
        Reason.FORGOTTEN: "somebody had it forgotten (orbweaver forget) before it was asked for",
        Reason.INVALID: "a message held it, and it is no canonical URL",
        Reason.SCOPE: "a message held it, and it is outside of the scope",
        Reason.DEPTH: "it lies deeper than the crawl goes, since an edit or by its message",
        Reason.REDIRECT_INVALID: "it leads to what is no http or https URL",
        Reason.REDIRECT_LIMIT: "the tenth redirect in a row led on",
        Reason.SITEMAP_INVALID: "what was to be a sitemap is none",
        Reason.FORBIDDEN: "401, 403 or 407",
        Reason.HTTP_CLIENT_ERROR: "another 4xx",
        Reason.HTTP_SERVER_ERROR: "5xx, 408 or 425, four times where it may help",
        Reason.HTTP_STATUS: "304, a redirect without a target, or another answer that is none",
        Reason.DNS: "its name could not be looked up, four times",
        Reason.DNS_UNKNOWN: "its name does not exist or has no address, twice",
        Reason.CONNECT: "refused or unreachable, four times",
        Reason.PROXY: "no proxy reached it, four times",
        Reason.TLS: "the certificate is not in order, or no way of encrypting is shared",
        Reason.TLS_HANDSHAKE: "the server cut the handshake short, twice",
        Reason.TIMEOUT: "it took longer than fetch_total_s, or came at less than 100 bytes/s, four"
        " times",
        Reason.DISCONNECTED: "the connection ended in the middle, four times",
        Reason.PROTOCOL: "the answer is no HTTP, or hardly anything but framing",
        Reason.ENCODING: "the body is not in the encoding that it says",
        Reason.HEADERS_TOO_LARGE: "the head of the answer is too large",
        Reason.ADDRESS: "the address is not public, or the port not the web's",
        Reason.BLOCKED: "429, four times; or a captcha, challenge or block page, whose rule error"
        " names",
        Reason.HOST_DOWN: "its host did not answer nine times in a row; it was not asked",
        Reason.COSTLY: "reading it took more than 1 s of CPU or 200 MB, or crashed; error says what"
        " is left out (failed: all of it)",
    }
)
REFUSALS: Mapping[Refusal, str] = MappingProxyType(
    {
        Refusal.INVALID: "it is no http or https URL",
        Refusal.SCOPE: "it does not belong to the crawl",
        Refusal.DEPTH: "it is deeper than --max-depth, or than a rule says",
        Refusal.NOFOLLOW: "link, page or X-Robots-Tag forbid to follow it",
        Refusal.UNFOLLOWED: "a rule says that links of its page are not followed",
        Refusal.CUT: "the page has more links than links_per_page_max, or too long ones",
        Refusal.BUDGET: "--max-pages was used up",
        Refusal.DOLLARS: "what was left of --max-dollars would not have paid for it",
        Refusal.REDIRECTS: "it stands behind ten redirects",
        Refusal.CLOSED: "the crawl was over when it was seeded",
        Refusal.PATH_DEPTH: "its path has more than path_segments_max segments, or its host so"
        " many labels",
        Refusal.REPETITION: "a segment of its path, or a label of its host, comes more than"
        " repeats_max times",
        Refusal.QUERY: "its query has more than query_parameters_max parameters, more than"
        " query_chars_max characters, or one of them more than repeats_max times",
        Refusal.EXCLUDE: "a pattern of --exclude is found in it",
        Refusal.INCLUDE: "no pattern of --include is found in it",
        Refusal.PATTERN: "its folder, or its path with these parameters, has had folder_urls_max"
        " or query_urls_max URLs in this container",
        Refusal.REPEATED: "the page has content that came 50 times before",
    }
)


def trap_rule(refusal: Refusal, bounds: Bounds = DEFAULT_BOUNDS) -> str | None:
    """Say what a URL has that looks like a trap's; None if it was refused for something else."""
    match refusal:
        case Refusal.PATH_DEPTH:
            return (
                f"more than {bounds.path_segments_max} segments in its path, or labels in its host"
            )
        case Refusal.REPETITION:
            return (
                "a segment of its path, or a label of its host, more than"
                f" {bounds.repeats_max} times"
            )
        case Refusal.QUERY:
            return (
                f"a query of more than {bounds.query_parameters_max} parameters or"
                f" {bounds.query_chars_max:,} characters, or a parameter more than"
                f" {bounds.repeats_max} times"
            )
    return None


def scope_rule(crawl: Crawl, url: str, page: str) -> str:
    """Say which rule decides on where a URL leads; the sentence fits both decisions."""
    if url == page:
        return "no page or seed is given, so it counts as a seed"
    match crawl.scope:
        case Scope.HOST:
            one, other = host_of(url), host_of(page)
        case Scope.DOMAIN:
            one, other = site_of(hostname_of(url)), site_of(hostname_of(page))
        case Scope.PREFIX:
            folders = prefixes(crawl.anchored)
            near = next((folder for folder in folders if url.startswith(folder)), None)
            where = f"below {near}" if near else f"not below {' or '.join(folders[:3])}"
            return f"scope prefix: {where}"
        case _:
            return "scope any: every host belongs"
    same = f"{one} is that of its page" if one == other else f"{one} is not {other}, its page's"
    return f"scope {crawl.scope}: {same}"


def rules_words(rules: tuple[Rule, ...], url: str) -> list[tuple[int, str]]:
    """Say which rules decide on what for a URL: the place of each, and words."""
    things: dict[int, list[str]] = {}
    for thing, place in deciding(rules, url).items():
        things.setdefault(place, []).append(thing)
    return [(place, rule_words(rules[place], things[place])) for place in sorted(things)]


def rule_words(rule: Rule, things: Iterable[str] = THINGS) -> str:
    """Say what a rule says, or some of it."""
    words = {
        "depth_max": f"depth {rule.depth_max}",
        "express": f"priority {'high' if rule.express else 'normal'}",
        "delay_ms": f"delay {(rule.delay_ms or 0) / 1000:g} s",
        "window_s": f"window {span(rule.window_s or 0)}",
        "follow": "links followed" if rule.follow else "links not followed",
        "record": "recorded" if rule.record else "not recorded",
    }
    return ", ".join(words[thing] for thing in things if getattr(rule, thing) is not None)


def kept_words(crawl: Crawl) -> Iterator[str]:
    """Say what a crawl keeps of pages, beside their records."""
    if crawl.bodies is not Bodies.OFF:
        whose = "HTML pages" if crawl.bodies is Bodies.HTML else "whatever is fetched, HTML or not"
        yield f"the bodies of {whose}"
    if crawl.texts:
        yield "the main text of HTML pages, as text and as Markdown"
    if crawl.redacted:
        names = {"email": "e-mail addresses", "phone": "phone numbers"}
        yield f"no {' and no '.join(names[kind] for kind in crawl.redacted)}, except in URLs"


def never_asked(
    url: str, allowed: Allowed = PUBLIC_ONLY, origins: AbstractSet[str] = NO_ORIGINS
) -> str | None:
    """Say why a URL would not be dialled; of names only the port is known before DNS.

    `origins` are those that its crawl was begun with.
    """
    name, port = hostname_of(url), port_of(url)
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return verdict(name.strip("[]"), port, allowed, named_by(origins))
    if local_of(url) is not None and allowed.networks:
        return verdict(str(LOOPBACK[0]), port, allowed, named_by(origins))
    return verdict(PUBLIC, port, allowed)


def moment(at_ms: int) -> str:
    """Write a moment to the second."""
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: int) -> str:
    """Write a span in its largest whole unit: `7 d`, `90 min`, `1 s`."""
    for unit, word in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if seconds and seconds % unit == 0:
            return f"{seconds // unit} {word}"
    return f"{seconds} s"
