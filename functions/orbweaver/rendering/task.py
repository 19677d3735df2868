"""Define rendering tasks and results as values, and the port that answers requests.

The page's document was fetched before, so the browser never requests it. Failures are values, too:
`NotRendered` contains the reason why a page was not rendered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Protocol, TypeAlias

from orbweaver.model.http_exchange import Headers
from orbweaver.model.value import value_class

# Maximum time until a started browser answers.
START_S = 20.0


class RequestRefusal(StrEnum):
    """Reason why a request of a page is not answered."""

    SCHEME = "scheme"
    METHOD = "method"
    THIRD_PARTY = "third_party"
    TRACKER = "tracker"
    POPUP = "popup"
    SERVICE_WORKER = "service_worker"
    REQUESTS = "requests"
    BYTES = "bytes"


class RenderCut(StrEnum):
    """Limit that stopped a rendering. The page is then read in its current state."""

    TIME = "time"
    REQUESTS = "requests"
    NAVIGATIONS = "navigations"
    POPUPS = "popups"
    HTML = "html"


class RenderFailure(StrEnum):
    """Reason why a page could not be rendered."""

    BUSY = "busy"
    START = "start"
    CRASHED = "crashed"
    BROWSER_GONE = "browser_gone"
    NO_ANSWER = "no_answer"


@value_class
class RenderLimits:
    """Limits for rendering a page. `bytes_max` counts decoded bodies of responses."""

    total_s: float = 20.0
    # Additional time while all open requests wait for their hosts.
    waiting_s: float = 60.0
    # Time to read the page after the rendering has ended.
    reading_s: float = 4.0
    requests_max: int = 80
    # Maximum number of all paused requests, answered or refused. A page that exceeds it is stopped.
    paused_max: int = 1_000
    bytes_max: int = 12 * 1024 * 1024
    html_chars_max: int = 8_000_000
    navigations_max: int = 3
    popups_max: int = 20
    # Interval between checks of a page that has not loaded. If two checks find it idle, it counts
    # as loaded.
    idle_s: float = 1.0
    quiet_s: float = 0.15
    quiet_s_max: float = 2.0
    grants_max: int = 3
    grant_ms: int = 3_000
    # Limit for all processes of a browser together, checked twice a second. Allocations between two
    # checks can exceed it.
    memory_bytes_max: int = 700_000_000
    # Limit for one process, enforced by the kernel. The process of an empty page has 150 MB.
    process_bytes_max: int = 450_000_000
    pages_max: int = 100
    tabs: int = 4

    @property
    def page_s_max(self) -> float:
        """Maximum total time of a page: browser start, opening, rendering, waiting and reading."""
        return START_S + self.total_s + self.total_s + self.waiting_s + self.reading_s


@value_class
class RenderRules:
    """Requests that are loaded in addition to the default rules (rendering/paused_requests.py)."""

    # Resource types to load that are answered empty by default: `image`, `font`, `media`.
    load: frozenset[str] = frozenset()
    # Other sites whose documents and XHR are loaded. Scripts and styles of all sites are loaded.
    third_party: frozenset[str] = frozenset()


@value_class
class ResourceRequest:
    """A request that a page sends. `kind` is the browser's resource type in lower case."""

    url: str
    kind: str
    method: str = "GET"
    headers: Headers = ()


@value_class
class ResourceAnswer:
    """A response to a page's request, with a decoded body."""

    status: int
    headers: Headers = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)


@value_class
class ResourceRefused:
    """A refused request, with a short reason for the counters."""

    reason: str


class ResourceLoader(Protocol):
    """Answers the requests of a page. It is the browser's only access to the web."""

    # Number of open requests that wait because their host allows no request yet. While all open
    # requests of a page wait for that, the page's deadline is extended.
    waiting: int

    async def load(self, request: ResourceRequest) -> ResourceAnswer | ResourceRefused:
        """Send one request without following redirects. A failing server raises no exception."""


@value_class
class RenderTask:
    """A page to render: its URL, its fetched response, and its clock."""

    url: str
    document: ResourceAnswer
    rules: RenderRules = field(default_factory=RenderRules)
    # Time in ms at which the clock of the page's scripts starts.
    now_ms: int = 1_767_225_600_000
    user_agent: str | None = None
    screenshot: bool = False
    # Maximum time to wait before the page is started, or started again. None: no limit.
    wait_s: float | None = None


@value_class
class RenderCounts:
    """Numbers of a page's requests by result, without the request for its document."""

    asked: int = 0
    cached: int = 0
    emptied: int = 0
    bytes: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)


@value_class
class Rendered:
    """The result for a rendered page. `popups` are the URLs of new windows."""

    html: bytes = field(repr=False)
    counts: RenderCounts
    # URLs that the page's scripts tried to navigate to.
    navigations: tuple[str, ...] = ()
    # True if the page navigated away before it had loaded.
    redirected: bool = False
    popups: tuple[str, ...] = ()
    cut: RenderCut | None = None
    screenshot: bytes | None = field(default=None, repr=False)


@value_class
class NotRendered:
    """The result for a page that could not be rendered.

    `reason` is the cause, and `detail` explains it in words.
    """

    reason: RenderFailure
    detail: str = ""
    counts: RenderCounts = field(default_factory=RenderCounts)


RenderResult: TypeAlias = Rendered | NotRendered


class PageRenderer(Protocol):
    """Renders pages. Implemented by `Renderer`."""

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        """Render a page. Raises exceptions of the loader."""
