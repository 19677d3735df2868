"""`page URL --body` and `--text`: what is stored of a page, by one range read each."""

from __future__ import annotations

import json
from collections.abc import Sequence

from orbweaver.cli import text
from orbweaver.cli.exit_codes import FAILED, OK
from orbweaver.cli.session import Surroundings
from orbweaver.exporting.cells import iso
from orbweaver.frontier import warc
from orbweaver.model.cuts import parts_of, told, written
from orbweaver.model.page_record import PageRecord
from orbweaver.model.ports import Files

# What of a page's `cut` is said of its text, and of its body.
OF = {"text": ("body", "unread", "text", "layout", "text_chars"), "body": ("body", "headers")}


async def show(
    files: Files, records: Sequence[PageRecord], around: Surroundings, *, texts: bool
) -> int:
    """Write the body of the newest record that has one, or its main text as Markdown."""
    what = "text" if texts else "body"
    for record in records:
        offset = record.text_offset if texts else record.body_offset
        length = record.text_length if texts else record.body_length
        if record.body_key is None or offset is None or length is None:
            continue
        member = await files.cut(record.body_key, offset, length)
        stored = None if member is None else warc.read(member)
        if stored is None or warc.is_tombstone(stored):
            gone = "was forgotten" if stored else "is past its retention"
            around.note(f"the {what} of {record.crawl}, {iso(record.fetched_at)}, {gone}")
            continue
        lost = [(name, number) for name, number in parts_of(record.cut) if name in OF[what]]
        if lost:
            around.note(f"the {what} is cut: {told(written(tuple(lost)))}")
        if texts:
            around.write(text.clean_lines(json.loads(stored.payload)["markdown"]))
        else:
            around.pour(stored.body())
        return OK
    crawls = ", ".join(dict.fromkeys(record.crawl for record in records))
    why = "`records.text` of the definition asks for it" if texts else "see `records.bodies`"
    around.note(f"no {what} of it is stored (in {crawls}): {why}")
    return FAILED
