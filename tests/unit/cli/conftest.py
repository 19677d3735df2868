"""Fixture of a folder with an export for query tests."""

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
    """A stage that splits a command line as a shell does."""

    def run(self, line: str) -> int:
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        return run(shlex.split(line), self.surroundings)

    def rows(self, sql: str, options: str = "") -> list[dict[str, Any]]:
        assert self.run(f"query {shlex.quote(sql)} --format json {options}") == 0, self.noted
        return self.objects()

    def refused(self, sql: str, options: str = "") -> str:
        assert self.run(f"query {shlex.quote(sql)} {options}") == USAGE
        assert not self.said
        return self.noted


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    put(tmp_path / "out" / CRAWL, made(USUAL))
    return Desk(tmp_path, machine=Machine(up_already=True))
