"""The exporter: a UTC day of page records becomes files that say the same however often it is run.

    planning  a run of a day begins: its units      runs     what stands of it meanwhile
    units     a unit is worked through              reading  its rows
    chunk     a stretch of them, in all formats     workspace  where its files are made
    sealing   all units are done: the manifest      mending  manifests and files kept together
    store     files, with patience                  feed     what is asked of the change feed
    alone     all of it in one process, without a queue

    See the room's `__init__` for its modules in reading order.
A run is worked on by any number of workers, by orders on a queue that may come twice, late, at once
and after a death. All that they know of each other lies in files (exporting/run_state.py).

- The manifest is all that readers see. It comes after everything that it names, is withdrawn before
  a file that it names is replaced, and says nothing of who wrote it. A run over unchanged records
  puts nothing at all: files are compared by their SHA-256 before.
- What is in a file follows from the records: units from the records of the day, rows by shard and
  key, chunks from rows. So doubled, repeated and continued work comes to the same bytes.
- A request that comes in later begins a run of its own, which takes the place of the one before:
  what was stored when it came in is in its export. The same request twice is one run.
- A unit has one worker in the end, by its tickets, however many orders there are. One that goes on
  in another turn is ordered under a higher ticket, and copies stop at their next chunk. So copies
  never become more.
- Runs that saw different records could mix their files, if one stands still between looking whether
  it counts and putting a file. So it looks again afterwards, and a worker that is late sees to it
  that what stands is true (repair.py). The last one to seal reads what stands after it
  (finalizer.py).
- Time: a unit does at least a chunk a turn, so that a day ends. Memory: the rows of a chunk are in
  files, and what is read ahead is bounded (row_reader.py); the state of a run goes with its files.

What cannot be had: readers that list folders instead of reading manifests see a run's files as they
come. A worker may stop after it has looked, and die. Then a file may stand that its manifest does
not mean. Its SHA-256 gives it away, and the order comes back and mends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from orbweaver.exporting.file_store import Store
from orbweaver.exporting.finalizer import Finalizer
from orbweaver.exporting.manifest import Manifest
from orbweaver.exporting.orders import OrderKind, decode_order
from orbweaver.exporting.planner import Planner
from orbweaver.exporting.requests import identity_of, jobs_of
from orbweaver.exporting.run_state import ExportScope
from orbweaver.exporting.unit_worker import UnitWorker
from orbweaver.model.ports import Clock

TOKEN_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """Begins runs, and works on them."""

    store: Store
    planner: Planner
    worker: UnitWorker
    finalizer: Finalizer
    clock: Clock
    span: str = "day"

    async def begin(self, event: Mapping[str, Any], identity: str) -> tuple[str, ...]:
        """Begin what an event asks for: the days; `identity` tells it from others without time."""
        event = dict(event)
        jobs = jobs_of(event, self.clock.now_ms(), self.span)
        begun = []
        for job in jobs:
            token = token_of(f"{identity_of(event, identity)}/{job.day}")
            scope = ExportScope(day=job.day)
            if await self.planner.begin(scope, token, gives_way=job.gives_way) is not None:
                begun.append(job.day)
        return tuple(begun)

    async def handle(self, body: str, deadline_ms: int | None = None) -> Manifest | None:
        """Do what an order asks for; the manifest if that has sealed a run."""
        order = decode_order(body)
        match order.kind:
            case OrderKind.PLAN:
                await self.planner.begin(order.scope, token_of(order.run))
            case OrderKind.SEAL:
                return await self.finalizer.seal(order)
            case OrderKind.UNIT if order.unit is not None:
                await self.worker.work(order, order.unit, deadline_ms)
        return None


def token_of(identity: str) -> str:
    """Make of what tells requests apart what names of runs may hold."""
    return blake2b(identity.encode(), digest_size=TOKEN_BYTES).hexdigest()
