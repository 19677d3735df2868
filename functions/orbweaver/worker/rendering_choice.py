"""Choose which pages of a crawl to render: by rules, by marks of a page, and by measured gain.

A kind is a group of similar URLs of one host. Gain is the content that scripts add. A marked page
looks empty without its scripts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import RenderMode
from orbweaver.model.errors import PortError
from orbweaver.model.http_exchange import Response
from orbweaver.model.ports import Clock
from orbweaver.model.render_rules import RenderWhy, deciding, mode_of
from orbweaver.model.value import value_class
from orbweaver.parsing.client_rendering import has_scripts
from orbweaver.parsing.page import Page
from orbweaver.worker.rendering_gain import LearnedKinds, is_sample

if TYPE_CHECKING:
    from orbweaver.worker.crawl_cache import RecentCrawls

_log = logging.getLogger(__name__)
FRESH_MS = 15_000
# While a sample of a kind without gain is rendered, this number of the kind's pages do not wait for
# its result. Further pages wait, because hundreds of pages can arrive per second.
PASSED_MAX = 20
# Maximum number of crawls in memory. A dropped crawl is read again.
CRAWLS_MAX = 64


@dataclass(slots=True)
class _CrawlKinds:
    learned: LearnedKinds = field(default_factory=LearnedKinds)
    read_ms: int = -FRESH_MS
    # Kinds with a page that could not be rendered: other pages do not wait for them.
    failed: set[str] = field(default_factory=set)
    # Number of pages of each kind that were processed while a sample of the kind is rendered.
    passed: Counter[str] = field(default_factory=Counter)


@value_class
class RenderChoice:
    """Whether a page is rendered, and why. `kinds` is set if its two versions are compared."""

    render: bool
    why: RenderWhy | None = None
    kind: str = ""
    marked: bool = False
    kinds: _CrawlKinds | None = None

    @property
    def compared(self) -> bool:
        return self.kinds is not None

    def learn(self, *, gained: bool) -> Mapping[str, int]:
        """Record whether rendering added content to the page. Return the counts to commit."""
        if self.kinds is None:
            return {}
        return self.kinds.learned.learn(self.kind, marked=self.marked, gained=gained)

    def fail(self) -> Mapping[str, int]:
        """Record that rendering failed. Return the counts to commit."""
        if self.kinds is None:
            return {}
        self.kinds.failed.add(self.kind)
        # A failure of a marked page proves nothing about its kind.
        return {} if self.marked else self.learn(gained=False)


class RenderingChooser:
    """Chooses which pages to render. One instance per container."""

    def __init__(self, crawls: RecentCrawls, clock: Clock) -> None:
        self._crawls = crawls
        self._clock = clock
        self._known: OrderedDict[str, _CrawlKinds] = OrderedDict()
        # A lock exists only while a page is compared or waits for a comparison.
        self._comparing: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def chosen(
        self, crawl: Crawl, url: str, *, marked: bool, scripts: bool
    ) -> AsyncIterator[RenderChoice]:
        """Open a context with the decision whether a page is rendered.

        The caller records the result within the context. `marked`: the page looks empty without
        scripts. `scripts`: it has scripts.
        """
        ruled = _by_mode(crawl, url, scripts=marked or scripts)
        if ruled is not None:
            yield ruled
            return
        async with AsyncExitStack() as held:
            yield await self._by_kind(held, crawl, url, marked=marked)

    async def choose(self, crawl: Crawl, url: str, *, marked: bool, scripts: bool) -> RenderChoice:
        """Choose whether a fetched page must be sent to a worker with a browser."""
        ruled = _by_mode(crawl, url, scripts=marked or scripts)
        if ruled is not None:
            return ruled
        kinds = await self._kinds(crawl)
        return _by_credit(kinds, kinds.learned.key(url, marked=marked), url, marked=marked)

    async def expects(self, crawl: Crawl, url: str) -> bool:
        """Return True if a worker with a browser should fetch a URL, by rules or its kind."""
        match mode_of(crawl, url):
            case RenderMode.AUTO:
                return (await self._kinds(crawl)).learned.expects(url)
            case mode:
                return mode is RenderMode.ALWAYS

    async def _by_kind(
        self, held: AsyncExitStack, crawl: Crawl, url: str, *, marked: bool
    ) -> RenderChoice:
        kinds = await self._kinds(crawl)
        kind = kinds.learned.key(url, marked=marked)
        lock = self._comparing.setdefault((crawl.id, kind), asyncio.Lock())
        # Until it is known whether a kind gains content, only one of its pages is rendered at a
        # time. Otherwise all pages of a pack might be processed before the first one was compared.
        compared = self._is_compared(kinds, kind, url, marked=marked)
        if compared or self._is_late(kinds, kind, lock, marked=marked):
            await held.enter_async_context(lock)
            kinds.passed[kind] = 0
            if not compared or not self._is_compared(kinds, kind, url, marked=marked):
                await held.aclose()
        return _by_credit(kinds, kind, url, marked=marked)

    @staticmethod
    def _is_compared(kinds: _CrawlKinds, kind: str, url: str, *, marked: bool) -> bool:
        if kind in kinds.failed:
            return False
        if kinds.learned.credit(kind, marked=marked):
            return not kinds.learned.has_gained(kind)
        return is_sample(url)

    @staticmethod
    def _is_late(kinds: _CrawlKinds, kind: str, lock: asyncio.Lock, *, marked: bool) -> bool:
        if not lock.locked() or kinds.learned.credit(kind, marked=marked):
            return False
        kinds.passed[kind] += 1
        return kinds.passed[kind] > PASSED_MAX

    async def _kinds(self, crawl: Crawl) -> _CrawlKinds:
        kinds = self._known.setdefault(crawl.id, _CrawlKinds())
        self._known.move_to_end(crawl.id)
        if len(self._known) > CRAWLS_MAX:
            self._known.popitem(last=False)
        now_ms = self._clock.now_ms()
        if not 0 <= now_ms - kinds.read_ms < FRESH_MS:
            kinds.read_ms = now_ms
            try:
                kinds.learned.replace_counters(await self._crawls.learned(crawl))
            except PortError as error:
                told = {"crawl": crawl.id, "error": str(error)}
                _log.warning("rendering.kinds_not_read", extra=told)
        return kinds


def marks_of(page: Page, answer: Response) -> tuple[bool, bool]:
    """Return whether a page looks empty without scripts (marked), and whether it has scripts."""
    marked = page.needs_rendering
    return marked, marked or has_scripts(answer.body or b"")


def _by_mode(crawl: Crawl, url: str, *, scripts: bool) -> RenderChoice | None:
    """Choose by the crawl's rules. Return None if the results of similar pages must decide."""
    match mode_of(crawl, url):
        case RenderMode.ALWAYS:
            return RenderChoice(render=True, why=RenderWhy.ALWAYS)
        case RenderMode.NEVER:
            ruled = deciding(crawl, url) is not None
            return RenderChoice(render=False, why=RenderWhy.NEVER if ruled else None)
    return None if scripts else RenderChoice(render=False, why=RenderWhy.NO_SCRIPTS)


def _by_credit(kinds: _CrawlKinds, kind: str, url: str, *, marked: bool) -> RenderChoice:
    why = RenderWhy.MARKED if marked else RenderWhy.KIND
    credit = kinds.learned.credit(kind, marked=marked)
    if not credit and not is_sample(url):
        return RenderChoice(render=False, why=RenderWhy.KIND_GAINS_NOTHING)
    if not credit:
        why = RenderWhy.SAMPLED
    elif not marked and not kinds.learned.has_gained(kind):
        why = RenderWhy.FIRST
    return RenderChoice(render=True, why=why, kind=kind, marked=marked, kinds=kinds)
