"""`orbweaver console`: its address, its source of data, and how a browser opens it."""

from __future__ import annotations

import asyncio
import io
import stat
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from localstack.deployed import Alarm, Source
from orbweaver.app.store_ports import StorePorts
from orbweaver.cli.arguments import parse
from orbweaver.cli.commands import console
from orbweaver.cli.session import chosen
from orbweaver.model.settings import Settings
from tests.unit.cli.fakes import Machine, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

USAGE = 2


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    asyncio.run(StorePorts(Settings(), tmp_path / ".orbweaver").aclose())
    return Stage(folder=tmp_path)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.com", "[::]"])  # noqa: S104 - refused
def test_address_of_other_machine_is_refused(stage: Stage, host: str) -> None:
    stage.notes(f"console --no-open --listen {host}:8788", "has no login", "ssh -L")


def test_workers_option_needs_a_store(tmp_path: Path) -> None:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    assert "a stack has its own" in stage.errors("console --no-open --workers 1 --target local")


async def test_workers_of_stack_are_switched_on_all_queues(tmp_path: Path) -> None:
    switches = [Source(id=name, queue=name, state="Enabled") for name in ("crawl", "seeds")]
    machine = Machine(up_already=True, switches=switches)
    stage = Stage(folder=tmp_path, machine=machine)
    arguments = parse(["console", "--target", "local"])
    async with chosen(arguments, stage.surroundings()) as session:
        where = session.place
        assert await where.workers() == {"crawl": "Enabled", "seeds": "Enabled"}
        assert await where.switch(on=True) == {"crawl": "Enabled", "seeds": "Enabled"}
        assert await where.switch(on=False) == {"crawl": "Disabling", "seeds": "Disabling"}
        assert machine.asked.count("switch crawl off") == 1


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        (
            (Alarm(name="DeadLetters", state="ALARM", since_ms=1, meaning="See. Run: it"),),
            [{"name": "DeadLetters", "state": "ALARM", "since_ms": 1, "meaning": "See. Run: it"}],
        ),
        (None, None),
    ],
)
async def test_alarms_of_stack_are_listed_by_its_name(
    tmp_path: Path, raised: tuple[Alarm, ...] | None, shown: Any
) -> None:
    machine = Machine(up_already=True, raised=raised)
    stage = Stage(folder=tmp_path, machine=machine)
    async with chosen(parse(["console", "--target", "local"]), stage.surroundings()) as session:
        assert await session.place.alarms() == shown
        assert "alarms Orbweaver" in machine.asked


async def test_store_has_no_alarms(stage: Stage) -> None:
    async with chosen(parse(["console"]), stage.surroundings()) as session:
        assert await session.place.alarms() == []


class Printed(io.StringIO):
    """An output that sets an event when an address is written."""

    def __init__(self) -> None:
        super().__init__()
        self.addressed = asyncio.Event()

    def write(self, text: str) -> int:
        if "#token=" in text:
            self.addressed.set()
        return super().write(text)


async def served(stage: Stage, line: str, act: Callable[[str], None]) -> str:
    """Run the command until its address is written. Returns the recorded calls."""
    out, err = Printed(), io.StringIO()
    stage.out, stage.err = out, err
    arguments = parse(line.split())
    task = asyncio.ensure_future(console.console(arguments, stage.surroundings()))
    addressed = asyncio.ensure_future(out.addressed.wait())
    await asyncio.wait({task, addressed}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    act(out.getvalue().strip())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return err.getvalue()


async def test_start_prints_address_source_and_how_to_stop(stage: Stage) -> None:
    found: list[str] = []
    for _ in range(2):
        noted = await served(stage, "console --no-open --listen 127.0.0.1:0", found.append)
        assert ".orbweaver" in noted
        assert "press Ctrl-C to stop" in noted
    assert len({urlsplit(url).fragment for url in found}) == 2
    assert all(url.startswith("http://127.0.0.1:") for url in found)


async def test_browser_is_opened_by_private_file(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def show(address: str) -> bool:
        assert "token" not in address
        opened.append(Path(url2pathname(urlsplit(address).path)))
        return False

    monkeypatch.setattr(webbrowser, "open", show)

    def check(url: str) -> None:
        (file,) = opened
        assert url in file.read_text()
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

    assert "no browser found" in await served(stage, "console --listen 127.0.0.1:0", check)
    assert not opened[0].exists()
