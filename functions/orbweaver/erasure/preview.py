"""Preview of an erasure in tables and dead letters, without changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from orbweaver.erasure.dead_letters import DeadLetterEraser
from orbweaver.erasure.ports import ClaimTrace, Stores
from orbweaver.erasure.rules import definition_left
from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.manifest import MANIFESTS, PREFIX, decode_manifest
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import StoredNewer
from orbweaver.model.ports import Files


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """Numbers of claims, records, dead letters and definitions in scope, and the runs to erase."""

    found: Mapping[str, int]
    crawls: tuple[Crawl, ...] = ()


async def exported(files: Files) -> dict[str, str]:
    """Return the names of the runs that the manifests of exports list, by run id."""
    known: dict[str, str] = {}
    for key in await files.list(PREFIX + MANIFESTS):
        body = await files.get(key)
        manifest = None if body is None else decode_manifest(body)
        if manifest is not None:
            known |= {crawl: sums.name for crawl, sums in manifest.crawls.items()}
    return known


async def preview(stores: Stores, scope: ErasureScope) -> ErasurePreview:
    """Count the data in scope, and list the runs in scope.

    Raises StoredNewer if a newer version stored a crawl, because it may contain such data.
    """
    for other in await stores.crawls.newer():
        raise StoredNewer(other.said)
    found = Counter([kind async for kind in _holding(stores, scope)])
    crawls = await stores.crawls.list()
    if not scope.runs:
        found["definitions"] = sum(definition_left(crawl, scope) != crawl for crawl in crawls)
    return ErasurePreview(found=+found, crawls=tuple(one for one in crawls if scope.run(one.id)))


async def _holding(stores: Stores, scope: ErasureScope) -> AsyncIterator[str]:
    """Yield the name of a counter for each claim, record and dead letter in scope."""
    async for claim in stores.traces.claims():
        if is_claimed(claim, scope):
            yield "claims"
    async for trace in stores.traces.records():
        left = scope.record_left(trace.record)
        if left is not trace.record:
            yield "records" if left is None else "mentions_in_records"
    for _ in await DeadLetterEraser(stores, scope).find():
        yield "dead_letters"


def is_claimed(claim: ClaimTrace, scope: ErasureScope) -> bool:
    """Return True if a claim, or the earlier claim that it replaced, is in scope."""
    return (
        scope.url(claim.url) or scope.run(claim.crawl) or bool(claim.was and scope.run(claim.was))
    )
