"""Pages with difficult HTML: unusual spellings and bases, hidden and withdrawn links."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from tests.sites.bookshop.catalogue import Book
from tests.sites.bookshop.markup import Writer, listing, plain
from tests.sites.bookshop.model import Page

DEPTH = 12
HTML = ("Content-Type", "text/html; charset=utf-8")

# An HTML parser does not find these links, so the log must not contain "ghost".
HIDDEN = """<!-- <a href="/ghost/comment">not a link</a> -->
<script>const html = '<a href="/ghost/script">not a link</a>';</script>
<style>/* <a href="/ghost/style">not a link</a> */</style>
<img src="/ghost/image.png" alt="" loading="lazy"><span data-href="/ghost/data">no link</span>
<form action="/ghost/form"><button>Do not press</button></form><a name="ghost">no link</a>"""


def make(books: Sequence[Book]) -> Iterator[Page]:
    yield from _spellings(books)
    yield from _based()
    yield from _map()
    yield from _old_fashioned()
    yield from _wishes()
    yield from _deep()


def _spellings(books: Sequence[Book]) -> Iterator[Page]:
    page = Writer("/corners/spellings/")
    book = books[0].path
    own = {
        "/corners/spaces/": " \n/corners/spaces/\t",
        "/corners/a%20b/": "/corners/a b/",
        "/corners/accents/%C3%A9t%C3%A9/": "../accents/été/",
        "/corners/dots/": "./../spellings/./../dots/",
        "/corners/case/": "/corners/case/",
        "/corners/Case/": "/corners/Case/",
        "/corners/query?format=full&lang=en": "/corners/query?format=full&lang=en",
        "/corners/query?lang=en&format=full": "../query?lang=en&format=full#top",
        "/corners/file": "/corners/file",
        "/corners/file/": "/corners/file/",
        "/corners/semi;colon=1,2/": "/corners/semi;colon=1,2/",
        "/corners/at@sign:and~tilde/": "../at@sign:and~tilde/",
    }
    links = [page.link(target, target, href=href) for target, href in own.items()]
    links += [
        page.link(page.path, "an empty reference", href=""),
        page.link(page.path, "this very page", href="#"),
        page.link(book, "tracked", href=f"{book}?utm_source=letter&gclid=abc&fbclid=x#details"),
        page.link(book, "tracked otherwise", href=f"../..{book}?utm_content=7&utm_term=loom"),
        page.link("/catalogue/", "a fragment", href="/catalogue/#page=2"),
        page.link("/about/", "a path that climbs too far", href="../../../../about/"),
    ]
    yield page.page("Spellings | Bookshop", f"<h1>Spellings</h1>{listing(links)}{HIDDEN}")
    for target in own:
        yield plain(target, f"Spelled oddly: {target}")


def _based() -> Iterator[Page]:
    page = Writer("/corners/base/")
    targets = {"/corners/based/deep/one/": "one/", "/corners/based/two/": "../two/"}
    links = listing(page.link(target, href, href=href) for target, href in targets.items())
    # Only the first base counts, for links before it too (HTML, 4.2.3).
    head = '<base href="/corners/based/deep/"><base href="/ghost/base/">'
    yield page.page("A base | Bookshop", f"<h1>A page with a base</h1>{links}", head=head)
    for target in targets:
        yield plain(target, f"Based: {target}")


def _map() -> Iterator[Page]:
    page = Writer("/corners/map/")
    targets = ("/corners/map/north/", "/corners/map/south/")
    areas = ""
    for index, target in enumerate(targets):
        page.note(target)
        areas += f'<area shape="rect" coords="0,{index * 24},48,48" href="{target}" alt="{target}">'
    main = f"""<h1>An image map</h1><p>Two pages that only an image map links to.</p>
<img src="/files/logo.png" usemap="#shop" alt="Shop"><map name="shop">{areas}</map>"""
    yield page.page("An image map | Bookshop", main)
    for target in targets:
        yield plain(target, f"By area: {target}")


def _old_fashioned() -> Iterator[Page]:
    page = Writer("/corners/old-fashioned.html")
    targets = [
        f"/corners/1997/{name}.html" for name in ("guestbook", "webring", "midi&more", "end")
    ]
    for target in targets:
        page.note(target)
    frame = page.document("A page from 1997 | Bookshop", "@", head='<meta charset="utf-8">')
    # Capitals, no quotes, an unescaped "&", a repeated attribute, and unclosed elements.
    main = """<CENTER><FONT SIZE=+2>Welcome!!</FONT><P><TABLE BORDER=1><TR><TD>
<A HREF=1997/guestbook.html>Guestbook<TD><a href = '1997/webring.html'>Web<b>ring</a></b>
<tr><td><A CLASS="x"HREF="1997/midi&more.html">MIDI & more</A>
<td><a href="1997/end.html" href="/ghost/second">the first one counts</TABLE><P>bye"""
    html = frame.replace("@", main, 1)
    yield dataclasses.replace(
        page.page("A page from 1997 | Bookshop", ""), body=html.encode(), links=tuple(page.links)
    )
    for target in targets:
        yield plain(target, f"From 1997: {target}")


def _wishes() -> Iterator[Page]:
    here = "/corners/wishes/"
    page = Writer(here)
    links = [
        page.link(f"{here}linked/", "a link with rel=nofollow", rel="nofollow"),
        page.link(f"{here}sponsored/", "rel=sponsored nofollow", rel="sponsored nofollow"),
        page.link(f"{here}meta/", "a page whose meta robots says nofollow"),
        page.link(f"{here}header/", "a page whose header says nofollow"),
        page.link(f"{here}noindex/", "a page that asks not to be indexed"),
        page.link("/about/", "a nofollow link to a page that others link to", rel="nofollow"),
    ]
    yield page.page("Wishes | Bookshop", f"<h1>Wishes</h1>{listing(links)}")
    for name in ("linked", "sponsored", "meta/beyond", "header/beyond"):
        yield plain(f"{here}{name}/", f"Not for following: {name}")
    page = Writer(f"{here}meta/")
    main = page.link(f"{here}meta/beyond/", "beyond")
    head = '<meta name="Robots" content="index, NOFOLLOW">'
    yield dataclasses.replace(page.page("Meta nofollow", main, head=head), nofollow=True)
    page = Writer(f"{here}header/")
    main = page.link(f"{here}header/beyond/", "beyond")
    headers = (HTML, ("X-Robots-Tag", "nofollow"))
    yield dataclasses.replace(page.page("Header nofollow", main), nofollow=True, headers=headers)
    page = Writer(f"{here}noindex/")
    main = page.link(f"{here}after-noindex/", "its links are followed all the same")
    head = '<meta name="robots" content="noindex">'
    yield dataclasses.replace(page.page("Noindex", main, head=head), noindex=True)
    yield plain(f"{here}after-noindex/", "After noindex")


def _deep() -> Iterator[Page]:
    for depth in range(1, DEPTH + 1):
        page = Writer("/corners/deep/" + "".join(f"{n}/" for n in range(1, depth + 1)))
        down = f"{page.path}{depth + 1}/"
        link = page.link(down, "deeper", href=f"{depth + 1}/") if depth < DEPTH else "the bottom"
        yield page.page(f"Depth {depth} | Bookshop", f"<h1>Depth {depth}</h1><p>{link}")
