"""Convert the links of a page to their stored form, and to rows of the `links` table.

The stored form is a JSON object. Columns that are mostly filled are texts with a line per row. A
column that is mostly empty lists the numbers of its rows by value. Targets on the page's own origin
are stored as paths. A redirect has no stored form, because its record contains the target.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from orbweaver.frontier import warc
from orbweaver.frontier.admission import admit_redirect
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.target import Target
from orbweaver.model.url import host_of
from orbweaver.parsing.link_rows import (
    FOLLOWED,
    INVALID,
    NAMES,
    NOFOLLOW,
    TOO_LONG,
    LinkRows,
)

if TYPE_CHECKING:
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord

VERSION = 1
# URLs and texts contain no tabs and no line ends.
NO_TEXT = "\t"
# Words for refusals that have another name in the table than in counters.
WORDS: Mapping[str, str] = MappingProxyType(
    {Refusal.SCOPE: "out_of_scope", Refusal.SEED_NOFOLLOW: NOFOLLOW}
)
# Name of each mostly empty column in the stored form, and in the table.
_MARKED = MappingProxyType(
    {"rel": "rel", "lang": "lang", "spellings": "spelling", "decisions": "decision"}
)
_REDIRECTS = MappingProxyType(
    {Reason.REFRESH: "refresh", Reason.CANONICAL: "canonical", Reason.REDIRECT: "redirect"}
    | {Reason.WIDENED: "redirect", Reason.REDIRECT_LIMIT: "redirect"}
)


def decision_of(refusal: Refusal) -> str:
    return WORDS.get(refusal, str(refusal))


def document_of(rows: LinkRows, url: str) -> dict[str, Any]:
    """Return the stored form of the links of the page `url`."""
    # Replacing in the joined text takes a third of the time of a loop.
    lines, origin = "\n" + "\n".join(rows.targets), host_of(url)
    targets = lines.replace(f"\n{origin}/", "\n/")[1:]
    if unresolved := rows.unresolved:
        paths = targets.split("\n")
        for place in unresolved:
            paths[place] = rows.targets[place]
        targets = "\n".join(paths)
    document = {"v": VERSION, "kinds": rows.kinds, "targets": targets}
    if rows.texts:
        texts = rows.texts
        if None in texts:
            texts = tuple(NO_TEXT if text is None else text for text in texts)
        document["texts"] = "\n".join(cast("tuple[str, ...]", texts))
    if rows.fragments:
        document["fragments"] = "\n".join([fragment or "" for fragment in rows.fragments])
    return document | {name: found for name in _MARKED if (found := getattr(rows, name))}


def rows_in(document: Mapping[str, Any], url: str) -> LinkRows:
    """Convert the stored form back. Raises ValueError for another form."""
    if document.get("v") != VERSION:
        raise ValueError(f"links of version {document.get('v')!r}")
    kinds = document["kinds"]
    origin, marks = host_of(url), {name: document.get(name, {}) for name in _MARKED}
    lines = document["targets"]
    paths = lines.split("\n") if kinds else []
    # Replacing in the whole text takes a third of the time of a loop.
    targets = f"\n{lines}".replace("\n/", f"\n{origin}/")[1:].split("\n") if kinds else []
    for decision in (INVALID, TOO_LONG):
        for place in marks["decisions"].get(decision, ()):
            targets[place] = paths[place]
    texts: tuple[str | None, ...] = ()
    if "texts" in document and kinds:
        texts = tuple(document["texts"].split("\n"))
        if NO_TEXT in texts:
            texts = tuple([None if text == NO_TEXT else text for text in texts])
    fragments: tuple[str | None, ...] = ()
    if "fragments" in document and kinds:
        fragments = tuple([one or None for one in document["fragments"].split("\n")])
    lengths = {len(targets), len(texts) or len(kinds), len(fragments) or len(kinds)}
    if lengths != {len(kinds)}:
        raise ValueError("columns of links differ in length")
    return LinkRows(kinds=kinds, targets=tuple(targets), texts=texts, fragments=fragments, **marks)


def marks_by_row(rows: LinkRows, *columns: str) -> defaultdict[int, dict[str, str]]:
    """Return the values of these mostly empty columns, for the rows that have any."""
    marked: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for name, column in _MARKED.items():
        if column in columns:
            for value, places in getattr(rows, name).items():
                for place in places:
                    marked[place][column] = value
    return marked


def table_rows(rows: LinkRows) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table, without the columns of the page."""
    marked = marks_by_row(rows, *_MARKED.values())
    for place, fragment in enumerate(rows.fragments):
        if fragment is not None:
            marked[place]["fragment"] = fragment
    for place, (letter, target) in enumerate(zip(rows.kinds, rows.targets, strict=True)):
        yield {
            "target_url": target,
            "kind": NAMES[letter],
            "text": rows.texts[place] if rows.texts else None,
            "position": place,
            "decision": FOLLOWED,
            **marked.get(place, {}),
        }


def redirect_row(record: PageRecord, crawl: Crawl | None) -> dict[str, Any] | None:
    """Return the row of a URL that names another URL as its replacement, or None.

    `crawl` is None if its definition is no longer stored. Then the redirect counts as followed.
    """
    kind, url = _REDIRECTS.get(record.reason), record.error or ""
    if kind is None or not url.startswith(("http://", "https://")):
        return None
    decision = FOLLOWED
    if record.reason is Reason.REDIRECT_LIMIT:
        decision = str(Refusal.REDIRECTS)
    elif crawl is not None and record.outcome is Outcome.REDIRECTED:
        source = Target(url=record.url, depth=record.depth, referrer=record.referrer)
        admitted = admit_redirect(crawl, url, source)
        if isinstance(admitted, Refusal) and record.reason is not Reason.WIDENED:
            decision = decision_of(admitted)
    return {"target_url": url, "kind": kind, "position": 0, "decision": decision}


def read_links(member: bytes, url: str) -> LinkRows | None:
    """Read the stored links of a page, or return None if they were erased or are unreadable."""
    try:
        record = warc.read(member)
        return rows_in(json.loads(record.payload), url) if record.type == "metadata" else None
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def member_without(
    record: warc.Record, length: int, is_erased: Callable[[str], bool]
) -> bytes | None:
    """Return stored links without erased targets, in a member of the same length.

    Returns None if no target is erased.
    """
    url = record.url or ""
    try:
        rows = rows_in(json.loads(record.payload), url)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    left = rows.without(is_erased)
    return None if left is rows else warc.shortened(record, document_of(left, url), length)
