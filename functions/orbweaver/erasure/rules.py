"""What is left of a thing that held what is to be forgotten: decided here, done elsewhere.

Rules
- What is *of* it goes: its records, claims, items, texts, messages. What only *mentions* it stays
  without the mention: the referrer of another page, a seed, a link that an item holds.
- Bodies and texts of other pages are what somebody else wrote: where they mention it they stay,
  unless `mentions` says otherwise; they are counted.
- Keys of tables and ids hold hashes of URLs, which expire with their items.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.messages import Close, Loose, Malformed, Pack, SeedsMessage
from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.outcome import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orbweaver.erasure.scope import Meant
    from orbweaver.frontier.journal import Journal
    from orbweaver.frontier.messages import Message
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.item import Item
    from orbweaver.model.page_record import PageRecord
    from orbweaver.model.target import Target

# How soon what is left of a pack comes back.
AGAIN_S = 1


# --- what is stored -----------------------------------------------------------------------------


def record_left(record: PageRecord, meant: Meant) -> PageRecord | None:
    """Say what is left of a record; None for nothing, the same one where it holds none of it."""
    if meant.run(record.crawl) or meant.url(record.url):
        return None
    cut = {
        name: None
        for name in ("referrer", "canonical", "title", "description", "error")
        if meant.url(getattr(record, name)) or meant.text(getattr(record, name))
    }
    extracted = tuple(_item_left(item, meant) for item in record.extracted)
    if not cut and all(new is old for new, old in zip(extracted, record.extracted, strict=True)):
        return record
    return replace(record, extracted=extracted, **cut)  # type: ignore[arg-type]


def _item_left(item: Item, meant: Meant) -> Item:
    fields = {name: meant.value_left(value) for name, value in item.fields.items()}
    problems = tuple(problem for problem in item.problems if not meant.text(problem))
    if fields == dict(item.fields) and problems == item.problems:
        return item
    return replace(item, fields=fields, problems=problems or item.problems[:0])


def in_journal(journal: Journal, meant: Meant) -> bool:
    """Whether a journal holds any of it."""
    if meant.runs:
        owners = {journal.crawl, *(record.crawl for record in journal.records)}
        return not meant.runs.isdisjoint(owners)
    targets = (*(again.target for again in journal.again), *journal.candidates, *journal.left)
    return (
        any(record_left(record, meant) is not record for record in journal.records)
        or any(_of_target(target, meant) for target in targets)
        or any(map(meant.url, journal.unasked))
        or any(meant.url(one.url) for one in journal.unrecorded)
    )


def _of_target(target: Target, meant: Meant) -> bool:
    return meant.url(target.url) or meant.url(target.referrer)


def definition_left(crawl: Crawl, meant: Meant) -> Crawl:
    """Say what is left of a crawl's definition; patterns stay, which may be what keeps it away."""
    seeds = _without(crawl.seeds, meant)
    kept = [place for place, seed in enumerate(crawl.seeds) if not meant.reference(seed)]
    depths = tuple(crawl.seed_depths[place] for place in kept if place < len(crawl.seed_depths))
    changed: dict[str, Any] = {
        "seeds": seeds,
        "seed_depths": depths,
        "sitemap_urls": _without(crawl.sitemap_urls, meant),
        "anchors": _without(crawl.anchors, meant),
        "roots": _without(crawl.roots, meant),
        "host_headers": tuple(
            (origin, own) for origin, own in crawl.host_headers if not meant.reference(f"{origin}/")
        ),
    }
    if meant.host is not None:  # places count, so one is left empty
        hosts = ("" if meant.url(f"{host}/") else host for host in crawl.hosts_counted)
        changed["hosts_counted"] = tuple(hosts)
    return replace(crawl, **changed)


def samples_left(samples: Mapping[str, Sequence[str]], meant: Meant) -> dict[str, Sequence[str]]:
    """Say what is left of the examples of what was refused."""
    return {
        reason: tuple(url for url in urls if not meant.shown(url))
        for reason, urls in samples.items()
    }


def _without(references: tuple[str, ...], meant: Meant) -> tuple[str, ...]:
    return tuple(one for one in references if not meant.reference(one))


# --- what is on its way -------------------------------------------------------------------------


def message_left(  # noqa: PLR0911 - one for each kind
    message: Message, body: str, meant: Meant
) -> Message | None:
    """Say what is left of a message; None for nothing, the same one where it holds none of it."""
    if isinstance(message, Malformed):
        return None if meant.text(body) or meant.reference(body.strip()) else message
    if isinstance(message, Newer):
        # It may hold anything, but of its crawl alone.
        others = meant.runs and message.crawl and not meant.run(message.crawl)
        return message if others else None
    if meant.run(message.crawl):
        return None
    match message:
        case Pack():
            return _pack_left(message, meant)
        case SeedsMessage() | Loose():
            references = _without(message.references, meant)
            if references == message.references:
                return message
            return replace(message, references=references) if references else None
        case Close():
            return message


def _pack_left(pack: Pack, meant: Meant) -> Pack | None:
    if not any(_of_target(target, meant) for target in pack.targets):
        return pack
    targets = tuple(
        replace(target, referrer=None) if meant.url(target.referrer) else target
        for target in pack.targets
        if not meant.url(target.url)
    )
    return replace(pack, targets=targets) if targets else None


def ended(pack: Pack, crawl: Crawl, meant: Meant, at_ms: int) -> Journal:
    """Journal a pack whose URLs that are meant end unasked, while its others go on."""
    result = PackResult(crawl.id, crawl.hosts_counted)
    for target in pack.targets:
        if meant.url(target.url):
            result.leave(target, Reason.FORGOTTEN)
    left = _pack_left(pack, meant)
    for target in () if left is None else left.targets:
        result.requeue(target, AGAIN_S, why="deferrals")
    return result.journal(pack.targets, at_ms)
