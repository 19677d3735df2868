"""Stored bodies: written before anything refers to them, and equal to the page's body."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from orbweaver.frontier import warc
from orbweaver.frontier.link_table import read_links
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from tests.memory import World
from tests.simulation.check_web import Violation


def check_bodies(world: World) -> Iterator[Violation]:
    """Check that the record and journal of every fetched page point to its stored body."""
    told = [record for journal in world.journals.values() for record in journal.records]
    for record in (*world.pages.values(), *told):
        problem = _problem(world, record)
        if problem is not None:
            yield Violation("I1 body", f"{record.crawl}: {record.url}: {problem}")
            return


def _problem(world: World, record: PageRecord) -> str | None:
    if record.body_key is None:
        return "is not stored" if record.outcome is Outcome.FETCHED else None
    if f"/{record.crawl}/" not in record.body_key and record.outcome is Outcome.FETCHED:
        return f"is stored with another crawl, in {record.body_key}"
    if record.links_offset is not None:
        member = world.files.get(record.body_key, b"")[record.links_offset :]
        if read_links(member[: record.links_length or 0], record.url) is None:
            return "has links that cannot be read"
    if record.body_offset is None:
        return None if record.reason is Reason.SITEMAP else "has no body"
    begin, length = record.body_offset, record.body_length or 0
    try:
        found = warc.read(world.files[record.body_key][begin : begin + length])
        same = sha256(found.body()).hexdigest() == record.sha256
    except (KeyError, warc.WarcError) as error:
        return repr(error)
    return None if same and found.url == record.url else f"it is the body of {found.url}"
