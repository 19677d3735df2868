"""Declare the settings of a crawl: default, key, option, bounds and help of each.

Each field that a user can set has a `Setting`. It determines the key of crawl.toml, the API schema,
the validation, whether it is editable (`control/`), the option, the starter file of `orbweaver
init` (`cli/`), and the stored form (`model/crawl_codec.py`). Workers read settings from the crawl.
Settings needed only at the start of a crawl are declared in `control/crawl_spec.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from orbweaver.model.amounts import NANO

if TYPE_CHECKING:
    from orbweaver.model.http_exchange import Headers, HostHeaders
    from orbweaver.model.item_rules import ItemRule
    from orbweaver.model.url_rules import UrlRule

# Type of a setting's value. The notation depends on the place.
_Plain: TypeAlias = Literal["text", "texts", "number", "switch", "word", "headers", "pii_kinds"]
_Amount: TypeAlias = Literal["milliseconds", "seconds", "bytes", "nanodollars"]
_Rules: TypeAlias = Literal["url_rules", "item_rules", "render_rules"]
ValueKind: TypeAlias = _Plain | _Amount | _Rules | Literal["host_headers"]
# Maximum duration of a run.
WEEK_S = 7 * 86_400
# In a larger crawl the order of requests hardly affects the result.
ORDERED_PAGES_MAX = 100_000
PRIORITIES = MappingProxyType({"normal": False, "high": True})


class Scope(StrEnum):
    """Links that belong to a crawl: on their page's host or domain, below a seed's path, or any."""

    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"


class Bodies(StrEnum):
    """Pages whose bodies are stored: none, HTML, or all."""

    OFF = "off"
    HTML = "html"
    ALL = "all"


class RenderMode(StrEnum):
    """Pages whose scripts are run: none, pages that are empty without them, or all."""

    NEVER = "never"
    AUTO = "auto"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRule:
    """Rendering mode for URLs that contain `match` (`model/render_rules.py`)."""

    match: str
    # None if an invalid definition omits it.
    mode: RenderMode | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a user can give. `name` is the name of its field.

    `about` is the comment in a definition, with an `example` if the default explains too little.
    `option` has the form of a help line, `--delay TIME  per host (1s)`. A switch without a value
    inverts the default.
    """

    default: Any
    key: str
    # Unset attributes follow from the default.
    kind: ValueKind = "text"
    # Value for each word that a user can give.
    words: Mapping[str, Any] = field(default_factory=dict)
    bounds: tuple[int, int] | None = None
    # Whether it may change while the crawl runs, and whether its value is never shown.
    editable: bool = False
    secret: bool = False
    name: str = ""
    about: str = ""
    option: str = ""
    example: str = ""

    def said(self, about: str = "", option: str = "", example: str = "") -> Any:
        """Declare it as a dataclass field with these texts."""
        whole = replace(self, about=about, option=option, example=example)
        return field(default=self.default, repr=not self.secret, metadata={"setting": whole})

    @property
    def flag(self) -> str:
        """Name of its option, `--max-pages`. Empty if it has none."""
        return self.option.partition("  ")[0].partition(" ")[0]

    @property
    def metavar(self) -> str:
        """Placeholder of its option's value. Empty for switches and settings with `words`."""
        return self.option.partition("  ")[0].partition(" ")[2]

    @property
    def help(self) -> str:
        """Help text of its option."""
        return self.option.partition("  ")[2]

    @property
    def argument(self) -> str:
        """Name of its option in Python, `max_pages`."""
        return self.flag.lstrip("-").replace("-", "_")


def settings_of(kind: type) -> tuple[Setting, ...]:
    """Return the settings of a dataclass in field order."""
    declared = ((one.name, one.metadata["setting"]) for one in fields(kind) if one.metadata)
    return tuple(replace(said, name=name, **_usual(said)) for name, said in declared)


def _usual(said: Setting) -> dict[str, Any]:
    """Derive kind and words of a setting from its default, if it does not declare them."""
    default = said.default
    if isinstance(default, StrEnum):
        return {"kind": "word", "words": {str(word): word for word in type(default)}}
    kinds = {bool: "switch", int: "number", tuple: "texts"}
    return {"kind": kinds.get(type(default), "text")} if said.kind == "text" else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """Settings of a crawl for all rooms. None means that the start of the crawl decides."""

    name: str | None = Setting(None, "name").said(
        "Runs of one name share what they have seen; default: the host of the first seed.",
        "--name  runs of one name share what they have seen; default: the first host",
        example='"my-site"',
    )
    seeds: tuple[str, ...] = Setting((), "seeds").said(
        "Where to begin; edit this.", example='["https://example.com/"]'
    )
    sitemap_urls: tuple[str, ...] = Setting((), "sitemaps").said(
        "Sitemaps to begin with, beside seeds or instead of them.",
        "--sitemap URL  begin with a sitemap, too, or with it alone; may be repeated",
        example='["https://example.com/sitemap.xml"]',
    )
    express: bool = Setting(False, "priority", "word", words=PRIORITIES).said(
        '"high" goes past other crawls.', "--priority high  past other crawls"
    )
    scope: Scope = Setting(Scope.HOST, "scope.links").said(
        'Links that belong: on their page\'s "host", its "domain", below a seed\'s folder'
        ' ("prefix"), "any".',
        "--scope  links that belong: those on their page's host (default), on any host of its"
        " domain, below a seed's folder, or any",
    )
    # Regular expressions that links must match, or must not match.
    include: tuple[str, ...] = Setting((), "scope.include", editable=True).said(
        "Of these only what one of some regular expressions is found in; and never what one"
        " of others is.",
        "--include RE  links that match this regular expression only; may be repeated",
        example='["/articles/"]',
    )
    exclude: tuple[str, ...] = Setting((), "scope.exclude", editable=True).said(
        option="--exclude RE  no links that match this one; may be repeated",
        example="[\"/login\", '\\.pdf$']",
    )
    sitemaps: bool = Setting(True, "scope.robots_sitemaps").said(
        "Whether the sitemaps are read that robots.txt names.",
        "--no-sitemaps  pass over the sitemaps that robots.txt names",
    )
    depth_max: int = Setting(20, "limits.depth", bounds=(0, 1_000), editable=True).said(
        "Links from a seed.", "--max-depth N  links from a seed (20)"
    )
    pages_max: int | None = Setting(
        None, "limits.pages", "number", bounds=(1, 100_000_000), editable=True
    ).said(
        "URLs, exactly; without it about a million.",
        "--max-pages N  never more URLs than this",
        example="1000",
    )
    # frontier/kind_scores.py orders the links.
    stop_when_nothing_new: bool = Setting(
        False, "limits.stop_when_nothing_new", editable=True
    ).said(
        "Whether it ends as soon as all links that are left are of kinds that bring next to nothing"
        " new;\nwith a limit of pages of up to 100,000.",
        "--stop-when-nothing-new  end as soon as all links that are left are of kinds that bring"
        " next to nothing new; with --max-pages of up to 100,000",
    )
    host_pages_max: int | None = Setting(
        None, "limits.host_pages", "number", bounds=(1, 100_000_000), editable=True
    ).said(
        "URLs of each host; the others go on.",
        "--max-host-pages N  never ask for more URLs of one host than this",
        example="500",
    )
    duration_max_s: int = Setting(
        WEEK_S, "limits.duration", "seconds", bounds=(60, WEEK_S), editable=True
    ).said("Time from the start; a week at most.", "--duration TIME  never longer than this (7d)")
    bytes_max: int | None = Setting(
        None, "limits.bytes", "bytes", bounds=(100_000, 10**15), editable=True
    ).said(
        "What bodies may come to, all together.",
        "--max-bytes SIZE  never receive more than this",
        example='"10GB"',
    )
    # One visit of a host costs at most a tenth of a cent.
    nanodollars_max: int | None = Setting(
        None, "limits.dollars", "nanodollars", bounds=(NANO // 100, 1_000_000 * NANO), editable=True
    ).said(
        "What the crawl may cost on AWS, by an estimate from list prices.",
        "--max-dollars $  never spend more on AWS than this, by an estimate",
        example="5",
    )
    delay_ms: int = Setting(
        1_000, "politeness.delay", "milliseconds", bounds=(0, 86_400_000), editable=True
    ).said(
        "Between two requests to a host. robots.txt may ask for more, and gets it.",
        "--delay TIME  per host (1s)",
    )
    concurrency: int | None = Setting(
        None, "politeness.concurrency", "number", bounds=(1, 64), editable=True
    ).said(
        "Requests to a host at a time; 1, without a delay 16.",
        "--concurrency N  per host; 1, without delay 16",
        example="2",
    )
    obey_robots: bool = Setting(True, "politeness.robots").said(
        "Whether robots.txt is obeyed; false only on sites of your own.",
        "--ignore-robots  only on sites of your own",
    )
    obey_nofollow: bool = Setting(True, "politeness.nofollow").said(
        "Whether links are left alone that a link, page or header asks not to follow; false only on"
        " sites\nof your own.",
        "--ignore-nofollow  follow links that ask not to be followed; only on sites of your own",
    )
    # Each host sees one of them (model/user_agent.py).
    user_agents: tuple[str, ...] = Setting((), "identity.user_agents").said(
        "Who asks; of several each host sees one. Default: the stack's own.",
        "--user-agent AGENT  who asks; given several times, each host sees one of them",
        example='["my-crawler/1.0 (+https://example.com/bot)"]',
    )
    headers: Headers = Setting((), "identity.headers", "headers", secret=True).said(
        "Sent along; what may be a secret to the seeds' own origins only.",
        "--header 'NAME: VALUE'  sent along; what may be a secret to the seeds' own origins only",
        example='{ "Accept-Language" = "de" }',
    )
    # fetching/cookies.py
    cookies: bool = Setting(False, "identity.cookies").said(
        "Whether cookies that a site sets are sent back to it, within the crawl.",
        "--cookies  send cookies that a site sets back to it, within the crawl",
    )
    # By origin. Sent only there, with priority over `headers`.
    host_headers: HostHeaders = Setting((), "identity.hosts", "host_headers", secret=True).said(
        "Headers for one host alone: for example an API key. A host is its https origin, if"
        " no seed says\notherwise.",
        example='{ "api.example.com" = { headers = { "X-Api-Key" = "key" } } }',
    )
    proxied: bool = Setting(True, "identity.proxies").said(
        "Whether to ask through the proxies, where the stack has any.",
        "--proxies no  ask past the stack's proxies",
    )
    window_s: int = Setting(WEEK_S, "dedup.window", "seconds", bounds=(0, 366 * 86_400)).said(
        'What a run of the same name has seen within this time is not asked for again; "0s":'
        " all is.",
        "--window TIME  ask again for what was seen before this long (7d); 0s: for all",
    )
    canonical_only: bool = Setting(False, "records.canonical").said(
        "Whether pages are left out that name another one as canonical; that one is asked for.",
        "--canonical  leave out pages that name another one as canonical; that one is asked for",
    )
    noindex_skipped: bool = Setting(
        False, "records.noindex", "word", words={"record": False, "skip": True}
    ).said(
        'Pages that ask not to be indexed: "record" marks them, "skip" leaves them out.',
        "--noindex  pages that ask not to be indexed: mark them (default), or leave them out",
    )
    bodies: Bodies = Setting(Bodies.HTML, "records.bodies", editable=True).said(
        'Whose bodies are stored: those of "html" pages, of "all" there is (which is fetched'
        ' then), "off".',
        "--bodies  whose bodies are stored: those of HTML pages (default), of all there is,"
        " or of none",
    )
    texts: bool = Setting(False, "records.text", editable=True).said(
        "Whether the main text of pages is kept, as text and as Markdown.",
        "--text  keep the main text of pages, also as Markdown",
    )
    redacted: tuple[str, ...] = Setting((), "records.redact", "pii_kinds", editable=True).said(
        'What is taken out of pages before they are stored: "email" addresses, "phone" numbers.',
        "--redact  take these out of pages before they are stored; may be repeated",
        example='["email", "phone"]',
    )
    render: RenderMode = Setting(RenderMode.NEVER, "render.mode", editable=True).said(
        'Whose scripts are run, in a browser without a network: "never", "auto" (of pages that are'
        ' empty\nwithout them), "always". Where there is a browser.',
        "--render  whose scripts are run, in a browser without a network: of no page (default), of"
        " those that are empty without them, of all; where there is a browser",
    )
    screenshots: bool = Setting(False, "render.screenshot", editable=True).said(
        "Whether a picture of each page whose scripts are run is stored beside its body.",
        "--screenshot  store a picture of pages whose scripts are run, beside their bodies",
    )
    # By page URL, with priority over the mode.
    render_rules: tuple[RenderRule, ...] = Setting(
        (), "render.rules", "render_rules", editable=True
    ).said()
    webhook: str | None = Setting(None, "notify.webhook", secret=True).said(
        "Who is told when a run has ended; needs a stack with a webhook_secret.",
        example='"https://example.com/hooks/crawled"',
    )
    # Settings for some URLs of the crawl, and extraction rules.
    rules: tuple[UrlRule, ...] = Setting((), "rules", "url_rules", editable=True).said()
    items: tuple[ItemRule, ...] = Setting((), "items", "item_rules", editable=True).said()
