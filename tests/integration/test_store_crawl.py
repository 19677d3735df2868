"""Crawls on a store by the command line and from Python: real processes, a local site."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import orbweaver
from orbweaver.app.store_service import TOKEN_FILE, ScheduleClock, WebhookPoster
from orbweaver.cli import main
from orbweaver.model.crawl import State
from orbweaver.model.page_record import DAY_MS, day_of
from orbweaver.model.settings import STORE
from tests.contract import samples
from tests.integration.fetcher.proxy import ForwardProxy, Way, proxying
from tests.sites import graph
from tests.sites.server import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sites.graph import Graph

pytestmark = pytest.mark.thorough

FUNCTIONS = Path(__file__).parents[2] / "functions"
COMMAND = "import sys; from orbweaver.cli.main import main; sys.exit(main())"
FAST = ("--delay", "0", "--format", "jsonl")
SIZE = 120
# Ends only hanging tests.
WAIT_S = 300
# From a killed process to the next request. Messages can be delayed for a minute and a half.
GOES_ON_S = 20


def tree(size: int = SIZE, *, slow_s: float = 0.0) -> dict[str, Answer]:
    return {
        f"/{number}": graph.page(
            f"Page {number}",
            [f"/{link}" for link in range(3 * number + 1, 3 * number + 4) if link < size],
            text=f"This is what page {number} has to say, and no other page says it.",
            delay_s=slow_s,
        )
        for number in range(size)
    }


@pytest.fixture
def site() -> Iterator[Graph]:
    with graph.serve_in_background(tree()) as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    return tmp_path


def asked(site: Graph) -> Counter[str]:
    return Counter(path for path in site.log.paths() if path != "/robots.txt")


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command in its own process, and kill it at the end of the block."""
    environment = {"PATH": os.defpath, "PYTHONPATH": f"{FUNCTIONS}:{FUNCTIONS.parent}"}
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, said
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def until(site: Graph, requests: int) -> None:
    limit_s = time.monotonic() + WAIT_S
    while len(asked(site)) < requests:
        assert time.monotonic() < limit_s
        time.sleep(0.005)


def shown_by_children(pid: int) -> bytes:
    """Return the arguments and environments of a process's children."""
    shown = b""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if f"\nPPid:\t{pid}\n" in (path / "status").read_text():
                shown += (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
    return shown


def page_rows(folder: Path) -> list[dict[str, Any]]:
    (pages,) = folder.glob("out/*/pages/jsonl/*/*/*.gz")
    return [json.loads(line) for line in gzip.decompress(pages.read_bytes()).splitlines()]


def test_crawl_needs_only_its_folder(
    site: Graph, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["crawl", f"{site.url}/0", *FAST, "--workers", "2", "--json"]
    assert main.main(line) == 0
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (done["state"], done["outcomes"]["fetched"]) == ("finished", SIZE)
    assert asked(site) == Counter(dict.fromkeys(tree(), 1))
    assert {path.name for path in folder.iterdir()} == {".orbweaver", "out"}
    for words in (
        ["status"],
        ["pages", done["crawl"], "--limit", "1"],
        ["page", f"{site.url}/7"],
        ["page", f"{site.url}/7", "--body"],
        ["explain", f"{site.url}/7"],
        ["report"],
        ["hosts"],
        ["dlq", "list", "--json"],
        ["cost", done["crawl"]],
        ["forget", "--url", f"{site.url}/7", "--dry-run"],
        ["export", "--crawl", done["crawl"], "--format", "csv", "--out", "again"],
    ):
        assert main.main(words) == 0, words
        assert capsys.readouterr().out, words
    assert main.main(line) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["nothing_new"]
    assert asked(site).total() == SIZE


def test_store_commands_import_no_aws_library(site: Graph, folder: Path) -> None:
    names = "boto3 botocore aiobotocore aws_lambda_powertools aws_cdk jsii"
    script = f"""
import sys
for name in {names.split()!r}:
    sys.modules[name] = None  # importing it is an ImportError
from orbweaver.cli.main import main
assert main(["crawl", "{site.url}/0", "--delay", "0", "--format", "jsonl", "--workers", "1"]) == 0
assert main(["status"]) == 0
"""
    environment = {"PATH": os.defpath, "PYTHONPATH": f"{FUNCTIONS}:{FUNCTIONS.parent}"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert asked(site).total() == SIZE


def test_repeatedly_killed_crawl_is_complete(folder: Path) -> None:
    words = ("crawl", *FAST, "--workers", "2", "--json", "--concurrency", "4")
    # So slow that even on a busy machine, a process is killed before the end.
    with graph.serve_in_background(tree(slow_s=0.08)) as site:
        for requests in (1, 10, 25, 40):
            with started(folder, *words, f"{site.url}/0") as process:
                until(site, requests)
                process.kill()
                process.wait()
        with started(folder, *words, f"{site.url}/0") as process:
            done = result(process)
        assert set(asked(site)) == set(tree())
    assert (done["claimed"], done["outcomes"]["fetched"]) == (SIZE, SIZE)
    assert done["queue"] == {"waiting": 0, "in_work": 0, "delayed": 0, "dead": 0}


def test_interrupted_crawl_is_paused_and_resumed(folder: Path) -> None:
    words = ("crawl", *FAST, "--workers", "2", "--json", "--concurrency", "4")
    with graph.serve_in_background(tree(slow_s=0.02)) as site:
        with started(folder, *words, f"{site.url}/0") as process:
            until(site, 20)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=WAIT_S)
        assert process.returncode == 130
        assert not list((folder / ".orbweaver" / "processes").iterdir())
        with started(folder, *words, f"{site.url}/0") as process:
            done = result(process)
        assert done["outcomes"]["fetched"] == SIZE
        assert asked(site).total() == SIZE


async def test_worker_processes_use_proxy_and_show_no_password(folder: Path) -> None:
    """A forked process shows the arguments of its command. Proxies reach it by its pipe."""
    basic = "Basic " + b64encode(b"me:w0rd").decode()
    with graph.serve_in_background(tree(60, slow_s=0.05)) as site:
        async with proxying(ForwardProxy(way=Way.AUTHENTICATE, authorization=basic)) as proxy:
            words = ("crawl", f"{site.url}/0", *FAST, "--json", "--workers", "3")
            (folder / "proxies.txt").write_text(proxy.url("me:w0rd"))
            with started(folder, *words, "--proxy-list", "proxies.txt") as process:
                await asyncio.to_thread(until, site, 10)
                shown = shown_by_children(process.pid)
                await asyncio.to_thread(result, process)
    assert shown.count(b"--proxy-list") == 2
    assert b"w0rd" not in shown
    assert {row["proxy"] for row in page_rows(folder)} == {f"127.0.0.1:{proxy.port}"}
    assert len(proxy.heads) >= len(site.log.paths()) + 1  # and the trial of the proxy


@pytest.mark.parametrize(("given", "processes"), [((), 1), (("--workers", "2"), 2)])
def test_polite_crawl_of_one_host_has_one_process_unless_more_are_given(
    folder: Path, given: tuple[str, ...], processes: int
) -> None:
    words = ("crawl", "--delay", "100ms", "--format", "jsonl", "--json", *given)
    with (
        graph.serve_in_background(tree(20)) as site,
        started(folder, *words, f"{site.url}/0") as process,
    ):
        until(site, 15)
        assert len([*(folder / ".orbweaver" / "processes").iterdir()]) == processes
        assert result(process)["outcomes"]["fetched"] == 20


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_polite_crawl_resumes_at_once(number: signal.Signals, folder: Path) -> None:
    """A dead process's messages become visible at once, not after a minute."""
    words = ("crawl", "--delay", "100ms", "--format", "jsonl", "--json")
    with graph.serve_in_background(tree()) as site:
        with started(folder, *words, f"{site.url}/0") as process:
            until(site, 45)
            process.send_signal(number)
            process.communicate(timeout=WAIT_S)
        gone_s, before = time.monotonic(), asked(site).total()
        with started(folder, *words, f"{site.url}/0") as process:
            until(site, before + 1)
            assert time.monotonic() - gone_s < GOES_ON_S
            assert result(process)["outcomes"]["fetched"] == SIZE
        # Requests of unfinished packs (batches of URLs).
        assert asked(site).total() <= SIZE + 2 * 25


def test_one_store_is_shared_by_several_processes(folder: Path) -> None:
    listen = ("serve", "--workers", "1", "--listen", "127.0.0.1:0")
    with (
        graph.serve_in_background(tree()) as one,
        graph.serve_in_background(tree()) as other,
        graph.serve_in_background(tree()) as third,
        started(folder, *listen) as server,
    ):
        assert server.stdout is not None
        url = server.stdout.readline().split(" on ")[1].split(";")[0]
        body = {"seeds": [f"{third.url}/0"], "politeness": {"delay": "0s"}}
        asking = Request(f"{url}/crawls", json.dumps(body).encode())  # noqa: S310 - of this test
        asking.add_header("Content-Type", "application/json")
        bearer = f"Bearer {(folder / '.orbweaver' / TOKEN_FILE).read_text().strip()}"
        asking.add_header("Authorization", bearer)
        with urlopen(asking) as answer:  # noqa: S310 - of this test
            begun = json.loads(answer.read())["id"]
        with (
            started(folder, "crawl", f"{one.url}/0", *FAST, "--json") as first,
            started(folder, "crawl", f"{other.url}/0", *FAST, "--json") as second,
        ):
            fetched = [result(process)["outcomes"]["fetched"] for process in (first, second)]
        assert fetched == [SIZE, SIZE]
        with orbweaver.Client(store=folder / ".orbweaver", workers=0) as client:
            assert client.wait(begun).pages == SIZE
        for served in (one, other, third):
            assert asked(served) == Counter(dict.fromkeys(tree(), 1))
        scrape = Request(f"{url}/metrics", headers={"Authorization": bearer})  # noqa: S310
        with urlopen(scrape) as answer:  # noqa: S310 - of this test
            assert begun in answer.read().decode()
        for path, headers, status in (
            ("crawls", {"Host": "http://evil.example"}, 421),
            ("crawls", {"Origin": "http://evil.example"}, 403),
            ("crawls", {"Sec-Fetch-Site": "cross-site"}, 403),
            ("crawls", {"Authorization": "Bearer x"}, 401),
            ("metrics", {"Authorization": ""}, 401),
        ):
            told = {"Authorization": bearer, **headers}
            with pytest.raises(HTTPError) as refused:
                urlopen(Request(f"{url}/{path}", headers=told))  # noqa: S310 - of this test
            assert refused.value.code == status
            refused.value.close()
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=WAIT_S)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("status --store elsewhere", "elsewhere holds no store"),
        ("crawl http://127.0.0.1:9/ --store a --target local", "give one of them"),
        ("crawl http://127.0.0.1:9/ --target aws", "crawl runs on this machine only"),
        ("crawl http://127.0.0.1:9/", "nothing was crawled"),
        ("crawl http://127.0.0.1:9/ --workers 0", "give 1 or more"),
        ("status --store .", "give a separate folder"),
    ],
)
def test_invalid_commands_explain_fix(
    words: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(words.split()) in (2, 4)
    assert said in capsys.readouterr().err
    assert not (folder / ".orbweaver").exists()


def test_program_crawls_and_reads_results(site: Graph, folder: Path) -> None:
    seen: list[str] = []
    fields = {"title": {"type": "string"}}
    rules = [{"name": "shouts", "match": "/[0-9]+$", "extractor": "shout", "fields": fields}]
    done = orbweaver.crawl(
        f"{site.url}/0",
        store=folder / "store",
        delay="0s",
        text=True,
        links=True,
        items=rules,
        extractors={"shout": lambda page, _url: {"title": page.title.upper()}},
        on_page=lambda page: seen.append(page["url"]),
    )
    assert done.status.ended
    assert (done.status.pages, done.status.outcomes["failed"]) == (SIZE, 0)
    assert (
        Counter(seen)
        == Counter(row["url"] for row in done.pages)
        == {f"{site.url}{path}": 1 for path in tree()}
    )
    assert {row["title"] for row in done.items("shouts")} == {f"PAGE {n}" for n in range(SIZE)}
    table = done.items().to_arrow()
    assert (table.num_rows, table.schema.names[:2]) == (SIZE, ["rule", "title"])
    texts = {row["url"]: row["text"] for row in done.texts}
    assert "what page 7 has to say" in texts[f"{site.url}/7"]
    links = {(row["url"], row["target_url"], row["decision"]) for row in done.links}
    assert (f"{site.url}/0", f"{site.url}/1", "followed") in links
    assert (done.links.to_arrow().num_rows, len(links)) == (SIZE - 1, SIZE - 1)


def test_query_of_guide_lists_broken_links_and_their_pages(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (FUNCTIONS.parent / "docs" / "query.md").read_text()
    sql = guide.partition("\n## Links\n")[2].partition("SELECT")[2].partition("```")[0]
    pages = {"/0": graph.page("Home", ["/1", "/gone"]), "/1": graph.page("One", ["/0", "/gone"])}
    with graph.serve_in_background(pages) as served:
        line = ["crawl", f"{served.url}/0", "--delay", "0", "--links", "--out", "out"]
        assert main.main(line) == 0
    capsys.readouterr()
    assert main.main(["query", "--from", "out", "--format", "json", f"SELECT {sql}"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["target_url"], row["status"], row["pages"]) == (f"{served.url}/gone", 404, 2)
    assert row["a_page"] == f"{served.url}/0"


async def test_async_program_steers_crawls(site: Graph, folder: Path) -> None:
    async with orbweaver.AsyncClient(store=folder / "store") as client:
        begun = await client.start(f"{site.url}/0", delay="0s", max_pages=30)
        told: list[orbweaver.CrawlStatus] = []
        status = await client.wait(begun, progress=told.append)
        assert (status.claimed, told[-1]) == (30, status)
        assert [one.id for one in await client.crawls()] == [begun]
        assert len(await client.pages().to_list()) == 30
        assert (await client.explain(f"{site.url}/0")).startswith("fetched: ok")
        (file, *_) = await client.export(begun, folder / "files")
        assert file.is_file()
        paused = await client.start(f"{site.url}/0", name="slow", delay="5s")
        assert (await client.pause(paused)).state == "paused"
        assert (await client.resume(paused)).state == "running"
        assert str(await client.cancel(paused)).startswith(f"{paused} ")
        assert (await client.wait(paused)).stop == "cancelled"
    with orbweaver.Client(store=folder / "store", workers=0) as again:
        assert again.status(begun).pages == 30
    with pytest.raises(RuntimeError, match="not open"):
        again.status(begun)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"max_page": 3}, TypeError, "did you mean max_pages"),
        ({"ignore_robots": "yes"}, TypeError, "True or False"),
        ({"max_pages": "x"}, ValueError, r"limits\.pages"),
        ({"definition": {"seed": []}}, ValueError, "did you mean seeds"),
        ({"definition": {"limits": 5}, "max_pages": 3}, ValueError, "limits: 5 does not fit"),
        ({"workers": 2, "extractors": {"f": len}}, ValueError, "functions of this process"),
    ],
)
def test_invalid_programs_explain_fix(
    options: dict[str, Any], error: type[Exception], words: str, folder: Path
) -> None:
    with pytest.raises(error, match=words):
        orbweaver.crawl("http://127.0.0.1:9/", store=folder / "store", **options)


def test_schedule_fires_once_per_time(folder: Path) -> None:
    from orbweaver.app.store_runner import connect_store, store_settings
    from orbweaver.app.wiring import control_of
    from orbweaver.control.crawl_spec import CrawlSpec
    from orbweaver.control.scheduler import Timetable

    async def go() -> list[str]:
        settings = store_settings({})
        async with connect_store(settings, folder) as ports, connect_store(settings, folder) as too:
            ports.clock = too.clock = clock = _Clock()
            timetable = Timetable(
                schedules=ports.schedules, control=control_of(ports), clock=ports.clock
            )
            await timetable.put(
                CrawlSpec(seeds=("https://example.com/",), every="1h", overlap="allow")  # type: ignore[arg-type]
            )
            clocks = ScheduleClock(ports), ScheduleClock(too)
            for minutes in (0, 30, 31, 1, 125):
                clock.ms += minutes * 60_000
                for one in clocks:
                    await one.poll()
            # Times missed during a pause are not made up for.
            await timetable.pause("example.com")
            for paused in (True, False, False):
                await timetable.pause("example.com", paused=paused)
                clock.ms += paused * 90 * 60_000
                for one in clocks:
                    await one.poll()
            return [crawl.id for crawl in await control_of(ports).crawls()]

    assert len(asyncio.run(go())) == 2


class _Clock:
    ms = 1_795_000_000_000

    def now_ms(self) -> int:
        return self.ms

    async def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


def test_finished_day_is_exported(folder: Path) -> None:
    from orbweaver.adapters.local.clock import SystemClock
    from orbweaver.app.store_runner import connect_store, store_settings

    at_ms = SystemClock().now_ms() - 3 * DAY_MS

    async def fill() -> None:
        async with connect_store(store_settings({}), folder / STORE) as ports:
            crawl = samples.crawl(started_at_ms=at_ms, finished_at_ms=at_ms, state=State.FINISHED)
            await ports.crawls.create(crawl)
            await ports.pages.store([samples.record(1, fetched_at=at_ms)])

    asyncio.run(fill())
    listen = ("--workers", "1", "--listen", "127.0.0.1:0")
    with started(folder, "serve", *listen, "--out", "files") as server:
        assert server.stdout is not None
        said = [server.stdout.readline() for _ in range(3)]
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=WAIT_S)
    assert said[2] == f"{day_of(at_ms)} is exported\n"
    (file,) = (folder / "files").glob(f"pages/jsonl/dt={day_of(at_ms)}/shop-1/part-*")
    assert file.is_file()


def test_failing_webhook_is_retried_then_dead_lettered(folder: Path) -> None:
    from orbweaver.adapters.sqlite.messages import QueueName
    from orbweaver.app.store_runner import connect_store, store_settings
    from orbweaver.app.wiring import control_of
    from orbweaver.control.crawl_spec import CrawlSpec

    async def go(url: str) -> int:
        secrets = folder / "secrets"
        secrets.mkdir()
        (secrets / "key").write_text("k" * 40)
        settings = store_settings({"ORBWEAVER_WEBHOOK_SECRET": "key"})
        async with connect_store(settings, folder) as ports:
            ports.clock = clock = _Clock()
            crawl = await control_of(ports).start(CrawlSpec(seeds=(url,), webhook=f"{url}/hook"))
            await ports.events.completed(crawl, {})
            poster = WebhookPoster(ports)
            for seconds in (0, 61, 301, 601):
                clock.ms += seconds * 1000
                await poster.poll()
            return ports.inbox(QueueName.DEAD_LETTERS).depth().waiting

    with graph.serve_in_background({"/hook": Answer(status=503)}) as receiver:
        assert asyncio.run(go(receiver.url)) == 1
        assert asked(receiver)["/hook"] == 3
