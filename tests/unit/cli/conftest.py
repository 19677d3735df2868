"""A folder with an export, at which queries are asked."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from orbweaver.cli.main import run
from tests.unit.cli.exports import CRAWL, USUAL, made, put
from tests.unit.cli.fakes import Machine, Stage

USAGE = 2


class Desk(Stage):
    """A stage where a line is split as a shell does."""

    def run(self, line: str) -> int:
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        return run(shlex.split(line), self.surroundings())

    def rows(self, sql: str, options: str = "") -> list[dict[str, Any]]:
        """Ask, and read the answer."""
        assert self.run(f"query {shlex.quote(sql)} --format json {options}") == 0, self.noted
        return self.objects()

    def refused(self, sql: str, options: str = "") -> str:
        """Ask in vain; what is said."""
        assert self.run(f"query {shlex.quote(sql)} {options}") == USAGE
        assert not self.said
        return self.noted


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give a folder with the usual export."""
    put(tmp_path / "out" / CRAWL, made(USUAL))
    return Desk(tmp_path, machine=Machine(up_already=True))
