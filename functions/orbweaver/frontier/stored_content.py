"""Content of a page to store: body, texts and record, redacted if required.

Digests and sizes refer to the original. URLs are not redacted, because otherwise they could not be
requested.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.cuts import Cuts, counted
from orbweaver.model.item import Item, Value
from orbweaver.model.page_record import DESCRIPTION_CHARS_MAX, PageRecord
from orbweaver.model.value import value_class
from orbweaver.parsing.charset import UTF_8
from orbweaver.parsing.main_text import MainText, main_text
from orbweaver.parsing.page import Page
from orbweaver.parsing.pii_redaction import LEFT_OUT, redact, redact_bytes
from orbweaver.parsing.sniffing import kind_of

if TYPE_CHECKING:
    from orbweaver.model.http_exchange import Response

_TEXT = re.compile(r"text/.*|application/((.*\+)?(json|xml)|javascript|x-javascript|ecmascript)")
_MARKED = (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)


@value_class
class Keeping:
    """Parts of a response to store, and the kinds of data to redact in them."""

    bodies: Bodies = Bodies.HTML
    texts: bool = False
    links: bool = False
    redacted: tuple[str, ...] = ()


@value_class
class ContentToStore:
    """Body and texts of a page to store, after redaction."""

    body: bytes | None = None
    document: Mapping[str, Any] | None = None
    cut: Cuts = ()


def content_to_store(keeping: Keeping, answer: Response, page: Page | None) -> ContentToStore:
    """Return the content of a response to store. `page` is the parsed page, if it is HTML."""
    if page is None:
        body = _other_body(keeping, answer)
        wanted = keeping.bodies is Bodies.ALL and answer.body is not None
        withheld = int(wanted and body is None)
        given_up = _redaction(body) if keeping.redacted else {}
        return ContentToStore(body=body, cut=counted({**given_up, "withheld": withheld}))
    html = redact_bytes(page.html, keeping.redacted) if keeping.redacted else page.html
    body = answer.body
    if keeping.bodies is Bodies.OFF or body is None:
        body = None
    elif html != page.html:
        # A redacted page in another charset is stored in UTF-8. It gets a byte order mark, which
        # overrides header and page (HTML Standard, 13.2.3.2).
        own = page.charset == UTF_8 and not body.startswith(codecs.BOM_UTF8)
        body = html if own else codecs.BOM_UTF8 + html
    cut = counted(_redaction(html)) if keeping.redacted else ()
    if not keeping.texts:
        return ContentToStore(body=body, cut=cut)
    found = main_text(html, page.base)
    document = _document(page, found, keeping.redacted)
    return ContentToStore(body=body, document=document, cut=found.cut + cut)


def _redaction(redacted_body: bytes | None) -> dict[str, int]:
    return {"redaction": int(LEFT_OUT in (redacted_body or b""))}


def redacted(record: PageRecord, kinds: tuple[str, ...]) -> PageRecord:
    def clean(text: str | None) -> str | None:
        return redact(text, kinds) if text else text

    error = record.error or ""
    # The error of a redirect can be its URL.
    leads = error.startswith(("http://", "https://")) and " " not in error
    return replace(
        record,
        title=clean(record.title),
        description=clean(record.description),
        error=record.error if leads else clean(record.error),
        extracted=tuple(redacted_item(item, kinds) for item in record.extracted),
    )


def redacted_item(item: Item, kinds: tuple[str, ...]) -> Item:
    def clean(value: Value) -> Value:
        if isinstance(value, str):
            return redact(value, kinds)
        if isinstance(value, list | tuple):
            return [redact(one, kinds) if isinstance(one, str) else one for one in value]
        return value

    return replace(
        item,
        fields={name: clean(value) for name, value in item.fields.items()},
        problems=tuple(redact(problem, kinds) for problem in item.problems),
    )


def _other_body(keeping: Keeping, answer: Response) -> bytes | None:
    """Return the body of a response that is no HTML page, or None if it must not be stored."""
    if keeping.bodies is not Bodies.ALL or answer.body is None:
        return None
    if not keeping.redacted:
        return answer.body
    # A body that is no text (a PDF) cannot be redacted.
    if answer.body.startswith(_MARKED) or not _TEXT.fullmatch(kind_of(answer.headers, answer.body)):
        return None
    return redact_bytes(answer.body, keeping.redacted)


def _document(page: Page, found: MainText, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Return the texts of a page as a JSON object, redacted by `kinds`."""
    # The text is redacted again, because tags may have split an address.
    description = (page.description or "")[:DESCRIPTION_CHARS_MAX] or None
    return {
        "title": page.title and redact(page.title, kinds),
        "description": description and redact(description, kinds),
        "language": page.language,
        "text": redact(found.text, kinds),
        "markdown": redact(found.markdown, kinds),
    }
