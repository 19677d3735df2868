"""`generate`: sitemap.xml and llms.txt from exported pages."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from orbweaver.cli.generate import sitemap
from orbweaver.cli.generate.listing import URL_CHARS_MAX, FirstPage, ListedPage, Unlisted
from orbweaver.cli.generate.llms_txt import llms_txt
from orbweaver.cli.generate.sitemap import write_sitemap
from orbweaver.model.columns import PAGES
from orbweaver.parsing.sitemap import SitemapFormat, read
from tests.unit.cli.exports import NOON_MS, made, put

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Desk

SITE = "https://example.org/"
NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
LONG = "l" * (URL_CHARS_MAX - len(SITE))
# URLs below SITE, or absolute, and their columns.
LISTED: dict[str, dict[str, Any]] = {
    "": {"depth": 0, "title": "Example", "description": "A site."},
    "a'b?x=1&y=2": {},
    "docs/": {"canonical": f"{SITE}docs/"},
    "docs/same": {"outcome": "unchanged", "reason": "not_modified", "status": 304},
    LONG: {},
}
LEFT_OUT: dict[str, tuple[Unlisted, dict[str, Any]]] = {
    "https://other.example/": (Unlisted.OUTSIDE, {"depth": 0}),
    "blocked": (Unlisted.UNJUDGED, {"outcome": "failed", "reason": "blocked", "status": 403}),
    "moved": (Unlisted.REDIRECT, {"outcome": "redirected", "reason": "redirect", "status": 301}),
    "gone": (Unlisted.FAILED, {"outcome": "failed", "reason": "http_client_error", "status": 404}),
    "part": (Unlisted.FAILED, {"reason": "truncated", "status": 206}),
    "file.pdf": (Unlisted.NOT_HTML, {"outcome": "skipped", "reason": "content_type"}),
    "sitemap.xml": (Unlisted.NOT_HTML, {"reason": "sitemap"}),
    "kept.pdf": (Unlisted.NOT_HTML, {"charset": None}),
    "soft": (Unlisted.SOFT_404, {"reason": "soft_404"}),
    "hidden": (Unlisted.NOINDEX, {"reason": "noindex"}),
    "omitted": (Unlisted.NOINDEX, {"reason": "noindex", "outcome": "skipped"}),
    "copy": (Unlisted.CANONICAL, {"canonical": f"{SITE}docs/"}),
    "skipped": (
        Unlisted.CANONICAL,
        {"outcome": "skipped", "reason": "canonical", "error": f"{SITE}docs/"},
    ),
    "app": (Unlisted.SCRIPTS, {"needs_rendering": True}),
    "huge": (Unlisted.UNREAD, {"cut": "unread=9"}),
    f"{LONG}l": (Unlisted.LONG_URL, {}),
}


def row(path: str, columns: dict[str, Any]) -> dict[str, Any]:
    given = {
        "url": path if path.startswith("https:") else f"{SITE}{path}",
        "outcome": "fetched",
        "reason": "ok",
        "status": 200,
        "charset": "utf-8",
        "depth": 1,
        "fetched_at": NOON_MS,
    }
    return given | columns


def put_pages(desk: Desk, rows: list[dict[str, Any]]) -> None:
    put(desk.folder / "runs", made([(PAGES, rows)], names=("parquet",)))


@pytest.fixture
def site(desk: Desk) -> Desk:
    others = [row(path, columns) for path, (_, columns) in LEFT_OUT.items()]
    put_pages(desk, [*others, *(row(path, columns) for path, columns in LISTED.items())])
    return desk


def test_sitemap_lists_indexable_pages_and_counts_the_others(site: Desk) -> None:
    assert site.run("generate sitemap --from runs --json") == 0, site.noted
    body = (site.folder / "sitemap.xml").read_bytes()
    found = read(body, f"{SITE}sitemap.xml")
    assert (found.format, found.problem) == (SitemapFormat.URLSET, None)
    assert [entry.url for entry in found.entries] == sorted(f"{SITE}{path}" for path in LISTED)
    counts: dict[str, int] = {}
    for reason, _ in LEFT_OUT.values():
        counts[reason] = counts.get(reason, 0) + 1
    assert {*counts} == {*Unlisted} - {Unlisted.OVER_LIMIT}
    [result] = site.objects()
    assert (result["urls"], result["left_out"]) == (len(LISTED), counts)


@pytest.mark.parametrize(
    ("last_modified", "lastmod"),
    [
        ("Fri, 20 Nov 2026 08:30:00 GMT", "2026-11-20T08:30:00Z"),
        ("Friday, 20-Nov-26 08:30:00 GMT", "2026-11-20T08:30:00Z"),
        ("Fri Nov 20 08:30:00 2026", "2026-11-20T08:30:00Z"),
        ("Sat, 21 Nov 2026 11:59:00 GMT", "2026-11-21T11:59:00Z"),
        # The time of the request, a time after it, and no date.
        ("Sat, 21 Nov 2026 11:59:59 GMT", None),
        ("Sun, 22 Nov 2026 12:00:00 GMT", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_last_modified_before_the_request_becomes_lastmod(
    desk: Desk, last_modified: str | None, lastmod: str | None
) -> None:
    put_pages(desk, [row("", {"last_modified": last_modified})])
    assert desk.run("generate sitemap --from runs") == 0, desk.noted
    root = ET.fromstring((desk.folder / "sitemap.xml").read_bytes())  # noqa: S314 - our own file
    assert [date.text for date in root.iter(f"{NAMESPACE}lastmod")] == [lastmod] * bool(lastmod)
    assert desk.run("generate sitemap --from runs --no-lastmod") == 0, desk.noted
    assert "lastmod" not in (desk.folder / "sitemap.xml").read_text()


@pytest.mark.parametrize("limit", ["URLS_MAX", "BYTES_MAX"])
@pytest.mark.parametrize("name", ["sitemap.xml", "sitemap.xml.gz"])
def test_sitemap_over_a_limit_is_divided_and_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: str
) -> None:
    urls = [f"{SITE}{number}?a=1&b=%22" for number in range(5)]
    write_sitemap(((url, None) for url in urls[:2]), tmp_path / name, SITE)
    [whole] = tmp_path.iterdir()
    size = len(gzip.decompress(whole.read_bytes()) if name.endswith(".gz") else whole.read_bytes())
    monkeypatch.setattr(sitemap, limit, {"URLS_MAX": 2, "BYTES_MAX": size}[limit])
    index, *parts = write_sitemap(((url, None) for url in urls), tmp_path / name, SITE)
    assert {file.path for file in (index, *parts)} == {*tmp_path.iterdir()}
    assert [file.urls for file in (index, *parts)] == [0, 2, 2, 1]
    assert max(part.bytes for part in parts) <= sitemap.BYTES_MAX
    found: list[str] = []
    for file, form in ((index, "sitemapindex"), *((part, "urlset") for part in parts)):
        body = file.path.read_bytes()
        body = gzip.decompress(body) if name.endswith(".gz") else body
        assert len(body) == file.bytes
        root = ET.fromstring(body)  # noqa: S314 - our own file
        assert root.tag == f"{NAMESPACE}{form}"
        found += [entry.url for entry in read(body, f"{SITE}{name}").entries]
        if form == "sitemapindex":
            named = [entry.url for entry in read(body, f"{SITE}{name}").sitemaps]
            assert named == [f"{SITE}{part.path.name}" for part in parts]
    assert found == urls


@pytest.mark.parametrize(
    ("base", "code", "said"),
    [
        ("https://example.org/docs/", 0, "2 URLs"),
        ("https://other.example/", 0, "1 URL"),
        ("https://example.org/none/", 1, "no page is left to list"),
        ("https://example.org/docs", 2, "end it with /"),
        ("docs/", 2, "--base"),
    ],
)
def test_base_selects_the_folder_of_the_site(site: Desk, base: str, code: int, said: str) -> None:
    assert site.run(f"generate sitemap --from runs --base {base}") == code
    assert said in site.said + site.noted
    assert (site.folder / "sitemap.xml").exists() is (code == 0)


def test_run_without_pages_is_refused(desk: Desk) -> None:
    put_pages(desk, [row("", {"outcome": "failed", "reason": "timeout", "charset": None})])
    assert "has no page to list" in desk.errors("generate sitemap --from runs")


def test_llms_txt_lists_nearest_pages_by_section(site: Desk) -> None:
    assert site.run("generate llms-txt --from runs --limit 4 --json") == 0, site.noted
    assert (site.folder / "llms.txt").read_text() == (
        "# Example\n\n> A site.\n\n## Pages\n\n"
        f"- [Example]({SITE}): A site.\n"
        f"- [{SITE}a'b?x=1&y=2]({SITE}a'b?x=1&y=2)\n\n"
        f"## /docs/\n\n- [{SITE}docs/]({SITE}docs/)\n- [{SITE}docs/same]({SITE}docs/same)\n"
    )
    [result] = site.objects()
    assert (result["urls"], result["left_out"][Unlisted.OVER_LIMIT]) == (4, 1)
    assert site.run("generate llms-txt --from runs --limit 0") == 2


def test_texts_of_pages_add_no_structure_to_llms_txt() -> None:
    first = FirstPage(url=SITE, title="\n# One\nTwo", description="> x\n## y\x1b[2J")
    page = ListedPage(
        section="%0A%23", url=f"{SITE}a_(b)", title="a]\n(x)\n- [b", description="c\n\n## d"
    )
    assert [*llms_txt(first, [page])] == [
        *("# # One Two", "", "> > x ## y", "", "## /#/", ""),
        f"- [a) (x) - (b]({SITE}a_%28b%29): c ## d",
    ]
