"""Store the export runs of a scope with their plans and progress (exporting/run_state.py).

A run never changes its name, so a worker that removes its own run cannot remove another run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orbweaver.exporting.file_store import Store
from orbweaver.exporting.run_state import (
    ExportOrder,
    ExportScope,
    OrderKind,
    Orders,
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
from orbweaver.model.value import value_class

# Files, with `crawl=<crawl>` instead of `all` if only one crawl is exported:
#     _work/dt=<day>/all/runs/<run>                    the run exists; the last one is current
#     _work/dt=<day>/all/<run>/plan.json               its units and limits; the last write counts
#     _work/dt=<day>/all/<run>/units/<crawl>/<group>   progress of a unit, and its ticket
#     _work/dt=<day>/all/<run>/done/<crawl>/<group>    the unit is done, countable by a listing

# Random bits of a ticket, which make it unique.
CHANCE_BITS = 64


@value_class
class ExportRuns:
    """Starts, finds and removes export runs, and sends messages to their workers."""

    store: Store
    orders: Orders

    async def names(self, scope: ExportScope) -> tuple[str, ...]:
        return tuple(name[len(scope.runs) :] for name in await self.store.list(scope.runs))

    async def current(self, scope: ExportScope) -> str | None:
        names = await self.names(scope)
        return names[-1] if names else None

    async def is_current(self, scope: ExportScope, run: str) -> bool:
        """Whether a run is current and not being removed.

        A removal deletes the run's plan first.
        """
        return (
            await self.current(scope) == run
            and await self.store.get(f"{scope.state_folder}{run}/plan.json") is not None
        )

    async def begin(self, scope: ExportScope, token: str, at_ms: int) -> str | None:
        """Start the run of a request, or continue it.

        Returns its name, or None if a later run exists.
        """
        run = run_name(at_ms, token, await self.names(scope))
        if run is not None:
            await self.store.put(f"{scope.runs}{run}", b"")
        return run

    async def remove(self, scope: ExportScope, run: str) -> None:
        # The plan is deleted first, so that no worker continues the run. The file with the run's
        # name is deleted last.
        await self.store.delete([f"{scope.state_folder}{run}/plan.json"])
        older = [name for name in await self.names(scope) if name <= run]
        left = [
            path
            for path in await self.store.list(scope.state_folder)
            if (owner := path[len(scope.state_folder) :].partition("/")[0]) != "runs"
            and owner <= run
        ]
        await self.store.delete(left)
        await self.store.delete([f"{scope.runs}{name}" for name in sorted([*older, run])])

    async def clean_up(self, scope: ExportScope, run: str) -> None:
        await self.store.delete(await self.store.list(f"{scope.state_folder}{run}/"))

    # --- plan and units ---------------------------------------------------------------------

    async def plan(self, scope: ExportScope, run: str) -> RunPlan | None:
        """Read a run's plan. Returns None if it is not written yet or already deleted."""
        body = await self.store.get(f"{scope.state_folder}{run}/plan.json")
        return None if body is None else decode_plan(body)

    async def keep_plan(self, scope: ExportScope, run: str, plan: RunPlan) -> None:
        await self.store.put(f"{scope.state_folder}{run}/plan.json", encode_plan(plan))

    async def progress(self, scope: ExportScope, run: str, unit: Unit) -> UnitProgress:
        return decode_progress(await self.store.get(_state(scope, run, unit)), unit)

    async def all_progress(
        self, scope: ExportScope, run: str, units: Sequence[Unit]
    ) -> list[tuple[Unit, UnitProgress]]:
        keys = [self.store.key(_state(scope, run, unit)) for unit in units]
        bodies = await self.store.each((lambda key=key: self.store.files.get(key)) for key in keys)  # type: ignore[misc]
        found = zip(units, bodies, strict=True)
        return [(unit, decode_progress(body, unit)) for unit, body in found]

    async def keep(self, scope: ExportScope, run: str, unit: Unit, progress: UnitProgress) -> None:
        await self.store.put(_state(scope, run, unit), encode_progress(progress, unit))

    async def finish(self, scope: ExportScope, run: str, unit: Unit) -> None:
        await self.store.put(f"{scope.state_folder}{run}/done/{unit.name}", b"")

    async def reset_unit(self, scope: ExportScope, run: str, unit: Unit, ticket: Ticket) -> None:
        """Delete the progress of a unit. `ticket` is the ticket of the worker that starts again."""
        await self.keep(scope, run, unit, UnitProgress(ticket=ticket))
        await self.store.delete([f"{scope.state_folder}{run}/done/{unit.name}"])

    async def unfinished(self, scope: ExportScope, run: str, plan: RunPlan) -> list[Unit]:
        folder = f"{scope.state_folder}{run}/done/"
        done = {path[len(folder) :] for path in await self.store.list(folder)}
        return [unit for unit in plan.units if unit.name not in done]

    # --- messages ---------------------------------------------------------------------------

    def ticket(self, turn: int) -> Ticket:
        return turn, f"{self.store.random.getrandbits(CHANCE_BITS):016x}"

    async def order_units(
        self, scope: ExportScope, run: str, units: Iterable[tuple[Unit, Ticket]]
    ) -> None:
        """Send units to workers.

        Each gets a ticket above the current one, which stops earlier workers.
        """
        kind = OrderKind.UNIT
        orders = [
            ExportOrder(kind=kind, scope=scope, run=run, unit=unit, ticket=self.ticket(turn + 1))
            for unit, (turn, _) in units
        ]
        await self._send(orders)

    async def order(self, kind: OrderKind, scope: ExportScope, run: str) -> None:
        """Send a message to plan a run (`run` is its token) or to seal it."""
        await self._send([ExportOrder(kind=kind, scope=scope, run=run)])

    async def _send(self, orders: Sequence[ExportOrder]) -> None:
        bodies = [
            (encode_order(order), order.unit.crawl if order.unit else order.scope.day)
            for order in orders
        ]
        if bodies:
            await self.store.call(lambda: self.orders.send(bodies))


def _state(scope: ExportScope, run: str, unit: Unit) -> str:
    return f"{scope.state_folder}{run}/units/{unit.name}"
