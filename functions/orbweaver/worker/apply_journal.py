"""Carry out a journal: claim links, store records, commit, send packs, end the crawl.

A pack is a message with up to 25 URLs. Its journal is the stored result of visiting them, and its
ledger is the record of its commit. Every delivery can repeat each step, with the same effect.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from orbweaver.budget.budget_rules import settlements
from orbweaver.budget.prices import CLAIM
from orbweaver.frontier import late_links
from orbweaver.frontier.admission import admit_target
from orbweaver.frontier.backlog import with_place
from orbweaver.frontier.claims import (
    AlreadyCommitted,
    Claimer,
    Closed,
    Committed,
    OverBudget,
    Recalled,
)
from orbweaver.frontier.erase_rule import erase_rule
from orbweaver.frontier.journal import (
    Journal,
    Ledger,
    commit_counts,
    outbox,
    outbox_late,
    outbox_past,
    surplus_of,
)
from orbweaver.frontier.kind_scores import DEAD
from orbweaver.frontier.messages import Close, Pack, SeedsMessage
from orbweaver.model.crawl import Counters, Counts, Crawl, State, ends_with, finished
from orbweaver.model.errors import PortError, Transient
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.target import PACK_TARGETS_MAX
from orbweaver.model.turns import turn_after
from orbweaver.model.url import redacted
from orbweaver.model.url_rules import by_window
from orbweaver.worker.group_commit import Commits
from orbweaver.worker.late_packs import LatePacks, SentTimes
from orbweaver.worker.succession import NOWHERE, PackPlace, Succession, place_of_message

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls
    from orbweaver.worker.ports import WorkerPorts
    from orbweaver.worker.rounds import Round

_log = logging.getLogger(__name__)
SEAL_TRIES, NOTE_TRIES = 3, 3
# Maximum reads of a host's waiting packs per message of a finished crawl. The next message of that
# host continues.
GIVEN_UP_READS = 4
# The counters of a cancelled crawl change all the time while its queue drains.
CLOSE_TRIES, CLOSE_WAIT_S, CLOSE_AGAIN_S = 5, 0.5, 5
# Seconds to wait before each repeated check. A pack of deferred links (late pack) is usually
# processed in less time, unless its worker must start first.
LATE_WAITS_S = (0.2, 0.8, 2.0, 3.0)
# Series of these waits before the check is left to other workers.
LATE_WAIT_SERIES = 2
ANNOUNCE_WAITS_S = (0.1, 0.4, 1.5)
# A container logs the unbalanced counters of a crawl once in this time, for this many crawls.
UNBALANCED_MS, UNBALANCED_CRAWLS_MAX = 60_000, 1_000


def claimer_of(crawl: Crawl, pack_id: str, at_ms: int, window_s: int | None = None) -> Claimer:
    """Return the owner of a pack's claims. It is the same in all deliveries of the pack.

    `at_ms` is the time of the pack's journal, `window_s` the dedup window of its links.
    """
    # The container's clock can be wrong. A forced run (window 0) replaces claims from before its
    # start, so its own claims must not be older.
    at_ms = max(at_ms, crawl.started_at_ms)
    return Claimer(
        name=crawl.name,
        crawl=crawl.id,
        pack=pack_id,
        at_ms=at_ms,
        stale_before_ms=crawl.stale_before_ms(at_ms, window_s),
        expires_s=crawl.claim_expires_s(at_ms, window_s),
    )


class JournalApplier:
    """Carries out journals (stored results of packs), and ends crawls."""

    def __init__(self, ports: WorkerPorts) -> None:
        self._queue = ports.queue
        self._packs = ports.packs
        self._crawls = ports.crawls
        self._events = ports.events
        self._frontier = ports.frontier
        self._pages = ports.pages
        self._clock = ports.clock
        self.succession = Succession(backlog=ports.backlog, queue=ports.queue, clock=ports.clock)
        self.late_packs = LatePacks(
            backlog=ports.backlog, queue=ports.queue, clock=ports.clock, succession=self.succession
        )
        self.samples = Samples(ports.crawls)
        self.commits = Commits(ports.packs)
        # Time of the last log event, by crawl.
        self._unbalanced_at_ms: dict[str, int] = {}

    async def apply(
        self,
        crawl: Crawl,
        pack_id: str,
        journal: Journal,
        backlog_place: PackPlace = NOWHERE,
        round_: Round | None = None,
    ) -> Ledger | None:
        """Carry out the stored result of a pack.

        Returns its ledger (commit record), or None if the crawl has ended.
        """
        claimer = claimer_of(crawl, pack_id, journal.at_ms)
        won: frozenset[str] = frozenset()
        # The journal may have been written before the erase rule.
        erased = erase_rule(crawl)
        candidates = [one for one in journal.candidates if not erased.url(one.url)]
        for window_s, group in by_window(candidates):
            owner = claimer_of(crawl, pack_id, journal.at_ms, window_s)
            # Repeating a claim succeeds for a link that this pack has claimed already.
            won |= await self._frontier.claim(owner, group)
        left = map(erased.record_left, journal.records)
        if records := [record for record in left if record is not None]:
            await self._pages.store(records)
        await turn_after(won)
        ledger = await self._commit(crawl, pack_id, journal, won)
        await turn_after(won)
        kept = {journal.candidates[index].url for index in ledger.children} if ledger else set()
        # Release only claims of this pack that its ledger excludes, and only after the commit. If
        # the crawl has ended, there is no ledger, and all of them are released.
        given_back = won - kept
        surplus = [target.url for target in journal.candidates if target.url in given_back]
        if surplus:
            await self._frontier.release(claimer, surplus)
        if surplus and ledger is not None and journal.surplus_band is None:
            await self.samples.keep(crawl, {Refusal.BUDGET: tuple(map(redacted, surplus[:3]))})
        if journal.unasked:
            await self._frontier.abandon(crawl, journal.unasked)
        if ledger is not None and not ledger.sent:
            await self._send(crawl, pack_id, journal, ledger, backlog_place, round_)
        return ledger

    async def resend(
        self,
        crawl: Crawl,
        pack_id: str,
        journal: Journal,
        ledger: Ledger,
        backlog_place: PackPlace = NOWHERE,
        round_: Round | None = None,
    ) -> None:
        """Repeat the steps after a commit that an earlier delivery may not have finished."""
        if ledger.surplus:
            claimer = claimer_of(crawl, pack_id, journal.at_ms)
            urls = [target.url for target in surplus_of(journal, ledger)]
            await self._frontier.release(claimer, urls)
        if round_ is not None and not await round_.is_sent(pack_id):
            return
        if ledger.sent:
            await self.succession.start_next(crawl, pack_id, backlog_place)
            return
        if journal.unasked:
            await self._frontier.abandon(crawl, journal.unasked)
        await self._send(crawl, pack_id, journal, ledger, backlog_place)

    async def drop(
        self, crawl: Crawl, message: Pack | SeedsMessage, journal: Journal | None
    ) -> None:
        """Let other runs claim the URLs of a message whose crawl ended before its commit.

        The message arrived after the end, or its pack was visited meanwhile.
        """
        if journal is not None and journal.candidates:
            claimer = claimer_of(crawl, message.id, journal.at_ms)
            urls = [target.url for target in journal.candidates]
            await self._frontier.release(claimer, urls)
        # A pack of deferred links (late pack) holds no claims.
        if isinstance(message, Pack) and not message.late:
            await self._frontier.abandon(crawl, [target.url for target in message.targets])
            if crawl.delay_ms:
                # An earlier delivery may have put the pack into its host's backlog and then died.
                # In this case, the message does not contain the place in the backlog.
                await self._give_up(crawl, message if message.place else with_place(message))

    async def _give_up(self, crawl: Crawl, pack: Pack) -> None:
        for _ in range(GIVEN_UP_READS):
            behind = await self.succession.waiting_packs(pack)
            if not behind:
                break
            known = await self._packs.recall([one.id for one in behind])
            for one in behind:
                # The URLs of a committed pack were requested. The pack may be in the backlog still
                # or again.
                if one.id not in known or known[one.id].ledger is None:
                    await self._frontier.abandon(crawl, [target.url for target in one.targets])
                await self.succession.leave(one)
        await self.succession.start_next(crawl, pack.id, place_of_message(pack))

    async def close(self, close: Close) -> None:
        """End a cancelled crawl. URLs without an outcome count as `skipped: cancelled`."""
        # Delayed messages arrive up to 15 minutes later, and are then dropped.
        for _ in range(CLOSE_TRIES):
            crawl = await self._crawls.get(close.crawl)
            if crawl is None or crawl.live:
                return
            if crawl.state is State.FINISHED:
                await self.finish(crawl.id)
                return
            counters = await self._crawls.counters(crawl)
            left = max(0, counters.claimed - counters.done)
            rest = {Outcome.SKIPPED: left, f"{Outcome.SKIPPED}.{Reason.CANCELLED}": left}
            done = finished(crawl, counters, self._clock.now_ms())
            if await self._crawls.seal(crawl, counters, done, rest if left else {}):
                _log.info("crawl.closed", extra={"crawl": crawl.id, "unasked": left})
                await self._announce(done, Counter(counters.total) + Counter(rest))
                return
            await self._clock.sleep(CLOSE_WAIT_S)
        await self._queue.send_close(close, CLOSE_AGAIN_S)

    async def finish(self, crawl_id: str) -> tuple[Crawl, Counts] | None:
        """End a crawl if it has no unfinished URLs.

        Returns the crawl and its counts if this call ended it, else None.
        """
        for _ in range(SEAL_TRIES):
            crawl = await self._crawls.get(crawl_id)
            if crawl is None or crawl.continuous:
                return None
            if crawl.state is State.FINISHED:
                # The worker that ended the crawl may have died before the announcement. Two
                # announcements have the same event id.
                if not await self._announced_soon(crawl):
                    counters = await self._crawls.counters(crawl)
                    await self._announce(crawl, counters.total)
                return None
            counters = await self._crawls.counters(crawl)
            balanced = counters.balance(crawl)
            if not balanced:
                self._log_unbalanced(crawl, counters)
            if await self._send_late(crawl, counters) or not balanced:
                return None
            done = finished(crawl, counters, self._clock.now_ms())
            if await self._crawls.seal(crawl, counters, done):
                _log.info("crawl.finished", extra={"crawl": crawl.id, "stop": done.stop})
                await self._announce(done, counters.total)
                return done, counters.total
        return None

    def _log_unbalanced(self, crawl: Crawl, counters: Counters) -> None:
        """Log the numbers that keep a crawl from its end, at most once per `UNBALANCED_MS`."""
        now_ms, last_ms = self._clock.now_ms(), self._unbalanced_at_ms.get(crawl.id, 0)
        if abs(now_ms - last_ms) < UNBALANCED_MS:
            return
        if len(self._unbalanced_at_ms) >= UNBALANCED_CRAWLS_MAX:
            self._unbalanced_at_ms.clear()
        self._unbalanced_at_ms[crawl.id] = now_ms
        numbers = {
            "claimed": counters.claimed,
            "ended": counters.done,
            "seeds_missing": counters.seeds_missing(crawl),
            "late_packs": counters.late_packs,
        }
        _log.info("crawl.unbalanced", extra={"crawl": crawl.id, **numbers})

    async def _send_late(self, crawl: Crawl, counters: Counters) -> bool:
        """Send packs of deferred links (late packs) if few URLs are in flight.

        Returns False if the crawl has no deferred links.
        """
        if not self._has_late(crawl, counters):
            return False
        dead = 0 if late_links.has_few_in_flight(counters) else await self._dead(crawl)
        known = times = await self._send_due(crawl, counters, dead)
        if times is None:
            return True
        # Another worker has sent late packs, and each of them repeats this check when it is done.
        # But that worker may have died before it sent them. So this worker waits, and sends them
        # itself after each series of waits, unless another worker has sent one meanwhile.
        for _ in range(LATE_WAIT_SERIES):
            for wait_s in LATE_WAITS_S:
                if not dead and counters.claimed > counters.done:
                    dead = await self._dead(crawl)  # dead letters are unfinished, but not in flight
                if counters.claimed - counters.done > dead:
                    return True
                await self._clock.sleep(wait_s)
                counters = await self._crawls.counters(crawl)
                is_last = wait_s == LATE_WAITS_S[-1]
                times = await self._send_due(crawl, counters, dead, known if is_last else None)
                if times is None:
                    return True
            known = times
        return True

    async def _send_due(
        self, crawl: Crawl, counters: Counters, dead: int, known: SentTimes | None = None
    ) -> SentTimes | None:
        """Send the late packs that are due. Returns what `LatePacks.send` returns."""
        if not late_links.has_few_in_flight(counters, dead) or counters.seeds_missing(crawl):
            return None
        due = late_links.late_packs_due(crawl, counters)
        nothing_new = crawl.stop_when_nothing_new
        band_max = late_links.NOTHING_NEW - 1 if nothing_new else late_links.BANDS_MAX
        return await self.late_packs.send(crawl, due, band_max, known)

    async def _dead(self, crawl: Crawl) -> int:
        """Return the number of the crawl's URLs that workers have dead-lettered.

        A redrive does not lower it. Dead letters that SQS moved are not included.
        """
        return (await self._crawls.learned(crawl.id)).get(DEAD, 0)

    async def send_promising(self, crawl_id: str) -> None:
        """Send one promising pack of deferred links if few URLs of the crawl are in flight."""
        # This only saves time: each pack also checks for late packs.
        crawl = await self._crawls.get(crawl_id)
        if crawl is None or not crawl.live:
            return
        counters = await self._crawls.counters(crawl)
        waits = self._has_late(crawl, counters) and not counters.seeds_missing(crawl)
        if waits and late_links.has_few_for_promising(counters):
            await self.late_packs.send(crawl, 1, band_max=late_links.UNKNOWN)

    async def feed(self, crawl: Crawl, hosts: Iterable[str], round_: Round, own: str = "") -> None:
        """Send a pack of deferred links for each idle host in `hosts`, in a crawl with a delay.

        A pack at the place `own` does not count as work of its host.
        """
        # This only saves time, because unused slots of a host are lost. All late packs are sent at
        # the latest when few URLs are in flight.
        idle = [host for host in hosts if await self.succession.is_idle(crawl, host, own)]
        if not idle:
            return
        counters = await self._crawls.counters(crawl)
        if not self._has_late(crawl, counters) or counters.seeds_missing(crawl):
            return
        band_max = late_links.BANDS_MAX
        promising = counters.late_promising * PACK_TARGETS_MAX
        # Links that bring no new pages wait if better links are enough to use up the page limit.
        if crawl.stop_when_nothing_new or promising >= counters.urls_left(crawl):
            band_max = late_links.NOTHING_NEW - 1
        for host in idle:
            await self.late_packs.send_to(crawl, host, band_max, round_)

    def _has_late(self, crawl: Crawl, counters: Counters) -> bool:
        waits = crawl.live and counters.late_packs and counters.urls_left(crawl)
        if not waits or admit_target(crawl, self._clock.now_ms()) is not None:
            return False
        return not ends_with(crawl, counters)

    async def note_dead_letters(self, crawl_id: str, urls: int) -> bool:
        """Add `urls` to the crawl's count of URLs in dead letters.

        Returns True if the crawl may have deferred links, which might now be due.
        """
        crawl = await self._crawls.get(crawl_id)
        if crawl is None or crawl.shards > 1:
            return False  # only crawls with one counter shard defer links
        if urls:
            await self._crawls.learn(crawl, {DEAD: urls})
        return True

    async def _announced_soon(self, crawl: Crawl) -> bool:
        for wait_s in ANNOUNCE_WAITS_S:
            if crawl.announced:
                return True
            await self._clock.sleep(wait_s)
            crawl = await self._crawls.get(crawl.id) or crawl
        return crawl.announced

    async def _announce(self, crawl: Crawl, total: Counts) -> None:
        await self._events.completed(crawl, total)
        await self._crawls.announced(crawl.id)

    async def _commit(
        self, crawl: Crawl, pack_id: str, journal: Journal, won: frozenset[str]
    ) -> Ledger | None:
        indexes = [index for index, target in enumerate(journal.candidates) if target.url in won]
        kept = indexes
        rule = erase_rule(crawl)
        erased = sum(rule.url(target.url) for target in journal.candidates)
        while True:
            ledger = Ledger(pack=pack_id, children=tuple(kept), surplus=len(kept) < len(indexes))
            counts = commit_counts(
                journal, ledger, len(indexes), crawl.hosts_counted, claim_nanodollars=CLAIM
            )
            if erased:
                key = f"refused.{Refusal.ERASED}"
                counts = {**counts, key: counts.get(key, 0) + erased}
            settled = settlements(journal.reserved, counts)
            result = await self.commits.commit(crawl, ledger, counts, settled)
            match result:
                case Committed():
                    return ledger
                case AlreadyCommitted():
                    return result.ledger
                case OverBudget():
                    # The refusal states the remaining budget, which is less than the requested
                    # number.
                    kept = kept[: max(0, min(result.left, len(kept) - 1))]
                case Closed():
                    _log.warning("pack.after_end", extra={"crawl": crawl.id, "pack": pack_id})
                    return None
                case _:
                    assert_never(result)

    async def _send(
        self,
        crawl: Crawl,
        pack_id: str,
        journal: Journal,
        ledger: Ledger,
        backlog_place: PackPlace,
        round_: Round | None = None,
    ) -> None:
        if round_ is not None and not await round_.is_sent(pack_id):
            return
        waiting = outbox_late(pack_id, crawl.id, journal, ledger)
        if waiting:
            await self.late_packs.put(crawl, waiting)
        await turn_after(waiting)
        outgoing = outbox(pack_id, crawl.id, journal, ledger)
        await turn_after(outgoing)
        acquired = await self.succession.send(crawl, ledger, outgoing, backlog_place, round_)
        if journal.past:
            past = outbox_past(pack_id, crawl.id, journal)
            await self._queue.send_seeds(past, express=crawl.express)
        sent = outgoing or waiting or journal.past or backlog_place.place
        if not (sent or ledger.surplus or journal.unasked):
            return
        # This is the last step, so that a delayed copy of this pack does not send everything again.
        for _ in range(NOTE_TRIES):
            if await self._packs.note_sent(pack_id, ledger.leases + acquired):
                return
            # A concurrent delivery of the pack has acquired a lease. It may have died before it
            # sent the leased pack.
            known = (await self._packs.recall([pack_id])).get(pack_id, Recalled())
            if known.ledger is None:
                return
            ledger = known.ledger
            acquired = await self.succession.send(crawl, ledger, outgoing, backlog_place, round_)
        raise Transient(f"other deliveries of {pack_id} have acquired leases {NOTE_TRIES} times")


# Maximum number of remembered examples. If it is exceeded, all are forgotten. Storing an example
# twice is harmless.
KNOWN_MAX = 10_000


class Samples:
    """Stores the first examples of refused URLs for each crawl and reason, for diagnosis."""

    def __init__(self, crawls: Crawls) -> None:
        self._crawls = crawls
        self._known: set[tuple[str, str]] = set()

    async def keep(self, crawl: Crawl, samples: Mapping[str, Sequence[str]]) -> None:
        new = {
            reason: urls
            for reason, urls in samples.items()
            if (crawl.id, reason) not in self._known
        }
        if not new:
            return
        if len(self._known) + len(new) > KNOWN_MAX:
            self._known.clear()
        self._known.update((crawl.id, reason) for reason in new)
        try:
            # Examples that are stored already are not replaced. If the write fails, the new ones
            # are lost.
            await self._crawls.keep_samples(crawl, new)
        except PortError as error:
            _log.warning("samples.not_kept", extra={"crawl": crawl.id, "error": str(error)})
