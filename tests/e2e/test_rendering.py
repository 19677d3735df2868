"""A stack with a browser: pages that need it go to the renderer and are complete."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from orbweaver.rendering.launch import find_browser
from tests.e2e import enforced
from tests.sites import graph
from tests.sites.scripted import application

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.stand import Stand

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(400),
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
]
PAGES = 12


@pytest.fixture(scope="module")
def rendering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("rendering")
    with enforced.standing(folder, context={"rendering": "yes"}) as stood:
        yield stood


@pytest.fixture
def site() -> Iterator[graph.Graph]:
    with graph.serve_in_background(application(PAGES)) as served:
        yield served


def test_script_pages_are_rendered_once(rendering: Stand, site: graph.Graph) -> None:
    crawled = rendering.start(
        f"{site.url}/page/0", f"{site.url}/plain", "--render", "auto", "--delay", "0"
    )
    fetched = crawled.urls("fetched")
    assert fetched == sorted(
        [f"{site.url}/plain", *(f"{site.url}/page/{place}" for place in range(PAGES))]
    )
    titles = {row["url"].removeprefix(site.url): row["title"] for row in crawled.rows}
    assert titles["/page/11"] == "Page 11"
    rendered = [row for row in crawled.rows if row["rendered"]]
    assert len(rendered) == crawled.result["rendered"] == PAGES
    assert crawled.result["needs_rendering"] == 0
    paths = Counter(site.log.paths())
    assert all(paths[f"/data/page/{place}"] == 1 for place in range(PAGES))
    assert not [path for path in paths if path.startswith(("/private", "/buy"))]
    assert any('"UrlsEnded"' in line for line in rendering.lines("RendererLogGroup"))
    ran = rendering.orbweaver("workers", "status", "--json")
    assert set(ran.result["sources"].values()) == {"Enabled"}
    assert {name.rpartition("-")[2] for name in ran.result["sources"]} == {
        *("crawl", "express", "render", "seeds")
    }
