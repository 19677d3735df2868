"""Writes the shop's HTML pages and records their links.

A page's links are recorded during writing, so the page model needs no parser.
"""

# ruff: noqa: RUF001  # a shop writes real quotes and dashes, and they are part of the data
from __future__ import annotations

import posixpath
from collections.abc import Iterable
from html import escape

from tests.sites.bookshop.model import Link, Page

SHOP = "The Weaver’s Bookshop"
STYLE_PATH = "/style.css"
NAVIGATION = (
    ("/", "Home"),
    ("/catalogue/", "All books"),
    ("/authors/", "Authors"),
    ("/world/", "World"),
    ("/corners/", "Odd corners"),
    ("/about/", "About"),
)
# Linked from every page, and forbidden by robots.txt, as in most shops.
NAVIGATION_PRIVATE = (("/account/", "Your account"), ("/basket", "Basket"))


class Writer:
    """Writes and records the links of one page."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.links: dict[Link, None] = {}  # An ordered set.

    def note(self, target: str, *, nofollow: bool = False) -> None:
        """Record a link that the caller writes."""
        self.links[Link(target=target, nofollow=nofollow)] = None

    def link(
        self, target: str, text: str, *, href: str | None = None, rel: str = "", css: str = ""
    ) -> str:
        """Return a link to a canonical target, spelled `href` if given."""
        self.note(target, nofollow="nofollow" in rel.split())
        attributes = f' rel="{rel}"' if rel else ""
        attributes += f' class="{css}"' if css else ""
        return (
            f'<a href="{escape(target if href is None else href)}"{attributes}>{escape(text)}</a>'
        )

    def relative(self, target: str, text: str, *, css: str = "") -> str:
        """Return a link to a path of this site, relative to the page, with `../`."""
        here = posixpath.dirname(self.path) or "/"
        href = posixpath.relpath(target, here) + ("/" if target.endswith("/") else "")
        return self.link(target, text, href=href, css=css)

    def page(self, title: str, main: str, *, head: str = "", aside: str = "") -> Page:
        html = self.document(title, main, head=f'<meta charset="utf-8">{head}', aside=aside)
        return Page(path=self.path, title=title, body=html.encode(), links=tuple(self.links))

    def document(self, title: str, main: str, *, head: str = "", aside: str = "") -> str:
        """Return a page's HTML: the shop's frame around its main part."""
        items = "".join(
            self.link(path, text, css="here" if path == self.path else "")
            for path, text in NAVIGATION
        )
        private = "".join(self.link(path, text) for path, text in NAVIGATION_PRIVATE)
        side = f"<aside>{aside}</aside>" if aside else ""
        return f"""<!DOCTYPE html>
<html lang="en">
<head>{head}
<title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="{STYLE_PATH}">
</head>
<body>
<header><div><strong>{self.link("/", SHOP)}</strong>
<nav>{items}</nav><nav>{private}</nav></div></header>
<div class="{"page with-aside" if aside else "page"}">{side}
<main>
{main}
</main></div>
<footer><div>Every book here is made up, and so is the shop.
{self.link("/about/delivery/", "Delivery")} ·
{self.link("/about/contact/", "Contact")}</div></footer>
</body>
</html>
"""


def plain(path: str, title: str) -> Page:
    return Writer(path).page(title, f"<h1>{escape(title)}</h1><p>There is nothing else here.</p>")


def listing(items: Iterable[str], css: str = "") -> str:
    return f'<ul class="{css}">' + "".join(f"<li>{item}</li>\n" for item in items) + "</ul>"


def crumbs(items: Iterable[str]) -> str:
    return f'<nav class="crumbs" aria-label="Breadcrumb">{" › ".join(items)}</nav>'


STYLE = """\
:root { --ink: #26231f; --soft: #756d62; --line: #e6dfd3; --paper: #fbf8f2; --card: #fff;
  --accent: #9a3b26; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 Georgia, "DejaVu Serif", serif; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
header { background: var(--ink); }
header div, footer div, .page { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
header div { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 28px; min-height: 64px; }
header strong a { color: #fff; font-size: 21px; }
header nav { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 15px; }
header nav:last-child { margin-left: auto; }
header nav a { color: #d9cfbf; }
header nav a.here { color: #fff; border-bottom: 2px solid #d98e6a; }
.page { padding-top: 28px; padding-bottom: 48px; min-height: 70vh; }
.with-aside { display: grid; grid-template-columns: 200px 1fr; gap: 40px; }
aside { font-size: 15px; }
aside h2 { font-size: 15px; color: var(--soft); margin: 6px 0; font-weight: normal; }
aside ul { list-style: none; margin: 0; padding: 0; line-height: 1.85; }
aside a.here { font-weight: bold; color: var(--ink); }
h1 { font-size: 31px; line-height: 1.2; margin: 0 0 12px; font-weight: normal; }
h2 { font-size: 20px; font-weight: normal; margin: 34px 0 12px; }
.lead { color: var(--soft); margin: 0 0 20px; max-width: 42em; }
.crumbs { font-size: 14px; color: var(--soft); margin-bottom: 18px; }
.tools { display: flex; justify-content: space-between; font-size: 14px; color: var(--soft);
  border-bottom: 1px solid var(--line); padding-bottom: 8px; margin-bottom: 20px; }
ul.books { list-style: none; padding: 0; margin: 0; display: grid; gap: 24px 20px;
  grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); }
ul.books li { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: 12px; display: flex; flex-direction: column; gap: 4px;
  font-size: 15px; line-height: 1.3; }
ul.books .price { margin-top: auto; }
.cover { display: flex; align-items: center; justify-content: center; height: 190px; padding: 14px;
  border-radius: 2px 6px 6px 2px; color: #fff; text-align: center; font-size: 15px;
  line-height: 1.25; border-left: 7px solid #0003; margin-bottom: 8px; }
.price { font-weight: bold; }
.stock { font-size: 14px; color: #3d7350; }
.stock.none { color: var(--soft); }
.rating { color: #c98a17; font-size: 14px; letter-spacing: 1px; }
.book { display: grid; grid-template-columns: 250px 1fr; gap: 40px; }
.book .cover { height: 350px; font-size: 23px; }
.book .price { font-size: 25px; margin: 14px 0 2px; }
table { border-collapse: collapse; font-size: 15px; }
th, td { text-align: left; padding: 6px 28px 6px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: normal; color: var(--soft); }
.pager { margin-top: 34px; display: flex; gap: 6px; flex-wrap: wrap; align-items: center; }
.pager a, .pager b { border: 1px solid var(--line); border-radius: 4px; padding: 4px 12px;
  background: var(--card); }
.pager b { background: var(--ink); color: #fff; }
.columns { columns: 3 220px; list-style: none; padding: 0; line-height: 1.9; }
footer { border-top: 1px solid var(--line); font-size: 14px; color: var(--soft); }
footer div { padding: 20px 24px; }
@media (max-width: 760px) { .with-aside, .book { grid-template-columns: 1fr; } }
"""
