"""Models an invocation: a batch of packs (batches of URLs), and packs taken on early.

It follows `batch.py` and `pack.py`. Stored pages go into one file for all packs of the batch. It is
written before the packs' journals. URLs without a request are sent again last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench.scale.kernel import Group
from bench.scale.visiting import Visit
from orbweaver.budget.billing_units import Stage, Term
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.worker import rounds
from orbweaver.worker.group_commit import TOGETHER_MAX
from orbweaver.worker.pack import REQUEUES_MAX
from orbweaver.worker.shutdown import ShutdownSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.scale.model import Model
    from bench.scale.visiting import Container
    from orbweaver.frontier.messages import Pack

    Begin = Callable[[Pack], None]


class Round(rounds.Round):
    """An invocation's round (the time in which it crawls), in virtual time."""

    def __init__(self, model: Model, *, end_ms: int, begin: Begin) -> None:
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
    """The packs of one invocation."""

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
        wait_ms = round(self._model.settings.segment_wait_s * 1000)
        await self._model.kernel.until(opened_ms + wait_ms)
        if self._opened_ms == opened_ms:
            self._flush(due=True)

    def _flush(self, *, due: bool = False) -> None:
        """Write the file once no visit runs any more, or the first visit has waited long enough."""
        size = sum(visit.body_bytes for visit in self._waiting)
        full = size >= self._model.settings.segment_bytes_max
        if self._waiting and (due or full or not self._visiting):
            self._model.books.use(Term.S3_PUT, Stage.BODIES, 1)
            self._model.books.count("bytes stored", size)
            ready, self._waiting, self._opened_ms = self._waiting, [], None
            together = 1 if self._model.scenario.changes.commit_each else TOGETHER_MAX
            for start in range(0, len(ready), together):
                self._group.start(self._settle(ready[start : start + together]))

    async def _settle(self, visits: Sequence[Visit]) -> None:
        self._leaf = await self._model.settle(visits, self._round) or self._leaf
