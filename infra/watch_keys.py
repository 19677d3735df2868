"""Context keys of monitoring: docs/operations.md."""

from __future__ import annotations

from dataclasses import dataclass

from infra.item_keys import ItemKeys
from infra.keys import choice, number, unfit


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchKeys(ItemKeys):
    """Settings of alarms, traces and cost."""

    alarms: str = choice(
        "free",
        ("free", "all"),
        "all: also ErrorRate, Unreadable, ExportMissing, YieldDrop and NeedsRendering, $0.90 a"
        " month, idle or not",
    )
    export_missing_h: int = number(
        26, 1, 168, "hours without an export that raise the alarm ExportMissing"
    )
    yield_drop_percent: int = number(
        30,
        1,
        99,
        "percentage of pages missing, compared to the previous run, that raises YieldDrop",
    )
    frugal: str = choice(
        "no",
        ("no", "yes"),
        "yes: almost no cost while idle; docs/cost.md lists the missing parts",
    )
    tracing: str = choice(
        "no", ("no", "yes"), "yes: trace invocations with X-Ray, which bills them"
    )

    @property
    def is_frugal(self) -> bool:
        """True if the stack omits resources that cost money while idle."""
        return self.frugal == "yes"

    def check_watching(self) -> None:
        """Raise ConfigError for alarms on metrics that the stack does not send."""
        fix = "omit it or frugal=yes, which sends no metrics of its own"
        if self.is_frugal and self.alarms == "all":
            raise unfit("alarms", self.alarms, fix)
        if self.is_frugal and self.invalid_items_percent:
            raise unfit("invalid_items_percent", self.invalid_items_percent, fix)
