"""Stored pages, served from a separate origin (another port than the console's), and tickets.

The browser shows a page in a frame that runs no script, sends no form and fetches nothing. A frame
and a download cannot send the token in a header. Each gets a ticket that the console created: an
unguessable address that works once, within one minute.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

from orbweaver.console.fence import headers_of_stored, hosts_at
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.page_record import PageRecord
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.model.ports import Files


CHARSET = re.compile(r"[A-Za-z0-9._:-]{1,40}")
PAGES = ("text/html", "application/xhtml+xml")
TEXTS = ("text/", "application/json", "application/xml")
NOT_KEPT = "its body is not stored: set `records.bodies` in the definition"
NO_TEXT = "it is neither HTML nor text"
GOOD_MS, TICKETS_MAX = 60_000, 200


@value_class
class StoredPage:
    """A body, and the content type to serve it with."""

    body: bytes
    content_type: str


async def stored_page(
    files: Files, record: PageRecord, part: PagePart = PagePart.BODY
) -> StoredPage | str:
    """Read a `part` of a stored page, or return the reason why it cannot be shown."""
    found = await read_stored(files, record, part)
    if part is PagePart.SCREENSHOT:
        return f"its picture {found}" if isinstance(found, Missing) else _picture(found.payload)
    if found is Missing.NOT_KEPT:
        return NOT_KEPT
    if isinstance(found, Missing):
        return f"its body {found}"
    kind = shown_as(record)
    return NO_TEXT if kind is None else StoredPage(body=found.body(), content_type=kind)


def _picture(image: bytes) -> StoredPage:
    data = base64.b64encode(image).decode()
    source = f'src="data:image/webp;base64,{data}"'
    page = f'<!doctype html><title>Picture</title><img alt="" style="width:100%" {source}>'
    return StoredPage(body=page.encode(), content_type="text/html; charset=utf-8")


def shown_as(record: PageRecord) -> str | None:
    """Return the content type to serve a body with, or None if it cannot be shown."""
    essence = (record.content_type or "").partition(";")[0].strip().lower()
    charset = record.charset or "utf-8"
    charset = charset if CHARSET.fullmatch(charset) else "utf-8"
    if essence in PAGES:
        return f"text/html; charset={charset}"
    if essence.startswith(TEXTS):
        return f"text/plain; charset={charset}"
    return None


def stored_app(tickets: Tickets, port: int, console_port: int) -> web.Application:
    headers, hosts = headers_of_stored(console_port), hosts_at(port)

    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("Host", "") not in hosts:
            return web.Response(status=421, text="not by this name\n", headers=headers)
        page = tickets.redeem(request.match_info["ticket"])
        if not isinstance(page, StoredPage):
            return web.Response(status=404, text="this address is used up\n", headers=headers)
        typed: Mapping[str, str] = {**headers, "Content-Type": page.content_type}
        return web.Response(body=page.body, headers=typed)

    app = web.Application()
    app.router.add_get("/{ticket}", answer)
    return app


class Tickets:
    """Creates tickets, and redeems each of them once."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._given: dict[str, tuple[int, Any]] = {}

    def create(self, what: Any) -> str:
        """Create a ticket for a value. If too many tickets are open, the oldest become invalid."""
        now_ms = self._now_ms()
        self._given = {
            ticket: (at_ms, one)
            for ticket, (at_ms, one) in list(self._given.items())[1 - TICKETS_MAX :]
            if now_ms - at_ms < GOOD_MS
        }
        ticket = secrets.token_urlsafe(32)
        self._given[ticket] = (now_ms, what)
        return ticket

    def redeem(self, ticket: str) -> Any | None:
        """Return a ticket's value, or None if it is invalid, used or expired."""
        at_ms, what = self._given.pop(ticket, (0, None))
        return what if self._now_ms() - at_ms < GOOD_MS else None
