"""A Python program that steers crawls of a stack: the client of docs/python.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import orbweaver
from tests.e2e.stand import names
from tests.sites import graph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.stand import Stand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PAGES = {
    "/": graph.page("Books", ["/dune", "/emma"]),
    "/dune": graph.page("Dune", text="Spice, worms and a desert planet."),
    "/emma": graph.page("Emma", text="Handsome, clever, and rich."),
}
RULES = [{"name": "books", "match": "/[a-z]+$", "fields": {"title": "h1"}}]


@pytest.fixture
def client(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Iterator[orbweaver.Client]:
    for name, value in stand.environment.items():
        monkeypatch.setenv(name, value)
    with orbweaver.Client(stack="Orbweaver") as opened:
        yield opened


def test_client_crawls_on_stack_like_on_store(client: orbweaver.Client, tmp_path: Path) -> None:
    with graph.serve_in_background(PAGES) as site:
        begun = client.start(f"{site.url}/", delay="0s", text=True, items=RULES)
        status = client.wait(begun)
    assert (status.state, status.stop, status.pages) == ("finished", "finished", len(PAGES))
    assert names([page["url"] for page in client.pages(begun)], site.url) == sorted(PAGES)
    assert sorted(item["title"] for item in client.items(begun, "books")) == ["Dune", "Emma"]
    texts = [text["text"] for text in client.texts(begun)]
    assert any("a desert planet" in text for text in texts)
    assert client.explain(f"{site.url}/dune", begun).startswith("fetched: ok")
    assert begun in [crawl.id for crawl in client.crawls()]
    files = client.export(begun, tmp_path)
    assert files
    assert all(file.is_file() for file in files)
