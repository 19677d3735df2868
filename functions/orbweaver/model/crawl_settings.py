"""The settings of a crawl: each with its default, its key and option, and what fits it.

A field that a person may give is made by `setting`. What follows from it: the key of crawl.toml,
the schema of the API, the check of bounds, what may be edited (`control/`), the option, the file
that `orbweaver init` writes (`cli/`), and what is stored (`model/crawl_codec.py`). A worker finds
it in the crawl. What only the start of a crawl needs is in `control/crawl_spec.py`, made alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from orbweaver.model.amounts import NANO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.model.http_exchange import Headers, HostHeaders
    from orbweaver.model.item_rules import ItemRule
    from orbweaver.model.url_rules import Rule

# The longest that a run may last.
WEEK_S = 7 * 86_400
PRIORITIES = MappingProxyType({"normal": False, "high": True})


class Scope(StrEnum):
    """Which links belong: on their page's host or domain, below a seed's path, or any."""

    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"


class Bodies(StrEnum):
    """Whose bodies are stored: nobody's, those of HTML pages, or of whatever there is."""

    OFF = "off"
    HTML = "html"
    ALL = "all"


class ValueKind(StrEnum):
    """What a setting takes; how that is written depends on where."""

    TEXT = "text"
    TEXTS = "texts"
    NUMBER = "number"
    SWITCH = "switch"
    WORD = "word"
    MILLISECONDS = "milliseconds"
    SECONDS = "seconds"
    BYTES = "bytes"
    NANODOLLARS = "nanodollars"
    HEADERS = "headers"
    HOST_HEADERS = "host_headers"
    PII_KINDS = "pii_kinds"
    URL_RULES = "url_rules"
    ITEM_RULES = "item_rules"


# The kinds of settings that do not say theirs, by the type of the default.
_USUAL = {bool: ValueKind.SWITCH, int: ValueKind.NUMBER, tuple: ValueKind.TEXTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a person may set, and how; `name` is that of the field.

    `about` is its comment in a definition, with an `example` where the default says too little.
    `option` is written as a help has it, `--delay TIME  per host (1s)`. A switch without a value
    turns the default around.
    """

    name: str
    key: str
    kind: ValueKind
    default: Any = None
    # What is said for which value.
    words: Mapping[str, Any] = field(default_factory=dict)
    bounds: tuple[int, int] | None = None
    about: str = ""
    example: str = ""
    option: str = ""
    # Whether it may change while the crawl runs.
    editable: bool = False
    # Whether its value is never shown.
    secret: bool = False


def setting(*, default: Any, **said: Any) -> Any:
    """Declare a field of a dataclass that a person may set; `said` is of a `Setting`."""
    return field(default=default, repr=not said.get("secret"), metadata=said)


def settings_of(kind: type) -> tuple[Setting, ...]:
    """List what a person may set of a dataclass, in its order."""
    return tuple(
        Setting(**{"name": one.name, "default": one.default, **_said(one.default), **one.metadata})
        for one in fields(kind)
        if one.metadata
    )


def _said(default: Any) -> dict[str, Any]:
    if isinstance(default, StrEnum):
        return {"kind": ValueKind.WORD, "words": {str(word): word for word in type(default)}}
    return {"kind": _USUAL.get(type(default), ValueKind.TEXT)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """What is asked of a crawl, as all rooms see it; None leaves the choice to its start."""

    name: str | None = setting(
        default=None,
        key="name",
        about="Runs of one name share what they have seen; default: the host of the first seed.",
        example='"my-site"',
        option="--name  runs of one name share what they have seen; default: the first host",
    )
    seeds: tuple[str, ...] = setting(
        default=(),
        key="seeds",
        about="Where to begin; edit this.",
        example='["https://example.com/"]',
    )
    sitemap_urls: tuple[str, ...] = setting(
        default=(),
        key="sitemaps",
        about="Sitemaps to begin with, beside seeds or instead of them.",
        example='["https://example.com/sitemap.xml"]',
        option="--sitemap URL  begin with a sitemap, too, or with it alone; may be repeated",
    )
    express: bool = setting(
        default=False,
        key="priority",
        kind=ValueKind.WORD,
        words=PRIORITIES,
        about='"high" goes past other crawls.',
        option="--priority high  past other crawls",
    )
    scope: Scope = setting(
        default=Scope.HOST,
        key="scope.links",
        about='Links that belong: on their page\'s "host", its "domain", below a seed\'s folder'
        ' ("prefix"), "any".',
        option="--scope  links that belong: those on their page's host (default), on any host of"
        " its domain, below a seed's folder, or any",
    )
    # Regular expressions: what links must match one of, and what none may match.
    include: tuple[str, ...] = setting(
        default=(),
        key="scope.include",
        about="Of these only what one of some regular expressions is found in; and never what one"
        " of others is.",
        example='["/articles/"]',
        option="--include RE  links that match this regular expression only; may be repeated",
        editable=True,
    )
    exclude: tuple[str, ...] = setting(
        default=(),
        key="scope.exclude",
        example="""["/login", '\\.pdf$']""",
        option="--exclude RE  no links that match this one; may be repeated",
        editable=True,
    )
    sitemaps: bool = setting(
        default=True,
        key="scope.robots_sitemaps",
        about="Whether the sitemaps are read that robots.txt names.",
        option="--no-sitemaps  pass over the sitemaps that robots.txt names",
    )
    depth_max: int = setting(
        default=20,
        key="limits.depth",
        bounds=(0, 1_000),
        about="Links from a seed.",
        option="--max-depth N  links from a seed (20)",
        editable=True,
    )
    pages_max: int | None = setting(
        default=None,
        key="limits.pages",
        kind=ValueKind.NUMBER,
        bounds=(1, 100_000_000),
        about="URLs, exactly; without it about a million.",
        example="1000",
        option="--max-pages N  never more URLs than this",
        editable=True,
    )
    host_pages_max: int | None = setting(
        default=None,
        key="limits.host_pages",
        kind=ValueKind.NUMBER,
        bounds=(1, 100_000_000),
        about="URLs of each host; the others go on.",
        example="500",
        option="--max-host-pages N  never ask for more URLs of one host than this",
        editable=True,
    )
    duration_max_s: int = setting(
        default=WEEK_S,
        key="limits.duration",
        kind=ValueKind.SECONDS,
        bounds=(60, WEEK_S),
        about="Time from the start; a week at most.",
        option="--duration TIME  never longer than this (7d)",
        editable=True,
    )
    bytes_max: int | None = setting(
        default=None,
        key="limits.bytes",
        kind=ValueKind.BYTES,
        bounds=(100_000, 10**15),
        about="What bodies may come to, all together.",
        example='"10GB"',
        option="--max-bytes SIZE  never receive more than this",
        editable=True,
    )
    # What one visit may cost at most is a tenth of a cent.
    nanodollars_max: int | None = setting(
        default=None,
        key="limits.dollars",
        kind=ValueKind.NANODOLLARS,
        bounds=(NANO // 100, 1_000_000 * NANO),
        about="What the crawl may cost on AWS, by an estimate from list prices.",
        example="5",
        option="--max-dollars $  never spend more on AWS than this, by an estimate",
        editable=True,
    )
    delay_ms: int = setting(
        default=1_000,
        key="politeness.delay",
        kind=ValueKind.MILLISECONDS,
        bounds=(0, 86_400_000),
        about="Between two requests to a host. robots.txt may ask for more, and gets it.",
        option="--delay TIME  per host (1s)",
        editable=True,
    )
    concurrency: int | None = setting(
        default=None,
        key="politeness.concurrency",
        kind=ValueKind.NUMBER,
        bounds=(1, 64),
        about="Requests to a host at a time; 1, without a delay 16.",
        example="2",
        option="--concurrency N  per host; 1, without delay 16",
        editable=True,
    )
    obey_robots: bool = setting(
        default=True,
        key="politeness.robots",
        about="Whether robots.txt is obeyed; false only on sites of your own.",
        option="--ignore-robots  only on sites of your own",
    )
    # Each host sees one of them (model/user_agent.py).
    user_agents: tuple[str, ...] = setting(
        default=(),
        key="identity.user_agents",
        about="Who asks; of several each host sees one. Default: the stack's own.",
        example='["my-crawler/1.0 (+https://example.com/bot)"]',
        option="--user-agent AGENT  who asks; given several times, each host sees one of them",
    )
    headers: Headers = setting(
        default=(),
        key="identity.headers",
        kind=ValueKind.HEADERS,
        about="Sent along; what may be a secret to the seeds' own origins only.",
        example='{ "Accept-Language" = "de" }',
        option="--header 'NAME: VALUE'  sent along; what may be a secret to the seeds' own origins"
        " only",
        secret=True,
    )
    # fetching/cookies.py.
    cookies: bool = setting(
        default=False,
        key="identity.cookies",
        about="Whether cookies that a site sets are sent back to it, within the crawl.",
        option="--cookies  send cookies that a site sets back to it, within the crawl",
    )
    # By origin: for these alone, and before those above.
    host_headers: HostHeaders = setting(
        default=(),
        key="identity.hosts",
        kind=ValueKind.HOST_HEADERS,
        about="Headers for one host alone: for example an API key. A host is its https origin, if"
        " no seed says\notherwise.",
        example='{ "api.example.com" = { headers = { "X-Api-Key" = "key" } } }',
        secret=True,
    )
    proxied: bool = setting(
        default=True,
        key="identity.proxies",
        about="Whether to ask through the proxies, where the stack has any.",
        option="--proxies no  ask past the stack's proxies",
    )
    window_s: int = setting(
        default=WEEK_S,
        key="dedup.window",
        kind=ValueKind.SECONDS,
        bounds=(0, 366 * 86_400),
        about='What a run of the same name has seen within this time is not asked for again; "0s":'
        " all is.",
        option="--window TIME  ask again for what was seen before this long (7d); 0s: for all",
    )
    canonical_only: bool = setting(
        default=False,
        key="records.canonical",
        about="Whether pages are left out that name another one as canonical; that one is asked"
        " for.",
        option="--canonical  leave out pages that name another one as canonical; that one is asked"
        " for",
    )
    noindex_skipped: bool = setting(
        default=False,
        key="records.noindex",
        kind=ValueKind.WORD,
        words={"record": False, "skip": True},
        about='Pages that ask not to be indexed: "record" marks them, "skip" leaves them out.',
        option="--noindex  pages that ask not to be indexed: mark them (default), or leave them"
        " out",
    )
    bodies: Bodies = setting(
        default=Bodies.HTML,
        key="records.bodies",
        about='Whose bodies are stored: those of "html" pages, of "all" there is (which is fetched'
        ' then), "off".',
        option="--bodies  whose bodies are stored: those of HTML pages (default), of all there is,"
        " or of none",
        editable=True,
    )
    texts: bool = setting(
        default=False,
        key="records.text",
        about="Whether the main text of pages is kept, as text and as Markdown.",
        option="--text  keep the main text of pages, also as Markdown",
        editable=True,
    )
    redacted: tuple[str, ...] = setting(
        default=(),
        key="records.redact",
        kind=ValueKind.PII_KINDS,
        about='What is taken out of pages before they are stored: "email" addresses, "phone"'
        " numbers.",
        example='["email", "phone"]',
        option="--redact  take these out of pages before they are stored; may be repeated",
        editable=True,
    )
    webhook: str | None = setting(
        default=None,
        key="notify.webhook",
        about="Who is told when a run has ended; needs a stack with a webhook_secret.",
        example='"https://example.com/hooks/crawled"',
        secret=True,
    )
    # What holds for some of its URLs only, and what is taken from its pages.
    rules: tuple[Rule, ...] = setting(
        default=(), key="rules", kind=ValueKind.URL_RULES, editable=True
    )
    items: tuple[ItemRule, ...] = setting(
        default=(), key="items", kind=ValueKind.ITEM_RULES, editable=True
    )
