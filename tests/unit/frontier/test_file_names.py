"""File names that show that a URL is no page."""

from __future__ import annotations

from mimetypes import MimeTypes

import pytest

from orbweaver.frontier.crawl_scope import ENDINGS, names_file
from orbweaver.parsing.sniffing import HTML_TYPES

SITE = "https://example.com"


@pytest.mark.parametrize(
    "path",
    [
        "/set.zip",
        "/a/b/Set-1.0.TAR.GZ",
        "/debian/pool/main/s/set/set_1.0-1_amd64.deb",
        "/repo.git/snapshot/repo-master.tar.gz",
        "/iso/set.iso",
        "/v1.0/set.whl",
        "/changelog.gz",
        "/.zip",
    ],
)
def test_archive_package_and_disk_image_names_are_files(path: str) -> None:
    assert names_file(SITE + path)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/zip",
        "/set.zip/",
        "/set.zip/download",
        "/set.zip.html",
        "/set.zip?page=2",
        "/show?file=set.zip",
        "/page.html.gz",
        # URLs of pages about files.
        "/wiki/File:Set.zip",
        "/Datei:Set.zip",
        "/Datei%3ASet.zip",
        "/repo.git/tree/data/set.zip",
        "/group/project/-/blob/main/set.tar.gz",
        "/project/browser/trunk/set.jar",
        "/details/set.iso",
        "/dyn/closer.lua/set/set-1.0.zip",
        # URLs that may be pages, or that lead to one.
        "/index.php",
        "/run.exe",
        "/photo.jpg",
        "/paper.pdf",
        "/film.mp4",
        "/x.com",
        "/program.bin",
    ],
)
def test_possible_page_is_not_named_file(path: str) -> None:
    """Repository browsers show a file on a page with the name of the file."""
    assert not names_file(SITE + path)


@pytest.mark.parametrize("url", ["https://example.zip/", "https://example.zip", "https://a.zip:8/"])
def test_host_with_zip_domain_is_not_named_file(url: str) -> None:
    """`zip` is a top-level domain."""
    assert not names_file(url)


def test_file_endings_have_no_html_type() -> None:
    table = MimeTypes()
    known = 0
    for ending in ENDINGS:
        kind, encoding = table.guess_type(f"set.{ending}", strict=False)
        assert kind not in HTML_TYPES
        assert kind is None or kind.startswith("application/"), ending
        known += bool(kind or encoding)
    assert known >= 8
