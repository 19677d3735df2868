"""Encode the links of a page as lines of JSON, without a dict for each row.

A crawl has about fifty links per page, so these lines take most of an export's time. Columns are
encoded whole and joined afterwards, which takes a tenth of the time of a loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, repeat
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from orbweaver.exporting.cells import SURROGATE, cells_of, iso
from orbweaver.exporting.formats.jsonl import safe
from orbweaver.frontier.link_table import marks_by_row, table_rows
from orbweaver.model.columns import LINKS
from orbweaver.parsing.link_rows import FOLLOWED, NAMES, LinkRows

if TYPE_CHECKING:
    from orbweaver.model.page_record import PageRecord

# Positions of the rows of most pages, up to the next cell.
_POSITIONS = tuple(f',"position":{place},"fragment":' for place in range(5_000))
_INNER = ("spelling", "rel", "lang")


def origin_of(record: PageRecord) -> dict[str, Any]:
    return {"crawl": record.crawl, "url": record.url, "fetched_at": record.fetched_at}


@dataclass(frozen=True)
class LinkBlock:
    """The rows of a page in the table of links, in the forms that writers need."""

    record: PageRecord
    links: LinkRows

    @property
    def number(self) -> int:
        return len(self.links.targets)

    def each(self) -> Iterator[Mapping[str, Any]]:
        """Yield the rows one by one."""
        origin = origin_of(self.record)
        return (row | origin for row in table_rows(self.links))

    def cells(self) -> Iterator[list[Any]]:
        return map(cells_of(LINKS), self.each())

    @cached_property
    def lines(self) -> bytes:
        """The rows as lines of JSON, exactly as `JsonlWriter` encodes them one by one."""
        record, links = self.record, self.links
        number = len(links.targets)
        # Cells between target and text, and cells after the fragment.
        inner = [*map(_UNMARKED.__getitem__, links.kinds)]
        for place, marks in marks_by_row(links, *_INNER).items():
            inner[place] = _inner(links.kinds[place], *map(marks.get, _INNER))
        last = [_last(FOLLOWED)] * number
        for decision, places in links.decisions.items():
            for place in places:
                last[place] = _last(decision)
        head = (
            f'{{"crawl":{_text(record.crawl)},"url":{_text(record.url)},'
            f'"fetched_at":"{iso(record.fetched_at)}","target_url":'
        )
        columns = (
            repeat(head, number),
            _texts(links.targets),
            inner,
            _texts(links.texts) if links.texts else repeat("null", number),
            _positions(number),
            _texts(links.fragments) if links.fragments else repeat("null", number),
            last,
        )
        return "".join(chain.from_iterable(zip(*columns, strict=True))).encode()


def _texts(values: Sequence[str | None]) -> Sequence[str]:
    """Return values as JSON."""
    whole = '"\n"'.join([value or "" for value in values])
    texts = f'"{whole}"'.split("\n")
    is_plain = "\\" not in whole and whole.count('"') == 2 * len(values) - 2
    # Printable texts without quotes and backslashes need no escapes.
    if len(texts) != len(values) or not is_plain or not whole.replace("\n", "").isprintable():
        return [*map(_cell, values)]
    if None in values:
        return [
            "null" if value is None else text for text, value in zip(texts, values, strict=True)
        ]
    return texts


def _cell(value: str | None) -> str:
    return "null" if value is None else _text(value)


def _text(value: str) -> str:
    return safe(encode_basestring(value if value.isascii() else SURROGATE.sub("\ufffd", value)))


def _positions(number: int) -> Sequence[str]:
    # A sitemap has more rows than a page.
    more = (f',"position":{place},"fragment":' for place in range(len(_POSITIONS), number))
    return (*_POSITIONS[:number], *more)


@lru_cache(maxsize=1_024)
def _inner(
    letter: str, spelling: str | None = None, rel: str | None = None, lang: str | None = None
) -> str:
    cells = [_cell(value) for value in (spelling, rel, lang)]
    return ',"spelling":{},"kind":"{}","rel":{},"lang":{},"text":'.format(
        cells[0], NAMES[letter], *cells[1:]
    )


@lru_cache(maxsize=64)
def _last(decision: str) -> str:
    return f',"decision":{_text(decision)}}}\n'


_UNMARKED = {letter: _inner(letter) for letter in NAMES}
