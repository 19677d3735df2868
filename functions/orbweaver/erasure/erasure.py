"""Steps of an erasure, in order: all data about URLs, a host or a crawl.

Data that could restore other data is erased first. Each step can be repeated, and erased data does
not return, wherever the process is killed. Later crawls may store the URLs again, unless their
definitions exclude them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from orbweaver.control.crawl_control import CLOSE_S, Conflict
from orbweaver.erasure.files import FileEraser, ReadOnlyFiles, Say
from orbweaver.erasure.messages import MessageEraser, Stores
from orbweaver.erasure.ports import ClaimTrace, RecordTrace
from orbweaver.erasure.preview import ErasurePreview, exported, is_claimed, preview
from orbweaver.erasure.rules import definition_left, record_left, samples_left
from orbweaver.erasure.scope import ErasureScope
from orbweaver.fetching.cookies import jar_of
from orbweaver.model.columns import items_folder
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import Permanent

BATCH = 100
PASSES_MAX = 50
# The longest delay of a message on a queue is a quarter of an hour.
HIDDEN_WAIT_S, HIDDEN_LOOK_S = 960, 15
EDIT_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Numbers of erased or changed records, claims, messages and files, and a list of failures."""

    done: Mapping[str, int] = field(default_factory=dict)
    left: tuple[str, ...] = ()


class Forgetter:
    """Erases data, with the rights of the person who runs it."""

    def __init__(self, stores: Stores, say: Say = lambda _: None, *, idle: bool = False) -> None:
        """`idle` means that no worker has run since the crawls were read."""
        self._idle = idle
        self._stores = stores
        self._traces = stores.traces
        self._crawls = stores.crawls
        self._clock = stores.clock
        self._say = say

    async def count(self, scope: ErasureScope, look: ErasurePreview) -> Forgotten:
        """Count the data in scope, except messages on queues, without changes."""
        files = ReadOnlyFiles(self._stores.files)
        file_eraser = FileEraser(files=files, clock=self._clock, scope=scope, say=self._say)
        await file_eraser.count()
        done = Counter(look.found)
        done.update(file_eraser.done)
        return Forgotten(done=+done, left=tuple(file_eraser.left))

    async def forget(self, scope: ErasureScope, look: ErasurePreview | None = None) -> Forgotten:
        """Erase all data in scope. Raises Conflict while a running crawl has such data."""
        if look is None:
            self._say("looking through the tables")
            look = await preview(self._stores, scope)
        refuse(look, scope)
        await self._wait_for_workers(look)
        # Journals first: they would claim URLs and store records again.
        message_eraser = MessageEraser(self._stores, scope)
        await self._erase_messages(message_eraser, look)
        done, left = Counter(message_eraser.done), sorted(message_eraser.left)
        done.update(await self._claims(scope))
        if not scope.runs:
            left += await self._definitions(scope, done)
        done.update(await self._records(scope))
        file_eraser = FileEraser(
            files=self._stores.files,
            clock=self._clock,
            scope=scope,
            say=self._say,
            events=self._stores.events,
        )
        names = await self._names(scope, look)
        await file_eraser.erase()
        done.update(file_eraser.done)
        left += await self._tables(names, scope, done)
        if scope.host is not None:
            kept = await self._hosts(scope, done)
            left += [f"{host}: when it may be asked again, until that has passed" for host in kept]
        await self._cookies(scope, done)
        # Last, because copies of messages find the crawl finished until then. Afterwards the
        # remaining item has the same effect.
        for crawl in look.crawls:
            if scope.run(crawl.id):
                await self._traces.tombstone_crawl(crawl)
                done["crawls"] += 1
        # The erased URLs may have been the last of a paused crawl.
        for crawl in await self._crawls.list():
            if crawl.state is State.PAUSED:
                await self._stores.applier.finish(crawl.id)
        return Forgotten(done=+done, left=(*left, *file_eraser.left))

    async def _wait_for_workers(self, look: ErasurePreview) -> None:
        """Wait for workers that read the crawl before it was paused or ended."""
        if self._idle:
            return  # later workers read the crawl's current state
        now_ms = self._clock.now_ms()
        wait_ms = 0
        for crawl in look.crawls:
            since_ms = now_ms if crawl.finished_at_ms is None else crawl.finished_at_ms
            wait_ms = max(wait_ms, since_ms + CLOSE_S * 1000 - now_ms)
        if wait_ms > 0:
            self._say(f"waiting {wait_ms / 1000:.0f} s for workers to be done")
            await self._clock.sleep(wait_ms / 1000)

    async def _erase_messages(self, message_eraser: MessageEraser, look: ErasurePreview) -> None:
        self._say("looking through queues and journals")
        paused = any(crawl.live for crawl in look.crawls)
        until_ms = self._clock.now_ms() + HIDDEN_WAIT_S * 1000
        found = 0
        # Repeated, because packs that are ended here send new messages.
        while found < PASSES_MAX:
            if await message_eraser.erase():
                found += 1
                continue
            # Messages of ended crawls have no effect anyway.
            if not paused or not await message_eraser.hidden():
                return
            if self._clock.now_ms() >= until_ms:
                break
            self._say("waiting for messages that the queue holds back, up to a quarter of an hour")
            await self._clock.sleep(HIDDEN_LOOK_S)
        message_eraser.left.add(
            "messages kept coming, or are held back: run this again when the queues are empty"
        )

    async def _claims(self, scope: ErasureScope) -> Counter[str]:
        self._say("removing claims")
        done: Counter[str] = Counter()
        gone: list[ClaimTrace] = []
        stripped: list[ClaimTrace] = []
        async for claim in self._traces.claims():
            if is_claimed(claim, scope):
                whole = scope.url(claim.url) or scope.run(claim.crawl)
                (gone if whole else stripped).append(claim)
                done["claims"] += 1
            if len(gone) + len(stripped) >= BATCH:
                await self._traces.remove_claims(gone)
                await self._traces.strip_claims(stripped)
                gone, stripped = [], []
        await self._traces.remove_claims(gone)
        await self._traces.strip_claims(stripped)
        return done

    async def _definitions(self, scope: ErasureScope, done: Counter[str]) -> list[str]:
        """Remove URLs from definitions and samples. Return crawls that were edited too often."""
        edited = []
        for listed in await self._crawls.list():
            crawl: Crawl | None = listed
            for _ in range(EDIT_TRIES):
                if crawl is None or (left := definition_left(crawl, scope)) == crawl:
                    break
                if await self._traces.redefine(left, crawl):
                    done["definitions"] += 1
                    break
                crawl = await self._crawls.get(listed.id)
            else:
                edited.append(f"the definition of {listed.id} was edited meanwhile: run this again")
            samples = await self._crawls.samples(listed.id)
            kept = samples_left(samples, scope)
            if kept != dict(samples):
                await self._traces.put_samples(listed.id, kept)
                done["samples"] += 1
        return edited

    async def _records(self, scope: ErasureScope) -> Counter[str]:
        self._say("removing page records")
        done: Counter[str] = Counter()
        gone: list[RecordTrace] = []
        async for trace in self._traces.records():
            left = record_left(trace.record, scope)
            if left is None:
                gone.append(trace)
            elif left is not trace.record:
                await self._stores.pages.store([left])
                done["mentions_in_records"] += 1
            if len(gone) >= BATCH:
                await self._traces.remove_records(gone)
                done["records"] += len(gone)
                gone = []
        await self._traces.remove_records(gone)
        done["records"] += len(gone)
        return done

    async def _cookies(self, scope: ErasureScope, done: Counter[str]) -> None:
        """Remove the cookies of a crawl, or of a host's whole site."""
        async for crawl_id, site in self._traces.cookies():
            if scope.run(crawl_id) or (scope.host is not None and _site_of(scope.host) == site):
                await self._traces.remove_cookies(crawl_id, site)
                done["cookies"] += 1

    async def _names(self, scope: ErasureScope, look: ErasurePreview) -> set[str]:
        """Return the names of crawls whose runs are erased as a whole."""
        known = await exported(self._stores.files) if scope.runs else {}
        known |= {crawl.id: crawl.name for crawl in look.crawls}
        return {name for run, name in known.items() if scope.run(run)}

    async def _tables(self, names: set[str], scope: ErasureScope, done: Counter[str]) -> list[str]:
        """Remove item tables of names without remaining runs. Return the failures."""
        catalogue = self._stores.catalogue
        if catalogue is None or not names:
            return []
        crawls = await self._crawls.list()
        stay = {crawl.name for crawl in crawls if not scope.run(crawl.id)}
        stay |= set((await exported(self._stores.files)).values())
        left = []
        for name in sorted(names - stay):
            try:
                done["tables"] += await catalogue.remove(items_folder(name))
            except Permanent as error:
                left.append(f"the tables of items of {name} in the catalogue: {error}")
        return left

    async def _hosts(self, scope: ErasureScope, done: Counter[str]) -> list[str]:
        kept = []
        async for host in self._traces.hosts():
            if scope.url(f"{host}/"):
                done["hosts"] += 1
                if not await self._traces.remove_host(host, self._clock.now_ms()):
                    kept.append(host)
        return kept


def _site_of(host: str) -> str:
    """Return the site of a host given as an origin or without a scheme."""
    return jar_of(f"{host if '://' in host else f'https://{host}'}/")


def refuse(look: ErasurePreview, scope: ErasureScope) -> None:
    """Raise Conflict if a running crawl has data in scope."""
    unfinished = [crawl for crawl in look.crawls if scope.run(crawl.id)]
    unfinished = [crawl for crawl in unfinished if crawl.state is not State.FINISHED]
    if unfinished:
        named = ", ".join(f"{crawl.id} is {crawl.state}" for crawl in unfinished)
        raise Conflict(f"{named}: `orbweaver cancel` it, or wait for its end")
    if look.working:
        named = ", ".join(crawl.id for crawl in look.working)
        raise Conflict(
            f"still at work with it: {named}. Pause (`orbweaver pause`) or cancel it, or wait for"
            " its end; a paused one goes on without it afterwards"
        )
