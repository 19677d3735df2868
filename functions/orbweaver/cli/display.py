"""How progress is shown: a live panel on a terminal, a line every few seconds elsewhere, or JSON.

With `--json` every line is one object: `step` (what is being done), `progress`, and at the end
one `result`. Nothing else goes to the standard output then.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from orbweaver.cli import progress, text
from orbweaver.core.crawl import State
from orbweaver.core.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console, RenderableType
    from rich.live import Live

    from orbweaver.cli.progress import View

PLAIN_MS = 3_000
JSON_MS = 2_000
REASONS_SHOWN = 4
HOSTS_SHOWN = 5
BAR_COLUMNS = 48


class Display(Protocol):
    """Where a command tells how it goes."""

    def say(self, words: str) -> None:
        """Tell what is being done."""

    def show(self, view: View) -> None:
        """Show how a crawl goes; called as often as there is news."""

    def close(self) -> None:
        """Leave the terminal as a reader wants it."""


class Lines:
    """A line for each step, and one for the progress every few seconds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown_ms = -PLAIN_MS

    def say(self, words: str) -> None:
        """See the protocol."""
        print(words, file=self._out, flush=True)

    def show(self, view: View) -> None:
        """See the protocol."""
        at_ms = view.reading.status.at_ms
        if view.ended or at_ms - self._shown_ms >= PLAIN_MS:
            self._shown_ms = at_ms
            self.say(line(view))

    def close(self) -> None:
        """See the protocol."""


class Objects:
    """A JSON object for each step, and one for the progress every few seconds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown_ms = -JSON_MS

    def say(self, words: str) -> None:
        """See the protocol."""
        self.put({"type": "step", "text": words})

    def show(self, view: View) -> None:
        """See the protocol."""
        at_ms = view.reading.status.at_ms
        if at_ms - self._shown_ms >= JSON_MS:
            self._shown_ms = at_ms
            self.put({"type": "progress", **progress.as_json(view)})

    def put(self, body: Mapping[str, Any]) -> None:
        """Write one object; ASCII, so that no byte of it steers a terminal."""
        print(json.dumps(body, ensure_ascii=True), file=self._out, flush=True)

    def close(self) -> None:
        """See the protocol."""


class Panel:
    """A panel that is drawn anew in its place."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console

        self._console: Console = Console(file=out, highlight=False, soft_wrap=True)
        self._live: Live | None = None

    def say(self, words: str) -> None:
        """See the protocol."""
        from rich.text import Text

        self._console.print(Text(text.clean(words), style="dim"))

    def show(self, view: View) -> None:
        """See the protocol."""
        from rich.live import Live

        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._drawn(view), refresh=True)

    def close(self) -> None:
        """See the protocol."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _drawn(self, view: View) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        books = view.reading.status.books
        filled = BAR_COLUMNS * books.done // max(1, books.claimed)
        bar = Text.assemble(("━" * filled, "green"), ("─" * (BAR_COLUMNS - filled), "dim"))
        width = max(len(label) for label, _ in rows(view))
        drawn: list[RenderableType] = [Text(text.clean(heading(view)), style="bold"), bar]
        for label, words in rows(view):
            style = STYLES.get(label, "")
            row = Text.assemble(
                (label.ljust(width + 2), style or "cyan"), (text.clean(words), style)
            )
            row.no_wrap, row.overflow = True, "ellipsis"
            drawn.append(row)
        return Group(*drawn)


STYLES = {"failed": "red", "dead": "bold red", "waiting": "yellow"}


def heading(view: View) -> str:
    """Say which crawl it is and how it stands."""
    crawl = view.reading.status.crawl
    return f"{crawl.id} · {crawl.state}"


def rows(view: View) -> list[tuple[str, str]]:
    """Say everything that is worth knowing of a view: label and words."""
    status = view.reading.status
    found = [("pages", _pages(view)), ("time", _time(view))]
    ended = [f"{outcome} {view.of(outcome):,}" for outcome in Outcome if view.of(outcome)]
    if len(ended) > 1:
        found.append(("ended", " · ".join(ended)))
    unwanted = [(str(kind), view.reasons(kind)) for kind in (Outcome.FAILED, Outcome.SKIPPED)]
    found += [(label, counted(reasons)) for label, reasons in unwanted if reasons]
    again = [f"{word} {view.of(word):,}" for word in ("retries", "deferrals") if view.of(word)]
    if again:
        found.append(("again", " · ".join(again)))
    hosts = list(view.waiting().items())
    found += [("waiting", f"{host}: {why}") for host, why in hosts[:HOSTS_SHOWN]]
    depths = view.reading.depths
    if depths is not None:
        numbers = (depths.waiting, depths.in_work, depths.delayed)
        words = ("waiting", "in work", "delayed")
        pairs = zip(numbers, words, strict=True)
        found.append(("queue", " · ".join(f"{number:,} {word}" for number, word in pairs)))
        if depths.dead:
            found.append(("dead", f"{text.plural(depths.dead, 'message')} that could not be done"))
    if status.crawl.state is State.PAUSED:
        found.append(("paused", f"`orbweaver resume {status.crawl.id}` goes on"))
    return found


def line(view: View) -> str:
    """Say the same in one line, as far as it matters every few seconds."""
    parts = [text.clock(view.reading.status.elapsed_ms / 1000), _pages(view)]
    if failed := view.reasons(Outcome.FAILED):
        parts.append(f"failed {view.of(Outcome.FAILED):,} ({counted(failed)})")
    parts += [f"{host}: {why}" for host, why in view.waiting().items()]
    depths = view.reading.depths
    if depths is not None and depths.dead:
        parts.append(f"{text.plural(depths.dead, 'dead letter')}")
    if not view.ended:
        parts.append(_left(view))
    return text.clean("  ".join(part for part in parts if part))


def counted(reasons: Mapping[str, int]) -> str:
    """Write reasons with their numbers, most frequent first."""
    shown = [f"{reason} {number:,}" for reason, number in list(reasons.items())[:REASONS_SHOWN]]
    more = len(reasons) - REASONS_SHOWN
    return " · ".join(shown) + (f" · {more} more" if more > 0 else "")


def _pages(view: View) -> str:
    books = view.reading.status.books
    per_s = progress.mean_per_s(view) if view.ended else view.per_s
    return (
        f"{view.of(Outcome.FETCHED):,} fetched, {books.done:,} of {books.claimed:,} known URLs"
        f"  {text.rate(per_s)} pages/s"
    )


def _time(view: View) -> str:
    elapsed = text.clock(view.reading.status.elapsed_ms / 1000)
    if view.ended:
        return f"{elapsed} from start to end"
    return ", ".join(filter(None, (f"{elapsed} so far", _left(view))))


def _left(view: View) -> str:
    return "" if view.left_s is None else f"about {text.clock(view.left_s)} left for what is known"
