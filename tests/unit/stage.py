"""What the actors are tested in: a world in memory, a small web, a clock that moves when told to.

A `Stage` is one container over the world; `restart` makes a new one, which has forgotten all that
the old one remembered. Time passes only by what somebody sleeps and by what the web takes.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.budget.budget_rules import COUNTED
from orbweaver.budget.reservation import BudgetKeeper
from orbweaver.control.crawl_control import Control
from orbweaver.control.dead_letter_admin import Undertaker
from orbweaver.diagnostics.explainer import Explainer
from orbweaver.frontier.messages import Pack, SeedsMessage, child_id, decode, encode
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.rendering.task import PageRenderer
from orbweaver.worker.apply_journal import JournalApplier
from orbweaver.worker.batch import Worker
from orbweaver.worker.body_writer import BodyWriter
from orbweaver.worker.crawl_cache import RecentCrawls
from orbweaver.worker.ending import Ending
from orbweaver.worker.fetch_pack import PackFetcher
from orbweaver.worker.host_claims import HostClaims
from orbweaver.worker.kind_learning import KindLearning
from orbweaver.worker.pack import Delivery, PackProcessor
from orbweaver.worker.page_reading import PageReader
from orbweaver.worker.seeding import Seeder
from tests.memory import (
    ManualClock,
    MemoryBacklog,
    MemoryBudgets,
    MemoryCrawls,
    MemoryDeadLetters,
    MemoryEvents,
    MemoryFiles,
    MemoryFrontier,
    MemoryHosts,
    MemoryMetrics,
    MemoryPacks,
    MemoryPages,
    MemoryQueue,
    Moment,
    World,
)
from tests.memory.world import Gate, ShardItem, open_gate

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
SITE = "https://example.com"
REMAINING_MS = 60_000
_CONTAINERS = itertools.count(3)
# Ids of packs are hexadecimal: the shard that counts a pack follows from its id.
ROOT = child_id("root", 0)
# Polite by default, quick where politeness is not what is tested.
CRAWL = Crawl(id="site-1", name="site", started_at_ms=NOW_MS, delay_ms=0, obey_robots=False)


def html(*links: str, title: str = "page", **headers: str) -> Response:
    """Answer with a page that has these links."""
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    body = f"<title>{title}</title>{anchors}".encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status=200, headers={"content-type": "text/html", **named}, body=body)


def answer(status: int, body: bytes | None = b"", **headers: str) -> Response:
    """Answer with a status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status=status, headers=named, body=body)


class Killed(BaseException):
    """The process ends here; no guard gets to see it."""


async def survives(running: Awaitable[object]) -> bool:
    """Whether the process lives to see the end of this."""
    try:
        await running
    except Killed:
        return False
    except BaseExceptionGroup as group:
        if group.subgroup(Killed) is None:
            raise
        return False
    return True


def kill_at(number: int) -> Gate:
    """Make a gate that ends the process at its so manieth moment, and everything after it."""
    passed = 0

    async def gate(_effect: str, _moment: Moment) -> None:
        nonlocal passed
        passed += 1
        if passed >= number:
            raise Killed

    return gate


def kill_on(effect: str, moment: Moment) -> Gate:
    """Make a gate that ends the process at an effect, and everything after it."""
    dead = False

    async def gate(passing: str, now: Moment) -> None:
        nonlocal dead
        dead = dead or (passing, now) == (effect, moment)
        if dead:
            raise Killed

    return gate


def fail_on(effect: str, moment: Moment = Moment.BEFORE, times: int = 1) -> Gate:
    """Make a gate that refuses an effect a number of times, or loses its answer."""
    left = times

    async def gate(passing: str, now: Moment) -> None:
        nonlocal left
        if (passing, now) == (effect, moment) and left:
            left -= 1
            raise Transient(effect)

    return gate


def noting(effects: list[str]) -> Gate:
    """Make a gate that notes every effect as it begins."""

    async def gate(effect: str, moment: Moment) -> None:
        if moment is Moment.BEFORE:
            effects.append(effect)

    return gate


async def hand_over(_effect: str, _moment: Moment) -> None:
    """Let whoever else is waiting go first, at every effect."""
    await asyncio.sleep(0)


Answer = Response | Failure


async def fitted(request: Request, answer: Answer) -> Answer:
    """Cut the body of an answer where its limit, or the room that its request finds, ends."""
    if isinstance(answer, Failure) or answer.body is None or request.room is None:
        return answer
    await request.room.grow(len(answer.body))
    size = min(request.body_bytes_max, request.room.bytes_max)
    cut = len(answer.body) > size
    return replace(answer, body=answer.body[:size], truncated=answer.truncated or cut)


class SmallWeb:
    """Answers by URL, in turn where there are several; 404 for what it does not know."""

    def __init__(self, clock: ManualClock) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[tuple[str, int]] = []
        self.requests: list[Request] = []
        self.takes_ms = 0
        self.before: Callable[[Request], None] = lambda _request: None
        self._clock = clock

    def put(self, url: str, *answers: Answer) -> None:
        """Have a URL answer; the last answer is given for ever."""
        self.answers[url] = list(answers)

    async def fetch(self, request: Request) -> Answer:
        """See the port."""
        self.asked.append((request.url, self._clock.now_ms()))
        self.requests.append(request)
        self.before(request)
        self._clock.at_ms += self.takes_ms
        known = self.answers.get(request.url)
        if known is None:
            return answer(404)
        return await fitted(request, known.pop(0) if len(known) > 1 else known[0])

    @property
    def urls(self) -> list[str]:
        """What was asked for, in order."""
        return [url for url, _ in self.asked]


@dataclass
class Stage:
    """A container, and the world around it."""

    settings: Settings = field(default_factory=Settings)
    gate: Gate = open_gate
    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    reader: PageReader = field(default_factory=InPlaceReader)
    renderer: PageRenderer | None = None

    def __post_init__(self) -> None:
        self.web = SmallWeb(self.clock)
        self.restart(self.gate)

    def restart(self, gate: Gate = open_gate) -> None:
        """Start a new container."""
        world = self.world
        self.queue = MemoryQueue(world, gate)
        self.packs = MemoryPacks(world, gate)
        self.crawls = MemoryCrawls(world, gate)
        self.frontier = MemoryFrontier(world, gate)
        self.hosts = MemoryHosts(world, gate)
        self.pages = MemoryPages(world, gate)
        self.metrics = MemoryMetrics()
        self.applier = JournalApplier(
            queue=self.queue,
            packs=self.packs,
            crawls=self.crawls,
            events=MemoryEvents(world, gate),
            frontier=self.frontier,
            pages=self.pages,
            backlog=MemoryBacklog(world, gate),
            clock=self.clock,
        )
        recent = RecentCrawls(crawls=self.crawls, clock=self.clock)
        ending = Ending()
        self.pack_fetcher = PackFetcher(
            fetcher=self.web,
            reader=self.reader,
            hosts=self.hosts,
            history=self.pages,
            crawls=recent,
            kinds=KindLearning(
                crawls=self.crawls, files=MemoryFiles(world, gate), settings=self.settings
            ),
            clock=self.clock,
            random=Random(1),
            settings=self.settings,
            ending=ending,
            renderer=self.renderer,
        )
        self.budgets = MemoryBudgets(world, gate)
        self.budget_keeper = BudgetKeeper(
            budgets=self.budgets,
            crawls=self.crawls,
            clock=self.clock,
            random=Random(next(_CONTAINERS)),
            settings=self.settings,
        )
        self.host_claims = HostClaims(
            files=MemoryFiles(world, gate), clock=self.clock, settings=self.settings
        )
        self.processor = PackProcessor(
            packs=self.packs,
            crawls=recent,
            frontier=self.frontier,
            pack_fetcher=self.pack_fetcher,
            applier=self.applier,
            body_writer=BodyWriter(
                files=MemoryFiles(world, gate),
                clock=self.clock,
                random=Random(2),
                settings=self.settings,
            ),
            budget_keeper=self.budget_keeper,
            host_claims=self.host_claims,
            clock=self.clock,
            metrics=self.metrics,
            settings=self.settings,
        )
        self.worker = Worker(
            queue=self.queue,
            packs=self.packs,
            seeder=Seeder(queue=self.queue, crawls=self.crawls, clock=self.clock),
            processor=self.processor,
            applier=self.applier,
            clock=self.clock,
            metrics=self.metrics,
            settings=self.settings,
            ending=ending,
        )

    def begin(self, crawl: Crawl = CRAWL, *urls: str, pack: str = ROOT) -> Pack:
        """Put a crawl there that has claimed these URLs, and make the pack that holds them."""
        self.world.crawls[crawl.id] = crawl
        if urls:
            self.count(crawl, claimed=len(urls))
        return pack_of(*urls, crawl=crawl.id, pack=pack)

    def count(self, crawl: Crawl, **counts: int) -> None:
        """Add to the books of a crawl."""
        shard = self.world.shards.setdefault((crawl.id, 0), ShardItem())
        for key, number in counts.items():
            shard.counts[key] = shard.counts.get(key, 0) + number

    def counts(self, crawl: Crawl = CRAWL) -> Counts:
        """Add the books of a crawl up, but for what it has cost."""
        total: dict[str, int] = {}
        for (owner, _), shard in self.world.shards.items():
            counted = shard.counts.items() if owner == crawl.id else ()
            for key, number in counted:
                if key in COUNTED.values():
                    continue
                total[key] = total.get(key, 0) + number
        return total

    async def deliver(
        self,
        *messages: Pack | SeedsMessage | str,
        receives: int = 1,
        remaining_ms: int = REMAINING_MS,
        queue: str = "",
        since_ms: int | None = None,
    ) -> list[int]:
        """Have a batch processed; the places of the messages that are to come back."""
        deliveries = [
            Delivery(
                id=str(place),
                body=message if isinstance(message, str) else encode(message),
                receives=receives,
                queue=queue,
                since_ms=since_ms,
                handle=str(place),
            )
            for place, message in enumerate(messages)
        ]
        failed = await self.worker.run(deliveries, self.clock.now_ms() + remaining_ms)
        return sorted(int(place) for place in failed)

    async def drain(self, rounds: int = 1_000) -> int:
        """Deliver what is sent, each message when it is due, until nothing is left; how many."""
        for delivered in range(rounds):
            if not self.world.sent:
                return delivered
            mail = min(self.world.sent, key=lambda mail: mail.delay_s)
            self.world.sent.remove(mail)
            self.clock.at_ms += mail.delay_s * 1000
            assert await self.deliver(mail.body, since_ms=mail.since_ms) == []
        message = f"not drained after {rounds} messages"
        raise AssertionError(message)

    def sent(self) -> list[Pack | SeedsMessage]:
        """Take what is on the queue off it."""
        messages = [decode(mail.body) for mail in self.world.sent]
        self.world.sent.clear()
        return [message for message in messages if isinstance(message, Pack | SeedsMessage)]


def control_of(stage: Stage) -> Control:
    """Put a person's commands beside the worker."""
    return Control(
        queue=stage.queue,
        crawls=stage.crawls,
        packs=stage.packs,
        pages=stage.pages,
        hosts=stage.hosts,
        clock=stage.clock,
        settings=stage.settings,
    )


def explainer_of(stage: Stage) -> Explainer:
    """Put together who explains URLs."""
    return Explainer(
        finder=control_of(stage),
        crawls=stage.crawls,
        frontier=stage.frontier,
        packs=stage.packs,
        backlog=MemoryBacklog(stage.world),
        history=stage.pages,
        hosts=stage.hosts,
        clock=stage.clock,
        settings=stage.settings,
        letters=Undertaker(
            dead_letters=MemoryDeadLetters(stage.world, stage.gate, clock=stage.clock),
            queue=stage.queue,
            crawls=stage.crawls,
            packs=stage.packs,
            clock=stage.clock,
        ),
    )


def pack_of(*urls: str, crawl: str = CRAWL.id, pack: str = ROOT, failures: int = 0) -> Pack:
    """Make a pack of URLs at depth 0."""
    targets = tuple(Target(url=url, depth=0) for url in urls)
    return Pack(id=pack, crawl=crawl, at_ms=NOW_MS, targets=targets, failures=failures)


def urls_of(messages: Sequence[Pack | SeedsMessage]) -> set[str]:
    """List the URLs of packs."""
    return {target.url for pack in messages if isinstance(pack, Pack) for target in pack.targets}


def outcomes(world: World) -> Mapping[str, str]:
    """Say how each recorded URL ended: `outcome.reason`."""
    return {record.url: f"{record.outcome}.{record.reason}" for record in world.pages.values()}
