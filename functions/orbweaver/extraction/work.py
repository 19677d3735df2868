"""The budget of work that rules may spend on one page, counted and not timed.

Nodes lie in each other and objects refer to each other, and each rule may want all of them: a page
decides by its shape how often it is looked at. So whatever is looked at spends units of one budget;
when that is used up, the rest is not read, and an invalid item says so.

A unit is about 40 ns, measured: a byte of text; a tag that a selector passes; a fifth of a node
that it finds; 32 of its steps from sibling to sibling or from child to parent.
"""

from __future__ import annotations

# At most 0.6 s; ordinary pages spend a hundredth of it.
UNITS_MAX = 15_000_000
# For each node found, and each object, list or value of JSON-LD and microdata looked at.
FOUND_UNITS, OBJECT_UNITS = 5, 20
# For each value that is read as its field's type: 2 to 20 us.
VALUE_UNITS = 100
# For each call of lexbor, whatever it looks at; counted only where there is more of the budget
# elsewhere: a page has at most a thousand items, but those take too long for where others wait.
CALL_UNITS = 100
# Bytes of attributes that a selector passes, steps beside or upwards, bytes of HTML written.
BYTES_A_UNIT, STEPS_A_UNIT, WRITTEN_A_UNIT = 64, 32, 6


class HeavyError(RuntimeError):
    """Rules take more work than they have here: the page is to be read elsewhere."""


class TooMuchError(ValueError):
    """A page holds more than is looked at; the text says what."""


class Work:
    """What rules have spent on one page."""

    def __init__(self, units_max: int = UNITS_MAX, *, tried: bool = False) -> None:
        self.left = units_max
        # Whether there is more of it elsewhere.
        self._tried = tried

    def call(self) -> None:
        """Note that lexbor is called; raises HeavyError where there could be more of that."""
        if self._tried:
            self.spend(CALL_UNITS, "calls")

    def spend(self, units: int, what: str) -> None:
        """Spend units on a kind of thing; raises TooMuchError when there are none left.

        Raises HeavyError instead, which ends all, where there could be more.
        """
        self.left -= units
        if self.left < 0:
            if self._tried:
                raise HeavyError
            raise TooMuchError(f"too much {what}")
