"""Types the commands of the guide's session as printed, and measures its promises at the site."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.stand import Stand, until
from tests.sites import child
from tests.sites.child import Child

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(400)]

GUIDE = Path(__file__).parents[2] / "docs" / "session.md"
SITE = "http://127.0.0.1:8800"
BLOCK = re.compile(r"^```(console|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"\[exit (\d+)\]")
# Promises of the guide.
QUIET_S, ASKED_AGAIN_S, CANCELLED_S = 10, 30, 60
WATCHED_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A command of the guide with its output, or a file to write."""

    words: list[str]
    shown: list[str]
    code: int = 0
    file: str | None = None


def steps_of(guide: str) -> Iterator[Typed]:
    for kind, text in BLOCK.findall(guide):
        if kind == "toml":
            yield Typed(words=[], shown=[], file=text)
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            code = EXIT.fullmatch(shown[-1]) if shown else None
            yield Typed(
                words=command.split()[1:],
                shown=shown[:-1] if code else shown,
                code=int(code[1]) if code else 0,
            )


def told(shown: list[str]) -> re.Pattern[str]:
    """Build a pattern of lines: `…` alone matches any lines, within a line any text."""
    parts = []
    for line in shown:
        if line == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            words = re.split(r"(…|\s+)", line)
            spelled = (
                ".*" if word == "…" else r"\s+" if word.isspace() else re.escape(word)
                for word in words
                if word
            )
            parts.append("".join(spelled) + r"[ ]*\n")
    return re.compile("".join(parts))


def test_session_of_guide_works_as_printed(stand: Stand, tmp_path: Path) -> None:
    with child.start("bookshop", "--books", "60") as shop:
        guide = GUIDE.read_text().replace(SITE, shop.url)
        typed = 0
        for step in steps_of(guide):
            if step.file is not None:
                (tmp_path / "shop.toml").write_text(step.file)
                continue
            started_s = time.monotonic()
            before = last(shop)
            ran = stand.orbweaver(*step.words, code=step.code, folder=tmp_path)
            said = ran.out + ran.err
            assert told(step.shown).fullmatch(said), f"{step.words}:\n{said}\nnot\n{step.shown}"
            if step.code == 0:
                keeps_its_word(step.words[0], stand, shop, before, started_s)
            typed += 1
    assert typed > 15


def keeps_its_word(command: str, stand: Stand, shop: Child, before: int, started_s: float) -> None:
    if command == "start":
        until(lambda: last(shop) > before, "the site is asked", log=stand.log)
    elif command == "pause":
        time.sleep(QUIET_S)
        quiet = last(shop)
        time.sleep(WATCHED_S)
        assert last(shop) == quiet, "a paused crawl asks"
    elif command == "resume":
        until(lambda: last(shop) > before, "asked again", timeout_s=ASKED_AGAIN_S, log=stand.log)
    elif command == "cancel":

        def ended() -> bool:
            return bool(stand.orbweaver("status", "shop", "--json").result["state"] == "finished")

        left_s = CANCELLED_S - (time.monotonic() - started_s)
        until(ended, "the crawl has ended", timeout_s=left_s, log=stand.log)
        kept = records(stand)
        time.sleep(WATCHED_S)
        assert records(stand) == kept, "something was recorded after the end"


def last(shop: Child) -> int:
    return max((record.seq for record in shop.log()), default=0)


def records(stand: Stand) -> int:
    return len(stand.orbweaver("pages", "shop").out.splitlines())
