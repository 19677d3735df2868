"""Runs of a scope: the one that counts, and its files (exporting/run_state.py).

    _work/dt=<day>/all/runs/<run>                     it has begun; the last one counts
    _work/dt=<day>/all/<run>/plan.json                its units, and where their files end; the last
                                                      one counts, if two workers have made one
    _work/dt=<day>/all/<run>/units/<crawl>/<group>    how far a unit is, and its worker
    _work/dt=<day>/all/<run>/done/<crawl>/<group>     it is done: to be counted by a listing

or `crawl=<crawl>` in the place of `all`. A run is only ever removed, never changed into another:
a worker that removes its own cannot take another one away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orbweaver.exporting.file_store import Store
from orbweaver.exporting.ports import Orders
from orbweaver.exporting.run_state import (
    ExportOrder,
    ExportScope,
    OrderKind,
    RunPlan,
    Ticket,
    Unit,
    UnitProgress,
    decode_plan,
    decode_progress,
    encode_order,
    encode_plan,
    encode_progress,
    run_name,
)

# Of a ticket: so that no two are the same.
CHANCE_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRuns:
    """Runs, and the orders that their workers get."""

    store: Store
    orders: Orders

    async def names(self, scope: ExportScope) -> tuple[str, ...]:
        """Name the runs of a scope that have begun, the one that counts last."""
        return tuple(name[len(scope.runs) :] for name in await self.store.list(scope.runs))

    async def current(self, scope: ExportScope) -> str | None:
        """Name the run that counts."""
        names = await self.names(scope)
        return names[-1] if names else None

    async def stands(self, scope: ExportScope, run: str) -> bool:
        """Whether a run counts, and is not being removed: then its plan has gone first."""
        return (
            await self.current(scope) == run
            and await self.store.get(f"{scope.work}{run}/plan.json") is not None
        )

    async def begin(self, scope: ExportScope, token: str, at_ms: int) -> str | None:
        """Begin a run, or go on with the one that this request began; None if a later one has."""
        run = run_name(at_ms, token, await self.names(scope))
        if run is not None:
            await self.store.put(f"{scope.runs}{run}", b"")
        return run

    async def remove(self, scope: ExportScope, run: str) -> None:
        """Remove what a run has left, and what earlier ones have.

        First its plan, so that no worker goes on with it, and last what says that it counts.
        """
        await self.store.delete([f"{scope.work}{run}/plan.json"])
        older = [name for name in await self.names(scope) if name <= run]
        left = [
            path
            for path in await self.store.list(scope.work)
            if (owner := path[len(scope.work) :].partition("/")[0]) != "runs" and owner <= run
        ]
        await self.store.delete(left)
        await self.store.delete([f"{scope.runs}{name}" for name in sorted([*older, run])])

    async def clean_up(self, scope: ExportScope, run: str) -> None:
        """Remove what is left of a run that does not count any more."""
        await self.store.delete(await self.store.list(f"{scope.work}{run}/"))

    # --- plan and units ---------------------------------------------------------------------

    async def plan(self, scope: ExportScope, run: str) -> RunPlan | None:
        """Read a run's plan; None if there is none yet, or any more."""
        body = await self.store.get(f"{scope.work}{run}/plan.json")
        return None if body is None else decode_plan(body)

    async def keep_plan(self, scope: ExportScope, run: str, plan: RunPlan) -> None:
        """Write a run's plan."""
        await self.store.put(f"{scope.work}{run}/plan.json", encode_plan(plan))

    async def progress(self, scope: ExportScope, run: str, unit: Unit) -> UnitProgress:
        """Read how far a unit is."""
        return decode_progress(await self.store.get(_state(scope, run, unit)), unit)

    async def all_progress(
        self, scope: ExportScope, run: str, units: Sequence[Unit]
    ) -> list[tuple[Unit, UnitProgress]]:
        """Read how far units are."""
        keys = [self.store.key(_state(scope, run, unit)) for unit in units]
        bodies = await self.store.each((lambda key=key: self.store.files.get(key)) for key in keys)  # type: ignore[misc]
        found = zip(units, bodies, strict=True)
        return [(unit, decode_progress(body, unit)) for unit, body in found]

    async def keep(self, scope: ExportScope, run: str, unit: Unit, progress: UnitProgress) -> None:
        """Write how far a unit is."""
        await self.store.put(_state(scope, run, unit), encode_progress(progress, unit))

    async def finish(self, scope: ExportScope, run: str, unit: Unit) -> None:
        """Note that a unit is done, as its state says."""
        await self.store.put(f"{scope.work}{run}/done/{unit.name}", b"")

    async def again(self, scope: ExportScope, run: str, unit: Unit, ticket: Ticket) -> None:
        """Let a unit begin anew, whatever its progress; its worker goes by this ticket."""
        await self.keep(scope, run, unit, UnitProgress(ticket=ticket))
        await self.store.delete([f"{scope.work}{run}/done/{unit.name}"])

    async def unfinished(self, scope: ExportScope, run: str, plan: RunPlan) -> list[Unit]:
        """List the units that are not done."""
        folder = f"{scope.work}{run}/done/"
        done = {path[len(folder) :] for path in await self.store.list(folder)}
        return [unit for unit in plan.units if unit.name not in done]

    # --- orders -----------------------------------------------------------------------------

    def ticket(self, turn: int) -> Ticket:
        """Make a ticket for a turn."""
        return turn, f"{self.store.random.getrandbits(CHANCE_BITS):016x}"

    async def order_units(
        self, scope: ExportScope, run: str, units: Iterable[tuple[Unit, Ticket]]
    ) -> None:
        """Have units worked on, each after any worker with a lower ticket has stopped."""
        kind = OrderKind.UNIT
        orders = [
            ExportOrder(kind=kind, scope=scope, run=run, unit=unit, ticket=self.ticket(turn + 1))
            for unit, (turn, _) in units
        ]
        await self._send(orders)

    async def order(self, kind: OrderKind, scope: ExportScope, run: str) -> None:
        """Have a run begun, by its token, or sealed."""
        await self._send([ExportOrder(kind=kind, scope=scope, run=run)])

    async def _send(self, orders: Sequence[ExportOrder]) -> None:
        bodies = [
            (encode_order(order), order.unit.crawl if order.unit else order.scope.day)
            for order in orders
        ]
        if bodies:
            await self.store.tried(lambda: self.orders.send(bodies))


def _state(scope: ExportScope, run: str, unit: Unit) -> str:
    return f"{scope.work}{run}/units/{unit.name}"
