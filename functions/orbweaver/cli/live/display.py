"""Show the progress of a crawl: a live screen on a terminal, otherwise lines or JSON.

With `--json` every line of the standard output is an object: `step`, `progress`, and at the end one
`result`. With `--progress json` the steps and the progress are such lines of the standard error,
and with `--progress none` nothing shows them, except warnings of blocked hosts. The screen uses the
terminal's alternate buffer, as editors do, so closing it restores the previous content. If the
crawl has not ended when the screen closes, the last state of the crawl is printed once.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from orbweaver.cli import text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from orbweaver.control.progress.status import View


class Display:
    """Shows steps and progress of a command. This base class shows nothing."""

    def say(self, said: str) -> None:
        """Show that a command begins a step, described by a text."""

    def warn(self, said: str) -> None:
        """Show a warning."""
        self.say(said)

    def show(self, view: View) -> None:
        """Show the progress of a crawl. Called for each reading, and every second in between."""

    def close(self) -> None:
        """Restore the terminal."""


class WarningsOnly(Display):
    """Shows no progress, but warns once for each host that gets no request for a while."""

    wait_ms_min = 5_000

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn = warn
        self._warned: set[str] = set()

    def warn(self, said: str) -> None:
        self._warn(said)

    def show(self, view: View) -> None:
        for row in view.hosts:
            long = row.is_blocked and row.wait_ms >= self.wait_ms_min
            if long and row.name not in self._warned:
                from orbweaver.cli.live.lines import blocked

                self._warned.add(row.name)
                self._warn(blocked(row, view))


class Lines(Display):
    """Writes a line for each step, and progress lines: every 3 s at first, later once a minute."""

    every_ms = 3_000
    # The interval between lines grows with the elapsed time, so that logs of long crawls are short.
    every_share, every_ms_max = 0.1, 60_000

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown_ms = -self.every_ms

    def _every_ms(self, view: View) -> float:
        """Return the interval between lines. It is short while the stack does not answer."""
        if view.is_stale:
            return self.every_ms
        grown_ms = view.elapsed_s * 1000 * self.every_share
        return max(self.every_ms, min(grown_ms, self.every_ms_max))

    def _due(self, view: View) -> bool:
        """Return True if a view is new or stale, and the last line is older than the interval."""
        news = not view.age_ms or view.is_stale
        return news and view.now_ms - self._shown_ms >= self._every_ms(view)

    def say(self, said: str) -> None:
        shown = text.escape_controls(said) if self._out.isatty() else said
        print(shown, file=self._out, flush=True)

    def show(self, view: View) -> None:
        if view.ended or self._due(view):
            from orbweaver.cli.live.lines import line

            self._shown_ms = view.now_ms
            self.say(line(view))


class JsonLines(Lines):
    """Writes a JSON object for each step, and one for the progress every two seconds."""

    every_ms = 2_000
    every_share = 0.0

    def say(self, said: str) -> None:
        self.put({"type": "step", "text": said})

    def show(self, view: View) -> None:
        if self._due(view):
            from orbweaver.control.progress.status import as_json

            self._shown_ms = view.now_ms
            self.put({"type": "progress", **as_json(view)})

    def put(self, body: Mapping[str, Any]) -> None:
        """Write a JSON object as one line of ASCII, which cannot control a terminal."""
        print(json.dumps(body, ensure_ascii=True), file=self._out, flush=True)


class JsonDisplay(JsonLines):
    """Writes the result of a command as JSON, too.

    With `instead`, it writes only the result, and `instead` shows steps and progress.
    """

    def __init__(self, out: TextIO, *, instead: Display | None = None) -> None:
        super().__init__(out)
        self._instead = instead

    def say(self, said: str) -> None:
        if self._instead is None:
            super().say(said)
        else:
            self._instead.say(said)

    def warn(self, said: str) -> None:
        if self._instead is None:
            super().warn(said)
        else:
            self._instead.warn(said)

    def show(self, view: View) -> None:
        if self._instead is None:
            super().show(view)
        else:
            self._instead.show(view)


def _no_footer(_: View) -> str:
    return ""


class Panel(Display):
    """A live screen that is redrawn in place. `footer` returns a text on the effect of Ctrl-C."""

    def __init__(
        self,
        out: TextIO,
        environment: Mapping[str, str],
        footer: Callable[[View], str] = _no_footer,
    ) -> None:
        from rich.console import Console

        from orbweaver.cli.live.screen import ViewInterpolator

        # Console takes NO_COLOR and TERM from the environment, and the size if the terminal does
        # not report it.
        self._console: Console = Console(
            file=out, highlight=False, soft_wrap=True, _environ=environment
        )
        self._footer = footer
        self._live: Live | None = None
        self._view: View | None = None
        self._glide = ViewInterpolator()

    def say(self, said: str) -> None:
        from rich.text import Text

        self.close()
        self._console.print(Text(text.clean(said), style="dim"))

    def show(self, view: View) -> None:
        from rich.live import Live
        from rich.text import Text

        from orbweaver.cli.live import screen

        if self._live is None:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                screen=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._view = view
        size = self._console.size
        footer = self._footer(view)
        lines = screen.draw(self._glide.show(view), size.width, size.height, footer)
        self._live.update(Text("\n").join(lines), refresh=True)

    def close(self) -> None:
        if self._live is None:
            return
        live, self._live = self._live, None
        with contextlib.suppress(OSError):  # the terminal is closed
            live.stop()
            if self._view is not None and not self._view.ended:
                from orbweaver.cli.live import screen

                for line in screen.draw(self._view, self._console.size.width):
                    self._console.print(line)
