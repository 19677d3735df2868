"""A site without links: the deployed stack finds its pages by sitemaps."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tests.sites import child

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.stand import CommandStand
    from tests.sites.child import Child

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(400)]

PLAIN = [f"/plain/{number}.html" for number in range(30)]
ZIPPED = [f"/zipped/{number}.html" for number in range(30)]
TEXT = [f"/text/{number}.html" for number in range(30)]
SITEMAPS = ["/index.xml", "/plain.xml", "/zipped.xml.gz", "/text.txt"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Child]:
    """Serve pages without links, and an index of three sitemaps named in robots.txt."""
    with child.start("static", str(tmp_path)) as site:
        for page in ["/index.html", *PLAIN, *ZIPPED, *TEXT]:
            file = tmp_path / page[1:]
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"<title>{page}</title>")
        write = {
            "robots.txt": b"User-agent: *\nDisallow:\nSitemap: /index.xml\n",
            "index.xml": _xml("sitemapindex", "sitemap", site.url, SITEMAPS[1:]),
            "plain.xml": _xml("urlset", "url", site.url, PLAIN),
            "zipped.xml.gz": gzip.compress(_xml("urlset", "url", site.url, ZIPPED)),
            "text.txt": "\n".join(site.url + page for page in TEXT).encode(),
        }
        for name, body in write.items():
            (tmp_path / name).write_bytes(body)
        yield site


def _xml(root: str, item: str, base_url: str, paths: list[str]) -> bytes:
    items = "".join(f"<{item}><loc>{base_url}{path}</loc></{item}>" for path in paths)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0"?><{root} xmlns="{space}">{items}</{root}>'.encode()


def test_pages_are_found_by_sitemaps_alone(site: Child, anywhere: CommandStand) -> None:
    crawled = anywhere.crawl(site.url + "/", "--delay", "0", "--name", "mapped")

    pages = [site.url + path for path in ["/", *PLAIN, *ZIPPED, *TEXT]]
    assert crawled.urls("fetched", "ok") == sorted(pages)
    assert crawled.urls("fetched", "sitemap") == sorted(site.url + path for path in SITEMAPS)
    asked = [record.path for record in site.log() if record.path != "/robots.txt"]
    assert len(asked) == len(set(asked)) == len(pages) + len(SITEMAPS)


def test_no_sitemaps_option_ignores_sitemaps(site: Child, anywhere: CommandStand) -> None:
    crawled = anywhere.crawl(site.url + "/", "--delay", "0", "--no-sitemaps", "--name", "unmapped")

    assert crawled.urls("fetched") == [site.url + "/"]


def test_sitemap_option_starts_from_given_sitemap(site: Child, anywhere: CommandStand) -> None:
    crawled = anywhere.crawl(
        "--sitemap", f"{site.url}/text.txt", "--delay", "0", "--no-sitemaps", "--name", "alone"
    )

    assert crawled.urls("fetched", "ok") == sorted(site.url + path for path in TEXT)
