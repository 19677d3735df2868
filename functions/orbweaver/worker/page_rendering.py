"""Render pages: a browser runs a page's scripts, and the worker sends the requests that they need.

The browser has no network (`rendering/`). The worker sends each of its requests like any other of
the crawl: with robots.txt, slots, identity, address guard and budgets. A page that could not be
rendered is kept as it was fetched.
"""

from __future__ import annotations

import asyncio
import html
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from orbweaver.budget.reservation import AllowedSize
from orbweaver.fetching import response_verdict as answers
from orbweaver.frontier.admission import in_scope
from orbweaver.model.auth import leaves_session
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_rules import delay_ms
from orbweaver.model.host_access import longest_s, timeout_of
from orbweaver.model.http_exchange import Request, Response, received_of
from orbweaver.model.named_origins import named_origins_for
from orbweaver.model.ports import Clock, Fetcher
from orbweaver.model.render_rules import concurrency_of
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.model.url import canonicalize, host_of
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import positional_value_class
from orbweaver.parsing.page import Page
from orbweaver.parsing.sniffing import ANY_TYPE
from orbweaver.politeness.host_health import HostHealth
from orbweaver.politeness.host_schedule import delay_of
from orbweaver.politeness.pacer import HostRequests, Pacer
from orbweaver.politeness.ports import Hosts
from orbweaver.politeness.robots_cache import Deferred, RobotsKeeper, RobotsUnreachable
from orbweaver.rendering.task import (
    NotRendered,
    PageRenderer,
    Rendered,
    RenderFailure,
    RenderLimits,
    RenderTask,
    ResourceAnswer,
    ResourceRefused,
    ResourceRequest,
)
from orbweaver.worker.crawl_cache import RecentCrawls
from orbweaver.worker.pack_context import PackContext
from orbweaver.worker.page_reading import PageReading
from orbweaver.worker.rendering_choice import RenderChoice, RenderingChooser, marks_of
from orbweaver.worker.rendering_gain import PageContent, gain_of, text_chars
from orbweaver.worker.shutdown import to_its_end

if TYPE_CHECKING:
    from orbweaver.worker.sessions import Sessions

_log = logging.getLogger(__name__)
# Longest wait of a request for its slot. Rendering of a page is stopped before that.
SLOT_MS_MAX = 60_000
# Size limit of a screenshot. A larger one is dropped and counted.
SCREENSHOT_BYTES_MAX = 1_000_000
SCREENSHOTS_LARGE = "render.screenshots_large"
_DAY_MS = 86_400_000
# Longest time for a page once rendering has started.
PAGE_S_MAX = RenderLimits().page_s_max
_HTML = "text/html; charset=utf-8"


@positional_value_class
class ResourceServices:
    """Components that send the browser's requests by the rules of the crawl."""

    fetcher: Fetcher
    hosts: Hosts
    robots: RobotsKeeper
    health: HostHealth
    clock: Clock
    settings: Settings
    sessions: Callable[[], Sessions]


class PageRendering:
    """Renders pages, and answers the browser's requests."""

    def __init__(
        self, renderer: PageRenderer, services: ResourceServices, crawls: RecentCrawls
    ) -> None:
        self._renderer = renderer
        self.services = services
        self.page_s_max = PAGE_S_MAX
        self._chooser = RenderingChooser(crawls, services.clock)
        # An entry exists only while its host is being requested.
        self._asking: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = (
            WeakValueDictionary()
        )

    def semaphore(self, host: str, crawl: Crawl) -> asyncio.Semaphore:
        _, most = concurrency_of(crawl)
        return self._asking.setdefault((host, most), asyncio.Semaphore(most))

    def chosen(
        self, crawl: Crawl, target: Target, page: Page, answer: Response
    ) -> AbstractAsyncContextManager[RenderChoice]:
        """Open a context with the decision whether a page is rendered.

        The caller records the result of rendering within the context.
        """
        marked, scripts = marks_of(page, answer)
        return self._chooser.chosen(crawl, target.url, marked=marked, scripts=scripts)

    def has_gained(
        self,
        context: PackContext,
        target: Target,
        fetched: tuple[Response, PageReading],
        rendered: tuple[Response, PageReading],
    ) -> bool:
        return gain_of(*(_content_of(context, target, *one) for one in (fetched, rendered)))

    def wait_s(self, context: PackContext) -> float:
        """Return how many seconds a page may wait before its rendering must start."""
        request_s = longest_s(context.crawl, self.services.settings.fetching.fetch_total_s)
        until_ms = context.until_ms + round(request_s * 1000)
        return max(0, until_ms - self.services.clock.now_ms()) / 1000

    async def render(
        self, context: PackContext, target: Target, answer: Response
    ) -> tuple[Response, Mapping[str, int]] | None:
        """Run a page's scripts. Return the new response and counts, or None if no time is left."""
        settings = self.services.settings
        agent = identity_of(context.crawl, host_of(target.url), settings.fetching.user_agent).agent
        task = RenderTask(
            url=target.url,
            document=_resource_of(answer),
            # Scripts get the start of the day: pages show the correct date, and renderings of one
            # day are equal.
            now_ms=self.services.clock.now_ms() // _DAY_MS * _DAY_MS,
            user_agent=agent,
            screenshot=context.crawl.screenshots,
            wait_s=self.wait_s(context),
        )
        result = await self._renderer.render(task, PageLoader(self, context, target))
        if isinstance(result, NotRendered) and result.reason is RenderFailure.BUSY:
            return None
        counts = _counts_of(result.counts.refused)
        counts |= {"render.asked": result.counts.asked, "render.cached": result.counts.cached}
        if isinstance(result, NotRendered):
            told = {"url": target.url, "reason": str(result.reason), "error": result.detail}
            _log.warning("page.not_rendered", extra=told)
            return answer, {**counts, f"render.failed.{result.reason}": 1}
        if result.screenshot is not None and len(result.screenshot) > SCREENSHOT_BYTES_MAX:
            result, counts = replace(result, screenshot=None), {**counts, SCREENSHOTS_LARGE: 1}
        return _as_answer(answer, result, target.url), counts


def _content_of(
    context: PackContext, target: Target, answer: Response, reading: PageReading
) -> PageContent:
    page = reading.page
    found = () if page is None else page.links
    links = frozenset(
        link for link in found if in_scope(context.crawl, link, target.url, target.root)
    )
    return PageContent(
        text_chars=text_chars(answer.body or b"", answer.headers.get("content-type")),
        links=links,
        unknown=links - context.seen(links),
        items=sum(one.valid for one in reading.items or ()),
        leaves=page is not None and page.refresh is not None,
    )


def _resource_of(answer: Response) -> ResourceAnswer:
    """Convert a response for the browser, with the cookies that it sets among its headers."""
    cookies = (("set-cookie", line.decode("utf-8", "replace")) for line in answer.cookies)
    return ResourceAnswer(
        status=answer.status, headers=(*answer.headers.items(), *cookies), body=answer.body or b""
    )


def _counts_of(refused: Mapping[str, int]) -> dict[str, int]:
    return {f"render.refused.{reason}": number for reason, number in refused.items()}


def _as_answer(answer: Response, result: Rendered, url: str) -> Response:
    """Return the response with the rendered page. URLs that scripts opened become links."""
    headers = {**answer.headers, "content-type": _HTML}
    body, leads = result.html, [*result.popups]
    gone = [one for one in result.navigations if one.partition("#")[0] != url]
    if gone and result.redirected:
        headers["refresh"] = f"0;url={gone[0]}"
    else:
        leads += gone
    # Append these URLs to the HTML, as links without text.
    body += b"".join(b'<a href="%b"></a>' % html.escape(one).encode() for one in leads)
    return replace(
        answer,
        headers=headers,
        body=body,
        rendered=True,
        render_cut=result.cut is not None,
        screenshot=result.screenshot,
    )


class PageLoader:
    """Sends the requests that a page needs while it is rendered."""

    def __init__(self, rendering: PageRendering, context: PackContext, target: Target) -> None:
        self._rendering = rendering
        self._context = context
        self._target = target
        self._services = rendering.services
        self._until_ms = self._services.clock.now_ms() + SLOT_MS_MAX
        self._pacers: dict[str, Pacer] = {}
        self.waiting = 0

    async def load(self, request: ResourceRequest) -> ResourceAnswer | ResourceRefused:
        """Send a request of the page by the rules of the crawl. The browser follows redirects."""
        try:
            url = canonicalize(request.url, tracking=frozenset())
        except ValueError:
            return ResourceRefused(reason="url")
        host, crawl = host_of(url), self._context.crawl
        if crawl.auth and leaves_session(crawl.auth, url):
            return ResourceRefused(reason="logout")
        async with AsyncExitStack() as taken:
            self.waiting += 1
            try:
                semaphore = self._rendering.semaphore(host, self._context.crawl)
                await taken.enter_async_context(semaphore)
                reserving = self._context.reservations.room(self._target)
                room = await taken.enter_async_context(reserving)
                if not isinstance(room, AllowedSize):
                    return ResourceRefused(reason="budget")
                refused = await self._waited(url, host)
            finally:
                self.waiting -= 1
            if refused is not None:
                return ResourceRefused(reason=refused)
            return await self._asked(url, host, request, room)

    async def _waited(self, url: str, host: str) -> str | None:
        """Wait for a slot of the host. Return the reason if the URL must not be requested."""
        services, crawl = self._services, self._context.crawl
        token = identity_of(crawl, host, services.settings.fetching.user_agent).token
        asked_s: float | None = None
        if crawl.obey_robots:
            named = named_origins_for(self._context.named, self._target)
            match await services.robots.rules_for(host, crawl, self._until_ms, named=named):
                case Deferred() | RobotsUnreachable():
                    return "robots_unreachable"
                case None:
                    pass
                case robots:
                    rule = robots.rule_for(token, url)
                    if rule is not None and not rule.allow:
                        return "robots"
                    asked_s = robots.crawl_delay(token)
        pacer = self._pacers.get(host)
        if pacer is None:
            pace_ms = services.health.pace_ms(host) // crawl.concurrency
            least_ms = delay_ms(crawl, self._target)
            pacer = self._pacers[host] = Pacer(
                HostRequests(host, services.hosts, services.clock),
                delay_ms=delay_of(least_ms, asked_s, pace_ms),
                until_ms=self._until_ms,
                lined=False,
            )
        return (
            None
            if await pacer.wait_for_slot(1) is None and pacer.start_request(pacer.turn)
            else "slots"
        )

    async def _asked(
        self, url: str, host: str, request: ResourceRequest, room: AllowedSize
    ) -> ResourceAnswer | ResourceRefused:
        services, crawl = self._services, self._context.crawl
        identity = identity_of(crawl, host, services.settings.fetching.user_agent)
        own = {name.lower() for name, _ in identity.headers} | {"accept"}
        sent = tuple(one for one in request.headers if one[0].lower() not in own)
        headers = (*identity.headers, *sent)
        if crawl.auth:
            # Scripts get their data with the login of the page.
            headers = (await services.sessions().outgoing(crawl, url, headers)).headers
        default_s = services.settings.fetching.fetch_total_s
        total_s, idle_s = timeout_of(crawl, host_of(url), default_s)
        at_ms = services.clock.now_ms()
        room.received = None  # unknown until the response is received
        answer = await services.fetcher.fetch(
            Request(
                url=url,
                user_agent=identity.agent,
                headers=headers,
                direct=not crawl.proxied,
                trust=identity.trust,
                accept=frozenset({ANY_TYPE}),
                body_bytes_max=room.most,
                room=room if crawl.bytes_max is not None else None,
                total_s=total_s,
                idle_s=idle_s,
                named=named_origins_for(self._context.named, self._target),
                sent=self._pacers[host].note_sent,
            )
        )
        room.received = received_of(answer)
        verdict = answers.judge(answer, attempt=1, now_ms=services.clock.now_ms(), any_type=True)
        if isinstance(verdict, answers.Retry) and verdict.block:
            await to_its_end(services.health.back_off(host, verdict.retry_after_s, at_ms))
        if not isinstance(answer, Response):
            return ResourceRefused(reason=str(answer.reason))
        return _resource_of(answer)
