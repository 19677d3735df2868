"""A pack's redo log: decided once, written once, and replayed by every later delivery.

The journal is a redo log. A delivery fetches, then writes its journal *if absent*. From there on
every delivery of the pack, duplicate or not, does the same things with the same values. It claims
the same candidates as of the same moment, stores the same records under the same keys, and commits
the same counts. The ledger then adds the one fact that depends on others: which candidates this
pack won. Journal and ledger determine the outbox, so its packs have the same ids, whichever
delivery sends them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from orbweaver.frontier.late import NOTHING_NEW, Banded, grouped, place_at
from orbweaver.frontier.messages import Pack, Past, SeedsMessage, child_id, past_of
from orbweaver.model.crawl import Counts
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import PACK_TARGETS_MAX, Target, TargetKind
from orbweaver.model.url import host_of

DELAY_S_MAX = 900
# Deferred URLs that come due within this many seconds of each other travel together.
TOGETHER_S = 5
NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """A URL that has no outcome yet and comes back after a delay: deferred, or a retry."""

    target: Target
    delay_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """How a URL ended of which no record is kept, because a rule says so."""

    url: str
    outcome: Outcome
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Everything a pack came to before others had a say; `at_ms` is the moment it claims as of.

    `alone` sends every returning URL in a pack of its own, so that one that crashes us goes on
    by itself.
    """

    at_ms: int
    records: tuple[PageRecord, ...] = ()
    again: tuple[Requeue, ...] = ()
    candidates: tuple[Target, ...] = ()
    counts: Counts = field(default_factory=dict)
    alone: bool = False
    # What was reserved of the crawl's budgets, by part: what of it the counts do not spend
    # goes back with the commit.
    reserved: Mapping[str, int] = field(default_factory=dict)
    # Which delivery that was, as a random number: another one of the same pack may come to the same
    # in the same millisecond. 0 where nothing was reserved.
    by: int = 0
    # URLs that ended without having been asked for, because the crawl did: other runs may.
    unasked: tuple[str, ...] = ()
    unrecorded: tuple[Unrecorded, ...] = ()
    # Whose it is; those of earlier versions do not say.
    crawl: str = ""
    # Links that a limit or the scope left out, for later runs of the crawl's name
    # (worker/retracing.py).
    left: tuple[Target, ...] = ()
    # What of an earlier run is to be looked through next.
    past: tuple[Past, ...] = ()
    # Links that are asked for late, with their bands (frontier/late.py); and the band in which
    # candidates wait that the page limit does not admit, if they do.
    late: tuple[Banded, ...] = ()
    surplus_band: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The fact that a pack is committed: `children` index the candidates it won and may send.

    `surplus` says that it had won more than the budget left, and must give those claims back;
    `sent`, that this is done and its outbox is on the queue: without that word a copy of an early
    pack would send all of its outbox again.
    """

    pack: str
    children: tuple[int, ...]
    surplus: bool = False
    sent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingPack:
    """A pack to send, and how long the queue is to hold it.

    `taken`: the worker that sends it has taken it on, so that its message is for the case that this
    worker dies. A queue that knows who is alive hands it over then, without the delay.
    """

    pack: Pack
    delay_s: int = 0
    taken: bool = False

    @property
    def express(self) -> bool:
        """Whether it goes past others: URLs that do travel apart from those that do not."""
        return any(target.express for target in self.pack.targets)


# Whether URLs go past others, and whether they are for workers with a browser.
_LANES = ((True, False), (False, False), (True, True), (False, True))


def outbox(pack_id: str, crawl: str, journal: Journal, ledger: Ledger) -> tuple[OutgoingPack, ...]:
    """List the packs that a committed pack gives rise to; the same list every time."""
    children = [journal.candidates[place] for place in ledger.children]
    groups: list[tuple[list[Target], int]] = []
    for lane in _LANES:
        going = [target for target in children if (target.express, target.render) == lane]
        groups += [(group, 0) for group in _by_host(going)]
    for lane in _LANES:
        coming = [it for it in journal.again if (it.target.express, it.target.render) == lane]
        groups += _by_due(coming, 1 if journal.alone else PACK_TARGETS_MAX)
    return tuple(
        OutgoingPack(
            pack=Pack(
                id=child_id(pack_id, place), crawl=crawl, at_ms=journal.at_ms, targets=tuple(group)
            ),
            delay_s=delay_s,
        )
        for place, (group, delay_s) in enumerate(groups)
    )


def leads_on(journal: Journal, ledger: Ledger, *, ordered: bool) -> bool:
    """Whether a committed pack sends URLs that check the end of the crawl when they are done.

    In an ordered crawl a retry does not count: late packs need not wait for it.
    """
    returning = any(not ordered or one.target.attempt == 1 for one in journal.again)
    return bool(ledger.children or journal.past or returning)


def late_groups(journal: Journal, ledger: Ledger) -> list[tuple[int, list[Target]]]:
    """List the links that a committed pack has wait, by late pack; the same list every time."""
    late = journal.late
    if ledger.surplus and journal.surplus_band is not None:
        late += tuple((journal.surplus_band, target) for target in surplus_of(journal, ledger))
    return grouped(late)


def outbox_late(pack_id: str, crawl: str, journal: Journal, ledger: Ledger) -> tuple[Pack, ...]:
    """List the late packs that a committed pack gives rise to; the same list every time."""
    packs: list[Pack] = []
    for number, (band, targets) in enumerate(late_groups(journal, ledger)):
        own = child_id(pack_id, f"late/{number}")
        place = place_at(band, targets, journal.at_ms, own)
        pack = Pack(
            id=own,
            crawl=crawl,
            at_ms=journal.at_ms,
            targets=tuple(targets),
            place=place,
            late=True,
        )
        packs.append(pack)
    return tuple(packs)


def outbox_past(pack_id: str, crawl: str, journal: Journal) -> tuple[SeedsMessage, ...]:
    """List the messages that look through more of earlier runs; the same list every time."""
    return tuple(
        past_of(pack_id, crawl, past, place, journal.at_ms)
        for place, past in enumerate(journal.past)
    )


def apart(pack: Pack, at_ms: int) -> Journal:
    """Journal a pack that crashed us before: nothing done, every URL sent on by itself."""
    again = tuple(Requeue(target=target, delay_s=0) for target in pack.targets)
    return Journal(at_ms=at_ms, again=again, alone=True, crawl=pack.crawl)


def surplus_of(journal: Journal, ledger: Ledger) -> tuple[Target, ...]:
    """List the candidates whose claims, if this pack holds them, are to be given back."""
    kept = set(ledger.children)
    return tuple(target for place, target in enumerate(journal.candidates) if place not in kept)


def commit_counts(
    journal: Journal,
    ledger: Ledger,
    won: int,
    hosts: Sequence[str] = (),
    *,
    claim_nanodollars: int,
) -> Counts:
    """Counts that a commit adds: the journal's, the claims kept, and those beyond the budget.

    `claim_nanodollars` is the cost of a claim that is kept. Claims of `hosts` are counted by host,
    too, under its place.
    """
    counts = dict(journal.counts)
    counts["claimed"] = len(ledger.children)
    if hosts:
        places = {host: place for place, host in enumerate(hosts)}
        for child in ledger.children:
            place = places.get(host_of(journal.candidates[child].url))
            if place is not None:
                key = f"host.{place}.claimed"
                counts[key] = counts.get(key, 0) + 1
    if ledger.children:
        paid = claim_nanodollars * len(ledger.children)
        counts["nanodollars"] = counts.get("nanodollars", 0) + paid
    if waiting := late_groups(journal, ledger):
        counts["late_packs"] = counts.get("late_packs", 0) + len(waiting)
        links = sum(len(targets) for _, targets in waiting)
        counts["late_links"] = counts.get("late_links", 0) + links
        if barren := sum(band >= NOTHING_NEW for band, _ in waiting):
            counts["late_barren"] = counts.get("late_barren", 0) + barren
    if won > len(ledger.children) and journal.surplus_band is None:
        key = f"refused.{Refusal.BUDGET}"
        counts[key] = counts.get(key, 0) + won - len(ledger.children)
    return counts


def _by_host(targets: Sequence[Target]) -> Iterator[list[Target]]:
    """Cut targets into full packs of one host each, then mixed packs of what is left.

    A sitemap stands for thousands of URLs, so it travels alone.
    """
    hosts: defaultdict[str, list[Target]] = defaultdict(list)
    for target in targets:
        if target.kind is TargetKind.SITEMAP:
            yield [target]
        else:
            hosts[host_of(target.url)].append(target)
    rest: list[Target] = []
    for queue in hosts.values():
        full = len(queue) - len(queue) % PACK_TARGETS_MAX
        yield from _cut(queue[:full])
        rest += queue[full:]
    yield from _cut(rest)


def _by_due(again: Sequence[Requeue], size: int) -> Iterator[tuple[list[Target], int]]:
    """Cut returning targets into packs that come due together, at the latest one's time."""
    due: defaultdict[int, list[Requeue]] = defaultdict(list)
    for item in again:
        due[-(-item.delay_s // TOGETHER_S)].append(item)
    for bucket in sorted(due):
        delay_s = max(item.delay_s for item in due[bucket])
        for group in _cut([item.target for item in due[bucket]], size):
            yield group, delay_s


def _cut(targets: Sequence[Target], size: int = PACK_TARGETS_MAX) -> Iterator[list[Target]]:
    for start in range(0, len(targets), size):
        yield list(targets[start : start + size])
