"""Long seed lists in chunks, because an item holds at most 400 KB.

The chunks are written before the crawl's item, which has their number and the list's digest. A list
changes only by an erasure, so a container caches it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from hashlib import blake2b
from typing import Any, TypeAlias

from orbweaver.adapters.aws.clients import all_of
from orbweaver.adapters.dynamodb.table import (
    BLOB_BYTES_MAX,
    ConditionFailed,
    Dynamo,
    Fields,
)
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import WEEK_S
from orbweaver.model.errors import Permanent
from orbweaver.model.value import positional_value_class

# Longer lists are stored in chunks.
INLINE_BYTES_MAX = 256 * 1024
CALLS_AT_ONCE = 8
LISTS_KEPT = 8
# Fields of the item: the digest of the list, its chunks, and its erasures.
DIGEST, CHUNKS, ERASURES = "seeds_digest", "seeds_chunks", "seeds_erasures"

# A seed list: the URLs of seeds, and the URLs of sitemaps.
Listed: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


@positional_value_class
class SeedLists:
    """Long seed lists of the `crawls` table."""

    dynamo: Dynamo
    table: str
    _known: dict[tuple[Any, ...], Listed] = field(default_factory=dict)

    async def write(self, crawl: Crawl, kept_s: int) -> Fields | None:
        """Write a new crawl's list. Return fields for its item, or None if the id is taken."""
        chunks = list(_chunks((crawl.seeds, crawl.sitemap_urls)))
        digest = blake2b(json.dumps(chunks).encode(), digest_size=16).hexdigest()
        # An edit may extend the crawl to a week, and the list must not expire before its crawl.
        expires_s = replace(crawl, duration_max_s=WEEK_S).deletable_s(kept_s)
        calls = (
            self._put(crawl.id, place, chunk, digest, expires_s)
            for place, chunk in enumerate(chunks)
        )
        try:
            await all_of(calls, CALLS_AT_ONCE)
        except ConditionFailed:
            return None
        beside = {DIGEST: digest, CHUNKS: len(chunks)}
        return {"seeds": None, "sitemap_urls": None, **beside}

    async def _put(
        self, crawl_id: str, place: int, chunk: Listed, digest: str, expires_s: int | None
    ) -> None:
        chunk_item = {
            **_key(crawl_id, place),
            "digest": digest,
            "blob": zlib.compress(json.dumps(chunk).encode()),
            "expires_at": expires_s,
        }
        # Fails if another crawl with this id has another list.
        when = "attribute_not_exists(#k) OR #digest = :digest"
        await self.dynamo.put(self.table, chunk_item, when, {":digest": digest})

    async def read(self, fields: Mapping[str, Any]) -> Crawl:
        """Return the crawl of an item, with its seed list. Raises NewerVersion."""
        crawl = crawl_codec.from_fields(dict(fields))
        if DIGEST not in fields:
            return crawl
        key = (crawl.id, fields[DIGEST], fields.get(ERASURES, 0))
        if (listed := self._known.get(key)) is None:
            chunks = [chunk for chunk, _ in await self._fetch(crawl.id, fields)]
            seeds = tuple(url for chunk in chunks for url in chunk[0])
            listed = seeds, tuple(url for chunk in chunks for url in chunk[1])
            if len(self._known) >= LISTS_KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = listed
        return replace(crawl, seeds=listed[0], sitemap_urls=listed[1])

    async def erase(self, crawl: Crawl) -> Fields:
        """Remove the URLs that `crawl` has no more from the stored list.

        Return fields for its item.
        """
        fields = await self.dynamo.get(self.table, {"k": crawl.id})
        if DIGEST not in fields:
            return {}
        left = frozenset(crawl.seeds), frozenset(crawl.sitemap_urls)
        for place, (chunk, expires_s) in enumerate(await self._fetch(crawl.id, fields)):
            seeds, sitemaps = (
                tuple(url for url in urls if url in kept)
                for urls, kept in zip(chunk, left, strict=True)
            )
            if (seeds, sitemaps) != chunk:
                await self._put(crawl.id, place, (seeds, sitemaps), fields[DIGEST], expires_s)
        erasures = fields.get(ERASURES, 0) + 1
        return {"seeds": None, "sitemap_urls": None, ERASURES: erasures}

    async def _fetch(
        self, crawl_id: str, fields: Mapping[str, Any]
    ) -> list[tuple[Listed, int | None]]:
        keys = (_key(crawl_id, place) for place in range(fields[CHUNKS]))
        calls = (self.dynamo.get(self.table, key) for key in keys)
        items = await all_of(calls, CALLS_AT_ONCE)
        if any(item.get("digest") != fields[DIGEST] for item in items):
            raise Permanent(f"the seed list of {crawl_id} is incomplete")
        return [(_listed(item["blob"]), item.get("expires_at")) for item in items]


def is_long(crawl: Crawl) -> bool:
    return sum(map(len, (*crawl.seeds, *crawl.sitemap_urls))) > INLINE_BYTES_MAX


def _chunks(listed: Listed) -> Iterator[Listed]:
    seeds, sitemaps = listed
    yield from ((some, ()) for some in _pieces(seeds))
    yield from (((), some) for some in _pieces(sitemaps))


# The pieces fit into an item even if they cannot be compressed.
def _pieces(urls: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    some, size = list[str](), 0
    for url in urls:
        some.append(url)
        size += len(url.encode()) + 4
        if size > BLOB_BYTES_MAX - 16 * 1024:
            yield tuple(some)
            some, size = [], 0
    if some:
        yield tuple(some)


def _listed(blob: bytes) -> Listed:
    seeds, sitemaps = json.loads(zlib.decompress(blob))
    return tuple(seeds), tuple(sitemaps)


def _key(crawl_id: str, place: int) -> Fields:
    return {"k": f"{crawl_id}#seeds#{place}"}
