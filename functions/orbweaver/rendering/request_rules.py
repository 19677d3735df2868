"""Which requests of a page are asked for, answered empty, or refused.

By the first rule that fits:

1. Schemes but http and https are refused, and whatever new windows and service workers ask for.
2. A page stays where it is: other documents for its main frame are noted, not asked for.
3. Beacons, reports and prefetches are answered empty, and so are images, fonts and media, unless
   the rules of a crawl have them loaded.
4. A crawler presses no buttons: methods but GET and HEAD are refused. A question of the browser's
   own whether it may ask another origin (a preflight) is answered here, if what it asks for would
   be asked.
5. Of the page's own site documents, scripts, styles and XHR are asked for; of other sites scripts
   and styles, and the rest where the rules name the site. Trackers are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from orbweaver.model.http_exchange import Headers
from orbweaver.model.registrable_domain import site_of
from orbweaver.model.url import hostname_of
from orbweaver.rendering.task import RenderRules, RequestRefusal, ResourceRequest

METHODS = frozenset({"GET", "HEAD"})
_NOTHING = frozenset({"ping", "cspviolationreport", "prefetch", "manifest", "signedexchange"})
_NOTHING |= {"eventsource", "fedcm", "texttrack"}
_LOADABLE = frozenset({"image", "font", "media"})
_ANYWHERE = frozenset({"script", "stylesheet"})
CACHED = _ANYWHERE
# Sites of advertisements and measurements, which add nothing to a page's text.
TRACKERS = frozenset(
    (
        *("2mdn.net", "adnxs.com", "adsrvr.org", "amazon-adsystem.com", "amplitude.com"),
        *("bing.com", "bluekai.com", "branch.io", "chartbeat.com", "chartbeat.net"),
        *("clarity.ms", "cloudflareinsights.com", "criteo.com", "criteo.net", "crwdcntrl.net"),
        *("demdex.net", "doubleclick.net", "everesttech.net", "facebook.net", "fullstory.com"),
        *("google-analytics.com", "googleadservices.com", "googlesyndication.com"),
        *("googletagmanager.com", "googletagservices.com", "heapanalytics.com", "hotjar.com"),
        *("hotjar.io", "krxd.net", "licdn.com", "matomo.cloud", "mixpanel.com", "moatads.com"),
        *("mouseflow.com", "newrelic.com", "nr-data.net", "omtrdc.net", "openx.net"),
        *("outbrain.com", "parsely.com", "pubmatic.com", "quantserve.com"),
        *("rubiconproject.com", "scorecardresearch.com", "segment.com", "segment.io"),
        *("sentry-cdn.com", "sentry.io", "taboola.com", "yandex-team.ru", "zemanta.com"),
    )
)
# The smallest transparent image: scripts that wait for images go on.
_PIXEL = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c000000000100010000020144003b"
)


class Handling(StrEnum):
    """What is done with a request, beside refusing it."""

    ASK = "ask"
    EMPTY = "empty"
    STAY = "stay"
    ALLOW = "allow"


Ruling: TypeAlias = Handling | RequestRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrigin:
    """Where in a page a request comes from."""

    page_url: str
    # For the document of the main frame: another one than the page itself.
    leaves: bool = False
    popup: bool = False


def rule(request: ResourceRequest, origin: RequestOrigin, rules: RenderRules) -> Ruling:  # noqa: PLR0911 - a rule each
    """Say what is to be done with a request of a page."""
    kind, url = kind_of(request), request.url
    if not url.startswith(("http://", "https://")):
        return RequestRefusal.SCHEME
    headers = {name.lower() for name, _ in request.headers}
    if "service-worker" in headers:
        return RequestRefusal.SERVICE_WORKER
    if origin.popup:
        return RequestRefusal.POPUP
    if origin.leaves:
        return Handling.STAY
    if kind in _NOTHING or (kind in _LOADABLE and kind not in rules.load):
        return Handling.EMPTY
    # No script can set this header.
    wanted = dict(request.headers).get("Access-Control-Request-Method")
    if request.method == "OPTIONS" and wanted is not None:
        ruling = rule(ResourceRequest(url=url, kind="xhr", method=wanted), origin, rules)
        return Handling.ALLOW if ruling is Handling.ASK else ruling
    if request.method not in METHODS:
        return RequestRefusal.METHOD
    return _by_site(kind, url, origin.page_url, rules)


def kind_of(request: ResourceRequest) -> str:
    """Return the kind of a request: of icons and streams of events what they accept tells it."""
    accepted = dict(request.headers).get("Accept", "")
    if accepted == "text/event-stream":
        return "eventsource"
    return "image" if request.kind == "other" and accepted.startswith("image/") else request.kind


def _by_site(kind: str, url: str, page_url: str, rules: RenderRules) -> Ruling:
    host, page_host = hostname_of(url), hostname_of(page_url)
    site = site_of(host)
    if host == page_host or site == site_of(page_host):
        return Handling.ASK
    if site in TRACKERS:
        return RequestRefusal.TRACKER
    if kind in _ANYWHERE or kind in rules.load or {host, site} & rules.third_party:
        return Handling.ASK
    return RequestRefusal.THIRD_PARTY


def empty_answer(kind: str) -> tuple[int, Headers, bytes]:
    """Return what a request that is not asked for is answered with: status, headers, body."""
    if kind == "image":
        return 200, (("Content-Type", "image/gif"), ("Access-Control-Allow-Origin", "*")), _PIXEL
    # A stream of events that ends with this status is not asked for again.
    return 204, (("Access-Control-Allow-Origin", "*"),), b""


def preflight_answer(request: ResourceRequest) -> Headers:
    """Return the headers that let a page ask another origin what it wants to."""
    wanted = dict(request.headers)
    return (
        ("Access-Control-Allow-Origin", wanted.get("Origin", "*")),
        ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Allow-Methods", wanted.get("Access-Control-Request-Method", "GET")),
        ("Access-Control-Allow-Headers", wanted.get("Access-Control-Request-Headers", "")),
    )


# Of an answer, what a browser must not act upon, or what is no longer true of a decoded body.
_DROPPED = frozenset(
    {"alt-svc", "clear-site-data", "connection", "content-disposition", "content-encoding"}
    | {"content-length", "link", "nel", "refresh", "report-to", "reporting-endpoints"}
    | {"speculation-rules", "strict-transport-security", "transfer-encoding"}
)


def passed_on(headers: Headers) -> list[dict[str, str]]:
    """Write an answer's headers in the protocol's form, without those that would mislead."""
    return [
        {"name": name, "value": value.encode("utf-8", "replace").decode("utf-8")}
        for name, value in headers
        if name.lower() not in _DROPPED and not {"\r", "\n", "\0"} & {*value}
    ]
