"""Define the journal (redo log) of a pack, a message with up to 25 URLs.

A delivery that finds no journal requests the URLs of the pack and writes one. Each delivery then
claims, stores and commits the values of the stored journal. The ledger (commit record) states which
links the pack has claimed. Journal and ledger together determine the packs to send (outbox).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from orbweaver.frontier.late_links import NOTHING_NEW, Banded, group_by_band, place_at
from orbweaver.frontier.messages import Pack, Past, SeedsMessage, child_id, past_of
from orbweaver.model.crawl import Counts
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import PACK_TARGETS_MAX, Target, TargetKind
from orbweaver.model.url import host_of
from orbweaver.model.value import value_class

DELAY_S_MAX = 900
# Deferred URLs that are due within this number of seconds of each other share a pack.
TOGETHER_S = 5
NOTHING: Mapping[str, int] = MappingProxyType({})


@value_class
class Requeue:
    """A URL without an outcome that is sent again after a delay: deferred, or for a retry."""

    target: Target
    delay_s: int


@value_class
class Unrecorded:
    """Outcome of a URL whose page record is not stored because of a URL rule."""

    url: str
    outcome: Outcome
    reason: Reason


@value_class
class Journal:
    """Result of visiting a pack's URLs, stored before its links are claimed.

    `candidates` are the links to claim, `at_ms` is the time of these claims. `returning` are the
    URLs to send again.
    """

    at_ms: int
    records: tuple[PageRecord, ...] = ()
    returning: tuple[Requeue, ...] = ()
    candidates: tuple[Target, ...] = ()
    counts: Counts = field(default_factory=dict)
    # True: each URL of `returning` is sent in a separate pack. So a URL that kills its worker does
    # not affect the others.
    alone: bool = False
    # Amounts reserved from the crawl's budgets, by part. The commit returns the unspent amounts.
    reserved: Mapping[str, int] = field(default_factory=dict)
    # Random number of the delivery that made the reservations. Two deliveries of a pack can write
    # equal journals in the same millisecond. 0 without reservations.
    delivery: int = 0
    # URLs that ended without a request because the crawl ended. Other runs can claim them.
    unasked: tuple[str, ...] = ()
    unrecorded: tuple[Unrecorded, ...] = ()
    # Id of the crawl, empty in journals of older Orbweaver versions.
    crawl: str = ""
    # Links that a limit or the scope excludes now. Later runs of the same name can request them
    # (worker/earlier_runs.py).
    left: tuple[Target, ...] = ()
    # Packs of earlier runs to read next, for links that these packs left out.
    past: tuple[Past, ...] = ()
    # Links to request late, each with its band (frontier/late_links.py). `surplus_band` is the band
    # for candidates beyond the page limit. None: these are refused.
    late: tuple[Banded, ...] = ()
    surplus_band: int | None = None


@value_class
class Ledger:
    """Commit record of a pack. `children` are the indexes of the candidate links it has claimed.

    `surplus`: the pack claimed more links than the budget allowed, and must release those claims.
    `sent`: these claims are released, and the packs of the claimed links are queued. `leases`:
    number of leases that deliveries of the pack have acquired (worker/lease.py).
    """

    pack: str
    children: tuple[int, ...]
    surplus: bool = False
    # Without this field, a delayed copy of the pack's message would send those packs again.
    sent: bool = False
    leases: int = 0


@value_class
class OutgoingPack:
    """A pack to send, and the delay of its message.

    `taken`: the sending worker processes the pack itself, so the message only matters if that
    worker dies. A queue that detects dead workers then delivers it without the delay.
    """

    pack: Pack
    delay_s: int = 0
    taken: bool = False

    @property
    def express(self) -> bool:
        """True if the pack's URLs have priority. Other URLs are in separate packs."""
        return any(target.express for target in self.pack.targets)


# Pairs: whether URLs have priority, and whether they are for workers with a browser.
_LANES = ((True, False), (False, False), (True, True), (False, True))


def outbox(pack_id: str, crawl: str, journal: Journal, ledger: Ledger) -> tuple[OutgoingPack, ...]:
    """List the packs to send after a commit: packs of claimed links and of URLs to send again.

    The same journal and ledger always result in the same pack ids.
    """
    children = [journal.candidates[index] for index in ledger.children]
    groups: list[tuple[list[Target], int]] = []
    for lane in _LANES:
        going = [target for target in children if (target.express, target.render) == lane]
        groups += [(group, 0) for group in _by_host(going)]
    for lane in _LANES:
        coming = [it for it in journal.returning if (it.target.express, it.target.render) == lane]
        groups += _by_due(coming, 1 if journal.alone else PACK_TARGETS_MAX)
    return tuple(
        OutgoingPack(
            pack=Pack(
                id=child_id(pack_id, index), crawl=crawl, at_ms=journal.at_ms, targets=tuple(group)
            ),
            delay_s=delay_s,
        )
        for index, (group, delay_s) in enumerate(groups)
    )


def has_successors(journal: Journal, ledger: Ledger, *, ordered: bool) -> bool:
    """Return True if a commit sends packs that will check for the end of the crawl."""
    # In an ordered crawl, retries do not count, because late packs do not wait for them.
    returning = any(not ordered or one.target.attempt == 1 for one in journal.returning)
    return bool(ledger.children or journal.past or returning)


def late_groups(journal: Journal, ledger: Ledger) -> list[tuple[int, list[Target]]]:
    """Return the late links of a committed pack, in packs of one band each.

    The same journal and ledger always result in the same packs.
    """
    late = journal.late
    if ledger.surplus and journal.surplus_band is not None:
        late += tuple((journal.surplus_band, target) for target in surplus_of(journal, ledger))
    return group_by_band(late)


def outbox_late(pack_id: str, crawl: str, journal: Journal, ledger: Ledger) -> tuple[Pack, ...]:
    """List the packs of a commit's late links. Their ids are the same in every call."""
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
    """List the messages that make workers read further packs of earlier runs.

    Their ids are the same in every call.
    """
    return tuple(
        past_of(pack_id, crawl, past, index, journal.at_ms)
        for index, past in enumerate(journal.past)
    )


def isolate_urls(pack: Pack, at_ms: int) -> Journal:
    """Return a journal that splits a pack into packs of one URL each, without a request.

    A pack is split if it may have killed a worker.
    """
    again = tuple(Requeue(target=target, delay_s=0) for target in pack.targets)
    return Journal(at_ms=at_ms, returning=again, alone=True, crawl=pack.crawl)


def surplus_of(journal: Journal, ledger: Ledger) -> tuple[Target, ...]:
    """List the candidates that the ledger excludes. The pack must release its claims of these."""
    kept = set(ledger.children)
    return tuple(target for index, target in enumerate(journal.candidates) if index not in kept)


def commit_counts(
    journal: Journal,
    ledger: Ledger,
    won: int,
    hosts: Sequence[str] = (),
    *,
    claim_nanodollars: int,
) -> Counts:
    """Return the counts of a commit: the journal's, the claimed links, and the refused links.

    `won` is the number of successful claims, including claims beyond the budget.
    `claim_nanodollars` is the cost of one claim. Claims of `hosts` are also counted by host, under
    the host's index.
    """
    counts = dict(journal.counts)
    counts["claimed"] = len(ledger.children)
    if hosts:
        indexes = {host: index for index, host in enumerate(hosts)}
        for child in ledger.children:
            index = indexes.get(host_of(journal.candidates[child].url))
            if index is not None:
                key = f"host.{index}.claimed"
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
    """Split targets into full packs of one host each, then into packs of several hosts."""
    hosts: defaultdict[str, list[Target]] = defaultdict(list)
    for target in targets:
        if target.kind is TargetKind.SITEMAP:
            yield [target]  # a sitemap contains up to thousands of URLs
        else:
            hosts[host_of(target.url)].append(target)
    rest: list[Target] = []
    for queue in hosts.values():
        full = len(queue) - len(queue) % PACK_TARGETS_MAX
        yield from _cut(queue[:full])
        rest += queue[full:]
    yield from _cut(rest)


def _by_due(again: Sequence[Requeue], size: int) -> Iterator[tuple[list[Target], int]]:
    """Split URLs to send again into packs of up to `size` URLs, each with its delay.

    A pack is due when the last of its URLs is due.
    """
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
