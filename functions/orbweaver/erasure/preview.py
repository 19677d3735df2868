"""Preview of an erasure in tables and dead letters, without changes.

Messages on other queues are not read, because each read counts as a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from orbweaver.erasure.messages import MessageEraser, Stores
from orbweaver.erasure.ports import ClaimTrace
from orbweaver.erasure.rules import definition_left, in_journal, message_left, record_left
from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.manifest import MANIFESTS, PREFIX, decode_manifest
from orbweaver.frontier.messages import Malformed, decode
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import StoredNewer
from orbweaver.model.ports import Files


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """Numbers of claims, records, messages and definitions in scope, and crawls that own them."""

    found: Mapping[str, int]
    crawls: tuple[Crawl, ...] = ()

    @property
    def working(self) -> tuple[Crawl, ...]:
        return tuple(one for one in self.crawls if one.state in (State.RUNNING, State.STOPPING))


async def exported(files: Files) -> dict[str, str]:
    """Return the runs listed in exports' manifests: id to name."""
    known: dict[str, str] = {}
    for key in await files.list(PREFIX + MANIFESTS):
        body = await files.get(key)
        manifest = None if body is None else decode_manifest(body)
        if manifest is not None:
            known |= {crawl: sums.name for crawl, sums in manifest.crawls.items()}
    return known


async def preview(stores: Stores, scope: ErasureScope) -> ErasurePreview:
    """Count the data in scope, and list the crawls that own it.

    Raises StoredNewer if a newer version stored a crawl, because it may contain such data.
    """
    for other in await stores.crawls.newer():
        raise StoredNewer(other.said)
    found: Counter[str] = Counter()
    owners: set[str] = set(scope.runs)
    async for kind, who in _holding(stores, scope):
        found[kind] += 1
        owners.update(who)
    crawls = await stores.crawls.list()
    for crawl in crawls:
        if not scope.runs and definition_left(crawl, scope) != crawl:
            found["definitions"] += 1
            owners.add(crawl.id)
    return ErasurePreview(found=found, crawls=tuple(one for one in crawls if one.id in owners))


async def _holding(stores: Stores, scope: ErasureScope) -> AsyncIterator[tuple[str, set[str]]]:
    """Yield (kind of data, crawl ids) for each claim, record, journal and message in scope."""
    traces = stores.traces
    async for claim in traces.claims():
        if is_claimed(claim, scope):
            yield "claims", {claim.crawl, claim.was}
    async for trace in traces.records():
        record, left = trace.record, record_left(trace.record, scope)
        if left is not record:
            yield "records" if left is None else "mentions_in_records", {record.crawl}
    async for one in traces.journals():
        journal = one.journal
        if journal is not None and in_journal(journal, scope):
            yield "journals", {journal.crawl, *(record.crawl for record in journal.records)}
    async for held in _holding_messages(stores, scope):
        yield held


async def _holding_messages(
    stores: Stores, scope: ErasureScope
) -> AsyncIterator[tuple[str, set[str]]]:
    traces = stores.traces
    for kind, messages in (("parked", traces.parked()), ("waiting", traces.backlog())):
        async for stored in messages:
            message = decode(stored.body)
            if message_left(message, stored.body, scope) is not message:
                yield kind, {stored.crawl}
    for letter in await MessageEraser(stores, scope).dead_letters():
        message = decode(letter.body, letter.source)
        crawl = None if isinstance(message, Malformed) else message.crawl
        yield "dead_letters", set() if crawl is None else {crawl}


def is_claimed(claim: ClaimTrace, scope: ErasureScope) -> bool:
    """Return True if a claim, or the earlier claim that it replaced, is in scope."""
    return (
        scope.url(claim.url) or scope.run(claim.crawl) or bool(claim.was and scope.run(claim.was))
    )
