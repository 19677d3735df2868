"""One run: a storm over a crawl, the calm after it, and the evidence.

1. The stack and the site are started; the workers use the proxy.
2. Two crawls are started: of the site, and of a page that kills its worker. An invalid body is sent
   to the queue.
3. The storm: calls fail, workers are killed, old messages are sent again. It ends when a share of
   the site is done, or after a time.
4. The calm: the crawl must finish and the queues must drain. Then old messages are sent once more.
5. The dead letters are received. The lethal page becomes harmless, and its message is redriven and
   ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, TypeVar

from localstack import layout as places
from localstack import stack
from orbweaver.budget import billing_units
from orbweaver.cli.stack import LOCAL_CONTEXT
from tests.chaos import gaps, lethal, processes, proxy, rig, site
from tests.chaos.evidence import Ended, Evidence, Expected, Planted, Storm, Wanted
from tests.chaos.faults import Plan
from tests.chaos.layout import CRAWL_DELAY_MS, DELAYS_MS, generate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from localstack.processes import Identity
    from tests.chaos.evidence import Letter
    from tests.chaos.layout import Layout
    from tests.chaos.rig import Books, Rig
    from tests.chaos.scale import Scale
    from tests.sites.child import Child

    Say = Callable[[str], None]

T = TypeVar("T")

FOLDER = places.LOCAL / "chaos"  # Logs of the functions, a file per seed.
MAIN, LETHAL = "chaos", "lethal"
POISON = '{"v":1,"pack":"chaos-poison","crawl":'
POLL_S = 1.0
TOLD_EVERY_S = 5.0
ENDS = ("fetched", "redirected", "skipped", "failed")
# A death during the seeds delays everything, so the storm begins when many workers have packs.
CLAIMED_FIRST = 40
PATIENCE = 1.5  # A storm lasts this much longer if too few workers have died.
IDLE_SIGHTS = 2  # A message that changes between two states is counted in neither for a moment.


def run(seed: int, scale: Scale, say: Say) -> Evidence:
    """Run everything; all processes started here end here."""
    with (
        tempfile.TemporaryDirectory() as folder,
        site.running(seed, scale.pages) as hosts,
        stack.temporary(context=_context(hosts), say=say) as stood,
        rig.standing(stood, Path(folder)) as made,
    ):
        try:
            return asyncio.run(_Run(seed, scale, say, made, hosts).go())
        finally:
            FOLDER.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(stood.emulator.log, FOLDER / f"{seed}.log")


def _context(hosts: Sequence[Child]) -> dict[str, str]:
    """Allow the hosts' ports: one host is a seed and links to all others."""
    opened = (host.url.removeprefix("http://").rstrip("/") for host in hosts)
    allowed = ",".join((LOCAL_CONTEXT["allow_addresses"], *opened))
    return {**LOCAL_CONTEXT, "allow_addresses": allowed}


class _Run:
    """The parts of a run, and its progress."""

    def __init__(
        self, seed: int, scale: Scale, say: Say, made: Rig, hosts: Sequence[Child]
    ) -> None:
        self._seed = seed
        self._scale = scale
        self._say = say
        self._rig = made
        self._hosts = hosts
        self._layout: Layout = generate(seed, scale.pages)
        self._urls = [host.url for host in hosts]
        self._replayed = 0
        self._started_s = self._told_s = time.monotonic()
        self._deadline_s = self._started_s + scale.total_s_max

    async def go(self) -> Evidence:
        plan = Plan(self._seed, self._scale.rates)
        emulator_url = self._rig.emulator.endpoint_url
        async with (
            proxy.standing(plan, emulator_url, self._find) as between,
            lethal.standing(self._find) as killer,
        ):
            killer.armed = self._scale.lethal
            await asyncio.to_thread(self._begin, between, killer)
            storm_s = await self._storm(between)
            await self._settle("calm", between)
            before = await asyncio.to_thread(self._rig.books, MAIN)
            late = await self._replay(between, Random(f"{self._seed}/late"), "late")
            await self._settle("late copies", between)
            dead = await asyncio.to_thread(self._rig.dead)
            killer.armed = False
            await self._revive(dead, between)
            storm = Storm(
                faults=dict(between.faults),
                calls=sum(between.calls.values()),
                kills=between.kills.total(),
                lethal_kills=killer.kills,
                replayed=self._replayed,
                replayed_late=late,
                timeouts=self._rig.timeouts(),
                storm_s=storm_s,
                total_s=time.monotonic() - self._started_s,
            )
            return await asyncio.to_thread(self._evidence, storm, before, dead)

    def _begin(self, between: proxy.Proxy, killer: lethal.Lethal) -> None:
        self._rig.tune(self._scale.tuning, between.url)
        self._rig.wait_ready()
        # Through the proxy, so that the seeds are among the messages that are sent again.
        options = ("--delay", str(CRAWL_DELAY_MS / 1000), "--max-depth", "50", "--scope", "any")
        start = self._layout.start.url(self._urls)
        if self._scale.lethal:
            self._rig.start(LETHAL, killer.url + lethal.PATH, between.url, "--delay", "0.02")
        self._rig.start(MAIN, start, between.url, *options)
        self._rig.send(POISON)

    async def _storm(self, between: proxy.Proxy) -> float:
        """Run the storm; return its duration in seconds."""
        scale = self._scale
        enough = round(self._expected().total * scale.storm_share)
        while time.monotonic() < self._deadline_s:
            books = await self._look("start", between)
            if books.sum("claimed") >= CLAIMED_FIRST:
                break
            await asyncio.sleep(POLL_S)
        began_s = time.monotonic()
        between.armed = True
        replaying = asyncio.create_task(self._replay_on(between))
        try:
            while (lasted_s := time.monotonic() - began_s) < scale.storm_s_max * PATIENCE:
                books = await self._look("storm", between)
                over = books.sum(*ENDS) >= enough or lasted_s >= scale.storm_s_max
                if over and between.kills.total() >= scale.kills_min:
                    break
                await asyncio.sleep(POLL_S)
        finally:
            between.armed = False
            replaying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await replaying
        return time.monotonic() - began_s

    def _find(self, transport: asyncio.BaseTransport) -> Identity | None:
        emulator = self._rig.emulator.process.pid
        workers = processes.workers(processes.table(), emulator, self._rig.function)
        return processes.holder(*processes.ends(transport), workers)

    async def _replay_on(self, between: proxy.Proxy) -> None:
        chance = Random(f"{self._seed}/replays")
        while True:
            await asyncio.sleep(self._scale.replay_every_s)
            self._replayed += await self._replay(between, chance, "storm")

    async def _replay(self, between: proxy.Proxy, chance: Random, when: str) -> int:
        """Send recorded messages again: half of them recent during a storm, else any.

        Returns their number.
        """
        crawl_url = self._rig.stand.outputs["PackQueueUrl"].rpartition("/")[2]
        # Not the lethal page: its copy would be one more lethal page.
        bodies = [
            body
            for url, body in between.sent
            if url.rpartition("/")[2] == crawl_url and lethal.PATH not in body
        ]
        if not bodies:
            return 0
        if when == "late":
            chosen = [chance.choice(bodies) for _ in range(self._scale.late_count)]
        else:
            half = self._scale.replay_count // 2
            chosen = [*bodies[-half:], *(chance.choice(bodies) for _ in range(half))]
        await asyncio.to_thread(self._rig.send, *chosen)
        return len(chosen)

    async def _look(self, phase: str, between: proxy.Proxy) -> Books:
        books = await asyncio.to_thread(self._rig.books, MAIN)
        now_s = time.monotonic()
        if now_s - self._told_s >= TOLD_EVERY_S:
            self._told_s = now_s
            queued = await asyncio.to_thread(self._rig.queued)
            self._say(
                f"{now_s - self._started_s:4.0f} s  {phase:<11}"
                f"  {books.sum(*ENDS)} of {books.sum('claimed')} claimed"
                f"  {books.state}  queued {queued}  faults {sum(between.faults.values())}"
                f"  kills {between.kills.total()}  copies {self._replayed}"
            )
        return books

    async def _settle(self, phase: str, between: proxy.Proxy) -> None:
        """Wait until the crawl is finished and the queues are empty, up to a limit."""
        idle = 0
        while idle < IDLE_SIGHTS and time.monotonic() < self._deadline_s:
            await asyncio.sleep(POLL_S)
            books = await self._look(phase, between)
            quiet = books.state == "finished" and not await asyncio.to_thread(self._rig.queued)
            idle = idle + 1 if quiet else 0

    async def _revive(self, dead: Sequence[Letter], between: proxy.Proxy) -> None:
        """Redrive the lethal page like an operator after a fix."""
        bodies = sorted({letter.body for letter in dead if lethal.PATH in letter.body})
        if bodies:
            await asyncio.to_thread(self._rig.send, *bodies)
            await self._settle("mended", between)

    def _expected(self) -> Expected:
        layout, urls = self._layout, self._urls
        return Expected(
            pages=frozenset(page.place.url(urls) for page in layout.pages),
            redirects=frozenset(place.url(urls) for place in layout.redirects),
            forbidden=frozenset(place.url(urls) for place in layout.forbidden),
            requests_in_vain=layout.failures,
        )

    def _evidence(self, storm: Storm, before: Books, dead: tuple[Letter, ...]) -> Evidence:
        rows = self._rig.rows(MAIN)
        sent = {row.url: row.sent_ms for row in rows}
        requests: Counter[str] = Counter()
        measured = {}
        for host, delay_ms in zip(self._hosts, DELAYS_MS, strict=True):
            log = host.log()
            requests.update(host.url + item.path for item in log if item.path != gaps.ROBOTS)
            measured[host.url] = gaps.measure(
                [gaps.Arrival(at_ms=item.at_ms, path=item.path) for item in log],
                {
                    url.removeprefix(host.url): sent_ms
                    for url, sent_ms in sent.items()
                    if url.startswith(host.url + "/")
                },
                delay_ms=delay_ms,
                robots_delay_ms=CRAWL_DELAY_MS,
            )
        events = self._rig.announced()
        crawls = (MAIN, LETHAL) if self._scale.lethal else (MAIN,)
        main, *others = (self._ended(crawl, events) for crawl in crawls)
        return Evidence(
            seed=self._seed,
            expected=self._expected(),
            rows=rows,
            main=main,
            others=tuple(others),
            counts_before_late=before.counts,
            queued=self._rig.queued(),
            requests=requests,
            gaps=measured,
            planted=self._planted(),
            dead=dead,
            dead_left=len(self._rig.dead()),
            storm=storm,
            wanted=Wanted(kinds=self._scale.kinds, kills=self._scale.kills_min, replayed=1),
        )

    def _ended(self, crawl: str, events: Sequence[dict[str, object]]) -> Ended:
        books = self._rig.books(crawl)
        return Ended(
            crawl=crawl,
            state=books.state,
            counts=books.counts,
            announced=tuple(
                # The counts include the cost, which is no count of outcomes.
                {
                    key: count
                    for key, count in counts.items()
                    if not key.startswith(billing_units.PREFIX)
                }
                for event in events
                if event["id"] == crawl and isinstance(counts := event["counts"], dict)
            ),
        )

    def _planted(self) -> tuple[Planted, ...]:
        poison = Planted(name="poison", text=POISON, reason="body is")
        killer = Planted(name="lethal page", text=lethal.PATH, reason="crashed its worker 3 times")
        return (poison, killer) if self._scale.lethal else (poison,)
