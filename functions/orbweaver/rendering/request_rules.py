"""Decide which requests of a page are loaded, answered empty, or refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from orbweaver.model.http_exchange import Headers
from orbweaver.model.url import hostname_of, site_of
from orbweaver.rendering.task import RenderRules, RequestRefusal, ResourceRequest

METHODS = frozenset({"GET", "HEAD"})
# Resource types that are answered empty: beacons, reports, prefetches and the like.
_NOTHING = frozenset({"ping", "cspviolationreport", "prefetch", "manifest", "signedexchange"})
_NOTHING |= {"eventsource", "fedcm", "texttrack"}
_LOADABLE = frozenset({"image", "font", "media"})
_ANYWHERE = frozenset({"script", "stylesheet"})
CACHED = _ANYWHERE
# Sites for advertising and analytics, which add nothing to a page's text.
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
# The smallest transparent GIF. It answers requests for images that are not loaded, so that scripts
# that wait for images continue.
_PIXEL = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c000000000100010000020144003b"
)


class Handling(StrEnum):
    """How to answer a request that is not refused.

    `ASK`: load it. `EMPTY`: answer with an empty body. `STAY`: record the navigation, and remain on
    the page. `ALLOW`: answer a CORS preflight.
    """

    ASK = "ask"
    EMPTY = "empty"
    STAY = "stay"
    ALLOW = "allow"


Ruling: TypeAlias = Handling | RequestRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrigin:
    """Where a request comes from. `page_url` is the rendered page.

    `popup`: it is from a new window.
    """

    page_url: str
    # True for a document of the main frame that is not the page itself.
    leaves: bool = False
    popup: bool = False


def rule(request: ResourceRequest, origin: RequestOrigin, rules: RenderRules) -> Ruling:  # noqa: PLR0911 - a rule each
    """Decide how a request of a page is answered, or why it is refused.

    From the page's own site, documents, scripts, styles and XHR are loaded. From other sites,
    scripts and styles are loaded, except from trackers. `rules` add images, fonts, media, and
    further sites.
    """
    kind, url = kind_of(request), request.url
    if not url.startswith(("http://", "https://")):
        return RequestRefusal.SCHEME
    headers = {name.lower() for name, _ in request.headers}
    if "service-worker" in headers:
        return RequestRefusal.SERVICE_WORKER
    if origin.popup:
        return RequestRefusal.POPUP
    if origin.leaves:  # the navigation is recorded, not loaded
        return Handling.STAY
    if kind in _NOTHING or (kind in _LOADABLE and kind not in rules.load):
        return Handling.EMPTY
    # A CORS preflight is answered here if the request that it announces would be loaded. Scripts
    # cannot set this header.
    wanted = dict(request.headers).get("Access-Control-Request-Method")
    if request.method == "OPTIONS" and wanted is not None:
        ruling = rule(ResourceRequest(url=url, kind="xhr", method=wanted), origin, rules)
        return Handling.ALLOW if ruling is Handling.ASK else ruling
    # A crawler must not change data.
    if request.method not in METHODS:
        return RequestRefusal.METHOD
    return _by_site(kind, url, origin.page_url, rules)


def kind_of(request: ResourceRequest) -> str:
    """Return the resource type of a request.

    The type of icons and event streams follows from the `Accept` header.
    """
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
    """Return status, headers and body for a request that is answered empty."""
    if kind == "image":
        return 200, (("Content-Type", "image/gif"), ("Access-Control-Allow-Origin", "*")), _PIXEL
    # This status ends an event stream, so that the browser does not reconnect.
    return 204, (("Access-Control-Allow-Origin", "*"),), b""


def preflight_answer(request: ResourceRequest) -> Headers:
    """Return the headers that allow a page's cross-origin request."""
    wanted = dict(request.headers)
    return (
        ("Access-Control-Allow-Origin", wanted.get("Origin", "*")),
        ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Allow-Methods", wanted.get("Access-Control-Request-Method", "GET")),
        ("Access-Control-Allow-Headers", wanted.get("Access-Control-Request-Headers", "")),
    )


# Response headers that a browser must not obey here, or that do not apply to a decoded body.
_DROPPED = frozenset(
    {"alt-svc", "clear-site-data", "connection", "content-disposition", "content-encoding"}
    | {"content-length", "link", "nel", "refresh", "report-to", "reporting-endpoints"}
    | {"speculation-rules", "strict-transport-security", "transfer-encoding"}
)


def passed_on(headers: Headers) -> list[dict[str, str]]:
    """Convert a response's headers to the form of the browser's protocol. Leaves out `_DROPPED`."""
    return [
        {"name": name, "value": value.encode("utf-8", "replace").decode("utf-8")}
        for name, value in headers
        if name.lower() not in _DROPPED and not {"\r", "\n", "\0"} & {*value}
    ]
