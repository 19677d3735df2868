"""The live screen: blocks of lines that fit any terminal.

The screen does not scroll: it has at most the terminal's columns and rows. A block has several
sizes, each with a rank. While all blocks together are too high, the block whose current size has
the highest rank shrinks to its next size. All information is also readable without colours.

Numbers are interpolated. Otherwise they jump, because a commit has many URLs. Shown values are
between the last two readings whose number of done URLs differs. They change from one to the other
in about the time between these readings, so they lag by that time. If the crawl has ended, is
paused or completed no URL for a while, the last reading is shown without interpolation.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from rich.text import Text

from orbweaver.cli import text
from orbweaver.cli.live import lines as words
from orbweaver.control.progress.forecast import BAR_MS
from orbweaver.control.progress.hosts import HostAvailability, HostRow, rows_of
from orbweaver.control.progress.spending import budgets_of
from orbweaver.control.progress.status import WORKING, View
from orbweaver.model.crawl import Counters, State
from orbweaver.model.outcome import Outcome
from orbweaver.model.value import value_class

# Maximum width, because longer lines are hard to read.
COLUMNS_MAX = 140
LABEL_COLUMNS = 10
# Characters of bars, and the mark of a missing measurement.
EIGHTHS, STEPS, UNSEEN = " ▁▂▃▄▅▆▇█", 8, "·"
HOST_COLUMNS_MIN, HOST_COLUMNS_MAX = 18, 48
# A line can be broken after a semicolon and before a middle dot.
PARTS = re.compile("(?<=;) | (?=· )")
STATES = {
    State.RUNNING: "bold green",
    State.PAUSED: "bold yellow",
    State.STOPPING: "bold magenta",
    State.FINISHED: "bold cyan",
}
OUTCOMES = {
    Outcome.FETCHED: "green",
    Outcome.UNCHANGED: "cyan",
    Outcome.REDIRECTED: "blue",
    Outcome.SKIPPED: "yellow",
    Outcome.FAILED: "red",
}
STANDINGS = {
    HostAvailability.OPEN: "",
    HostAvailability.BLOCKED: "yellow",
    HostAvailability.DOWN: "red",
}


# From this used share on, a budget is shown as nearly used up.
NEARLY = 0.9
HEAD = ("host", "done", "queued", "failed", "paced at", "next request")
# A size of a block: its rank, and its lines.
Size: TypeAlias = tuple[int, tuple[Text, ...]]
# Maximum time between two readings that are interpolated.
SPAN_MS_MAX = 8_000
EARLY = 0.75


@value_class
class Block:
    """A part of the screen, in several sizes (largest first). The smallest can be dropped, too."""

    sizes: tuple[Size, ...]


def draw(view: View, columns: int, lines: int | None = None, footer: str = "") -> list[Text]:
    """Draw a view for a terminal of this size. If `lines` is None, the height is unlimited."""
    columns = max(1, min(columns, COLUMNS_MAX))
    drawn: list[Text] = []
    for line in fit(_blocks(view, columns, footer), lines):
        if not line and not (drawn and drawn[-1]):
            continue  # the block between two gaps is absent
        drawn.append(line if line.plain.isprintable() else Text(text.clean(line.plain)))
    for line in drawn:
        line.no_wrap = True
        line.truncate(columns, overflow="ellipsis")
    return drawn


def fit(blocks: Sequence[Block], lines: int | None) -> list[Text]:
    """Choose the size of each block so that the total is at most `lines`."""
    left = [[*block.sizes, (0, ())] for block in blocks]
    if lines is not None:
        _shrink(left, lines)
    return [line for sizes in left for line in sizes[0][1]]


def _shrink(left: list[list[Size]], lines: int) -> None:
    room, given_up = lines - sum(len(sizes[0][1]) for sizes in left), []
    while room < 0 and any(len(sizes) > 1 for sizes in left):
        sizes = max((sizes for sizes in left if len(sizes) > 1), key=lambda sizes: sizes[0][0])
        size = sizes.pop(0)
        room += len(size[1]) - len(sizes[0][1])
        given_up.append((sizes, size))
    # The last step can free more lines than needed. Then earlier shrunk blocks get their previous
    # size if it fits.
    for sizes, size in reversed(given_up):
        more = len(size[1]) - len(sizes[0][1])
        if more <= room:
            sizes.insert(0, size)
            room -= more


# --- the blocks ---------------------------------------------------------------------------------


def _blocks(view: View, columns: int, footer: str) -> list[Block]:
    # Blocks with the highest rank shrink first, rank 0 last.
    return [
        _block(0, _heading(view, columns)),
        _block(86, Text(_subtitle(view), style="dim")),
        _block(2, _bar(view, columns)),
        _gap(93),
        _row(20, "pages", _outcomes(view), columns),
        *(
            _row(3, label, Text(said, "bold yellow"), columns)
            for label, said in words.notices(view)
        ),
        _row(5, "dead", Text(words.dead(view), "bold red"), columns),
        _row(4, "left", Text(words.left(view), "bold"), columns),
        _rate(view, columns),
        _gap(93),
        _row(52, "read", Text(words.read(view)), columns),
        _row(51, "items", Text(words.items(view)), columns),
        _row(40, "cost", Text(words.cost(view)), columns),
        _row(45, "limits", _limits(view), columns),
        _gap(88),
        _hosts(view, columns),
        _gap(89),
        _row(35, "failed", Text(words.counted(view.reasons(Outcome.FAILED)), "red"), columns),
        _row(60, "skipped", Text(words.reasons(view, Outcome.SKIPPED)), columns),
        _row(70, "left out", Text(words.left_out(view)), columns),
        _row(75, "again", Text(words.again(view)), columns),
        _row(50, "queue", Text(words.queue(view)), columns),
        *([_gap(90), _block(80, Text(footer, style="dim"))] if footer else []),
    ]


def _block(rank: int, *lines: Text) -> Block:
    return Block(sizes=((rank, lines),) if any(lines) else ())


def _gap(rank: int) -> Block:
    return Block(sizes=((rank, (Text(),)),))


def _row(rank: int, label: str, said: Text, columns: int) -> Block:
    """Make a block of a labelled text, with two sizes: wrapped, or truncated to one line."""
    if not said:
        return Block(sizes=())
    name = (label.ljust(LABEL_COLUMNS), "cyan")
    room = max(1, columns - LABEL_COLUMNS)
    if len(said) <= room:
        return _block(rank, Text.assemble(name, said))
    wrapped = _wrap(said.plain, room)
    # A wrapped text has only one style, the first.
    style = said.style or (said.spans[0].style if said.spans else "")
    indent = " " * LABEL_COLUMNS
    whole = [Text.assemble(name, (wrapped[0], style))]
    whole += [Text.assemble(indent, (rest, style)) for rest in wrapped[1:]]
    return Block(sizes=((85, tuple(whole)), (rank, (Text.assemble(name, said),))))


def _wrap(said: str, room: int) -> list[str]:
    """Wrap a text to `room` columns, if possible only between its parts (`PARTS`)."""
    lines: list[str] = []
    for part in PARTS.split(said):
        if lines and len(lines[-1]) + 1 + len(part) <= room:
            lines[-1] += f" {part}"
        else:
            lines += textwrap.wrap(part.removeprefix("· "), room)
    return lines


def _heading(view: View, columns: int) -> Text:
    left = Text(text.clean(view.crawl.id), style="bold")
    elapsed = text.clock(view.elapsed_s)
    right = Text.assemble((words.state(view), STATES[view.crawl.state]), f" · {elapsed}")
    space = columns - len(left) - len(right)
    return left + Text(" " * max(2, space)) + right


def _subtitle(view: View) -> str:
    crawl = view.crawl
    names = [row.site for row in view.hosts[:1]]
    if len(view.hosts) > 1:
        names.append(f"and {len(view.hosts) - 1} more")
    parts = [" ".join(names), f"scope {crawl.scope}", f"depth {crawl.depth_max}"]
    parts.append(f"{text.pace(crawl.delay_ms)} apart" if crawl.delay_ms else "no delay")
    return text.clean(" · ".join(part for part in parts if part))


def _bar(view: View, columns: int) -> Text:
    counters = view.reading.status.counters
    known = max(counters.claimed, counters.done)
    share = counters.done / known if known else 0.0
    said = f"  {counters.done:,} of {counters.claimed:,} known URLs · {int(share * 100)} %"
    length = max(10, columns - len(said))
    drawn, so_far, cells = Text(), 0, 0
    for outcome in Outcome:
        so_far += view.count(outcome)
        until = length * so_far // known if known else 0
        drawn.append("━" * (until - cells), OUTCOMES[outcome])
        cells = until
    drawn.append("─" * (length - cells), "dim")
    return drawn + Text(said)


def _outcomes(view: View) -> Text:
    return Text(" · ").join(
        Text(f"{view.count(outcome):,} {outcome}", OUTCOMES[outcome])
        for outcome in Outcome
        if outcome is Outcome.FETCHED or view.count(outcome)
    )


def _rate(view: View, columns: int) -> Block:
    said = Text.assemble(("rate".ljust(LABEL_COLUMNS), "cyan"), words.rates(view))
    room = columns - LABEL_COLUMNS
    beside = columns - len(said) - 2
    bars = view.rates.bars
    if view.ended or not bars:
        return _block(8, said)
    indent = " " * LABEL_COLUMNS
    legend = f"  a bar is {BAR_MS // 1000} s" + ("; · not seen" if None in bars[-room:] else "")
    caption = Text(legend, "dim") if beside + 2 >= len(legend) else Text()
    sizes = []
    high = ((92, 3), (91, 2)) if any(bars[-room:]) else ()
    for rank, lines in (*high, (55, 1)):
        drawn = [Text(indent + line, "green") for line in sparkline(bars, room, lines)]
        sizes.append((rank, (said + caption, *drawn)))
    inline = sparkline(bars, max(0, beside), 1)[0]
    sizes.append((8, (said + Text(f"  {inline}", "green"),)))
    return Block(sizes=tuple(sizes))


def _limits(view: View) -> Text:
    return Text(" · ").join(
        Text(budget.said, "yellow" if budget.share >= NEARLY else "") for budget in view.budgets
    )


def _hosts(view: View, columns: int) -> Block:
    """Make a block of a table of hosts, busiest hosts first. Smaller sizes have fewer rows."""
    ordered = sorted(view.hosts, key=lambda row: (-(row.queued or 0), -(row.done or 0)))
    if not ordered:
        return Block(sizes=())
    asked = view.crawl.state in (State.RUNNING, State.STOPPING)
    sizes = []
    for number in range(len(ordered), 0, -1):
        more = len(ordered) - number
        lines = _table(ordered[:number], columns, asked=asked)
        if more:
            lines.append(Text(f"and {text.plural(more, 'more host')}", "dim"))
        # The first rows have a low rank, because they are more important than the blocks below the
        # table.
        sizes.append((30 if number == 1 else 65 if number <= 3 else 87, tuple(lines)))  # noqa: PLR2004
    return Block(sizes=tuple(sizes))


def _table(rows: Sequence[HostRow], columns: int, *, asked: bool) -> list[Text]:
    cells = [HEAD, *(_cells(row, asked=asked) for row in rows)]
    beside = max(map(len, text.table([line[1:] for line in cells], right=range(4)))) + 2
    longest = max(len(line[0]) for line in cells)
    first = min(longest, HOST_COLUMNS_MAX, max(HOST_COLUMNS_MIN, columns - beside))
    shown = [(text.cut(line[0], first), *line[1:]) for line in cells]
    head, *drawn = map(Text, text.table(shown, right=range(1, 5)))
    for row, line, (*_, last) in zip(rows, drawn, shown[1:], strict=True):
        line.stylize(STANDINGS[row.standing], len(line) - len(last))
    head.stylize("cyan")
    return [head, *drawn]


def _cells(row: HostRow, *, asked: bool) -> tuple[str, ...]:
    counts = (
        "?" if number is None else f"{number:,}" for number in (row.done, row.queued, row.failed)
    )
    said = row.words if row.waits or (asked and row.queued != 0) else "-"
    return (row.site, *counts, text.pace(row.delay_ms) if row.delay_ms else "-", text.clean(said))


# --- bars ---------------------------------------------------------------------------------------


def sparkline(numbers: Sequence[float | None], columns: int, lines: int = 1) -> list[str]:
    """Draw the last `columns` numbers as bars in `lines` lines, newest on the right.

    The first string is the top line. The highest number fills the height. Zero is the lowest bar. A
    missing measurement is a dot on the bottom line.
    """
    shown = list(numbers)[-columns:] if columns > 0 else []
    highest = max((number for number in shown if number is not None), default=0.0)
    heights = [_eighths(number, highest, lines * STEPS) for number in shown]
    return [
        "".join(_cell(height, line) for height in heights)
        for line in reversed(range(max(0, lines)))
    ]


def _eighths(number: float | None, highest: float, most: int) -> int | None:
    if number is None:
        return None
    if number <= 0 or highest <= 0:
        return 1
    return min(most, 2 + round((most - 2) * number / highest))


def _cell(height: int | None, line: int) -> str:
    if height is None:
        return " " if line else UNSEEN
    return EIGHTHS[min(STEPS, max(0, height - line * STEPS))]


class ViewInterpolator:
    """Interpolates the numbers between successive views."""

    def __init__(self) -> None:
        self._from: Mapping[str, int] = {}
        self._to: Mapping[str, int] | None = None
        self._done = 0
        self._began_ms = 0
        self._span_ms = 0

    def show(self, view: View) -> View:
        now_ms, total = view.now_ms, view.total
        if view.crawl.state not in WORKING:
            self._to = None
            return view
        done = view.reading.status.counters.done
        if self._to is None:
            self._from, self._began_ms, self._span_ms = total, now_ms, 0
        elif done != self._done:
            shown, apart_ms = self._at(now_ms), now_ms - self._began_ms
            glides = 0 < apart_ms <= SPAN_MS_MAX
            self._from, self._began_ms = (shown if glides else total), now_ms
            # If this reading came early, the next reading still comes after about the usual
            # interval.
            self._span_ms = max(apart_ms, round(self._span_ms * EARLY)) if glides else 0
        self._to, self._done = total, done
        return _with(view, self._at(now_ms))

    def _at(self, now_ms: int) -> Mapping[str, int]:
        to, passed_ms = self._to or {}, now_ms - self._began_ms
        if passed_ms >= self._span_ms:
            return to
        old, share = self._from, max(0, passed_ms) / self._span_ms
        return {
            key: old.get(key, 0) + int((number - old.get(key, 0)) * share)
            for key, number in to.items()
        }


def _with(view: View, total: Mapping[str, int]) -> View:
    if total == view.total:
        return view
    status = view.reading.status
    counters = Counters(shards=status.counters.shards, total=total)
    status = replace(status, counters=counters)
    hosts = rows_of(status, view.reading.hosts)
    return replace(
        view,
        reading=replace(view.reading, status=status),
        hosts=hosts,
        budgets=budgets_of(status, hosts),
    )
