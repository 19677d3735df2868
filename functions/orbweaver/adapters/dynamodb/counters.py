"""Counters of a crawl: one item per shard in the `crawls` table.

k            <crawl id>#count#<shard>
n.<key>      one number per count (`n.claimed`, `n.fetched.ok`), which only grows
u.<code>     the same for billed units. Short names, because each commit pays for each KB
commits      number of commits, used as version
closed       present once the crawl has ended, so that commits are refused
"""

from __future__ import annotations

from types import MappingProxyType

from orbweaver.adapters.dynamodb.table import Fields, Item, add, assign, update_request
from orbweaver.budget.billing_units import CODES
from orbweaver.model.crawl import CounterShard, Counts, Crawl

COUNTS_PREFIX, UNITS_PREFIX = "n.", "u."
CLAIMED = f"{COUNTS_PREFIX}claimed"
CRAWL_KEPT_S = 90 * 86_400
_KEYS = {code: key for key, code in CODES.items()}


def shard_key(crawl_id: str, number: int) -> Fields:
    return {"k": f"{crawl_id}#count#{number}"}


def shard(fields: Fields) -> CounterShard:
    keys = {_key_of(name): count for name, count in fields.items()}
    counts = {key: count for key, count in keys.items() if key is not None}
    return CounterShard(
        commits=fields.get("commits", 0),
        closed=fields.get("closed", False),
        counts=MappingProxyType(counts),
    )


def _name_of(key: str) -> str:
    code = CODES.get(key)
    return COUNTS_PREFIX + key if code is None else UNITS_PREFIX + code


def _key_of(name: str) -> str | None:
    """Return the count key of an attribute, or None if it is no count of this version."""
    if name.startswith(UNITS_PREFIX):
        return _KEYS.get(name.removeprefix(UNITS_PREFIX))
    return name.removeprefix(COUNTS_PREFIX) if name.startswith(COUNTS_PREFIX) else None


def add_counts(
    table: str,
    crawl: Crawl,
    number: int,
    counts: Counts,
    kept_s: int = CRAWL_KEPT_S,
    *,
    unspent: int = 0,
) -> Item:
    """Return an Update that adds counts to an open shard within its quota of claims.

    `unspent` is the number of claims that the shard has got back. It raises the quota, and never
    decreases.
    """
    added = {_name_of(key): count for key, count in counts.items() if count}
    update, values, names = add({"commits": 1, **added}, crawl.deletable_s(kept_s))
    condition = "attribute_not_exists(#closed)"
    claimed, quota = counts.get("claimed", 0), crawl.shard_quota(number) + unspent
    if claimed:
        names["#claimed"] = CLAIMED
        values[":room"] = quota - claimed
        # An absent count is 0. More claims than the quota must still fail.
        absent = "attribute_not_exists(#claimed) OR " if claimed <= quota else ""
        condition += f" AND ({absent}#claimed <= :room)"
    item = shard_key(crawl.id, number)
    return {"Update": update_request(table, item, update, values, when=condition, names=names)}


def close_shard(
    table: str,
    crawl: Crawl,
    number: int,
    seen: CounterShard,
    rest: Counts,
    kept_s: int = CRAWL_KEPT_S,
) -> Item:
    """Return an Update that adds the last counts (`rest`) to a shard and closes it.

    It fails if the shard has changed after it was read (`seen`).
    """
    update, values = assign({"closed": True, "expires_at": crawl.deletable_s(kept_s)})
    condition = "attribute_not_exists(#closed) AND "
    if seen.commits:
        condition += "#commits = :seen"
        values[":seen"] = seen.commits
    else:
        condition += "attribute_not_exists(#commits)"
    names = {f"#n{place}": _name_of(key) for place, key in enumerate(rest)}
    if rest:
        update += " ADD " + ", ".join(f"#n{place} :n{place}" for place in range(len(rest)))
        values |= {f":n{place}": count for place, count in enumerate(rest.values())}
    shard_item = shard_key(crawl.id, number)
    return {
        "Update": update_request(table, shard_item, update, values, when=condition, names=names)
    }
