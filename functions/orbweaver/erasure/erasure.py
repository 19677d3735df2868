"""Steps of an erasure, in order: all data about URLs, a host or a crawl.

First, every crawl gets an erase rule: workers no longer request, claim or record these URLs. So
messages, waiting packs and journals can contain the URLs until they expire. Each step can be
repeated. If the process is killed at any point, erased data does not reappear. Later crawls store
the URLs again if they find them, unless their definitions exclude them.

Data that *belongs* to a URL in scope is removed. Data that only *mentions* it is kept without the
mention. Bodies and texts of other pages are kept unless `mentions` is set, because they belong to
other authors. Table keys and ids contain hashes of URLs, which expire with their items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import field

from orbweaver.control.crawl_control import CLOSE_S, Conflict
from orbweaver.erasure.dead_letters import DeadLetterEraser
from orbweaver.erasure.files import FileEraser, ReadOnlyFiles, Say
from orbweaver.erasure.ports import ClaimTrace, RecordTrace, Stores
from orbweaver.erasure.scope import ErasureScope, definition_left, samples_left
from orbweaver.exporting.manifest import MANIFESTS, PREFIX, decode_manifest
from orbweaver.fetching.cookies import jar_of
from orbweaver.frontier.erase_rule import NAMES_MAX, with_erased
from orbweaver.model.columns import items_folder
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import Permanent, StoredNewer
from orbweaver.model.ports import Files
from orbweaver.model.value import value_class

BATCH = 100
EDIT_TRIES = 5


@value_class
class Forgotten:
    """Result of an erasure: `done` counts erased or changed data by kind, `left` lists failures."""

    done: Mapping[str, int] = field(default_factory=dict)
    left: tuple[str, ...] = ()


class Forgetter:
    """Erases data, with the rights of the person who runs it."""

    def __init__(self, stores: Stores, say: Say = lambda _: None, *, idle: bool = False) -> None:
        """`idle`: no worker has run since the crawls were read."""
        self._idle = idle
        self._stores = stores
        self._traces = stores.traces
        self._crawls = stores.crawls
        self._clock = stores.clock
        self._say = say
        # By crawl id: whether the crawl started after the rule was written. Such a crawl keeps its
        # data.
        self._later: dict[str, bool] = {}

    async def count(self, scope: ErasureScope, look: ErasurePreview) -> Forgotten:
        """Count the data in scope and change nothing.

        Cookies, and the slots and blocks of hosts, are not counted.
        """
        files = ReadOnlyFiles(self._stores.files)
        file_eraser = FileEraser(files=files, clock=self._clock, scope=scope, say=self._say)
        await file_eraser.count()
        done = Counter(look.found)
        done.update(file_eraser.done)
        return Forgotten(done=+done, left=tuple(file_eraser.left))

    async def forget(self, scope: ErasureScope, look: ErasurePreview | None = None) -> Forgotten:
        """Erase all data in scope. Raises Conflict if a run in scope has not ended."""
        if look is None:
            self._say("looking through the tables")
            look = await preview(self._stores, scope)
        refuse(look)
        done, left = Counter[str](), list[str]()
        if scope.rule:
            left += await self._definitions(scope, done)
        await self._wait_for_workers(scope)
        dead_letters = DeadLetterEraser(self._stores, scope)
        await dead_letters.erase()
        done.update(dead_letters.done)
        left += sorted(dead_letters.left)
        done.update(await self._claims(scope))
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
        # Last step: until then, a repeated message finds the crawl finished. Afterwards the
        # tombstone has the same effect.
        for crawl in look.crawls:
            await self._traces.tombstone_crawl(crawl)
            done["crawls"] += 1
        return Forgotten(done=+done, left=(*left, *file_eraser.left))

    async def _is_later(self, crawl_id: str, scope: ErasureScope) -> bool:
        """Return True if a crawl started after the rule was written, so that it has no rule.

        Its data is kept: without its claim, it would request the URL again.
        """
        if not scope.rule:
            return False
        if crawl_id not in self._later:
            # True if the crawl was stored meanwhile. The item of an old crawl can have expired
            # before the claims of the crawl.
            self._later[crawl_id] = await self._crawls.get(crawl_id) is not None
        return self._later[crawl_id]

    async def _wait_for_workers(self, scope: ErasureScope) -> None:
        """Wait until no worker uses a copy of a crawl that was read before the rule was written."""
        if self._idle:
            return  # workers that start afterwards read the rule
        now_ms = self._clock.now_ms()
        crawls = [one for one in await self._crawls.list() if scope.rule or scope.run(one.id)]
        ends_ms = [crawl.ended_ms(now_ms) for crawl in crawls]
        wait_ms = max(ends_ms, default=0) + CLOSE_S * 1000 - now_ms
        if wait_ms > 0:
            self._say(f"waiting {wait_ms / 1000:.0f} s for workers to be done")
            await self._clock.sleep(wait_ms / 1000)

    async def _claims(self, scope: ErasureScope) -> Counter[str]:
        self._say("removing claims")
        done: Counter[str] = Counter()
        gone: list[ClaimTrace] = []
        stripped: list[ClaimTrace] = []
        async for claim in self._traces.claims():
            if is_claimed(claim, scope) and not await self._is_later(claim.crawl, scope):
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
        """Write the rule into all crawls, and remove URLs from definitions and samples.

        Returns a message for each crawl that others edited during each attempt. Finished crawls
        need the rule because later runs read their journals (worker/earlier_runs.py).
        """
        self._say("adding the rule to all crawls")
        edited = []
        crawls = await self._crawls.list()
        self._later = {crawl.id: False for crawl in crawls}
        for listed in crawls:
            crawl: Crawl | None = listed
            for _ in range(EDIT_TRIES):
                if crawl is None:
                    break
                left = definition_left(crawl, scope)
                ruled = with_erased(left, scope.rule, self._clock.now_ms())
                if len(ruled.erased) > NAMES_MAX:
                    raise Conflict(
                        f"{crawl.id} has {NAMES_MAX:,} erased URLs: erase their host or the crawl"
                    )
                if ruled == crawl:
                    break
                if await self._traces.redefine(ruled, crawl):
                    done["definitions"] += left != crawl
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
            left = scope.record_left(trace.record)
            if left is not trace.record and await self._is_later(trace.record.crawl, scope):
                continue
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
        """Remove the cookies and logins of erased runs.

        If a host is erased, remove all cookies and logins of its site.
        """
        async for crawl_id, site in self._traces.cookies():
            # The state of a login has an origin as its site.
            of = jar_of(f"{site}/") if "://" in site else site
            if scope.run(crawl_id) or (scope.host is not None and _site_of(scope.host) == of):
                await self._traces.remove_cookies(crawl_id, site)
                done["cookies"] += 1

    async def _names(self, scope: ErasureScope, look: ErasurePreview) -> set[str]:
        """Return the names of the crawls with erased runs."""
        known = await exported(self._stores.files) if scope.runs else {}
        known |= {crawl.id: crawl.name for crawl in look.crawls}
        return {name for run, name in known.items() if scope.run(run)}

    async def _tables(self, names: set[str], scope: ErasureScope, done: Counter[str]) -> list[str]:
        """Remove the item tables of crawls in `names` that have no remaining run.

        Return the failures.
        """
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


def refuse(look: ErasurePreview) -> None:
    """Raise Conflict if a run in scope has not ended."""
    unfinished = [crawl for crawl in look.crawls if crawl.state is not State.FINISHED]
    if unfinished:
        named = ", ".join(f"{crawl.id} is {crawl.state}" for crawl in unfinished)
        raise Conflict(f"{named}: `orbweaver cancel` it, or wait for its end")


@value_class
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
