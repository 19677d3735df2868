"""Rules of erasure: what remains of each record, journal, definition and message.

Data that *belongs* to a URL in scope is removed. Data that only *mentions* it stays without the
mention. Bodies and texts of other pages stay unless `mentions` is set, because they belong to other
authors. Table keys and ids contain hashes of URLs, which expire with their items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orbweaver.erasure.scope import ErasureScope
from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.journal import Journal
from orbweaver.frontier.late_links import band_at
from orbweaver.frontier.messages import Close, Loose, Malformed, Message, Pack, SeedsMessage
from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.model.outcome import Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target

# Delay before the rest of a pack comes back, in seconds.
AGAIN_S = 1


# --- stored data --------------------------------------------------------------------------------


def record_left(record: PageRecord, scope: ErasureScope) -> PageRecord | None:
    """Return None, a changed copy, or the same object if the record is not affected."""
    if scope.run(record.crawl) or scope.url(record.url):
        return None
    cut = {
        name: None
        for name in ("referrer", "canonical", "title", "description", "error")
        if scope.url(getattr(record, name)) or scope.text(getattr(record, name))
    }
    extracted = tuple(_item_left(item, scope) for item in record.extracted)
    if not cut and all(new is old for new, old in zip(extracted, record.extracted, strict=True)):
        return record
    return replace(record, extracted=extracted, **cut)  # type: ignore[arg-type]


def _item_left(item: Item, scope: ErasureScope) -> Item:
    fields = {name: scope.value_left(value) for name, value in item.fields.items()}
    problems = tuple(problem for problem in item.problems if not scope.text(problem))
    if fields == dict(item.fields) and problems == item.problems:
        return item
    return replace(item, fields=fields, problems=problems or item.problems[:0])


def in_journal(journal: Journal, scope: ErasureScope) -> bool:
    """Return True if a journal (redo log of a pack) contains data in scope."""
    if scope.runs:
        owners = {journal.crawl, *(record.crawl for record in journal.records)}
        return not scope.runs.isdisjoint(owners)
    late = (target for _, target in journal.late)
    targets = (
        *(again.target for again in journal.returning),
        *(*journal.candidates, *journal.left, *late),
    )
    return (
        any(record_left(record, scope) is not record for record in journal.records)
        or any(_target_in_scope(target, scope) for target in targets)
        or any(map(scope.url, journal.unasked))
        or any(scope.url(one.url) for one in journal.unrecorded)
    )


def _target_in_scope(target: Target, scope: ErasureScope) -> bool:
    return scope.url(target.url) or scope.url(target.referrer)


def definition_left(crawl: Crawl, scope: ErasureScope) -> Crawl:
    # Patterns stay, because they may exclude the URLs.
    seeds = _without(crawl.seeds, scope)
    kept = [place for place, seed in enumerate(crawl.seeds) if not scope.reference(seed)]
    depths = tuple(crawl.seed_depths[place] for place in kept if place < len(crawl.seed_depths))
    changed: dict[str, Any] = {
        "seeds": seeds,
        "seed_depths": depths,
        "sitemap_urls": _without(crawl.sitemap_urls, scope),
        "anchors": _without(crawl.anchors, scope),
        "roots": _without(crawl.roots, scope),
        "host_headers": tuple(
            (origin, own) for origin, own in crawl.host_headers if not scope.reference(f"{origin}/")
        ),
    }
    if scope.host is not None:  # positions matter, so the entry becomes empty
        hosts = ("" if scope.url(f"{host}/") else host for host in crawl.hosts_counted)
        changed["hosts_counted"] = tuple(hosts)
    return replace(crawl, **changed)


def samples_left(
    samples: Mapping[str, Sequence[str]], scope: ErasureScope
) -> dict[str, Sequence[str]]:
    return {
        reason: tuple(url for url in urls if not scope.shown(url))
        for reason, urls in samples.items()
    }


def _without(references: tuple[str, ...], scope: ErasureScope) -> tuple[str, ...]:
    return tuple(one for one in references if not scope.reference(one))


# --- messages -----------------------------------------------------------------------------------


def message_left(  # noqa: PLR0911 - one for each kind
    message: Message, body: str, scope: ErasureScope
) -> Message | None:
    """Return None, a changed copy, or the same object if the message is not affected."""
    if isinstance(message, Malformed):
        return None if scope.text(body) or scope.reference(body.strip()) else message
    if isinstance(message, Newer):
        # Its content is unknown, but it belongs only to its crawl.
        others = scope.runs and message.crawl and not scope.run(message.crawl)
        return message if others else None
    if scope.run(message.crawl):
        return None
    match message:
        case Pack():
            return _pack_left(message, scope)
        case SeedsMessage() | Loose():
            references = _without(message.references, scope)
            if references == message.references:
                return message
            return replace(message, references=references) if references else None
        case Close():
            return message


def _pack_left(pack: Pack, scope: ErasureScope) -> Pack | None:
    if not any(_target_in_scope(target, scope) for target in pack.targets):
        return pack
    targets = tuple(
        replace(target, referrer=None) if scope.url(target.referrer) else target
        for target in pack.targets
        if not scope.url(target.url)
    )
    return replace(pack, targets=targets) if targets else None


def ended(pack: Pack, crawl: Crawl, scope: ErasureScope, at_ms: int) -> Journal:
    """Return a journal that ends a pack's URLs in scope unrequested and continues the others."""
    result = PackResult(crawl.id, crawl.hosts_counted)
    if pack.late:
        # Its URLs were never claimed, so the journal only counts that they are gone.
        band = band_at(pack.place)
        result.take_late(len(pack.targets), band)
        kept = _pack_left(pack, scope)
        result.put_late([(band, one) for one in (kept.targets if kept else ())], band)
        return result.journal((), at_ms)
    for target in pack.targets:
        if scope.url(target.url):
            result.leave(target, Reason.FORGOTTEN)
    left = _pack_left(pack, scope)
    for target in () if left is None else left.targets:
        result.requeue(target, AGAIN_S, why="deferrals")
    return result.journal(pack.targets, at_ms)
