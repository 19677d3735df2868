"""Yield: the shop and the forum made here have what their truth says, and can be crawled."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from bench.yields import dokuwiki, forum, shop, static, wordpress
from bench.yields.own import Page, Visit
from bench.yields.place import Place

HREF = re.compile(r'<a href="([^"]+)">')
# Departments and categories, page by page, and what they list; boards and threads likewise.
WALKED = re.compile(
    r"/c[/0-9]+([?]page=\d+)?|/p/[^/]+|/view(forum|topic).php([?&](f|t|start)=\d+)+"
)
SITES = {"shop": (shop.page, shop.keys_of, shop), "forum": (forum.page, forum.keys_of, forum)}


def asked(page: Callable[[Visit], Page], url: str, sid: str = "") -> Page:
    """Ask for a URL."""
    parts = urlsplit(url)
    return page(Visit(parts.path, dict(parse_qsl(parts.query)), sid))


def links(page: Page) -> list[str]:
    """List a page's links."""
    return [unescape(link) for link in HREF.findall(page.body)]


@pytest.mark.parametrize("name", SITES)
def test_every_article_can_be_reached(name: str) -> None:
    """A walk over lists, their pages and what they list finds all that the truth names."""
    page, keys_of, module = SITES[name]
    truth = module.prepare(Place(name=name, home=Path("/nowhere")))
    seen, found, todo = {"/"}, set[str](), ["/"]
    for url in todo:
        answer = asked(page, url)
        assert answer.status == 200
        for link in links(answer):
            shown = {truth.article(key) for key in keys_of(link)} - {None}
            # Filters, orders and calendars have no end.
            if link in seen or (shown and shown <= found) or not WALKED.fullmatch(link):
                continue
            seen.add(link)
            found.update(key for key in shown if key)
            todo.append(link)
    assert found == truth.articles


@pytest.mark.parametrize("name", SITES)
def test_pages_are_the_same_at_any_time(name: str) -> None:
    """Nothing of them comes from a clock or from chance."""
    page = SITES[name][0]
    for url in links(asked(page, "/"))[:40]:
        assert vars(asked(page, url)) == vars(asked(page, url))


def test_a_session_is_in_every_link() -> None:
    """A visitor without a cookie carries it along, and one with a cookie sees plain links."""
    assert all("sid=abc" in link for link in links(asked(shop.page, "/c/1/2", "abc")))
    assert not any("sid=" in link for link in links(asked(shop.page, "/c/1/2")))


def test_facets_combine() -> None:
    """A filtered listing links to narrower ones, and asks not to be indexed from two filters on."""
    one = asked(shop.page, "/c/1?brand=x")
    two = asked(shop.page, "/c/1?brand=x&colour=red")
    assert any("brand=x" in link and "colour=blue" in link for link in links(one))
    assert "noindex" not in one.head
    assert "noindex" in two.head


@pytest.mark.parametrize("path", ["/p/none-3", "/nothing", "/p", "/viewtopic.php?t=400"])
def test_what_is_not_there_is_not_found(path: str) -> None:
    """The status says so."""
    page = forum.page if "php" in path else shop.page
    assert asked(page, path).status == 404


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ("/viewtopic.php?f=1&t=7", ["t7 from 0"]),
        ("/viewtopic.php?t=7&start=12&sid=abc", ["t7 from 10"]),
        ("/viewtopic.php?f=1&p=9", ["p9"]),
        ("/viewtopic.php?t=7&view=print", ["t7 from 0"]),
        ("/viewtopic.php?t=7&view=next", []),
        ("/viewtopic.php?t=7&sk=a&sd=d", []),
        ("/viewforum.php?f=7", []),
        ("/viewtopic.php", []),
    ],
)
def test_what_shows_a_page_of_a_thread(target: str, keys: list[str]) -> None:
    """Its own address, a post's and its print do; another order shows another page."""
    assert list(forum.keys_of(target)) == keys


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ("/", ["start"]),
        ("/doku.php?id=Team:Page3", ["team:page3"]),
        ("/doku.php/team/page3", ["team:page3"]),
        ("/doku.php?id=team:page3&do=edit", []),
        ("/doku.php?id=team:page3&rev=5", []),
        ("/feed.php?id=team:page3", []),
    ],
)
def test_what_shows_a_page_of_dokuwiki(target: str, keys: list[str]) -> None:
    """Its text as it is now does."""
    assert list(dokuwiki.keys_of(target)) == keys


def test_a_file_is_its_path() -> None:
    """Whatever the query."""
    assert list(static.keys_of("/posts/post-1.html?x")) == ["/posts/post-1.html"]


def test_a_post_is_its_path_and_the_pages_of_its_comments() -> None:
    """What comments are answered with shows it, too; its feed does not."""
    post = "/2026/11/a-post/"
    for target in (post, f"{post}?replytocom=3", f"{post}comment-page-2/"):
        assert list(wordpress.keys_of(target)) == [post]
    assert list(wordpress.keys_of(f"{post}feed/")) != [post]
