"""Sites of the benchmark: generated sites, manuals, and their server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from bench.server import END, Connection, Shelf
from bench.sites import ROBOTS, SITES, Entry, Manual, named
from tests.sites import generated

PAGES = 120


@pytest.mark.parametrize("size_bytes", [30_000, 150_000])
def test_generated_pages_have_size_title_and_fifty_links(size_bytes: int) -> None:
    made = dict(generated.pages(PAGES, size_bytes))
    titles = set()
    for path, body in made.items():
        assert abs(len(body) - size_bytes) < 0.05 * size_bytes
        tree = LexborHTMLParser(body)
        title = tree.css_first("title")
        assert title is not None
        titles.add(f"{path} {title.text()}")
        hrefs = {(a.attributes["href"] or "").partition("#")[0] for a in tree.css("a[href]")}
        assert len(hrefs) == 50
        assert hrefs <= made.keys() - {path}
    assert len(titles) == PAGES


@pytest.mark.parametrize("count", [1, 2, 30, 51, 1_000])
def test_generated_pages_are_reachable_from_first(count: int) -> None:
    seen, todo = {0}, [0]
    while todo:
        for link in generated.links_of(todo.pop(), count):
            if link not in seen:
                seen.add(link)
                todo.append(link)
    assert seen == set(range(count))


def test_generated_site_is_deterministic() -> None:
    assert list(generated.pages(20, 30_000)) == list(generated.pages(20, 30_000))


def test_sites_are_selected_by_name_family_and_tls() -> None:
    assert [place.name for place in named("python,generated,python")] == [
        "python",
        "generated-30",
        "generated-150",
    ]
    (place,) = named("python+tls")
    assert place.tls
    assert place.title == "Python 3.11 manual, HTTPS"
    with pytest.raises(KeyError, match="perl"):
        named("perl")


def test_missing_manual_names_its_package(tmp_path: Path) -> None:
    manual = Manual(name="x", title="The X manual", package="x-doc", folder=tmp_path)
    assert manual.absent == "The X manual is not installed: apt-get install x-doc"


def test_manual_is_served_like_file_server(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text("one")
    (tmp_path / "index.html").write_text("two")
    (tmp_path / "x.css").write_text("three")
    manual = Manual(name="x", title="X", package="x-doc", folder=tmp_path)
    assert not manual.absent
    found = {entry.path: entry for entry in manual.entries(0)}
    assert found.keys() == {"/", "/index.html", "/a", "/a/", "/a/index.html", "/x.css"}
    assert found["/"].body == b"two"
    assert found["/a/"].body == b"one"
    assert (found["/a"].status, found["/a"].location) == (301, "/a/")
    assert found["/x.css"].content_type == "text/css"


class _Wire(asyncio.Transport):
    """Collects written bytes."""

    def __init__(self) -> None:
        super().__init__({"socket": self})
        self.written = b""

    def setsockopt(self, *_: object) -> None: ...

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)


def test_server_answers_pieces_pipelines_and_queries() -> None:
    page, sheet = Entry(path="/p q", body=b"hello"), Entry(path="/s", content_type="text/css")
    shelf, wire = Shelf([page, sheet]), _Wire()
    connection = Connection(shelf)
    connection.connection_made(wire)
    connection.data_received(b"GET /p%20q HTTP/1.1\r\nHost: x\r\n")
    assert wire.written == b""
    connection.data_received(b"\r\nGET /s?v=1 HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\n")
    assert wire.written.count(b"HTTP/1.1 ") == 3
    assert wire.written.split(END)[1].startswith(b"hello")
    connection.data_received(b"GET /robots.txt HTTP/1.1\r\n\r\n")
    assert wire.written.endswith(ROBOTS)
    report = json.loads(json.dumps(shelf.report()))
    assert report["pages"] == ["/p%20q"]
    assert (report["requests"], report["missing"], report["served"]) == (4, 1, 1)
    assert 0 < report["first_s"] <= report["last_s"]
    shelf.reset()
    assert shelf.report()["pages"] == []


def test_every_site_has_start_and_title() -> None:
    assert all(name == site.name and site.title and site.start for name, site in SITES.items())
