"""`check-links` on files: links between files, fragments, formats, and mistakes of users."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.cli.check_links.folder import as_html
from orbweaver.cli.check_links.links import Anchors
from orbweaver.cli.check_links.verdict import LinkState, judge, settled
from orbweaver.cli.exit_codes import FAILED, OK
from orbweaver.model.outcome import Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.parsing.link_rows import ROWS_MAX
from tests.contract import samples
from tests.unit.cli.conftest import USAGE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Desk

# Reference in a page of the folder `site/guide`, and the detail if it is broken.
LINKS = {
    "other.html": None,
    "./other.html?x=1": None,
    "other": None,
    "../": None,
    "/": None,
    "/guide/other.html": None,
    "sub/": None,
    "sub": None,
    "%C3%A9.html": None,
    "a%20b.html": None,
    "Other.html": "no such file, but there is other.html",
    "missing.html": "no such file",
    "missing/": "no such file",
    "other.html/": "it is a file, and the link ends with a slash",
    "empty/": "a folder without index.html",
    "data.json#part": None,
    "other.html#there": None,
    "other.html#%C3%BC": None,
    "other.html#old": None,
    "other.html#": None,
    "other.html#top": None,
    "other.html#:~:text=x": None,
    "other.html#there:~:text=x": None,
    "other.html#/route": None,
    "#own": None,
    "#own#x": "missing-fragment",
    "#gone": "missing-fragment",
    "other.html#gone": "missing-fragment",
    "sub/#gone": "missing-fragment",
    "https://docs.example/v1/guide/other.html": None,
    "https://docs.example/v1/none.html": "no such file",
    "http://[": "The reference is not a valid URL.",
    "mailto:a@b.example": None,
    "https://a.example/" + 3_000 * "x": None,
}
PAGE = "<!doctype html><title>t</title><p id=own>"
OTHER = '<p id=there><p id="ü"><a name=old>x</a><script>"<p id=gone>"</script><!-- <p id=gone> -->'
MARKDOWN = """---
title: x
---
# My *first* heading!

## Again
## Again
### Named {#own-id}

[a](other.md) [b](other.md#there-1) [c](#again-1) [d](#my-first-heading) [e](#own-id) [f](#nope)

`[code](nothing.md)` <span id="inline"></span> [g](#inline) [h][ref] [i](../src/)

```
[code](nothing.md)
```

[ref]: missing.md
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    pages = "".join(f'<a href="{link}">x</a>\n' for link in LINKS)
    files = {
        "index.html": PAGE,
        "guide/page.html": f"{PAGE}\n{pages}",
        "guide/other.html": OTHER,
        "guide/sub/index.html": PAGE,
        "guide/é.html": PAGE,
        "guide/a b.html": PAGE,
        "guide/data.json": "{}",
        "guide/empty/x.txt": "",
        ".hidden/page.html": '<a href="none.html">x</a>',
        "../outside.html": PAGE,
    }
    for name, body in files.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
    return tmp_path / "site"


def checked(desk: Desk, words: str, code: int = FAILED) -> dict[str, Any]:
    assert desk.run(f"check-links {words} --format json") == code, desk.noted
    found: dict[str, Any] = json.loads(desk.said)
    return found


def faults(report: dict[str, Any]) -> dict[tuple[str, int], str]:
    """Return the detail, or else the check, of each finding by file and line."""
    return {
        (finding["url"], finding["line"]): finding["detail"] or check["check"]
        for check in report["checks"]
        for finding in check["findings"]
    }


def test_links_of_folder_are_found_on_disk(desk: Desk, site: Path) -> None:
    report = checked(desk, f"{site} --base-url https://docs.example/v1/ --no-external")
    name = "site/guide/page.html"
    expected = {
        (name, line): detail for line, detail in enumerate(LINKS.values(), 2) if detail is not None
    }
    assert faults(report) == expected
    assert report["pages"] == 6


def test_relative_link_leads_out_of_folder(desk: Desk, site: Path) -> None:
    (site / "index.html").write_text("<a href=../outside.html>x</a>\n<a href=../none.html>x</a>")
    assert faults(checked(desk, f"{site}/index.html")) == {("site/index.html", 2): "no such file"}


def test_single_file_without_broken_links_is_fine(desk: Desk, site: Path) -> None:
    report = checked(desk, f"{site}/index.html", OK)
    assert (report["pages"], report["outcomes"]) == (1, {})


def test_markdown_links_are_checked_with_headings_as_anchors(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "docs/page.md").write_text(MARKDOWN)
    (tmp_path / "docs/other.md").write_text("# There\n\n# There\n")
    report = checked(desk, "docs")
    lines = MARKDOWN.splitlines()
    assert faults(report) == {
        ("docs/page.md", 1 + next(n for n, line in enumerate(lines) if "(#nope)" in line)): (
            "missing-fragment"
        ),
        ("docs/page.md", 1 + lines.index("[ref]: missing.md")): "no such file",
    }


def test_excluded_links_and_fragments_are_omitted(desk: Desk, site: Path) -> None:
    assert checked(desk, f"{site}/guide/page.html --exclude . --no-external", OK)["outcomes"] == {}


def test_links_beyond_limit_of_page_are_counted(desk: Desk, tmp_path: Path) -> None:
    links = "".join(
        f'<a href="#{number}x" id="{number}x">x</a><a href=gone{number}.html>x</a>'
        for number in range(ROWS_MAX + 1_500)
    )
    (tmp_path / "x.html").write_text(links)
    report = checked(desk, "x.html")
    [unread] = report["unjudged"]
    assert unread["reason"] == "links_cut"
    assert unread["urls"] + sum(report["outcomes"].values()) == ROWS_MAX + 1_500


@pytest.mark.parametrize(
    ("heading", "anchors"),
    [
        ("What's new?", {"whats-new"}),
        ("`code` and_under - score", {"code-and_under---score", "code-and_under-score"}),
        ("Über uns", {"über-uns", "uber-uns"}),
        ("![alt](x.png) Logo", {"logo"}),
    ],
)
def test_heading_has_anchors_of_github_and_python_markdown(heading: str, anchors: set[str]) -> None:
    assert Anchors(as_html(f"## {heading}\n").encode()).ids == anchors


def record(
    reason: Reason, status: int | None = None, url: str = "https://a.example/", **more: Any
) -> PageRecord:
    ended = {"outcome": reason.outcome, "reason": reason, "status": status}
    return samples.record(0, url=url, **ended, **more)


@pytest.mark.parametrize(
    ("reason", "status", "state"),
    [
        (Reason.OK, 200, LinkState.FINE),
        (Reason.CONTENT_TYPE, 200, LinkState.FINE),
        (Reason.EMPTY, 204, LinkState.FINE),
        (Reason.NOT_MODIFIED, 304, LinkState.FINE),
        (Reason.HTTP_CLIENT_ERROR, 404, LinkState.BROKEN),
        (Reason.HTTP_CLIENT_ERROR, 410, LinkState.BROKEN),
        (Reason.HTTP_CLIENT_ERROR, 400, LinkState.BROKEN),
        (Reason.HTTP_CLIENT_ERROR, 405, LinkState.UNVERIFIED),
        (Reason.HTTP_CLIENT_ERROR, 451, LinkState.UNVERIFIED),
        (Reason.FORBIDDEN, 401, LinkState.UNVERIFIED),
        (Reason.FORBIDDEN, 403, LinkState.UNVERIFIED),
        (Reason.BLOCKED, 429, LinkState.UNVERIFIED),
        (Reason.HTTP_SERVER_ERROR, 503, LinkState.UNVERIFIED),
        (Reason.TIMEOUT, None, LinkState.UNVERIFIED),
        (Reason.CONNECT, None, LinkState.UNVERIFIED),
        (Reason.DNS, None, LinkState.UNVERIFIED),
        (Reason.DNS_UNKNOWN, None, LinkState.BROKEN),
        (Reason.TLS, None, LinkState.BROKEN),
        (Reason.REDIRECT_LIMIT, 302, LinkState.BROKEN),
        (Reason.ROBOTS, None, LinkState.UNVERIFIED),
        (Reason.ROBOTS_UNREACHABLE, None, LinkState.UNVERIFIED),
        (Reason.ADDRESS, None, LinkState.UNVERIFIED),
    ],
)
def test_record_gives_state_of_link(reason: Reason, status: int | None, state: LinkState) -> None:
    first = record(Reason.REDIRECT, 301, error="https://b.example/")
    last = record(reason, status, url="https://b.example/")
    records = {one.url: one for one in (first, last)}
    for url in records:
        verdict = judge(url, records)
        assert (verdict.state, verdict.url) == (state, last.url)
    assert settled(records) == ({} if state is LinkState.UNVERIFIED else records)


@pytest.mark.parametrize("urls", [("a", "a"), ("a", "b", "a"), ("a", "b", "c", "b")])
def test_redirect_loop_is_an_endless_redirect(urls: tuple[str, ...]) -> None:
    loop = [record(Reason.REDIRECT, 301, url=url, error=target) for url, target in pairwise(urls)]
    verdict = judge("a", {one.url: one for one in loop})
    assert (verdict.state, verdict.detail) == (LinkState.BROKEN, "endless redirect")


def test_url_without_record_is_not_verified() -> None:
    records = {"https://a.example/": record(Reason.REDIRECT, 301, error="https://b.example/")}
    assert judge("https://a.example/", records).reason == "not_requested"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("none", "none: no such file or folder: give a file, a folder, or a whole URL"),
        ("htps://a.example/x", "or a whole URL, like https://a.example/x/"),
        ("empty", "empty: the folder has no HTML or Markdown file (.html"),
        ("notes.txt", "notes.txt: no HTML or Markdown file (.html"),
        ("page.md --base-url docs", "--base-url: 'docs'"),
        ("page.md --exclude (", "--exclude: '('"),
        ("page.md --duration 1s", "--duration: 1s does not fit: give 1m to 7d"),
        ("https://a.example/ --base-url https://a.example/", "--base-url is for files"),
        ("page.md --fromat json", "--fromat"),
    ],
)
def test_mistake_of_user_is_explained(desk: Desk, tmp_path: Path, words: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "page.md").write_text("# x\n")
    assert desk.run(f"check-links {words}") == USAGE
    assert said in desk.noted, desk.noted
    assert not desk.said


def test_text_report_lists_pages_of_each_target(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(7):
        (tmp_path / f"docs/{number}.md").write_text("\n[x](gone.md) [y](#z)\n")
    said = desk.output("check-links docs", code=FAILED)
    assert "broken-link: 1 target." in said
    assert "  docs/gone.md (no such file)\n    docs/0.md:2\n" in said
    assert "… and 2 more pages" in said
    assert "missing-fragment: 7 targets." in said
    assert said.endswith("docs: 7 pages, 8 links: 0 fine, 8 broken, 0 not verified\n")


def test_target_in_several_spellings_counts_once(desk: Desk, tmp_path: Path) -> None:
    files = {
        "index.html": '<a href="/guide/gone.html">x</a> <a href="guide/gone.html?x#part">x</a>\n'
        '<a href="guide/b">x</a> <a href="/guide/b.html">x</a>\n'
        '<a href="guide/b.html#z">x</a> <a href="/guide/b#z">x</a>\n',
        "guide/b.html": '\n<a href="gone.html">x</a> <a href="gone.html/">x</a>',
    }
    (tmp_path / "site/guide").mkdir(parents=True)
    for name, body in files.items():
        (tmp_path / "site" / name).write_text(body)
    assert desk.run("check-links site") == FAILED
    shown = ("  ", "broken", "site:")
    assert [line for line in desk.said.splitlines() if line.startswith(shown)] == [
        "broken-link: 1 target. A link leads to a URL or file that does not exist.",
        "  site/guide/gone.html (no such file)",
        "    site/guide/b.html:2",
        "    site/index.html:1",
        "  site/guide/b.html#z",
        "    site/index.html:3",
        "site: 2 pages, 3 links: 1 fine, 2 broken, 0 not verified",
    ]


def test_sarif_of_file_has_line(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a b.md").write_text("\n\n[x](gone.md)\n")
    assert desk.run("check-links 'a b.md' --format sarif --out r/links.sarif") == FAILED
    [run] = json.loads((tmp_path / "r/links.sarif").read_text())["runs"]
    [place] = run["results"][0]["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.md"},
        "region": {"startLine": 3},
    }
    assert run["tool"]["driver"]["name"] == "orbweaver check-links"
    assert "1 broken" in desk.noted
