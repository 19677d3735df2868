"""Declare the settings of a crawl: default, key, option, bounds and help of each.

Each field that a user can set has a `Setting`. The keys of crawl.toml, the API schema, the
validation, the options and the stored form follow from it. Settings needed only at the start of a
crawl are declared in control/crawl_spec.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from orbweaver.model.amounts import NANO, duration_text, size_text
from orbweaver.model.value import positional_value_class, value_class

if TYPE_CHECKING:
    from orbweaver.model.api_source import ApiSource
    from orbweaver.model.auth import OriginAuth
    from orbweaver.model.http_exchange import Headers, HostHeaders
    from orbweaver.model.item_rules import ItemRule
    from orbweaver.model.url_rules import UrlRule

# Type of a setting's value. Definitions, options and the API can write a value differently.
_Plain: TypeAlias = Literal["text", "texts", "number", "switch", "word", "headers", "pii_kinds"]
_Amount: TypeAlias = Literal["milliseconds", "seconds", "bytes", "nanodollars"]
_Rules: TypeAlias = Literal["url_rules", "item_rules", "render_rules"]
ValueKind: TypeAlias = (
    _Plain | _Amount | _Rules | Literal["host_headers", "host_access", "auth", "apis"]
)
# Formats the bounds of a setting, and values beyond them, for messages.
WRITTEN: Mapping[str, Callable[[int], str]] = {
    "number": "{:,}".format,
    "bytes": size_text,
    "milliseconds": duration_text,
    "seconds": lambda span_s: duration_text(span_s * 1_000),
    "nanodollars": lambda amount: f"{Decimal(amount) / NANO:,f}",
}
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


class Referer(StrEnum):
    """Referer of requests: none, or the page with the link (model/host_access.py)."""

    OFF = "off"
    PAGE = "page"


class RenderMode(StrEnum):
    """Pages whose scripts are run: none, pages that are empty without them, or all."""

    NEVER = "never"
    AUTO = "auto"
    ALWAYS = "always"


@value_class
class RenderRule:
    """Rendering mode for URLs that contain `match` (`model/render_rules.py`)."""

    match: str
    # None if an invalid definition omits it.
    mode: RenderMode | None = None


@value_class
class HostAccess:
    """Values for the requests to one origin (`model/host_access.py`). None: the crawl's apply."""

    origin: str
    timeout_ms: int | None = None
    retries: int | None = None
    referer: Referer | None = None


@positional_value_class
class Setting:
    """A setting that a user can give. `name` is the name of its field.

    `about` is the comment in a definition, with an `example` if the default explains too little.
    `option` has the form of a help line, `--delay TIME  per host (1s)`. A switch without a value
    inverts the default.
    """

    default: Any
    key: str
    # If unset, kind and words follow from the default.
    kind: ValueKind = "text"
    # Value for each word that a user can give.
    words: Mapping[str, Any] = field(default_factory=dict)
    bounds: tuple[int, int] | None = None
    # Whether the value can be edited while the crawl runs, and whether it is never shown.
    editable: bool = False
    secret: bool = False
    name: str = ""
    about: str = ""
    option: str = ""
    example: str = ""

    def as_field(self, about: str = "", option: str = "", example: str = "") -> Any:
        """Return a dataclass field for this setting, with these texts."""
        whole = replace(self, about=about, option=option, example=example)
        return field(default=self.default, repr=not self.secret, metadata={"setting": whole})

    def problem_of(self, value: int | None) -> str | None:
        """Return a message with the fix if `value` is beyond the bounds, else None."""
        if self.bounds is None or value is None or self.bounds[0] <= value <= self.bounds[1]:
            return None
        given, low, high = map(WRITTEN[self.kind], (value, *self.bounds))
        unit = " dollars" if self.kind == "nanodollars" else ""
        return f"{given.replace(',', '')} does not fit: give {low} to {high}{unit}"

    @property
    def flag(self) -> str:
        """Name of the setting's option, such as `--max-pages`. Empty if it has none."""
        return self.option.partition("  ")[0].partition(" ")[0]

    @property
    def metavar(self) -> str:
        """Placeholder of the option's value. Empty for switches and settings with `words`."""
        return self.option.partition("  ")[0].partition(" ")[2]

    @property
    def help(self) -> str:
        return self.option.partition("  ")[2]

    @property
    def argument(self) -> str:
        """Name of the setting's option in Python, such as `max_pages`."""
        return self.flag.lstrip("-").replace("-", "_")


def settings_of(kind: type) -> tuple[Setting, ...]:
    declared = ((one.name, one.metadata["setting"]) for one in fields(kind) if one.metadata)
    return tuple(replace(said, name=name, **_derived(said)) for name, said in declared)


def _derived(said: Setting) -> dict[str, Any]:
    """Derive kind and words of a setting from its default, if it does not declare them."""
    default = said.default
    if isinstance(default, StrEnum):
        return {"kind": "word", "words": {str(word): word for word in type(default)}}
    kinds = {bool: "switch", int: "number", tuple: "texts"}
    return {"kind": kinds.get(type(default), "text")} if said.kind == "text" else {}


@value_class
class CrawlSettings:
    """Settings of a crawl. None: the value is decided when the crawl starts."""

    name: str | None = Setting(None, "name").as_field(
        "Runs with the same name share which URLs they have seen. Default: the host of "
        "the first seed.",
        "--name  runs with the same name share which URLs they have seen; default: the first host",
        example='"my-site"',
    )
    seeds: tuple[str, ...] = Setting((), "seeds").as_field(
        "URLs to start from. Edit this.",
        example='["https://example.com/"]',
    )
    sitemap_urls: tuple[str, ...] = Setting((), "sitemaps").as_field(
        "Sitemaps to start from, in addition to seeds or instead of them.",
        "--sitemap URL  start from this sitemap, with or without seeds; may be repeated",
        example='["https://example.com/sitemap.xml"]',
    )
    express: bool = Setting(False, "priority", "word", words=PRIORITIES).as_field(
        '"high": before other crawls.',
        "--priority high  before other crawls",
    )
    scope: Scope = Setting(Scope.HOST, "scope.links").as_field(
        'Links to follow: on their page\'s "host", its "domain", below a seed\'s folder '
        '("prefix"), or "any".',
        "--scope  links to follow: on their page's host (default), on any host of its "
        "domain, below a seed's folder, or any",
    )
    # Regular expressions that links must match, or must not match. `exclude` has priority.
    # `include` does not apply to seeds and their redirects, because a user named them. Neither
    # applies to sitemaps, only to their entries.
    include: tuple[str, ...] = Setting((), "scope.include", editable=True).as_field(
        "Regular expressions: follow only links that match one of include and none of exclude.",
        "--include RE  follow only links that match this regular expression; may be repeated",
        example='["/articles/"]',
    )
    exclude: tuple[str, ...] = Setting((), "scope.exclude", editable=True).as_field(
        option="--exclude RE  do not follow links that match this regular expression; may be "
        "repeated",
        example="[\"/login\", '\\.pdf$']",
    )
    sitemaps: bool = Setting(True, "scope.robots_sitemaps").as_field(
        "Whether to read the sitemaps that robots.txt names.",
        "--no-sitemaps  do not read the sitemaps that robots.txt names",
    )
    depth_max: int = Setting(20, "limits.depth", bounds=(0, 1_000), editable=True).as_field(
        "Maximum number of links from a seed.",
        "--max-depth N  maximum number of links from a seed (20)",
    )
    pages_max: int | None = Setting(
        None, "limits.pages", "number", bounds=(1, 100_000_000), editable=True
    ).as_field(
        "Maximum number of URLs, never exceeded. Default: about a million.",
        "--max-pages N  maximum number of URLs, never exceeded",
        example="1000",
    )
    # frontier/kind_scores.py orders the links.
    stop_when_nothing_new: bool = Setting(
        False, "limits.stop_when_nothing_new", editable=True
    ).as_field(
        "Whether to end as soon as all remaining links are of kinds that bring next to "
        "nothing new.\nNeeds pages of at most 100,000.",
        "--stop-when-nothing-new  end as soon as all remaining links are of kinds that "
        "bring next to nothing new; needs --max-pages of at most 100,000",
    )
    host_pages_max: int | None = Setting(
        None, "limits.host_pages", "number", bounds=(1, 100_000_000), editable=True
    ).as_field(
        "Maximum number of URLs per host. Other hosts continue.",
        "--max-host-pages N  maximum number of URLs per host",
        example="500",
    )
    duration_max_s: int = Setting(
        WEEK_S, "limits.duration", "seconds", bounds=(60, WEEK_S), editable=True
    ).as_field(
        "Maximum time from the start, at most a week.",
        "--duration TIME  maximum time from the start (7d)",
    )
    bytes_max: int | None = Setting(
        None, "limits.bytes", "bytes", bounds=(100_000, 10**15), editable=True
    ).as_field(
        "Maximum total size of received bodies.",
        "--max-bytes SIZE  maximum total size of received bodies",
        example='"10GB"',
    )
    # One visit of a host costs at most a tenth of a cent.
    nanodollars_max: int | None = Setting(
        None, "limits.dollars", "nanodollars", bounds=(NANO // 100, 1_000_000 * NANO), editable=True
    ).as_field(
        "Maximum cost on AWS, estimated from list prices.",
        "--max-dollars $  maximum cost on AWS, estimated from list prices",
        example="5",
    )
    delay_ms: int = Setting(
        1_000, "politeness.delay", "milliseconds", bounds=(0, 86_400_000), editable=True
    ).as_field(
        "Time between two requests to a host. A longer delay in robots.txt is obeyed.",
        "--delay TIME  time between two requests to a host (1s)",
    )
    concurrency: int | None = Setting(
        None, "politeness.concurrency", "number", bounds=(1, 64), editable=True
    ).as_field(
        "Concurrent requests per host. Default: 1, or 16 without a delay.",
        "--concurrency N  concurrent requests per host (1; 16 per process without a delay)",
        example="2",
    )
    obey_robots: bool = Setting(True, "politeness.robots").as_field(
        "Whether to obey robots.txt. Set false only for your own sites.",
        "--ignore-robots  do not obey robots.txt; only for your own sites",
    )
    obey_nofollow: bool = Setting(True, "politeness.nofollow").as_field(
        "Whether to obey nofollow of links, pages and headers. Set false only for your own sites.",
        "--ignore-nofollow  follow nofollow links; only for your own sites",
    )
    # Each host sees one of them (model/user_agent.py).
    user_agents: tuple[str, ...] = Setting((), "identity.user_agents").as_field(
        "User agent. If there are several, each host sees one of them. Default: the stack's.",
        "--user-agent AGENT  user agent; if repeated, each host sees one of them",
        example='["my-crawler/1.0 (+https://example.com/bot)"]',
    )
    headers: Headers = Setting((), "identity.headers", "headers", secret=True).as_field(
        "Request headers. A header that may be secret is sent only to the origins of the seeds.",
        "--header 'NAME: VALUE'  request header; if it may be secret, sent only to the "
        "origins of the seeds",
        example='{ "Accept-Language" = "de" }',
    )
    # See fetching/cookies.py.
    cookies: bool = Setting(False, "identity.cookies").as_field(
        "Whether to send a site's cookies back to it, within the crawl.",
        "--cookies  send a site's cookies back to it, within the crawl",
    )
    # Headers by origin. They are sent only to this origin, with priority over `headers`.
    host_headers: HostHeaders = Setting((), "identity.hosts", "host_headers", secret=True).as_field(
        "Headers for one host, for example an API key. A host means its https origin, "
        "unless a seed has only\nits http origin.",
        example='{ "api.example.com" = { headers = { "X-Api-Key" = "key" } } }',
    )
    proxied: bool = Setting(True, "identity.proxies").as_field(
        "Whether to use proxies, if there are any.",
        "--proxies no  request directly, without the proxies of the stack or environment",
    )
    ca_bundle: str | None = Setting(None, "network.ca_bundle").as_field(
        "File with certificate authorities, in addition to the system's. Not for a stack.",
        "--ca-bundle FILE  certificate authorities, in addition to the system's",
        example='"company-ca.pem"',
    )
    # As secret headers: sent only to the origins of the seeds.
    client_cert: str | None = Setting(None, "network.client_cert").as_field(
        'Client certificate, "FILE" or "FILE:KEY". Used only at the origins of the seeds. Not for a'
        " stack.",
        "--client-cert FILE[:KEY]  client certificate; used only at the origins of the seeds",
        example='"client.pem:client.key"',
    )
    insecure_hosts: tuple[str, ...] = Setting((), "network.insecure").as_field(
        "Hosts whose certificates are not verified.",
        "--insecure HOST  do not verify the certificate of this host; may be repeated",
        example='["test.example.com"]',
    )
    # The maximum fits into an invocation of a stack's worker.
    timeout_ms: int | None = Setting(
        None, "network.timeout", "milliseconds", bounds=(1_000, 60_000)
    ).as_field(
        "Maximum time of a request. Default: 20 s, and at most 10 s without data.",
        "--timeout TIME  maximum time of a request (20s, and at most 10s without data)",
        example='"60s"',
    )
    retries: int | None = Setting(None, "network.retries", "number", bounds=(0, 10)).as_field(
        "Maximum number of further attempts at a URL after a temporary failure. Default: 3.",
        "--retries N  maximum number of further attempts at a URL after a temporary failure (3)",
        example="2",
    )
    referer: Referer = Setting(Referer.OFF, "network.referer").as_field(
        'Referer of requests: "off", or "page": the page with the link, for another origin only '
        "its origin.",
        "--referer  Referer of requests: none (default), or the page with the link",
    )
    # Values by origin, with priority over the values of the crawl.
    host_access: tuple[HostAccess, ...] = Setting((), "network.hosts", "host_access").as_field(
        "timeout, retries and referer for one host. A host means its https origin, unless a seed "
        "has only\nits http origin.",
        example='{ "slow.example.com" = { timeout = "60s", retries = 1 } }',
    )
    window_s: int = Setting(WEEK_S, "dedup.window", "seconds", bounds=(0, 366 * 86_400)).as_field(
        "URLs that a run of this name saw within this time are not requested again. "
        '"0s" requests all.',
        "--window TIME  do not request URLs again that were seen within this time "
        "(7d); 0s: request all",
    )
    canonical_only: bool = Setting(False, "records.canonical").as_field(
        "Whether to omit pages that name another URL as canonical. That URL is requested instead.",
        "--canonical  omit pages that name another URL as canonical, and request that URL",
    )
    noindex_skipped: bool = Setting(
        False, "records.noindex", "word", words={"record": False, "skip": True}
    ).as_field(
        'Pages with noindex: "record" marks them, "skip" omits them.',
        "--noindex  pages with noindex: mark them (default), or omit them",
    )
    bodies: Bodies = Setting(Bodies.HTML, "records.bodies", editable=True).as_field(
        'Bodies to store: of "html" pages, of "all" responses (fetches other types, '
        'too), or "off".',
        "--bodies  bodies to store: of HTML pages (default), of all responses, or none",
    )
    status_only: bool = Setting(False, "records.status_only").as_field(
        "Whether to request only the status of each URL: by HEAD, or by GET if the server refuses "
        "HEAD.",
        "--status-only  request only the status of each URL, by HEAD or else by GET; read no page",
    )
    texts: bool = Setting(False, "records.text", editable=True).as_field(
        "Whether to store the main text of pages, as text and Markdown.",
        "--text  store the main text of pages, as text and Markdown",
    )
    links: bool = Setting(False, "records.links", editable=True).as_field(
        "Whether to store the links of pages, for the table of links.",
        "--links  store the links of pages, for the table of links",
    )
    redacted: tuple[str, ...] = Setting((), "records.redact", "pii_kinds", editable=True).as_field(
        'Data to redact in pages before they are stored: "email" addresses, "phone" numbers.',
        "--redact  redact this in pages before they are stored; may be repeated",
        example='["email", "phone"]',
    )
    render: RenderMode = Setting(RenderMode.NEVER, "render.mode", editable=True).as_field(
        'Pages whose scripts run, in a browser without a network: "never", "auto" '
        '(pages that are empty\nwithout scripts), "always". Needs a browser.',
        "--render  pages whose scripts run, in a browser without a network: none "
        "(default), pages that are empty without scripts, or all; needs a browser",
    )
    screenshots: bool = Setting(False, "render.screenshot", editable=True).as_field(
        "Whether to store a screenshot of each rendered page.",
        "--screenshot  store a screenshot of each rendered page",
    )
    # Rendering modes by page URL, with priority over `render`.
    render_rules: tuple[RenderRule, ...] = Setting(
        (), "render.rules", "render_rules", editable=True
    ).as_field()
    webhook: str | None = Setting(None, "notify.webhook", secret=True).as_field(
        "URL that is notified when a run has ended. Needs a stack with a webhook_secret.",
        example='"https://example.com/hooks/crawled"',
    )
    # How the crawl logs in, by origin, with references to secrets (model/auth.py).
    auth: tuple[OriginAuth, ...] = Setting((), "auth", "auth", secret=True).as_field(
        option="--auth ORIGIN=HOW  log in at this origin: basic:USER:SECRET, bearer:SECRET, "
        "header:NAME:SECRET or cookies:SECRET, where SECRET is env:NAME, file:PATH, secret:NAME "
        "or ssm:NAME; may be repeated",
    )
    # APIs whose pages the crawl requests one after the other (model/api_source.py).
    apis: tuple[ApiSource, ...] = Setting((), "api", "apis").as_field()
    # Settings for some URLs of the crawl, and extraction rules.
    rules: tuple[UrlRule, ...] = Setting((), "rules", "url_rules", editable=True).as_field()
    items: tuple[ItemRule, ...] = Setting((), "items", "item_rules", editable=True).as_field()


# Settings whose bounds also apply to the values of one host.
HOST_BOUNDS = tuple(
    one for one in settings_of(CrawlSettings) if one.name in ("timeout_ms", "retries")
)
