"""Orders between exporters: messages on the export queue."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orbweaver.exporting.manifest import ExportEventError, check_day
from orbweaver.exporting.run_state import FIRST, ExportScope, Ticket, Unit

VERSION = 1


class OrderKind(StrEnum):
    """What a worker is to do: begin a run, work on a unit, or put the manifest."""

    PLAN = "plan"
    UNIT = "unit"
    SEAL = "seal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """A message on the export queue; `run` of a plan is its token."""

    kind: OrderKind
    scope: ExportScope
    run: str
    unit: Unit | None = None
    ticket: Ticket = FIRST


def encode_order(order: ExportOrder) -> str:
    """Render a message as ASCII JSON."""
    body: dict[str, Any] = {
        "v": VERSION,
        "kind": order.kind,
        "day": order.scope.day,
        "crawl": order.scope.crawl,
        "run": order.run,
    }
    if order.unit is not None:
        body["unit"] = [order.unit.crawl, order.unit.group, order.unit.groups]
        body["ticket"] = list(order.ticket)
    return json.dumps(body)


def decode_order(body: str) -> ExportOrder:
    """Read a message back; raises ExportEventError for what is none."""
    try:
        raw = json.loads(body)
        kind = OrderKind(raw["kind"] if raw["v"] == VERSION else f"of version {raw['v']}")
        unit, ticket = None, FIRST
        if kind is OrderKind.UNIT:
            crawl, group, groups = raw["unit"]
            unit = Unit(crawl=crawl, group=group, groups=groups)
            turn, chance = raw["ticket"]
            ticket = (turn, chance)
        scope = ExportScope(day=check_day(raw["day"]), crawl=raw["crawl"])
        return ExportOrder(kind=kind, scope=scope, run=raw["run"], unit=unit, ticket=ticket)
    except (ValueError, KeyError, TypeError) as error:
        raise ExportEventError(f"no message of the exporter: {body!r}"[:200]) from error
