"""Page readers: small, orderly pages are read in the event loop, others in a child process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orbweaver.adapters.local import reader_wire
from orbweaver.adapters.local.reader import WAITING_BYTES_MAX, BudgetReader, ReaderError, Turns
from orbweaver.adapters.local.reader_child import lacks_memory
from orbweaver.extraction.extract import Field, ItemRule, ValueSource
from orbweaver.extraction.work_budget import HeavyError
from orbweaver.frontier.stored_content import Keeping
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Response
from orbweaver.worker.page_reading import (
    BYTES_MAX,
    LIGHT_UNITS,
    TAGS_MAX,
    PageReading,
    ReaderBusy,
    ReadingJob,
    ReadingStage,
    is_done_in_place,
    is_light,
    is_long,
    job_of,
    light_stages,
    prepared_of,
    read,
    stages,
)
from tests.attacks import ATTACKS, BY_NAME, Attack
from tests.costs import within
from tests.memory import ManualClock

NOW_MS = 1_795_251_600_000
LATER_MS = NOW_MS + 60_000
URL = "https://example.com/a/b"
HOST = "https://example.com"
CRAWL = Crawl(id="site-1", name="site", started_at_ms=0)
PAGE = b"<title>Home</title><a href=/c>c</a><h1>jo@example.com</h1>"
# CPU limits for one page: in the event loop, and in a child that runs or starts.
LOOP_S, PAGE_S = 0.1, 1.0
EXTRACTORS = """
import os, select
def title(page, url): return {"title": page.title}
def spin(page, url):
    while True: pass
def count(page, url): return {"title": str(sum(range(10**12)))}
def abort(page, url): os.abort()
def leave(page, url): os._exit(3)
def end(page, url): os.kill(os.getpid(), 15)
def wait(page, url): select.select([], [], [])
def secret(page, url): return {"title": os.environ.get("AWS_SECRET_ACCESS_KEY", "none")}
"""


def job(body: bytes = PAGE, kind: str = "text/html", **wanted: Any) -> ReadingJob:
    answer = Response(status=200, headers={"content-type": kind}, body=body)
    return ReadingJob(url=URL, at_ms=NOW_MS, answer=answer, agent="orbweaver", **wanted)


def job_about(attack: Attack) -> ReadingJob:
    crawl, html = replace(CRAWL, **attack.crawl), "html" in attack.kind
    return job_of(crawl, URL, attack.answer, 0, html=html, agent="orbweaver", links_max=5_000)


def own(extractor: str) -> tuple[ItemRule, ...]:
    title = Field(name="title", source=ValueSource.CUSTOM, where="title")
    rule = ItemRule(
        name="x", match="/", source=ValueSource.CUSTOM, extractor=extractor, fields=(title,)
    )
    return (rule,)


@pytest.fixture
async def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BudgetReader]:
    """Return a page reader that reads every page in its child process."""
    (tmp_path / "own_extractors.py").write_text(EXTRACTORS)
    monkeypatch.syspath_prepend(str(tmp_path))
    clock = ManualClock(NOW_MS)
    reader = BudgetReader(
        clock=clock, extractor="own_extractors", wall_s=30, in_place=lambda _job: False
    )
    yield reader
    reader.close()


class Counting(BudgetReader):
    """A reader that counts its calls to the child."""

    apart = 0

    async def _apart(self, job: ReadingJob) -> Any:
        self.apart += 1
        return read(job)


PARAGRAPHS = ItemRule(name="p", match="/", each="p", fields=(Field(name="text", where=""),))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("body", "rules", "apart"),
    [
        (b"<p>x</p>" * 200, (PARAGRAPHS,), 0),
        (b"<div>" * 230 + b"<p>x" * 300, BY_NAME["items-nested"].crawl["items"], 1),
        (b"<p>x</p>" * 500, (PARAGRAPHS,), 0),
        (b"<p>x</p>" * 501, (PARAGRAPHS,), 1),
        (b"<p>" + b"x" * 27_900, (PARAGRAPHS,), 0),
        (b"<p>" + b"x" * 28_000, (PARAGRAPHS,), 1),
        ("<p>\u4e00".encode("utf-16") + "\u4e00".encode("utf-16-le") * 10_000, (PARAGRAPHS,), 1),
        (b"<p>x", own("title"), 1),
    ],
    ids=[
        *("small", "much work", "most tags", "too many tags", "longest", "too long"),
        *("too long in UTF-8", "of a user's own"),
    ],
)
async def test_items_of_small_page_are_extracted_in_place(
    body: bytes, rules: tuple[ItemRule, ...], apart: int
) -> None:
    asked = job(body, items=rules, keeping=Keeping(texts=True))
    reader = Counting(clock=ManualClock(NOW_MS))
    assert await reader.read(asked, HOST, LATER_MS) == read(asked)
    assert reader.apart == apart


@pytest.mark.parametrize("texts", [False, True], ids=["at once", "in turns"])
async def test_page_is_read_in_charset_of_header(*, texts: bool) -> None:
    body, kind = "<title>Книга".encode("windows-1251"), "text/html; charset=windows-1251"
    reader = Counting(clock=ManualClock(NOW_MS))
    found = await reader.read(job(body, kind, keeping=Keeping(texts=texts)), HOST, LATER_MS)
    assert isinstance(found, PageReading)
    assert found.page is not None
    assert (found.page.title, reader.apart) == ("Книга", 0)


@pytest.mark.parametrize(
    "body",
    [b"<div>" * 230 + b"<p>x" * 300, b"<div>x</div>" * 950],
    ids=["one in the other", "many small ones"],
)
async def test_expensive_items_are_given_up_in_place(body: bytes) -> None:
    asked = job(body, items=BY_NAME["items-nested"].crawl["items"])
    with pytest.raises(HeavyError):
        list(stages(asked, units_max=LIGHT_UNITS))

    def given_up() -> None:
        with pytest.raises(HeavyError):
            list(stages(asked, units_max=LIGHT_UNITS))

    assert within(LOOP_S, given_up)


# --- light pages ------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_light_page_takes_100_ms_of_cpu(attack: Attack) -> None:
    asked = job_about(attack)
    if not is_light(asked):
        return
    read(replace(asked, answer=replace(asked.answer, body=b"<p>")))  # imports at first use
    prepared = None
    if is_long(asked):
        prepared = prepared_of(asked)
        if not is_done_in_place(prepared.outline):
            return

    def finish() -> None:
        with contextlib.suppress(HeavyError):  # such a page is left to the child, as in production
            list(
                stages(asked, prepared=prepared, units_max=LIGHT_UNITS)
                if prepared
                else light_stages(asked)
            )

    assert within(LOOP_S, finish)


@pytest.mark.thorough
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_longest_light_page_is_read_in_two_short_turns(attack: Attack) -> None:
    """Neither turn takes more than 100 ms of a free core."""
    body = b"<".join(attack.body()[:BYTES_MAX].split(b"<")[:TAGS_MAX])
    asked = job_about(attack)
    asked = replace(
        asked, answer=replace(asked.answer, body=body), items=(), keeping=Keeping(), html=True
    )
    if not is_long(asked):
        return
    assert is_light(asked)
    prepared = prepared_of(asked)
    assert within(LOOP_S, lambda: prepared_of(asked))
    assert read(asked, prepared=prepared) == read(asked)
    if is_done_in_place(prepared.outline):
        assert within(LOOP_S, lambda: read(asked, prepared=prepared))


@pytest.mark.parametrize(
    ("asked", "light"),
    [
        (job(), True),
        (job(b"<p class='a'>" + b"words and words " * 160_000), True),
        (job(b"<p class='a'>" + b"words and words " * 180_000), False),
        (job(b"<a href=/x>" * 99_000), True),
        (job(b"<a href=/x>" * 101_000), False),
        (job(b"<p><code class=x>y</code>" * 900), True),
        (job("<p>ab".encode("utf-16") * 1_800), True),
        (job(b"x" * 100_000, keeping=Keeping(texts=True)), False),
        (job(b"x" * 100_000, keeping=Keeping(redacted=("email",))), False),
        (job(b"x" * 60_000, keeping=Keeping(redacted=("email",))), True),
        (job(items=own("title")), False),
        (job_about(BY_NAME["items-many"]), False),
        (job(b"%PDF" * 1_572_864, html=False, keeping=Keeping(bodies=Bodies.ALL)), True),
        (job(b"%PDF" * 1_572_865, html=False, keeping=Keeping(bodies=Bodies.ALL)), False),
        (job(b"a@b.c " * 90_000, html=False, keeping=Keeping(redacted=("email",))), False),
    ],
)
def test_ordinary_pages_are_light(asked: ReadingJob, light: bool) -> None:
    assert is_light(asked) is light


@pytest.mark.parametrize(
    ("body", "light"),
    [
        (b"<p><font x=1>y</font></p>" * 240, True),
        (BY_NAME["texts-formats"].body(), False),
        (b"<p>" + b"".join(b"<b x=%d>" % number for number in range(490)) + b"<p>y" * 490, False),
    ],
)
def test_text_of_page_with_inflated_tree_is_left_to_child(body: bytes, *, light: bool) -> None:
    found = light_stages(job(body, keeping=Keeping(texts=True)))
    with contextlib.nullcontext() if light else pytest.raises(HeavyError):
        assert [*found]


# --- child process ----------------------------------------------------------------------------


async def test_child_reads_same_as_in_place(reader: BudgetReader) -> None:
    price = ItemRule(name="x", match="/", fields=(Field(name="title", where="h1"),))
    both = ("email", "phone")
    jobs = [
        job(),
        job(b""),
        job("<p>häl <a href='ä?ö'>".encode("latin-1"), "text/html; charset=latin-1"),
        job(b"<title>404 not found</title>"),
        job(b'<meta http-equiv=refresh content="0; url=/x">', items=(price,)),
        job(b"<meta name=robots content=noindex><p>x", noindex_skipped=True),
        job(items=(price,), keeping=Keeping(texts=True, redacted=both)),
        job(items=own("title"), keeping=Keeping(bodies=Bodies.OFF)),
        job(b"jo@example.com", "text/plain", html=False, keeping=Keeping(redacted=both)),
        *(job(b"<p>" + bytes([first, 0, 200]) * 50) for first in range(0, 250, 7)),
    ]
    first = await reader.read(jobs[0], HOST, LATER_MS)
    child = reader.child_id
    assert first == read(jobs[0])
    functions = {"title": lambda page, _url: {"title": page.title}}
    for asked in jobs:
        assert await reader.read(asked, HOST, LATER_MS) == read(asked, functions)
    assert reader.child_id == child


@pytest.mark.thorough
async def test_items_over_budget_are_left_out(reader: BudgetReader) -> None:
    await reader.read(job(), HOST, LATER_MS)
    child = reader.child_id
    found = await reader.read(job(items=own("spin")), HOST, LATER_MS)
    assert isinstance(found, PageReading)
    assert found.page is not None
    assert found.page.links == (f"{HOST}/c",)
    assert (found.items, found.left) == (None, ReadingStage.ITEMS)
    assert found.why == "reading its items: more than 0.6 s of CPU"
    assert await reader.read(job(), HOST, LATER_MS) == read(job())
    assert reader.child_id == child


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("extractor", "why"),
    [
        ("count", "more than 0.7 s of CPU"),
        ("abort", "ended by SIGABRT (it may use 160 MB)"),
        ("leave", "ended with status 3"),
        ("end", "ended by SIGTERM"),
    ],
)
async def test_child_killed_by_page_is_restarted(
    reader: BudgetReader, extractor: str, why: str
) -> None:
    await reader.read(job(), HOST, LATER_MS)
    child = reader.child_id
    found = await reader.read(job(items=own(extractor)), HOST, LATER_MS)
    assert isinstance(found, PageReading)
    assert found.why == f"reading its items: {why}"
    assert await reader.read(job(), HOST, LATER_MS) == read(job())
    assert reader.child_id not in (None, child)


def test_memory_error_is_found_behind_other_errors() -> None:
    """An error in a library's callback arrives as SystemError with the MemoryError as its cause."""
    error = SystemError("returned a result with an exception set")
    assert not lacks_memory(error)
    error.__cause__ = MemoryError()
    assert lacks_memory(error)


async def test_memory_of_child_is_bounded(reader: BudgetReader) -> None:
    """The child's memory limit is 160 MB."""
    asked = job_about(BY_NAME["formats-as-links"])
    heading = ItemRule(name="x", match="/", fields=(Field(name="title", where="h1"),))
    found = await reader.read(replace(asked, items=(heading,)), HOST, LATER_MS)
    assert isinstance(found, PageReading)
    assert (found.left, found.why) == (ReadingStage.ITEMS, "reading its items: more than 160 MB")
    assert await reader.read(job(), HOST, LATER_MS) == read(job())


@pytest.mark.thorough
async def test_page_exceeding_wall_clock_is_tried_twice(reader: BudgetReader) -> None:
    # Each attempt starts a child within this time, which takes seconds on a busy machine.
    reader._wall_s = 8
    found = await reader.read(job(items=own("wait")), HOST, LATER_MS)
    assert isinstance(found, PageReading)
    assert found.why == "reading its items: no end within 8 s"


async def test_child_killed_from_outside_does_not_fail_page(
    reader: BudgetReader,
) -> None:
    await reader.read(job(), HOST, LATER_MS)
    assert reader.child_id is not None
    os.kill(reader.child_id, signal.SIGKILL)
    assert await reader.read(job(), HOST, LATER_MS) == read(job())


async def test_internal_error_of_child_is_raised(
    reader: BudgetReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = job(keeping=Keeping(texts="yes", bodies="none", redacted=("such",)))  # type: ignore[arg-type]
    broken = replace(broken, links_max="many")  # type: ignore[arg-type]
    with pytest.raises(ReaderError, match="TypeError") as raised:
        await reader.read(broken, HOST, LATER_MS)
    assert raised.value.type_and_place.startswith("TypeError in parsing/")
    assert await reader.read(job(), HOST, LATER_MS) == read(job())


async def test_light_page_of_suspect_is_read_by_child() -> None:
    reader = BudgetReader(clock=ManualClock(NOW_MS))
    try:
        await reader.read(job(), HOST, LATER_MS)
        assert reader.child_id is None
        await reader.read(replace(job(), apart=True), HOST, LATER_MS)
        assert reader.child_id is not None
    finally:
        reader.close()


async def test_child_has_no_credentials(
    reader: BudgetReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very")
    found = await reader.read(job(items=own("secret")), HOST, LATER_MS)
    assert isinstance(found, PageReading)
    assert found.items is not None
    assert found.items[0].fields == {"title": "none"}


def test_process_with_reader_is_closed_to_its_user() -> None:
    """Other processes of the same user cannot read its environment and memory."""
    script = (
        "import os, sys; from orbweaver.adapters.local.reader import hide_process\n"
        "os.getuid() or (os.setgid(65534), os.setuid(65534)); hide_process()\n"
        "child = os.fork()\n"
        "if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "for name in ('environ', 'mem'):\n"
        "    try: open(f'/proc/{os.getppid()}/{name}', 'rb')\n"
        "    except PermissionError: continue\n"
        "    os._exit(1)\n"
        "os._exit(0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


def test_message_of_child_is_restricted_to_known_types() -> None:
    """A pickle can name any function and call it."""
    with pytest.raises(
        pickle.UnpicklingError, match=r"posix\.system is nothing that a reader says"
    ):
        reader_wire.decode_response(pickle.dumps(os.system))
    end = reader_wire.ReadingEnd(why="x")
    assert reader_wire.decode_response(reader_wire.packed(end)) == end
    # By value on every Python, because some pickle an enum member as a call of `getattr`.
    assert ReadingStage.ITEMS.__reduce_ex__(4) == (ReadingStage, ("items",))
    left = PageReading(left=ReadingStage.ITEMS, why="x")
    assert reader_wire.decode_response(reader_wire.packed(left)) == left


def test_child_ends_with_its_parent() -> None:
    script = """
import asyncio, os
from orbweaver.adapters.local.clock import SystemClock
from orbweaver.adapters.local.reader import BudgetReader
from tests.unit.adapters.test_reader import HOST, job
async def main():
    clock = SystemClock()
    reader = BudgetReader(clock=clock, in_place=lambda _: False)
    await reader.read(job(), HOST, clock.now_ms() + 60_000)
    print(reader.child_id, flush=True)
    os._exit(0)
asyncio.run(main())
"""
    command = [sys.executable, "-c", script]
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, env=path)
    assert int(done.stdout) > 0
    assert done.stderr == b""


async def read_within_cpu(asked: ReadingJob) -> object:
    """Read a page in a new reader, within 100 ms in the event loop, and 1 s with the child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    reader = BudgetReader(clock=ManualClock(NOW_MS))
    began_s = time.thread_time()
    try:
        found = await reader.read(asked, HOST, LATER_MS)
        loop_s = time.thread_time() - began_s
    finally:
        reader.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    child_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert loop_s <= LOOP_S
    assert loop_s + child_s <= PAGE_S + 0.5  # imports at child start do not count for the page
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["dots", "formats-open", "templates", "noise", "not-found", "items-nested", "digits"]
)
async def test_hostile_page_takes_bounded_cpu(name: str) -> None:
    await read_within_cpu(job_about(BY_NAME[name]))


# --- turns of hosts ---------------------------------------------------------------------------


async def test_hosts_take_turns() -> None:
    turns, served = Turns(), list[str]()

    async def serve(host: str) -> None:
        async with turns.taken(host, 60) as got:
            assert got
            served.append(host)
            await asyncio.sleep(0)

    await asyncio.gather(*(serve(host) for host in "aaaabab"))
    assert served == list("aababaa")


async def test_wait_for_turn_is_bounded() -> None:
    turns = Turns()
    async with turns.taken("a", 60) as first:
        assert first
        async with turns.taken("b", 0) as second:
            assert not second
        third = asyncio.create_task(_one_turn(turns))
        await asyncio.sleep(0)
        third.cancel()
        with pytest.raises(asyncio.CancelledError):
            await third
    assert await _one_turn(turns)


async def _one_turn(turns: Turns) -> bool:
    async with turns.taken("c", 60) as got:
        return got


async def test_page_waiting_too_long_is_not_read(reader: BudgetReader) -> None:
    one, late = await asyncio.gather(
        reader.read(job(), HOST, LATER_MS), reader.read(job(), "https://b.example", NOW_MS)
    )
    assert (one, late) == (read(job()), ReaderBusy())
    reader._waiting_bytes = WAITING_BYTES_MAX
    assert await reader.read(job(), HOST, LATER_MS) == ReaderBusy()
