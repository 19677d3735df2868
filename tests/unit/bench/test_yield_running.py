"""Yield benchmark: crawlers under time limits, and the table of results."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.serving import Place, Unavailable
from bench.yields import __main__ as command
from bench.yields import application as applications
from bench.yields import crawling
from bench.yields.application import Application
from bench.yields.crawling import Bounds
from bench.yields.judging import Truth

# A crawler that makes five requests and waits.
WAITING = "import signal, sys; open(sys.argv[1], 'a').write('7\\tline\\n' * 5); signal.pause()"
FAILING = "raise SystemExit('no such site')"
DPKG_DEB = shutil.which("dpkg-deb")
BOUNDS = Bounds(requests=5, seconds=60, bytes=2**40)


def ended(folder: Path, script: str, bounds: Bounds) -> str:
    log = folder / "access.log"
    log.touch()
    return crawling._run([sys.executable, "-c", script, log], folder, log, bounds)[0]


def test_runs_of_application_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(applications, "HOME", tmp_path)
    order: list[str] = []

    def other() -> None:
        with applications.placed("one"):
            order.append("other")

    with ThreadPoolExecutor(1) as pool:
        with applications.placed("one"):
            waiting = pool.submit(other)
            while "another run" not in capsys.readouterr().err:
                time.sleep(0.01)
            order.append("this")
        waiting.result(60)
    assert order == ["this", "other"]


def test_crawler_is_ended_after_logged_requests(tmp_path: Path) -> None:
    assert ended(tmp_path, WAITING, BOUNDS) == "requests"


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        (Bounds(requests=6, seconds=0, bytes=2**40), "time"),
        (Bounds(requests=6, seconds=60, bytes=1), "memory"),
    ],
)
def test_crawler_is_ended_by_time_or_memory(tmp_path: Path, bounds: Bounds, why: str) -> None:
    assert ended(tmp_path, WAITING, bounds) == why


def test_end_of_crawler_is_reported(tmp_path: Path) -> None:
    assert ended(tmp_path, "", BOUNDS) == "itself"
    assert ended(tmp_path, FAILING, BOUNDS) == "failed: code 1: no such site"


def _serve(place: Place, port: int) -> None: ...


def _own(target: str) -> list[str]:
    return [target]


def test_application_is_prepared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "unpack", list)
    made = []

    def prepare(place: Place) -> Truth:
        made.append(place.name)
        return Truth(articles=frozenset({"ä", "b"}), aliases={"c": "b"})

    application = Application("one", "One", prepare, _serve, _own)
    place = Place(name="one", home=tmp_path)
    assert application.made(place) == application.made(place) == prepare(place)
    assert made == ["one", "one"]  # once by the application, and once in this line


def test_missing_apt_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "HOME", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="there is no apt-get"):
        applications.unpack(["cgit"])


@pytest.mark.skipif(DPKG_DEB is None, reason="there is no dpkg-deb")
def test_dangling_link_is_replaced_by_folder(tmp_path: Path) -> None:
    control = tmp_path / "made" / "DEBIAN" / "control"
    library = tmp_path / "made" / "usr" / "share" / "library"
    for path in (control, library / "code.php", library.with_name("kept") / "code.php"):
        path.parent.mkdir(parents=True)
        path.write_text("new")
    control.write_text(
        "Package: one\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\n"
        "Description: one\n"
    )
    archive = tmp_path / "one.deb"
    subprocess.run([str(DPKG_DEB), "--build", control.parents[1], archive], check=True)
    root = tmp_path / "root"
    there = root / "usr" / "share"
    (there / "before").mkdir(parents=True)
    (there / "before" / "code.php").write_text("old")
    (there / "kept").symlink_to("before")
    (there / "library").symlink_to("nowhere")
    applications.extract(archive, root)
    assert (there / "library" / "code.php").read_text() == "new"
    assert (there / "kept").is_symlink()
    assert (there / "before" / "code.php").read_text() == "old"


def test_options_are_passed_to_own_crawler_only(tmp_path: Path) -> None:
    job = crawling.Job(url="http://127.0.0.1/", requests=7, folder=tmp_path)
    known = crawling.crawlers(["--exclude", "x"])
    assert known["ours"].words(job)[-4:] == ["--max-pages", "7", "--exclude", "x"]
    assert "--exclude" not in known["wget"].words(job)


def test_table_names_application_once() -> None:
    crawl = {
        "application": "cgit",
        "title": "cgit",
        "crawler": "Wget",
        "articles": 1_005,
        "found": 201,
        "requests": 900,
        "ended": "itself",
        "shares": {"500": 0.124, "1000": None},
        "area": 0.1,
    }
    results = {
        "points": [500, 1_000],
        "crawls": [crawl, {**crawl, "crawler": "Scrapy"}],
        "skipped": {"MediaWiki": "no apt"},
    }
    assert command.table(results).splitlines()[2:] == [
        "| cgit, 1,005 | Wget | 12 | - | 10 | 20 | 900 | itself |",
        "|  | Scrapy | 12 | - | 10 | 20 | 900 | itself |",
        "",
        "MediaWiki: skipped, no apt",
    ]


@pytest.mark.parametrize("words", ["--apps nothing", "--crawlers nothing"])
def test_unknown_names_are_refused_with_known_ones(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(words.split())
    assert "mediawiki" in capsys.readouterr().err
