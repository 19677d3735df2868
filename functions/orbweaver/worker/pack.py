"""Process one pack (message with up to 25 URLs) from the step that earlier deliveries reached.

worker/batch.py has recalled what earlier deliveries stored. The steps here are: admit, visit, store
content, write the journal (stored result), carry it out. docs/protocol.md explains their order. If
a pack of one URL is delivered again without a journal, it may have killed its worker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.budget.reservation import BudgetKeeper, Reservations
from orbweaver.fetching.response_verdict import End
from orbweaver.frontier.admission import admit_target
from orbweaver.frontier.claims import FinishedPack, JournaledPack, NewPack, Recalled, stage_of
from orbweaver.frontier.crawl_scope import admit_claimed
from orbweaver.frontier.envelope import SINCE, SINCE_DIGITS_MAX
from orbweaver.frontier.erase_rule import erase_rule
from orbweaver.frontier.journal import Journal, OutgoingPack, has_successors, isolate_urls
from orbweaver.frontier.kind_scores import is_ordered
from orbweaver.frontier.messages import Pack, SeedsMessage, child_id
from orbweaver.frontier.pack_result import (
    InvalidUrl,
    PackResult,
    PageResult,
    UncommittedResults,
    not_requested,
    result_for,
)
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import StoredNewer, is_fault
from orbweaver.model.host_access import longest_s
from orbweaver.model.metrics import counted, failures
from orbweaver.model.named_origins import NO_ORIGINS, origins_of
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.ports import Metrics
from orbweaver.model.target import Target
from orbweaver.model.url import host_of, redacted
from orbweaver.model.value import value_class
from orbweaver.worker.apply_journal import JournalApplier
from orbweaver.worker.body_writer import BodyWriter
from orbweaver.worker.crawl_cache import RecentCrawls
from orbweaver.worker.earlier_runs import EarlierRunReader
from orbweaver.worker.fetch_pack import PackFetcher
from orbweaver.worker.host_claims import ClaimFiles
from orbweaver.worker.link_dedup import LinkDeduplicator
from orbweaver.worker.pack_context import PackContext, page_record
from orbweaver.worker.page_fault import unreadable
from orbweaver.worker.rounds import Round
from orbweaver.worker.seeding import late_result, result_of
from orbweaver.worker.seen_store import SeenStore
from orbweaver.worker.succession import place_of_message

if TYPE_CHECKING:
    from orbweaver.worker.ports import WorkerPorts

_log = logging.getLogger(__name__)

# A pack can be requeued without a journal this number of times. After that, it stores a journal,
# which merges all copies of its message into one pack.
REQUEUES_MAX = 8


@value_class
class Delivery:
    """One message as received from a queue. `receives` includes this delivery.

    `queue` is empty if the worker was invoked directly. `since_ms` is the time since which the
    message waits for a newer version (worker/batch.py).
    """

    id: str
    body: str
    receives: int
    queue: str = ""
    since_ms: int | None = None
    # Receipt handle. Empty if the queue itself redelivers failed messages soon.
    handle: str = ""
    # True if the worker processes the pack while its message is delayed. The message will repeat
    # work that is impossible now.
    early: bool = False


def delivery_of(record: Mapping[str, Any]) -> Delivery:
    """Return the message in a record of an SQS event source."""
    return Delivery(
        id=record["messageId"],
        body=record["body"],
        receives=int(record["attributes"]["ApproximateReceiveCount"]),
        queue=record.get("eventSourceARN", "").rpartition(":")[2],
        handle=record.get("receiptHandle", ""),
        since_ms=since_of(record.get("messageAttributes", {})),
    )


def since_of(attributes: Mapping[str, Mapping[str, str]]) -> int | None:
    """Return the time since which a message waits for a newer version. None: missing or invalid."""
    text = attributes.get(SINCE, {}).get("stringValue", "")
    return int(text) if len(text) <= SINCE_DIGITS_MAX and text.isdecimal() else None


@value_class
class Done:
    """A message was processed. `check` names a crawl that may be complete.

    `check_late` names a crawl whose deferred links may be due although other URLs are in flight.
    """

    check: str | None = None
    check_late: str | None = None


@value_class
class Requeued:
    """The same pack must be sent again, because no URL of it has an outcome."""

    outgoing: OutgoingPack
    express: bool


@value_class
class Hopeless:
    """A message can never succeed."""

    reason: str


Result: TypeAlias = Done | Requeued | Hopeless


@value_class
class _Visited:
    """Result of a visit, which is not stored yet."""

    result: PackResult
    at_ms: int
    reservations: Reservations


class PackProcessor:
    """Processes packs. One instance per container, so its caches are reused."""

    def __init__(
        self,
        ports: WorkerPorts,
        *,
        crawls: RecentCrawls,
        pack_fetcher: PackFetcher,
        applier: JournalApplier,
        metrics: Metrics,
        underway: UncommittedResults | None = None,
    ) -> None:
        """`underway` collects the results that are not committed yet."""
        clock, settings, packs, frontier = ports.clock, ports.settings, ports.packs, ports.frontier
        self._packs, self._crawls = packs, crawls
        self._pack_fetcher = pack_fetcher
        self._applier = applier
        self._body_writer = BodyWriter(
            files=ports.files, clock=clock, random=ports.random, settings=settings
        )
        self.budget_keeper = BudgetKeeper(
            budgets=ports.budgets,
            crawls=ports.crawls,
            clock=clock,
            random=ports.delivery_random,
            settings=settings,
        )
        self._seen = SeenStore(clock)
        self.claim_files = ClaimFiles(
            self._seen, files=ports.files, clock=clock, settings=settings, metrics=metrics
        )
        self._clock, self._metrics, self._settings = clock, metrics, settings
        self._underway = underway or UncommittedResults()
        self._earlier_runs = EarlierRunReader(
            packs=packs, crawls=crawls, frontier=frontier, bounds=settings.bounds
        )
        self._link_dedup = LinkDeduplicator(
            ports, samples=applier.samples, kinds=pack_fetcher.kinds, seen=self._seen
        )

    async def advance(
        self, delivery: Delivery, message: Pack | SeedsMessage, known: Recalled, round_: Round
    ) -> Result:
        """Process a message from the step that earlier deliveries reached, as far as possible.

        `known` is the stored state of its pack.
        """
        try:
            return await self._advance(delivery, message, known, round_)
        finally:
            self._underway.end(message.id)

    async def _advance(
        self, delivery: Delivery, message: Pack | SeedsMessage, known: Recalled, round_: Round
    ) -> Result:
        crawl = await self._crawls.get(message.crawl)
        if crawl is None:
            return Hopeless(reason=f"unknown crawl {message.crawl[:60]!r}")
        failures = delivery.receives - 1
        if isinstance(message, Pack):
            failures += message.failures
        match stage_of(crawl, known):
            case FinishedPack():
                return await self._finish_done(crawl, message, known, round_)
            case _ if failures + 1 >= self._settings.worker.receive_max:
                return await self._give_up(crawl, message, f"failed {failures} times")
            case JournaledPack(journal=journal):
                with self._applier.commits.awaited(crawl.id, message.id):
                    return await self._apply(crawl, message, journal, round_)
            case NewPack(strikes=strikes):
                if isinstance(message, Pack):
                    message = replace(message, failures=failures)
                suspected = failures > 0 or strikes > 0
                return await self._process_new(delivery, message, crawl, suspected, round_)

    async def _process_new(
        self,
        delivery: Delivery,
        message: Pack | SeedsMessage,
        crawl: Crawl,
        suspected: bool,
        round_: Round,
    ) -> Result:
        """Visit a pack without a journal, store its journal, and carry that out.

        `suspected` means that the pack may have killed a worker.
        """
        if crawl.state is State.PAUSED:
            # Messages of a paused crawl are stored (parked) until it resumes.
            if await self._set_aside(delivery, message, crawl, round_):
                return Done()
            self._crawls.forget(crawl.id)
        visited: _Visited | Requeued | Hopeless
        if isinstance(message, SeedsMessage) or message.late:
            visited = await self._take_in(message, crawl)
        elif not suspected:
            visited = await self._visit(message, crawl, round_)
        elif len(message.targets) == 1:
            visited = await self._visit_suspect(message, crawl, round_)
        else:
            return await self._split(message, crawl, round_)
        if not isinstance(visited, _Visited):
            return visited
        with self._applier.commits.awaited(crawl.id, message.id):
            journal = await self._store_journal(crawl, message, visited)
            return await self._apply_own(crawl, message, journal, visited.at_ms, round_)

    async def _split(self, pack: Pack, crawl: Crawl, round_: Round) -> Result:
        """Split a suspected pack of several URLs into packs of one URL."""
        own = isolate_urls(await self.budget_keeper.marked(crawl, pack), self._clock.now_ms())
        with self._applier.commits.awaited(crawl.id, pack.id):
            journal = await self._packs.write_journal(pack.id, own)
            return await self._apply_own(crawl, pack, journal, own.at_ms, round_)

    async def _apply_own(
        self,
        crawl: Crawl,
        message: Pack | SeedsMessage,
        journal: Journal,
        own_at_ms: int,
        round_: Round,
    ) -> Result:
        """Carry out the journal that a pack stored first. This delivery's journal has `own_at_ms`.

        Another delivery may have stored its journal first. It may also have committed the journal
        and released claims. For seeds, both journals have the time of the message, and carrying
        out the same journal twice is harmless.
        """
        if journal.at_ms != own_at_ms:
            known = (await self._packs.recall([message.id])).get(message.id, Recalled())
            if known.ledger is not None:
                return await self._finish_done(crawl, message, known, round_)
        return await self._apply(crawl, message, journal, round_)

    async def _store_journal(
        self, crawl: Crawl, message: Pack | SeedsMessage, visited: _Visited
    ) -> Journal:
        writes = partial(self._link_dedup.journal_result, crawl, message)
        try:
            return await writes(visited.result, visited.at_ms, visited.reservations)
        except Exception as error:
            if not (isinstance(message, Pack) and _is_tried_alone(message) and is_fault(error)):
                raise
            # The URL ends as unreadable, because another attempt would raise the same error.
            result = PackResult(crawl.id, crawl.hosts_counted)
            result.add(unreadable(error, crawl, message.targets[0], visited.at_ms))
            return await writes(result, visited.at_ms, visited.reservations)

    async def _finish_done(
        self, crawl: Crawl, message: Pack | SeedsMessage, known: Recalled, round_: Round
    ) -> Done:
        """Finish a message that is committed, or that arrived after its crawl's end."""
        if known.ledger is None:
            # A copy of this message may have ended the crawl since this worker read the stored
            # results.
            known = (await self._packs.recall([message.id])).get(message.id, Recalled())
            if known.newer is not None:
                raise StoredNewer(known.newer)
        if known.ledger is None:
            await self._applier.drop(crawl, message, known.journal)
            return Done(check=crawl.id)
        if known.journal is None:
            # The journal has expired, so nothing can be sent again.
            return Done()
        place = place_of_message(message)
        await self._applier.resend(crawl, message.id, known.journal, known.ledger, place, round_)
        more = has_successors(known.journal, known.ledger, ordered=is_ordered(crawl))
        # The sender of a late pack (deferred links) relies on this pack to check for the end again.
        return Done(check=crawl.id if message.late or not more else None)

    async def _visit_suspect(
        self, pack: Pack, crawl: Crawl, round_: Round
    ) -> _Visited | Requeued | Hopeless:
        """Visit a pack of one URL that may have killed a worker. Give it up after several deaths.

        Its strikes count the workers that died while they visited it.
        """
        strikes = await self._packs.add_strike(pack.id)
        most = self._settings.worker.strikes_max
        if strikes > most:
            # A redrive from the dead-letter queue gives the URL one more chance.
            await self._packs.set_strikes(pack.id, most - 1)
            return await self._give_up(crawl, pack, f"crashed its worker {most} times")
        try:
            # A requeued URL remains a suspect.
            visited = await self._visit(replace(pack, failures=1), crawl, round_)
        finally:
            # A worker that dies does not reach this line, so any other result was no crash.
            await self._packs.set_strikes(pack.id, strikes - 1)
        if (
            strikes > 1
            and isinstance(visited, _Visited)
            and visited.result.requeue_delay_s(pack.targets)
        ):
            # A requeue does not clear the suspect. Its URL continues under another pack id, with
            # its strikes.
            await self._packs.set_strikes(child_id(pack.id, 0), strikes - 1)
        return visited

    async def _set_aside(
        self, delivery: Delivery, message: Pack | SeedsMessage, crawl: Crawl, round_: Round
    ) -> bool:
        """Park a message of a paused crawl. Return False if the crawl is no longer paused.

        A pack that was started early is not parked. Its delayed message is parked on delivery.
        """
        if delivery.early and isinstance(message, Pack):
            await self._applier.succession.leave_taken(crawl, message, round_)
            return True
        return await self._packs.park(message.crawl, delivery.body, message.id)

    async def _take_in(self, message: Pack | SeedsMessage, crawl: Crawl) -> _Visited:
        """Collect the links to claim, from seeds or from a pack of deferred links."""
        reservations = self.budget_keeper.open(crawl, message.id)
        if isinstance(message, Pack):
            now_ms = self._clock.now_ms()
            result = late_result(message, crawl, now_ms)
            return _Visited(result=result, at_ms=now_ms, reservations=reservations)
        result = result_of(message, crawl)
        if message.past is not None and crawl.live:
            result.add_links(*await self._earlier_runs.look_through(message.past, crawl))
        return _Visited(result=result, at_ms=message.at_ms, reservations=reservations)

    async def _give_up(self, crawl: Crawl, message: Pack | SeedsMessage, reason: str) -> Hopeless:
        """Return `Hopeless` for a message with a `reason`, after starting its host's next pack."""
        place = place_of_message(message)
        await self._applier.succession.start_next(crawl, message.id, place, last=True)
        return Hopeless(reason=reason)

    async def _visit(self, pack: Pack, crawl: Crawl, round_: Round) -> _Visited | Requeued:
        result = result_for(crawl)
        self._underway.begin(pack.id, result)
        reservations = self.budget_keeper.open(crawl, pack.id)
        refused = admit_target(crawl, self._clock.now_ms())
        if refused is not None:
            result.add(*(not_requested(target, refused) for target in pack.targets))
        else:
            # A visit that can last a whole round would reserve more dollars than it needs.
            long = bool(pack.place) and reservations.dollars is None
            until_ms = round_.until_ms(crawl.id, long=long, request_s=longest_s(crawl))
            has_next = False

            async def host_done(host: str) -> None:
                # Other hosts of the pack may still wait for slots.
                nonlocal has_next
                if host == host_of(pack.targets[0].url) and not (result.deferrals or has_next):
                    has_next = await self._applier.succession.take_on_next(crawl, pack, round_)

            context = PackContext(
                crawl=crawl,
                until_ms=until_ms,
                login_until_ms=round_.latest_ms,
                reservations=reservations,
                seen=partial(self._seen.seen, crawl),
                linked=result.links_to,
                named=origins_of(crawl) if self._settings.fetching.allow_addresses else NO_ORIGINS,
                lined=not pack.place,
                suspected=pack.failures > 0,
                asking=self.claim_files.visit(
                    crawl, pack, round_, until_ms, early=round_.has_taken(pack)
                ),
                host_done=host_done,
            )
            holding = self._pack_fetcher.holding(result)
            with holding, self._body_writer.taking_part(crawl.id) as part:
                with reservations.timed():
                    admitted = self._admitted(context, result, pack)
                    await self._pack_fetcher.fetch(context, result, admitted)
                await host_done(host_of(pack.targets[0].url))
                if not result.deferrals:
                    await self._feed(crawl, pack.targets, round_, own=pack.place)
                erased = erase_rule(await self._with_rule(crawl))
                kept = [one for one in result.kept if not erased.url(one.url)]
                result.locate(await part.put(kept))
            reservations.files = part.files
        # Only a commit returns reserved bytes and dollars, and stores counts of logins.
        requeued = pack.requeues < REQUEUES_MAX and not (reservations.reserved or result.must_store)
        if requeued and (delay_s := result.requeue_delay_s(pack.targets)) is not None:
            # Sending the same pack again later costs no table write.
            pack = replace(pack, requeues=pack.requeues + 1)
            return Requeued(
                outgoing=OutgoingPack(pack=pack, delay_s=delay_s), express=crawl.express
            )
        return _Visited(result=result, at_ms=self._clock.now_ms(), reservations=reservations)

    def _admitted(self, context: PackContext, result: PackResult, pack: Pack) -> list[Target]:
        admitted: list[Target] = []
        erased = erase_rule(context.crawl)
        for target in pack.targets:
            if erased.url(target.url):
                result.add(not_requested(target, Reason.ERASED))
                self._pack_fetcher.kinds.leave(context.crawl, [target])
                continue
            try:
                refused = admit_claimed(context.crawl, target)
            except Exception as error:  # noqa: BLE001 - a fault ends one page
                result.add(unreadable(error, context.crawl, target, self._clock.now_ms()))
                continue
            if refused is None:
                admitted.append(target)
                continue
            if refused is not Reason.CONTENT_TYPE:  # many pages link to archives
                told = {"pack": pack.id, "url": redacted(target.url), "reason": refused}
                _log.warning("pack.url_refused", extra=told)
            if refused is Reason.INVALID:  # an invalid URL cannot be a key
                result.add(PageResult(end=InvalidUrl()))
                continue
            end = End(outcome=Outcome.SKIPPED, reason=refused)
            record = page_record(pack.crawl, target, end, self._clock.now_ms())
            self._pack_fetcher.kinds.learn(context.crawl, record)
            result.add(context.forbidden(target, record))
        return admitted

    async def _apply(
        self, crawl: Crawl, message: Pack | SeedsMessage, journal: Journal, round_: Round
    ) -> Done:
        crawl = await self._with_rule(crawl)
        backlog_place = place_of_message(message)
        ledger = await self._applier.apply(crawl, message.id, journal, backlog_place, round_)
        if ledger is None:  # the crawl has ended
            if backlog_place.place:
                await self._applier.drop(crawl, message, None)
            return Done()
        await self._link_dedup.learn_from_journal(crawl, journal, ledger)
        self._count(journal)
        more = has_successors(journal, ledger, ordered=is_ordered(crawl))
        await self._feed(crawl, [*message.targets, *(link for _, link in journal.late)], round_)
        soon = self._pack_fetcher.kinds.looks_soon(crawl)
        return Done(check=None if more else crawl.id, check_late=crawl.id if soon else None)

    async def _with_rule(self, crawl: Crawl) -> Crawl:
        """Return a crawl with its current erase rule, at most five seconds old."""
        # A page may have been requested, or a journal written, before its URL was erased. `forget`
        # waits until no worker uses an older rule.
        now = await self._crawls.get(crawl.id)
        if now is None or now.erased == crawl.erased:
            return crawl
        return replace(crawl, erased=now.erased)

    async def _feed(
        self, crawl: Crawl, targets: Sequence[Target], round_: Round, *, own: str = ""
    ) -> None:
        waits = crawl.delay_ms and is_ordered(crawl) and self._pack_fetcher.kinds.waiting(crawl) > 0
        if waits:
            hosts = {host_of(target.url): None for target in targets}
            await self._applier.feed(crawl, hosts, round_, own)

    def _count(self, journal: Journal) -> None:
        for metric, number in counted(journal.counts):
            self._metrics.add(metric, number)
        for reason, number in failures(journal.counts):
            self._metrics.fail(reason, number)


def _is_tried_alone(pack: Pack) -> bool:
    return pack.failures > 0 and len(pack.targets) == 1 and not pack.late
