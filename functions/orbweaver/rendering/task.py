"""A page to be rendered and its result, as values; and the port that answers its requests.

The document is the answer that was fetched before: a browser never asks for it. Failures are
values, too: `NotRendered` says why a page is left as it was fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from orbweaver.model.http_exchange import Headers

# Until a browser that is started answers, at most.
START_S = 20.0


class RequestRefusal(StrEnum):
    """Why a request of a page is not answered."""

    SCHEME = "scheme"
    METHOD = "method"
    THIRD_PARTY = "third_party"
    TRACKER = "tracker"
    POPUP = "popup"
    SERVICE_WORKER = "service_worker"
    REQUESTS = "requests"
    BYTES = "bytes"


class RenderCut(StrEnum):
    """What broke a rendering off: the page is as it stood then."""

    TIME = "time"
    REQUESTS = "requests"
    NAVIGATIONS = "navigations"
    POPUPS = "popups"
    HTML = "html"


class RenderFailure(StrEnum):
    """Why a page could not be rendered."""

    BUSY = "busy"
    START = "start"
    CRASHED = "crashed"
    BROWSER_GONE = "browser_gone"
    NO_ANSWER = "no_answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderLimits:
    """What rendering a page may take; bytes are those of answers' bodies, decoded."""

    total_s: float = 20.0
    # For requests that wait for their hosts, beside that.
    waiting_s: float = 60.0
    # For reading the page once the time is over.
    reading_s: float = 4.0
    requests_max: int = 80
    # Paused ones, whatever their answer: a page that asks without end is cut.
    paused_max: int = 1_000
    bytes_max: int = 12 * 1024 * 1024
    html_chars_max: int = 8_000_000
    navigations_max: int = 3
    popups_max: int = 20
    # Between two looks at a page that has not loaded: if both find it idle, it never will.
    idle_s: float = 1.0
    quiet_s: float = 0.15
    quiet_s_max: float = 2.0
    grants_max: int = 3
    grant_ms: int = 3_000
    # Of all processes of a browser together, looked at twice a second: what pages take in between
    # comes on top.
    memory_bytes_max: int = 700_000_000
    # Of one process, by the kernel, between two looks too; that of an empty page has 150 MB.
    process_bytes_max: int = 450_000_000
    pages_max: int = 100
    tabs: int = 4

    @property
    def page_s_max(self) -> float:
        """How long a page may take in all: a browser is started, and it opened, shown and read."""
        return START_S + self.total_s + self.total_s + self.waiting_s + self.reading_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRules:
    """What of a page's requests is asked for, beside its own site's text and scripts.

    `load` names kinds that are answered empty otherwise (`image`, `font`, `media`); `third_party`
    the sites whose documents and XHR are asked for, beside scripts and styles of any.
    """

    load: frozenset[str] = frozenset()
    third_party: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest:
    """A request of a page: `kind` in the browser's words, in lower case."""

    url: str
    kind: str
    method: str = "GET"
    headers: Headers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAnswer:
    """An answer to a request of a page; the body is decoded."""

    status: int
    headers: Headers = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRefused:
    """No answer: a short reason, by which it is counted."""

    reason: str


class ResourceLoader(Protocol):
    """What answers the requests of a page: the only way that a browser has to the web.

    `waiting` says how many of them it has not asked for yet, as their host is to be left alone. As
    long as a page waits for nothing else, its time stands.
    """

    waiting: int

    async def load(self, request: ResourceRequest) -> ResourceAnswer | ResourceRefused:
        """Ask once, redirects are not followed; never raises for what a server does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderTask:
    """A page to be rendered: its URL, the answer to it, and the time that it sees."""

    url: str
    document: ResourceAnswer
    rules: RenderRules = field(default_factory=RenderRules)
    # What its scripts read of the clock, when it begins.
    now_ms: int = 1_767_225_600_000
    user_agent: str | None = None
    screenshot: bool = False
    # How long it may wait until it is begun with, or begun with once more; None: however long.
    wait_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderCounts:
    """The requests of a page but for its document, by what they were answered with."""

    asked: int = 0
    cached: int = 0
    emptied: int = 0
    bytes: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A page as its scripts left it.

    `navigations` are the URLs that its scripts would have gone to, `popups` those of new windows.
    """

    html: bytes = field(repr=False)
    counts: RenderCounts
    navigations: tuple[str, ...] = ()
    # Whether the page left before it had loaded.
    redirected: bool = False
    popups: tuple[str, ...] = ()
    cut: RenderCut | None = None
    screenshot: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRendered:
    """A page that could not be rendered: why, and a short text for people."""

    reason: RenderFailure
    detail: str = ""
    counts: RenderCounts = field(default_factory=RenderCounts)


RenderResult: TypeAlias = Rendered | NotRendered


class PageRenderer(Protocol):
    """What renders pages."""

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        """Render a page; raises what the loader raises."""
