"""Duration of a small crawl beside a big one, and alone, in virtual time without faults.

The simulated queue uses SQS's order, roughly oldest first, or the order of a fair queue.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from orbweaver.frontier.backlog import Lease, waiting_of, with_place
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Pack, SeedsMessage, decode, encode, seeds_of
from orbweaver.model.crawl import Crawl, State, run_id
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.model.url import host_of
from tests.memory import World
from tests.simulation import loop
from tests.simulation.cloud import Cloud
from tests.simulation.faults import Faults
from tests.simulation.scenario import Scenario
from tests.simulation.sites import SimPage, Site
from tests.simulation.sqs import Message, Sqs
from tests.simulation.trace import Trace
from tests.simulation.web import SimWeb

PACK_URLS = 25
# Approximate start of the small crawl. By then the big one is at full speed.
HEAD_START_S, HEAD_START_SPREAD_S = 10.0, 5.0
WAIT_S_MAX = 4 * 3_600.0
# Lambda's initial concurrent batches, and the increase per second (services-sqs-scaling).
WORKERS_FIRST, WORKERS_MORE = 5, 5
NOISY_SHARE, NOISY_MESSAGES_MIN = 0.1, 30
RECENT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A small crawl, a big one, and their workers."""

    seed: int = 1
    # Number of workers, a worker's maximum wait for slots, and whether the queue is fair.
    workers: int = 50
    wait_s_max: float = Settings().worker.wait_s_max
    fair: bool = True
    small_hosts: int = 10
    small_pages: int = 20
    small_delay_ms: int = 1_000
    # Queued URLs of the big crawl. With 0, the small crawl is alone.
    big_urls: int = 100_000
    big_hosts: int = 200
    big_delay_ms: int = 4_000
    big_latency_s: float = 0.05
    # True if the URLs wait in per-host backlogs, false if all are on the queue.
    waits: bool = True
    batch: int = 40


class Quiet(Trace):
    """A trace that drops its lines."""

    def note(self, line: str) -> None:
        pass


class Neighbours:
    """A fair queue's groups: messages in flight, and the consumers' recent time.

    AWS describes the order in "How Amazon SQS fair queues work". A group is a noisy neighbour if it
    has more than 10 % of the messages in flight and at least 30, or more than 10 % of the
    consumers' recent time. AWS does not define "recent". Messages of quiet groups are delivered
    first. If only noisy groups have messages, the group with the fewest messages in flight is next.
    """

    def __init__(self) -> None:
        # By message: its group, and the time of delivery.
        self._flying: dict[str, tuple[str, float]] = {}
        # Finished messages: time, group, and duration.
        self._done: deque[tuple[float, str, float]] = deque()

    def taken(self, message: str, group: str, now_s: float) -> None:
        self._flying[message] = (group, now_s)

    def done(self, message: str, now_s: float) -> None:
        """Record a message as deleted. A message that was not delivered is ignored."""
        if message in self._flying:
            group, taken_s = self._flying.pop(message)
            self._done.append((now_s, group, now_s - taken_s))

    def first(self, oldest: Mapping[str, float], now_s: float) -> str:
        """Return the next group. `oldest` is the send time of each group's oldest message."""
        if len(oldest) == 1:
            return next(iter(oldest))
        flying = Counter(group for group, _ in self._flying.values())
        noisy = self._noisy(flying, now_s)
        quiet = [group for group in oldest if group not in noisy]
        if quiet:
            return min(quiet, key=oldest.__getitem__)
        return min(oldest, key=lambda group: (flying[group], oldest[group]))

    def _noisy(self, flying: Counter[str], now_s: float) -> set[str]:
        while self._done and self._done[0][0] < now_s - RECENT_S:
            self._done.popleft()
        spent_s: defaultdict[str, float] = defaultdict(float)
        for _, group, took_s in self._done:
            spent_s[group] += took_s
        for group, taken_s in self._flying.values():
            spent_s[group] += now_s - taken_s
        share, long_s = NOISY_SHARE * flying.total(), NOISY_SHARE * sum(spent_s.values())
        too_many = {g for g, n in flying.items() if n >= NOISY_MESSAGES_MIN and n > share}
        return too_many | {group for group, took_s in spent_s.items() if took_s > long_s}


class OrderedSqs(Sqs):
    """A queue with SQS's order, or a fair queue's."""

    def __init__(self, world: World, trace: Trace, contest: Contest) -> None:
        super().__init__(world, trace, Random(f"{contest.seed}/sqs"), Faults())
        self._fair, self._batch = contest.fair, contest.batch
        self._neighbours = Neighbours()
        self._groups: dict[str, str] = {}

    def receive(self, now_s: float, visibility_s: float, _hops_max: int | None) -> list[Message]:
        waiting: defaultdict[str, deque[Message]] = defaultdict(deque)
        for message in self.messages:
            if message.visible_s <= now_s:
                waiting[self._group(message)].append(message)
        taken: list[Message] = []
        while waiting and len(taken) < self._batch:
            oldest = {group: float(heads[0].id[1:]) for group, heads in waiting.items()}
            group = self._neighbours.first(oldest, now_s)
            message = waiting[group].popleft()
            if not waiting[group]:
                del waiting[group]
            message.receives += 1
            message.visible_s = now_s + visibility_s
            self._neighbours.taken(message.id, group, now_s)
            taken.append(message)
        return taken

    def delete(self, messages: Sequence[Message]) -> None:
        gone = {message.id for message in messages}
        self.messages = [message for message in self.messages if message.id not in gone]
        now_s = asyncio.get_running_loop().time()
        for message in messages:
            self._neighbours.done(message.id, now_s)

    def _group(self, message: Message) -> str:
        """Return a message's group: its crawl, or one common group without fair queues."""
        if not self._fair:
            return ""
        if message.id not in self._groups:
            body = decode(message.body)
            group = body.crawl if isinstance(body, Pack | SeedsMessage) else message.id
            self._groups[message.id] = group
        return self._groups[message.id]


def took_s(contest: Contest) -> float:
    took: float = loop.run(_play(contest))
    return took


async def _play(contest: Contest) -> float:
    world = World()
    trace = Quiet()
    sites = [*_small_sites(contest), *_big_sites(contest)]
    plan = Scenario(seed=contest.seed, sites=sites, crawls=(), faults=Faults(), faults_until_s=0.0)
    cloud = Cloud(plan, world, SimWeb(sites, asyncio.get_running_loop().time, trace.counts), trace)
    cloud.sqs = OrderedSqs(world, trace, contest)
    cloud.wait_s_max = contest.wait_s_max
    growing = asyncio.create_task(_grow(cloud, contest.workers))
    if contest.big_urls:
        _queue_big(contest, cloud)
        spread_s = Random(f"{contest.seed}/start").uniform(0, HEAD_START_SPREAD_S)
        await cloud.run(HEAD_START_S + spread_s, stop_when_idle=False)
    crawl = await _start_small(contest, cloud)
    started_s = cloud.now_s
    while world.crawls[crawl.id].state is not State.FINISHED:
        assert cloud.now_s < started_s + WAIT_S_MAX, "the small crawl has not ended"
        await cloud.run(cloud.now_s + 1.0, stop_when_idle=False)
    finished_at_ms = world.crawls[crawl.id].finished_at_ms
    assert finished_at_ms is not None
    growing.cancel()
    return (finished_at_ms - crawl.started_at_ms) / 1000


async def _grow(cloud: Cloud, workers: int) -> None:
    cloud._concurrency = min(workers, WORKERS_FIRST)
    while cloud._concurrency < workers:
        await asyncio.sleep(1)
        cloud._concurrency = min(workers, cloud._concurrency + WORKERS_MORE)
        cloud.wake()


async def _start_small(contest: Contest, cloud: Cloud) -> Crawl:
    at_ms = cloud.start_ms + round(cloud.now_s * 1000)
    crawl_id = run_id("small", at_ms)
    urls = [f"http://small{host}.test/" for host in range(contest.small_hosts)]
    seeds = seeds_of(crawl_id, crawl_id, urls, at_ms=at_ms, planned=True)
    crawl = Crawl(
        id=crawl_id,
        name="small",
        started_at_ms=at_ms,
        seeds=tuple(urls),
        seeds_planned=len(seeds),
        delay_ms=contest.small_delay_ms,
        concurrency=1 if contest.small_delay_ms else 16,
    )
    cloud.world.crawls[crawl.id] = crawl
    await cloud.person().queue.send_seeds(seeds, express=False)
    return crawl


def _queue_big(contest: Contest, cloud: Cloud) -> None:
    """Queue a big crawl's packs (batches of URLs) of one host each, one host after another."""
    crawl = Crawl(
        id="big",
        name="big",
        started_at_ms=cloud.start_ms,
        delay_ms=contest.big_delay_ms,
        concurrency=1 if contest.big_delay_ms else 16,
        shards=16,
    )
    cloud.world.crawls[crawl.id] = crawl
    for number in range(contest.big_urls // PACK_URLS):
        place, host = divmod(number, contest.big_hosts)
        targets = tuple(
            Target(url=f"http://big{host}.test/{place * PACK_URLS + n}", depth=1)
            for n in range(PACK_URLS)
        )
        pack = Pack(id=f"big/{number}", crawl="big", at_ms=cloud.start_ms, targets=targets)
        if contest.waits:
            waiting = waiting_of(OutgoingPack(pack=pack), cloud.start_ms)
            key = ("big", host_of(targets[0].url))
            cloud.world.backlog[key][waiting.place] = waiting
            if place:
                continue
            pack = with_place(pack)
            cloud.world.out[key] = Lease(epoch=1, place=pack.place, holder="seeds")
        cloud.drop(encode(pack))


def _small_sites(contest: Contest) -> list[Site]:
    paths = ["/", *(f"/{n}" for n in range(1, contest.small_pages))]
    pages = {
        path: SimPage(links=tuple(paths[3 * n + 1 : 3 * n + 4])) for n, path in enumerate(paths)
    }
    hosts = range(contest.small_hosts)
    return [Site(origin=f"http://small{host}.test", pages=pages) for host in hosts]


def _big_sites(contest: Contest) -> list[Site]:
    if not contest.big_urls:
        return []
    page = SimPage(latency_s=contest.big_latency_s)
    urls = -(-contest.big_urls // contest.big_hosts) + PACK_URLS
    pages = dict.fromkeys((f"/{n}" for n in range(urls)), page)
    return [Site(origin=f"http://big{host}.test", pages=pages) for host in range(contest.big_hosts)]
