"""Fixtures: a stage for commands, and one in a folder with an export."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.exports import CRAWL, USUAL, made, put
from tests.unit.cli.fakes import Machine, Stage

USAGE = 2


class Desk(Stage):
    """A stage for queries."""

    def rows(self, sql: str, options: str = "") -> list[dict[str, Any]]:
        assert self.run(f"query {shlex.quote(sql)} --format json {options}") == 0, self.noted
        return self.objects()

    def refused(self, sql: str, options: str = "") -> str:
        assert self.run(f"query {shlex.quote(sql)} {options}") == USAGE
        assert not self.said
        return self.noted


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(folder=tmp_path)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    put(tmp_path / "out" / CRAWL, made(USUAL))
    return Desk(tmp_path, machine=Machine(up_already=True))
