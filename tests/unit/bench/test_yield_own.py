"""Yield benchmark: our shop and forum serve their expected articles and can be crawled."""

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
# Departments, categories and their items; boards and threads.
WALKED = re.compile(
    r"/c[/0-9]+([?]page=\d+)?|/p/[^/]+|/view(forum|topic).php([?&](f|t|start)=\d+)+"
)
SITES = {"shop": (shop.page, shop.keys_of, shop), "forum": (forum.page, forum.keys_of, forum)}


def asked(page: Callable[[Visit], Page], url: str, sid: str = "") -> Page:
    parts = urlsplit(url)
    return page(Visit(parts.path, dict(parse_qsl(parts.query)), sid))


def links(page: Page) -> list[str]:
    return [unescape(link) for link in HREF.findall(page.body)]


@pytest.mark.parametrize("name", SITES)
def test_every_article_is_reachable(name: str) -> None:
    page, keys_of, module = SITES[name]
    truth = module.prepare(Place(name=name, home=Path("/nowhere")))
    seen, found, todo = {"/"}, set[str](), ["/"]
    for url in todo:
        answer = asked(page, url)
        assert answer.status == 200
        for link in links(answer):
            shown = {truth.article(key) for key in keys_of(link)} - {None}
            # Filters, orders and calendars are endless.
            if link in seen or (shown and shown <= found) or not WALKED.fullmatch(link):
                continue
            seen.add(link)
            found.update(key for key in shown if key)
            todo.append(link)
    assert found == truth.articles


@pytest.mark.parametrize("name", SITES)
def test_pages_are_deterministic(name: str) -> None:
    page = SITES[name][0]
    for url in links(asked(page, "/"))[:40]:
        assert vars(asked(page, url)) == vars(asked(page, url))


def test_session_is_in_links_without_cookie() -> None:
    assert all("sid=abc" in link for link in links(asked(shop.page, "/c/1/2", "abc")))
    assert not any("sid=" in link for link in links(asked(shop.page, "/c/1/2")))


def test_facets_combine_and_two_are_noindex() -> None:
    one = asked(shop.page, "/c/1?brand=x")
    two = asked(shop.page, "/c/1?brand=x&colour=red")
    assert any("brand=x" in link and "colour=blue" in link for link in links(one))
    assert "noindex" not in one.head
    assert "noindex" in two.head


@pytest.mark.parametrize("path", ["/p/none-3", "/nothing", "/p", "/viewtopic.php?t=400"])
def test_unknown_path_is_404(path: str) -> None:
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
def test_forum_key_is_page_of_thread(target: str, keys: list[str]) -> None:
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
def test_dokuwiki_key_is_current_text_of_page(target: str, keys: list[str]) -> None:
    assert list(dokuwiki.keys_of(target)) == keys


def test_static_key_is_path() -> None:
    assert list(static.keys_of("/posts/post-1.html?x")) == ["/posts/post-1.html"]


def test_wordpress_key_is_post_with_comment_pages() -> None:
    post = "/2026/11/a-post/"
    for target in (post, f"{post}?replytocom=3", f"{post}comment-page-2/"):
        assert list(wordpress.keys_of(target)) == [post]
    assert list(wordpress.keys_of(f"{post}feed/")) != [post]
