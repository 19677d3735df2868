"""Paths forbidden by robots.txt.

All of them answer, so that no 404 stops a crawler that requests them and the log shows it. The
calendar and the search are endless.
"""

from __future__ import annotations

import re
from html import escape

from tests.sites.bookshop.markup import Writer, listing
from tests.sites.server import Answer

HTML = (("Content-Type", "text/html; charset=utf-8"),)
MONTH = re.compile(r"/calendar/(\d{4})/(\d\d)/$")
FIRST_MONTH = (2026, 11)
MONTHS = 12


def answer(target: str) -> Answer:
    if target.endswith(".zip"):
        return Answer(
            headers=(("Content-Type", "application/zip"),), body=b"PK\x05\x06" + bytes(18)
        )
    page = Writer(target)
    if target.startswith("/calendar/"):
        match = MONTH.match(target)
        year, month = (int(match[1]), int(match[2])) if match else FIRST_MONTH
        title, links = f"Events, {year}-{month:02}", _months(page, year, month)
    elif target.startswith("/search"):
        title, links = "Search", [page.link(f"{target}+more", "more results")]
    else:
        title, links = "For customers only", []
    main = f"<h1>{title}</h1>{listing(links)}<p>You asked for {escape(target)}.</p>"
    return Answer(headers=HTML, body=page.page(title, main).body)


def _months(page: Writer, year: int, month: int) -> list[str]:
    count = year * MONTHS + month - 1
    near = [(text, divmod(count + step, MONTHS)) for text, step in (("earlier", -1), ("later", 1))]
    return [page.link(f"/calendar/{y:04}/{m + 1:02}/", text) for text, (y, m) in near]
