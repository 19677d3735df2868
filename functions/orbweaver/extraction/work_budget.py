"""Limit the work that rules may spend on one page. The budget is counted, not timed.

The shape of a page decides how often its content is visited. When the budget is exhausted, the
remaining content is not read, and an invalid item reports that. A unit is about 40 ns, measured: a
byte of text, a tag that a selector passes, a fifth of a node that it finds, or 32 of its steps
between nodes.
"""

from __future__ import annotations

# Budget of a page: at most 0.6 s. Ordinary pages spend one percent of it.
UNITS_MAX = 15_000_000
# Units per node found, and per visited object, list or value of JSON-LD and microdata.
FOUND_UNITS, OBJECT_UNITS = 5, 20
# Units per value that is converted to its field's type, which takes 2 to 20 us.
VALUE_UNITS = 100
# Units per call of lexbor. They count only under a reduced budget. A page has at most a thousand
# items, but a thousand calls take too long in a process where other pages wait.
CALL_UNITS = 100
# Numbers of these that cost one unit: bytes of attributes that a selector passes, steps to siblings
# or ancestors, and bytes of serialized HTML.
BYTES_A_UNIT, STEPS_A_UNIT, WRITTEN_A_UNIT = 64, 32, 6


class HeavyError(RuntimeError):
    """Rules exceed a reduced budget, so a separate process must read the page."""


class TooMuchError(ValueError):
    """A page exceeds the full budget. The message names the kind of work."""


class WorkBudget:
    """Remaining work budget of one page, in units."""

    def __init__(self, units_max: int = UNITS_MAX, *, tried: bool = False) -> None:
        self.left = units_max
        # True if `units_max` is a reduced budget, so that HeavyError is raised.
        self._tried = tried

    def call(self) -> None:
        """Count a call of lexbor. Raises HeavyError if a reduced budget is exhausted."""
        if self._tried:
            self.spend(CALL_UNITS, "calls")

    def spend(self, units: int, what: str) -> None:
        """Spend units.

        If too few are left, raises TooMuchError, or HeavyError for a reduced budget. `what` names
        the kind of work.
        """
        self.left -= units
        if self.left < 0:
            if self._tried:
                raise HeavyError
            raise TooMuchError(f"too much {what}")
