"""One invocation: a batch of packs, visited all at once; `worker.py`, `advance.py`, `segments.py`.

What is kept of pages goes into one file for all packs of the batch, which is written before their
journals are; what nothing was done for is sent again, last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench.scale.kernel import Group
from bench.scale.visiting import Visit
from orbweaver.budget.billing_units import Stage, Term
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.worker.group_commit import TOGETHER_MAX
from orbweaver.worker.pack import REQUEUES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.scale.model import Model
    from bench.scale.visiting import Container
    from orbweaver.frontier.messages import Pack


class Batch:
    """One invocation's packs; what is kept of pages goes into one file for all of them."""

    def __init__(self, model: Model, container: Container, packs: list[Pack], end_ms: int) -> None:
        self._model = model
        self._container = container
        self._packs = packs
        self._end_ms = end_ms
        self._visiting = len(packs)
        self._requeued: list[OutgoingPack] = []
        self._waiting: list[Visit] = []
        self._opened_ms: int | None = None
        self._group = Group(model.kernel)
        self._leaf = False

    async def work(self) -> None:
        """Visit all packs at once, settle each, and send what was put off."""
        settings, kernel = self._model.scenario.settings, self._model.kernel
        reserve_ms = round((settings.fetch_total_s + settings.apply_reserve_s) * 1000)
        until_ms = min(
            self._end_ms - reserve_ms, kernel.time_ms + round(settings.wait_s_max * 1000)
        )
        for pack in self._packs:
            self._group.start(self._pack(Visit(self._container, pack, until_ms)))
        await self._group.done()
        if self._requeued:
            self._model.queue.send(self._requeued)
            self._model.books.count("put off", len(self._requeued))
        if self._leaf:
            self._model.check()

    async def _pack(self, visit: Visit) -> None:
        await visit.go()
        self._visiting -= 1
        pack = visit.pack
        delay_s = visit.result.requeue_delay_s(pack.targets)
        if delay_s is not None and pack.put_offs < REQUEUES_MAX:
            again = replace(pack, put_offs=pack.put_offs + 1)
            self._requeued.append(OutgoingPack(pack=again, delay_s=delay_s))
            self._flush()
            return
        if visit.body_bytes:
            self._waiting.append(visit)
            if self._opened_ms is None:
                self._opened_ms = self._model.kernel.time_ms
                self._model.kernel.ready(self._flush_later(self._opened_ms))
            self._flush()
        else:
            self._flush()
            await self._settle([visit])

    async def _flush_later(self, opened_ms: int) -> None:
        wait_ms = round(self._model.scenario.settings.segment_wait_s * 1000)
        await self._model.kernel.until(opened_ms + wait_ms)
        if self._opened_ms == opened_ms:
            self._flush(due=True)

    def _flush(self, *, due: bool = False) -> None:
        """Write the file once nobody visits any more, or the first has waited long enough."""
        size = sum(visit.body_bytes for visit in self._waiting)
        full = size >= self._model.scenario.settings.segment_bytes_max
        if self._waiting and (due or full or not self._visiting):
            self._model.books.use(Term.S3_PUT, Stage.BODIES, 1)
            self._model.books.count("bytes stored", size)
            ready, self._waiting, self._opened_ms = self._waiting, [], None
            together = 1 if self._model.scenario.changes.commit_each else TOGETHER_MAX
            for start in range(0, len(ready), together):
                self._group.start(self._settle(ready[start : start + together]))

    async def _settle(self, visits: Sequence[Visit]) -> None:
        for outgoing_packs in await self._model.settle(visits):
            if outgoing_packs:
                self._model.queue.send(outgoing_packs)
            else:
                self._leaf = True
