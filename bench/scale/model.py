"""The model of one run: a crawl on a queue, a fleet of workers, and samples over time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bench.scale.books import LOG_BYTES, RECORDS_LONG, SHARD_BYTES
from bench.scale.kernel import Group
from bench.scale.state import CRAWL, State
from bench.scale.visiting import SOUGHT_CPU_MS, Container, Visit
from orbweaver.budget.billing_units import Stage, Term, write_units
from orbweaver.frontier.journal import Journal, Ledger, OutgoingPack, outbox
from orbweaver.frontier.messages import SEEDS_REFERENCES_MAX, child_id
from orbweaver.model.page_record import shard_of
from orbweaver.model.target import Target
from orbweaver.worker import rounds
from orbweaver.worker.crawl_cache import CRAWL_FRESH_MS
from orbweaver.worker.group_commit import TOGETHER_MAX
from orbweaver.worker.pack import REQUEUES_MAX
from orbweaver.worker.shutdown import ShutdownSignal
from orbweaver.worker.succession import NOWHERE, place_of_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.scale.books import Books
    from bench.scale.scenario import Scenario
    from bench.scale.web import Host
    from orbweaver.frontier.messages import Pack
    from orbweaver.worker.seen_store import Novelty

SAMPLE_MS = 5_000
# The values of adapters/dynamodb/table.py and adapters/aws/clients.py.
TRANSACTION_TRIES = 10
PAUSE_BASE_S, PAUSE_CAP_S = 0.025, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """State at a time, and work since the previous sample."""

    at_ms: int
    ended: int
    visible: int
    delayed: int
    in_flight: int
    workers: int


@dataclass(slots=True, kw_only=True)
class Result:
    """Result of a run."""

    scenario: Scenario
    books: Books
    samples: list[Sample] = field(default_factory=list)
    claimed: int = 0
    finished_ms: int | None = None
    ended_twice: int = 0
    too_soon: int = 0
    in_flight_most: int = 0
    host_writes_most: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def pages_a_minute(self, from_min: float, to_min: float) -> float:
        inside = [s for s in self.samples if from_min * 60_000 <= s.at_ms <= to_min * 60_000]
        if len(inside) < 2:
            return 0.0
        first, last = inside[0], inside[-1]
        return (last.ended - first.ended) * 60_000 / (last.at_ms - first.at_ms)


class Model(State):
    """All parts of one run."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.claimed = 0
        self.done = 0
        self.ended_twice = 0
        self.reasons: dict[str, int] = {}
        # Committed packs (batches of URLs) whose messages may be delivered again. True: the pack
        # has no following pack.
        self.committed: dict[str, bool] = {}
        self._journaled: set[str] = set()
        self._warm: list[Container] = []
        self._running = 0
        self._finished_ms: int | None = None
        self._shards_free_ms = [0] * scenario.shards
        self._samples: list[Sample] = []

    def run(self) -> Result:
        self.kernel.ready(self._play())
        self.kernel.ready(self._sampled())
        until_ms = round(self.scenario.minutes * 60_000)
        self.kernel.run(until_ms)
        self.kernel.close()
        return Result(
            scenario=self.scenario,
            books=self.books,
            samples=self._samples,
            claimed=self.claimed,
            finished_ms=self._finished_ms,
            ended_twice=self.ended_twice,
            too_soon=sum(host.too_soon for host in self.web.hosts.values()),
            in_flight_most=self.queue.in_flight_most,
            host_writes_most=self.table.writes_most,
            reasons=dict(sorted(self.reasons.items())),
        )

    # Callbacks of visits

    def ended(self, host: Host, target: Target, reason: str) -> None:
        """Record that a URL is finished. A second end is counted as an error."""
        place = int(target.url.rpartition("/")[2] or 0)
        if host.ended[place]:
            self.ended_twice += 1
        host.ended[place] = 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1

    # Start of the queue

    async def _play(self) -> None:
        await self.begin()
        await self._feed()

    async def begin(self) -> None:
        """Queue the seeds, or the known part of each host."""
        targets: list[Target] = []
        for number, candidates in enumerate(self._batches()):
            targets = candidates
            journal = Journal(at_ms=0, candidates=tuple(targets), crawl=CRAWL)
            ledger = Ledger(pack=f"seeds{number}", children=tuple(range(len(targets))))
            self.claimed += len(targets)
            self._claims(len(targets), 0)
            outgoing_packs = outbox(child_id("seeds", number), CRAWL, journal, ledger)
            await self.succession.send(self.crawl, ledger, outgoing_packs, NOWHERE)
        if self.scenario.known:
            self.books.forget()  # found and queued before the run

    def _batches(self) -> Iterator[list[Target]]:
        hosts = list(self.web.hosts.values())
        known = self.scenario.known
        batch: list[Target] = []
        depth = 0
        most = max(max(1, round(host.pages * known)) for host in hosts)
        # 25 URLs of each host in turn, because links mix the hosts of a real queue, too.
        step = 25 if known else 1
        while depth < most:
            for host in hosts:
                limit = max(1, round(host.pages * known))
                for place in range(depth, min(depth + step, limit)):
                    batch.append(Target(url=f"{host.name}/{place}", depth=0))
                    if len(batch) == SEEDS_REFERENCES_MAX:
                        yield batch
                        batch = []
                host.found = max(host.found, min(depth + step, limit))
            depth += step
        if batch:
            yield batch

    # The event source and the function

    async def _feed(self) -> None:
        """Give batches to workers, up to the fleet's maximum, until the queue is empty."""
        kernel, queue, fleet = self.kernel, self.queue, self.scenario.fleet
        while self.done < self.claimed or self._running or queue.visible or queue.delayed:
            queue.refresh()
            allowed = min(
                fleet.workers_max,
                fleet.workers_first + kernel.time_ms * fleet.workers_more_a_minute // 60_000,
            )
            while self._running < allowed and queue.visible:
                aged = kernel.time_ms - queue.oldest_ms >= fleet.batch_window_ms
                if queue.visible < fleet.batch_size and not aged:
                    break
                packs = queue.receive(fleet.batch_size)
                if not packs:
                    break
                self._running += 1
                kernel.ready(self._invoke(packs))
            await kernel.until(kernel.time_ms + 50)

    async def _invoke(self, packs: list[Pack]) -> None:
        kernel, fleet, books = self.kernel, self.scenario.fleet, self.books
        began_ms = kernel.time_ms
        if self._warm:
            container = self._warm.pop()
        else:
            container = Container(self)
            books.count("cold starts")
            await kernel.until(kernel.time_ms + fleet.cold_start_ms)
        self.books.count("deliveries", len(packs))
        self.recall(container, len(packs))
        await kernel.until(kernel.time_ms + fleet.recall_ms)
        await Batch(self, container, packs, began_ms + fleet.timeout_s * 1000).work()
        self.queue.delete(len(packs))
        took_ms = kernel.time_ms - began_ms
        books.use(Term.INVOCATIONS, Stage.RUN, 1)
        books.use(Term.MB_MS, Stage.RUN, took_ms * fleet.memory_mb)
        books.use(Term.LOG_BYTES, Stage.RUN, LOG_BYTES)
        books.waits_ms["workers' time"] += took_ms
        self._warm.append(container)
        self._running -= 1

    def recall(self, container: Container, packs: int) -> None:
        """Bill reads of each pack's journal, ledger and strikes. Missing items are billed, too."""
        self.books.read("packs", Stage.RECALL, 3 * 2 * packs)
        if self.kernel.time_ms - container.crawl_read_ms >= CRAWL_FRESH_MS:
            container.crawl_read_ms = self.kernel.time_ms
            self.books.read("crawls", Stage.CRAWL, 2)

    async def _sampled(self) -> None:
        while True:
            self._samples.append(
                Sample(
                    at_ms=self.kernel.time_ms,
                    ended=self.done,
                    visible=self.queue.visible,
                    delayed=self.queue.delayed,
                    in_flight=self.queue.in_flight,
                    workers=self._running,
                )
            )
            if self.done == self.claimed and not self._running:
                return
            await self.kernel.until(self.kernel.time_ms + SAMPLE_MS)

    # Cost of settling

    def _claims(self, candidates: int, claimed: float, novelty: Novelty | None = None) -> None:
        """Bill look-ups of links, if they pay, and claims (records of URLs) of new links."""
        books, old = self.books, round(claimed)
        if novelty is None or novelty.needs_lookup(CRAWL):
            books.read("urls", Stage.LOOKUP, candidates + old)
            if novelty is not None:
                novelty.note(CRAWL, candidates + old, old)
        else:
            novelty.note(CRAWL, candidates + old, old)
            # These claims are refused and billed, and then read.
            books.write("urls", Stage.CLAIM, old)
            books.read("urls", Stage.CLAIM, 2 * old)
        books.write("urls", Stage.CLAIM, candidates)

    async def settle(self, visits: Sequence[Visit], round_: Round) -> bool:
        """Settle packs by their journals. Return whether one of them has no following pack."""
        # If a pack was visited twice, the stored journal counts.
        first = {visit.pack.id: visit for visit in visits if visit.pack.id not in self._journaled}
        visits = [*first.values()]
        if not visits:
            return False
        self._journaled.update(first)
        journals = [self._journal(visit) for visit in visits]
        cpu_ms = self.scenario.fleet.pack_cpu_ms * len(visits)
        cpu_ms += sum(SOUGHT_CPU_MS * visit.sought for visit in visits)
        await visits[0].container.think(cpu_ms)
        await self.kernel.until(self.kernel.time_ms + self.scenario.fleet.settle_ms)
        await self._commit([visit.pack.id for visit in visits])
        leaf = False
        for visit, journal in zip(visits, journals, strict=True):
            new = len(journal.candidates)
            self.claimed += new
            for host, urls in visit.learned.items():
                visit.container.host_claims.learn(self.web.hosts[host], urls)
            for end in visit.ends:
                self.ended(*end)
            self.done += len(visit.ends)
            self.books.count("ended", len(visit.ends))
            ledger = Ledger(pack=visit.pack.id, children=tuple(range(new)))
            outgoing_packs = list(outbox(visit.pack.id, CRAWL, journal, ledger))
            await self.succession.send(self.crawl, ledger, outgoing_packs, visit.standing, round_)
            if outgoing_packs or visit.standing.place:
                self.books.write("packs", Stage.SENT, 1)
            if visit.pack.place:
                self.committed[visit.pack.id] = not outgoing_packs
            leaf = leaf or not outgoing_packs
        if self.done == self.claimed:
            self._finished_ms = self.kernel.time_ms
        return leaf

    async def copied(self, pack: Pack) -> bool:
        """Process a message of a committed pack. Return whether the pack has no following pack."""
        await self.succession.start_next(self.crawl, pack.id, place_of_message(pack))
        return self.committed[pack.id]

    def _journal(self, visit: Visit) -> Journal:
        books = self.books
        journal = visit.result.journal(visit.pack.targets, self.kernel.time_ms)
        new = len(journal.candidates)
        units = self.sizes.journal_units(
            records=visit.recorded, candidates=new, again=len(journal.returning)
        )
        books.write("packs", Stage.JOURNAL, units)
        self._claims(new, visit.links_read, visit.container.novelty)
        books.write("pages", Stage.STORE, visit.recorded)
        if visit.recorded:
            long = (visit.recorded + self.random.randrange(RECORDS_LONG)) // RECORDS_LONG
            books.write("pages", Stage.STORE, long)
        return journal

    async def _commit(self, packs: Sequence[str]) -> None:
        """Write ledgers and a counter shard in one transaction, one at a time per shard."""
        self.books.count("commits", len(packs))
        self.books.count("transactions")
        shard = shard_of(packs[0], self.scenario.shards)
        took_ms = self.scenario.fleet.transaction_ms
        for attempt in range(1, TRANSACTION_TRIES + 1):
            now_ms = self.kernel.time_ms
            self.books.write("packs", Stage.COMMIT, 2 * len(packs))
            self.books.write("crawls", Stage.COMMIT, write_units(SHARD_BYTES, transacted=True))
            if self._shards_free_ms[shard] <= now_ms:
                self._shards_free_ms[shard] = now_ms + took_ms
                return
            self.books.count("transactions in conflict")
            ceiling_s = min(PAUSE_CAP_S, PAUSE_BASE_S * 2 ** (attempt - 1))
            await self.kernel.sleep(ceiling_s * self.random.random())
        self.books.count("commits given up")
        self._shards_free_ms[shard] = self.kernel.time_ms + took_ms

    def check(self) -> None:
        """Check whether the crawl is finished: read its item and all shards."""
        self.books.read("crawls", Stage.ANNOUNCE, 2 + 2 * self.scenario.shards)


class Round(rounds.Round):
    """An invocation's round (the time in which it crawls), in virtual time."""

    def __init__(self, model: Model, *, end_ms: int, begin: Callable[[Pack], None]) -> None:
        super().__init__(
            clock=model.kernel,
            settings=model.settings,
            deadline_ms=end_ms,
            ending=ShutdownSignal(),
        )
        self._begin_pack = begin

    @property
    def is_open(self) -> bool:
        """Always True, because the model stops no worker."""
        return True

    def _start(self, pack: Pack) -> None:
        self._begin_pack(pack)


class Batch:
    """The packs of one invocation, and packs taken on early. It follows `batch.py` and `pack.py`.

    Stored pages go into one file for all packs of the batch. It is written before the packs'
    journals. URLs without a request are sent again last.
    """

    def __init__(self, model: Model, container: Container, packs: list[Pack], end_ms: int) -> None:
        self._model = model
        self._container = container
        self._packs = packs
        self._visiting = 0
        self._requeued: list[OutgoingPack] = []
        self._waiting: list[Visit] = []
        self._opened_ms: int | None = None
        self._group = Group(model.kernel)
        self._leaf = False
        self._round = Round(model, end_ms=end_ms, begin=self._begin)

    async def work(self) -> None:
        """Visit all packs concurrently, settle each, and send the deferred URLs."""
        for pack in self._packs:
            if pack.id in self._model.committed:
                self._leaf = await self._model.copied(pack) or self._leaf
            else:
                self._group.start(self._first(pack))
        await self._group.done()
        if self._requeued:
            self._model.queue.send(self._requeued)
            self._model.books.count("put off", len(self._requeued))
        if self._leaf:
            self._model.check()

    async def _first(self, pack: Pack) -> None:
        requeued = await self._visit(pack)
        if requeued is not None:
            self._requeued.append(requeued)

    def _begin(self, pack: Pack) -> None:
        """Take on a pack early: its message is still delayed."""
        self._model.books.count("taken on")
        self._group.start(self._early(pack))

    async def _early(self, pack: Pack) -> None:
        """Visit a pack, again if it got no slot, as `batch.Worker.take_on` does."""
        model, round_ = self._model, self._round
        model.recall(self._container, 1)
        await model.kernel.until(model.kernel.time_ms + model.scenario.fleet.recall_ms)
        while (requeued := await self._visit(pack, early=True)) is not None:
            pack = requeued.pack
            if not await round_.pause(pack.crawl, requeued.delay_s):
                delay_s = round_.resend_delay_s(pack.crawl, requeued.delay_s)
                if delay_s is not None:
                    model.queue.send([replace(requeued, delay_s=delay_s)])
                    model.books.count("put off")
                return

    async def _visit(self, pack: Pack, *, early: bool = False) -> OutgoingPack | None:
        """Visit a pack and settle it. If it got no slot, return the pack to send again."""
        until_ms = self._round.until_ms(pack.crawl, long=bool(pack.place))
        visit = Visit(self._container, pack, until_ms, early=early)
        self._visiting += 1
        await visit.go()
        if not visit.result.deferrals:
            await self._model.succession.take_on_next(self._model.crawl, pack, self._round)
        self._visiting -= 1
        delay_s = visit.result.requeue_delay_s(pack.targets)
        if delay_s is not None and pack.requeues < REQUEUES_MAX:
            self._flush()
            return OutgoingPack(pack=replace(pack, requeues=pack.requeues + 1), delay_s=delay_s)
        if visit.body_bytes:
            self._waiting.append(visit)
            if self._opened_ms is None:
                self._opened_ms = self._model.kernel.time_ms
                self._model.kernel.ready(self._flush_later(self._opened_ms))
            self._flush()
        else:
            self._flush()
            await self._settle([visit])
        return None

    async def _flush_later(self, opened_ms: int) -> None:
        wait_ms = round(self._model.settings.worker.segment_wait_s * 1000)
        await self._model.kernel.until(opened_ms + wait_ms)
        if self._opened_ms == opened_ms:
            self._flush(due=True)

    def _flush(self, *, due: bool = False) -> None:
        """Write the file once no visit runs any more, or the first visit has waited long enough."""
        size = sum(visit.body_bytes for visit in self._waiting)
        full = size >= self._model.settings.worker.segment_bytes_max
        if self._waiting and (due or full or not self._visiting):
            self._model.books.use(Term.S3_PUT, Stage.BODIES, 1)
            self._model.books.count("bytes stored", size)
            ready, self._waiting, self._opened_ms = self._waiting, [], None
            for start in range(0, len(ready), TOGETHER_MAX):
                self._group.start(self._settle(ready[start : start + TOGETHER_MAX]))

    async def _settle(self, visits: Sequence[Visit]) -> None:
        self._leaf = await self._model.settle(visits, self._round) or self._leaf
