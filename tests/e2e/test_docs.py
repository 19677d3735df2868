"""Runs the commands of README and docs in order as printed (marks: `tests/docs.py`).

Placeholders are replaced: an example site by a local one, ID by a crawl's id, a day by today.
Commands that run until Ctrl-C get it after a while.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localstack import emulator, layout
from tests import docs
from tests.e2e.stand import Stand
from tests.sites import child, graph
from tests.sites.child import Child

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BIN = Path(sys.executable).parent
DEFINITION = layout.ROOT / "tests/sites/bookshop/crawl.toml"
BASH = "/bin/bash"
CTRL_C_S = 4
INTERRUPTED = (124, 130)
# A crawl to cancel: an edit can have removed the delay that kept it running.
ENDED = 2
# The command, on a machine whose usual port may be taken.
SHIM = """#!{python}
import sys
from localstack import emulator
from orbweaver.cli import main, stack
stack.PORT = emulator.PORT = {port}
sys.exit(main.main())
"""
NO_END = re.compile(r"^(orbweaver (metrics|status .*--watch)|\S*python -m tests\.sites)")
# Unlike plain curl, the command fails on every error status of the API.
CURL = '#!/bin/sh\nexec {curl} --fail-with-body "$@"\n'


@dataclass(kw_only=True)
class Desk:
    """Shell for commands: a folder, an environment, and placeholder values."""

    folder: Path
    environment: Mapping[str, str]
    names: dict[str, str] = field(default_factory=dict)

    def meant(self, text: str) -> str:
        for name, value in self.names.items():
            # No value contains a backslash, which would be special here.
            text = re.sub(rf"(?<![\w./$]){name}(?![\w])", value, text)
        return text

    def bash(self, script: str, *, code: tuple[int, ...] = (0,)) -> str:
        """Run lines in a shell until the first failure; return their output."""
        done = subprocess.run(
            [BASH, "-euo", "pipefail", "-c", self.meant(script)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode in code, f"{self.meant(script)}\n[exit {done.returncode}]\n{said}"
        return said

    def type(self, command: str) -> str:
        """Run one command; send Ctrl-C if it does not end."""
        if NO_END.match(command):
            return self.bash(f"timeout --signal=INT {CTRL_C_S} {command}", code=(0, *INTERRUPTED))
        return self.bash(command)


@dataclass(frozen=True, kw_only=True)
class Crawled:
    """A finished crawl of the shop: its folder, id, and one of its pages."""

    folder: Path
    run: str
    book: str


def programs(folder: Path, port: int) -> str:
    """Create a folder of programs with priority; return the PATH that begins with it."""
    folder.mkdir()
    texts = {"orbweaver": SHIM.format(python=sys.executable, port=port)}
    if curl := shutil.which("curl"):
        texts["curl"] = CURL.format(curl=curl)
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    return os.pathsep.join([str(folder), str(BIN), os.environ.get("PATH", os.defpath)])


@pytest.fixture(scope="module")
def shop() -> Iterator[Child]:
    with child.start("bookshop", "--books", "12") as served:
        yield served


@pytest.fixture
def site() -> Iterator[str]:
    """Serve two pages; return the URL."""
    pages = {"/": graph.page("/", ["/a"]), "/a": graph.page("/a"), "/robots.txt": graph.page("/")}
    with graph.serve_in_background(pages) as served:
        yield str(served.url)


@pytest.fixture(scope="module")
def crawled(stand: Stand, shop: Child, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """Crawl the shop and export it; return a folder with the definition, `out` and a page."""
    folder = tmp_path_factory.mktemp("crawled")
    text = DEFINITION.read_text().replace("http://127.0.0.1:8000/", f"{shop.url}/")
    (folder / "crawl.toml").write_text(f"{text}\n[schedule]\nevery = '6h'\n")
    started = stand.orbweaver("start", "--config", "crawl.toml", "--wait", folder=folder)
    run = started.out.split()[0]
    stand.orbweaver("export", "--crawl", run, folder=folder)
    pages = stand.orbweaver("pages", run, "--outcome", "fetched").out.splitlines()
    books = (line.split()[3] for line in pages)
    book = next(url for url in books if "/books/" in url)
    with urllib.request.urlopen(book) as answer:  # noqa: S310 - the shop's
        (folder / "saved.html").write_bytes(answer.read())
    (folder / "question.sql").write_text("SELECT count(*) FROM pages")
    (folder / "shop").mkdir()
    (folder / "shop" / "extract.py").write_text("def books(page, url):\n    yield {}\n")
    return Crawled(folder=folder, run=run, book=book)


@pytest.fixture
def desk(stand: Stand, site: str, crawled: Crawled, tmp_path: Path) -> Iterator[Desk]:
    """Open a shell at the shared stack, with a finished crawl and its files.

    Queued messages are crawled before the site closes, otherwise they are retried for a minute.
    """
    shutil.copytree(crawled.folder, tmp_path / "work")
    yield Desk(
        folder=tmp_path / "work",
        environment={
            **stand.environment,
            "PATH": programs(tmp_path / "bin", stand.emulator.port),
            "ApiUrl": stand.outputs["ApiUrl"],
        },
        names={
            **somebody(site),
            r"http://127\.0\.0\.1:8000/books/x_1/": crawled.book,
            "ID": crawled.run,
            "NAME": "bookshop",
            # The demo's result, for a larger shop.
            r"\.local/demo": "out",
            "items_demo_books": "items_bookshop_books",
            "URL": crawled.book,
            r"exports/2026": "out",
            r"2026-11-21": datetime.now(tz=UTC).strftime("%Y-%m-%d"),
        },
    )
    stand.wait_idle()


def somebody(site: str) -> dict[str, str]:
    host = site.partition("//")[2]
    return {
        r"https://example\.(com|org)": site,
        r"--host example\.(com|org)": f"--host {host}",
        r"example\.(com|org)": host.replace(":", "-"),
    }


def begin(desk: Desk) -> str:
    words = "orbweaver start --config crawl.toml --window 0s --delay 5s --concurrency 1"
    return desk.bash(words).split()[0]


def in_order(page: str, kind: str | None = None) -> list[docs.Block]:
    """List a page's blocks that run unchanged."""
    found = [block for block in docs.ALL if block.page == page and block.kind == kind]
    return [block for block in found if block.shell == "sh"]


# Pages with commands that crawl or wait for switched workers.
LONG = {"docs/definition.md", "docs/operations.md", "docs/schedules.md", "docs/text.md"}
PAGES = [
    pytest.param(page, marks=[pytest.mark.long] if page in LONG else [], id=page)
    for page in sorted({block.page for block in docs.ALL if not block.kind and block.shell == "sh"})
]


@pytest.mark.parametrize("page", PAGES)
def test_commands_work_as_printed(page: str, desk: Desk, stand: Stand) -> None:
    script = "\n".join(block.body for block in in_order(page))
    if page == "docs/definition.md":
        (desk.folder / "crawl.toml").unlink()
        # As the starter file recommends, its seeds are edited.
        edit = f"sed -i s,https://example[.]com,{desk.meant('https://example.com')},"
        script = script.replace("orbweaver check", f"{edit} crawl.toml; orbweaver check")
    if page == "docs/api.md":
        desk.environment = {**desk.environment, "ID": begin(desk)}
        with stand.client("s3") as s3:
            body = b"https://example.net/\n"
            s3.put_object(Bucket=stand.outputs["Bucket"], Key="seeds/shops.txt", Body=body)
    desk.bash(script)


EACH = [block for block in docs.ALL if block.kind == "each"]


@pytest.mark.long
@pytest.mark.parametrize("block", EACH, ids=lambda block: f"{block.page}: {block.commands[0][:30]}")
def test_commands_about_crawl_work_as_printed(block: docs.Block, desk: Desk) -> None:
    """Each command runs on a crawl in the state that its block describes."""
    ended = desk.names["ID"]
    running = block.what == docs.RUNNING
    for command in block.commands:
        if running and desk.names["ID"] == ended:
            desk.names["ID"] = begin(desk)
        again = "orbweaver retry" in command
        desk.type(command.replace("ID", ended) if again else command)
        if "orbweaver cancel" in command:
            desk.names["ID"] = ended
    desk.bash("orbweaver workers on")
    if running and desk.names["ID"] != ended:
        desk.bash("orbweaver cancel ID", code=(0, ENDED))


@pytest.fixture
def alone(site: str, tmp_path: Path) -> Iterator[Desk]:
    """Open a checkout without a running stack; stop everything that it starts."""
    port = emulator.free_port()
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("Makefile", "tools", ".venv", "tests"):
        (folder / name).symlink_to(layout.ROOT / name)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    bin_folder = tmp_path / "bin"
    desk = Desk(
        folder=folder,
        environment={
            **kept,
            "PATH": programs(bin_folder, port),
            "ARGS": f"--port {port}",
            # An activated environment is first on the path; a shell function comes before that.
            "BASH_FUNC_orbweaver%%": f'() {{ "{bin_folder}/orbweaver" "$@"; }}',
        },
        names=somebody(site),
    )
    try:
        yield desk
    finally:
        desk.bash("orbweaver local down")
        shutil.rmtree(layout.INSTANCES / str(port), ignore_errors=True)


OWN = sorted({block.page for block in docs.ALL if block.kind == "starts"})


@pytest.mark.long
@pytest.mark.parametrize("page", OWN)
def test_new_stack_works_as_printed(page: str, alone: Desk) -> None:
    for block in in_order(page, "starts"):
        first, *rest = block.commands
        if first != "make up":
            alone.bash(block.body)
            continue
        shown = alone.bash(first)
        (line,) = (line for line in shown.splitlines() if line.startswith("export "))
        assert "amazonaws.com" not in shown
        fresh = Desk(folder=alone.folder, environment={"HOME": str(alone.folder)})
        said = fresh.bash(f"{line}\n{BIN}/orbweaver workers status")
        assert "enabled" in said
        for command in rest:
            assert "http://127.0.0.1:8800" in alone.type(command)
