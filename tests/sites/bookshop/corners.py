"""Irregular pages of the shop, as crawls of real sites find them."""

from __future__ import annotations

import dataclasses
import struct
import zlib
from collections.abc import Iterator, Sequence

from tests.sites.bookshop.catalogue import Book
from tests.sites.bookshop.markup import Writer, listing, plain
from tests.sites.bookshop.model import File, Missing, Page, Redirect, Resource, Rules

EXTERNAL = "http://external.invalid/"
OLD_ADDRESSES = 60
OLD_STATUSES = (301, 302, 303, 307, 308)
DEAD = {404: 6, 410: 3, 403: 1}
BUSY = 2

RULES = Rules(
    text="""\
# The Weaver's Bookshop
User-agent: GreedyBot
Disallow: /

User-agent: *
Disallow: /account/
Allow: /account/help/
Disallow: /basket
Disallow: /calendar/
Disallow: /search
Disallow: /*?sort=
Disallow: /*.zip$

Sitemap: {base_url}/sitemap.xml
""",
    prefixes=("/account/", "/basket", "/calendar/", "/search"),
    parts=("?sort=",),
    endings=(".zip",),
    allowed=("/account/help/",),
)


def make(books: Sequence[Book]) -> Iterator[Resource]:
    """Return the irregular answers, and the pages that link to them."""
    yield _index()
    yield from _about(books)
    yield from _old_addresses(books)
    yield from _redirects()
    yield from _dead()
    yield from _unsteady()
    yield from _downloads(books)


def _index() -> Page:
    page = Writer("/corners/")
    items = [
        page.relative("/corners/redirects/", "Redirects of every kind"),
        page.relative("/corners/dead/", "Dead links"),
        page.relative("/corners/unsteady/", "Slow and busy pages"),
        page.relative("/corners/downloads/", "Downloads"),
        page.relative("/corners/spellings/", "Links, spelled oddly"),
        page.relative("/corners/base/", "A page with a base"),
        page.relative("/corners/map/", "An image map"),
        page.relative("/corners/old-fashioned.html", "A page from 1997"),
        page.relative("/corners/wishes/", "Links that ask not to be followed"),
        page.relative("/corners/deep/1/", "A deep path"),
        page.relative("/calendar/", "Events (a calendar without an end)"),
        page.relative("/account/help/", "Help with your account"),
    ]
    return page.page("Odd corners | Bookshop", f"<h1>Odd corners</h1>{listing(items)}")


def _about(books: Sequence[Book]) -> Iterator[Page]:
    yield plain("/account/help/", "Help with your account")
    page = Writer("/about/")
    links = [page.relative(f"/about/{n}/", n.title()) for n in ("delivery", "contact", "press")]
    yield page.page("About | Bookshop", f"<h1>About us</h1>{listing(links)}")
    page = Writer("/about/contact/")
    main = f"""<h1>Contact</h1><p><a href="mailto:shop@bookshop.invalid?subject=A%20book">Write</a>,
<a href="tel:+441632960000">call</a>, <a href="javascript:void(0)" onclick="return false">chat</a>,
<a href="data:text/html,hello">a data link</a>, <a name="anchor">an anchor without a link</a>, or
{page.link("/about/delivery/", "read on", href="/about/delivery/#returns")}.</p>
<form action="/search"><input name="q"><button>Search</button></form>
{page.link("/search?q=weaving", "Popular: weaving")}"""
    yield page.page("Contact | Bookshop", main)
    page = Writer("/about/delivery/")
    offers = listing(page.link(f"/basket?add={b.number}", f"Add {b.title}") for b in books[:12])
    yield page.page(
        "Delivery | Bookshop", f'<h1>Delivery</h1><h2 id="returns">Returns</h2>{offers}'
    )
    page = Writer("/about/press/")
    links = [
        page.link(EXTERNAL, "A review"),
        page.link(
            f"{EXTERNAL}interview?id=7", "An interview", href="//external.invalid/interview?id=7"
        ),
        page.link("https://external.invalid/", "A prize", rel="noopener"),
    ]
    yield page.page("Press | Bookshop", f"<h1>In the press</h1>{listing(links)}")


def _old_addresses(books: Sequence[Book]) -> Iterator[Resource]:
    page = Writer("/old/")
    links = []
    for index, book in enumerate(books[:OLD_ADDRESSES]):
        path = f"/old/book-{book.number}.html"
        links.append(page.link(path, book.title))
        # Every second redirect has a relative Location (RFC 9110, 10.2.2).
        location = f"..{book.path}" if index % 2 else book.path
        yield Redirect(path, OLD_STATUSES[index % len(OLD_STATUSES)], location, book.path)
    yield page.page("Old addresses | Bookshop", f"<h1>Old addresses</h1>{listing(links)}")


def _redirects() -> Iterator[Resource]:
    here = "/corners/redirects/"
    yield plain(f"{here}goal/", "The goal of three hops")
    yield plain(f"{here}caf%C3%A9/", "A goal with an accent")
    hops = [
        Redirect(f"{here}hop/1", 302, "2", f"{here}hop/2"),
        Redirect(f"{here}hop/2", 307, "3", f"{here}hop/3"),
        Redirect(f"{here}hop/3", 301, "../goal/", f"{here}goal/"),
        Redirect(f"{here}fragment", 302, "/about/#team", "/about/"),
        Redirect(f"{here}accent", 302, f"{here}caf%C3%A9/", f"{here}caf%C3%A9/"),
        Redirect(f"{here}dead", 301, "/dead/1", "/dead/1"),
        Redirect("/wishlist", 302, "/account/login", "/account/login"),
        Redirect(f"{here}away", 302, f"{EXTERNAL}away", f"{EXTERNAL}away"),
        Redirect("/index.html", 301, "/", "/"),
        Redirect("/catalogue", 301, "/catalogue/", "/catalogue/"),
        Redirect("/loop/a", 302, "/loop/b", "/loop/b", endless=True),
        Redirect("/loop/b", 302, "/loop/a", "/loop/a", endless=True),
        Redirect("/loop/self", 302, "self", "/loop/self", endless=True),
    ]
    yield from hops
    page = Writer(here)
    linked = [hop.path for hop in hops if hop.path not in {f"{here}hop/2", f"{here}hop/3"}]
    links = [page.link(path, path) for path in linked]
    yield page.page("Redirects | Bookshop", f"<h1>Redirects</h1>{listing(links)}")


def _dead() -> Iterator[Resource]:
    page = Writer("/corners/dead/")
    numbered = enumerate((status for status, n in DEAD.items() for _ in range(n)), start=1)
    dead = [Missing(path=f"/dead/{number}", status=status) for number, status in numbered]
    links = [page.link(gone.path, f"{gone.path} ({gone.status})") for gone in dead]
    links.append(page.link("/dead/unknown?page=2", "a page that never was"))
    yield from dead
    yield page.page("Dead links | Bookshop", f"<h1>Dead links</h1>{listing(links)}")


def _unsteady() -> Iterator[Resource]:
    page = Writer("/corners/unsteady/")
    slow = plain("/slow/", "A slow page")
    busy = [
        dataclasses.replace(plain(f"/busy/{n}", f"Busy page {n}"), recovers=True)
        for n in range(1, BUSY + 1)
    ]
    yield dataclasses.replace(slow, slow=True)
    yield from busy
    links = [page.link(other.path, other.title) for other in (slow, *busy)]
    yield page.page("Unsteady | Bookshop", f"<h1>Slow and busy</h1>{listing(links)}")


def _downloads(books: Sequence[Book]) -> Iterator[Resource]:
    rows = "".join(f'{b.number},"{b.title}",{b.amount},{b.currency}\r\n' for b in books)
    files = [
        File(path="/files/leaflet.pdf", content_type="application/pdf", body=_pdf()),
        File(path="/files/leaflet", content_type="application/pdf", body=_pdf()),
        File(path="/files/logo.png", content_type="image/png", body=_png()),
        File(
            path="/files/prices.csv",
            content_type="text/csv; charset=utf-8",
            body=f"number,title,amount,currency\r\n{rows}".encode(),
        ),
        # HTML by name only: the content type decides.
        File(path="/files/notes.html", content_type="application/octet-stream", body=bytes(64)),
    ]
    yield from files
    page = Writer("/corners/downloads/")
    links = [page.link(file.path, file.path) for file in files]
    links.append(page.link("/files/everything.zip", "everything, for members"))
    yield page.page("Downloads | Bookshop", f"<h1>Downloads</h1>{listing(links)}")


def _pdf() -> bytes:
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] >> % <a href='/ghost/pdf'>",
    )
    body, offsets = b"%PDF-1.4\n", []
    for number, value in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, value)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(body))
    return body + head + end


def _png(side: int = 48) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + crc

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    # Stored, not compressed: compressors differ, and the shop's bytes must not.
    pixels = zlib.compress((b"\0" + b"\x9a\x3b\x26" * side) * side, level=0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
