"""Hosts in the `hosts` table: times of the next requests, blocks, robots.txt files and cookies.

- `<host>`: `tat` (earliest time of the next request), `line`, `blocked_until`, `strikes`,
  `struck_at`, `failures`, `failed_at`. The item is small, so a reservation costs one write unit.
- `<host>#robots`: the robots.txt, compressed. `cookies#<crawl>#<site>`: a site's cookies.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.adapters.dynamodb.table import (
    BLOB_BYTES_MAX,
    ConditionFailed,
    Dynamo,
    Fields,
    assign,
)
from orbweaver.politeness.host_schedule import (
    Host,
    RobotsEntry,
    Slots,
    after_failure,
    grant_slots,
    is_doubtful,
    join_queue,
)

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock

LOOK_FRESH_MS = 5_000
NEVER_MS = -1_000_000
RESERVE_TRIES = 5
HOST_KEPT_S = 30 * 86_400
COOKIES_KEPT_S = 8 * 86_400  # a crawl lasts seven days at most
# Limits of a container's cache: number of hosts, and bytes of robots.txt files.
HOSTS_MAX = 4_096
ROBOTS_BYTES_MAX = 512 * 1024
COOKIES = "cookies#"  # no host name begins with it
ROBOTS_BYTES_KEPT_MAX = 32 * 1024 * 1024

# Conditions of a reservation if `tat` is ahead of now, or behind. There are two forms, because
# update expressions have no maximum (GCRA, see
# politeness/host_schedule.py). A wrong guess costs one failed write, which returns the item.
NOT_BLOCKED = "(attribute_not_exists(#blocked_until) OR #blocked_until <= :now)"
AHEAD = f"#tat > :now AND #tat <= :latest AND {NOT_BLOCKED}"
BEHIND = f"(attribute_not_exists(#tat) OR #tat <= :now) AND {NOT_BLOCKED}"


class DynamoHosts:
    """Implements `Hosts` on DynamoDB."""

    def __init__(self, dynamo: Dynamo, *, clock: Clock, hosts_table: str) -> None:
        self._dynamo = dynamo
        self._clock = clock
        self._table = hosts_table
        self._seen = _Seen()

    async def read_host(self, host: str) -> Host:
        state, read_at_ms = self._seen.get(host)
        # Not negative, in case that the clock was set back.
        if state is not None and 0 <= self._clock.now_ms() - read_at_ms < LOOK_FRESH_MS:
            return state
        keys = [{"host": key} for key in (host, robots_key(host))]
        items = await self._dynamo.get_many(self._table, keys, consistent=False)
        by_key = {fields["host"]: fields for fields in items}
        found = replace(
            host_of_item(host, by_key.get(host, {})),
            robots=robots_of_item(by_key.get(robots_key(host))),
        )
        if state is not None:
            found = later(found, state)
        self._seen.put(found, self._clock.now_ms())
        return found

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        state = await self.read_host(host)
        for _ in range(RESERVE_TRIES):
            if state.blocked_until_ms > now_ms:
                break
            if spacing_ms == 0:
                return Slots(at_ms=(now_ms,) * wanted, return_at_ms=now_ms)
            first_ms, count = grant_slots(state.tat_ms, wanted, spacing_ms, now_ms, until_ms)
            if not count:  # `tat` only grows, so no write is needed
                break
            tat_ms = first_ms + count * spacing_ms
            return_at_ms, line_ms = tat_ms, None
            if count < wanted:
                rest = wanted - count
                return_at_ms, line_ms = join_queue(
                    state.line_ms, tat_ms, rest, spacing_ms, now_ms, until_ms
                )
            update = self._advance(state, count, spacing_ms, now_ms, until_ms, line_ms)
            state, done = await self._write(state, *update)
            if not done:
                continue
            first_ms = state.tat_ms - count * spacing_ms
            slots = tuple(first_ms + place * spacing_ms for place in range(count))
            return Slots(at_ms=slots, return_at_ms=return_at_ms)
        return self._line_up(state, wanted, spacing_ms, now_ms, until_ms)

    def _advance(
        self,
        state: Host,
        count: int,
        spacing_ms: int,
        now_ms: int,
        until_ms: int,
        line_ms: int | None,
    ) -> tuple[str, Fields, str]:
        """Return the update that reserves the times of `count` requests."""
        values = {":now": now_ms, ":expires_at": now_ms // 1000 + HOST_KEPT_S}
        if state.tat_ms > now_ms:
            update, condition = "SET #tat = #tat + :step", AHEAD
            values[":step"] = count * spacing_ms
            values[":latest"] = until_ms - (count - 1) * spacing_ms
        else:
            update, condition = "SET #tat = :tat", BEHIND
            values[":tat"] = now_ms + count * spacing_ms
        update += ", #expires_at = :expires_at"
        if line_ms is not None:
            values[":line"] = line_ms
            update += ", #line = :line"
        return update, values, condition

    def _line_up(
        self, state: Host, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        """Return no slots, but the time at which the caller should ask again."""
        busy_until_ms = max(state.tat_ms, state.blocked_until_ms)
        return_at_ms, line_ms = join_queue(
            state.line_ms, busy_until_ms, wanted, spacing_ms, now_ms, until_ms
        )
        self._seen.update(replace(state, line_ms=line_ms))
        return Slots(at_ms=(), return_at_ms=return_at_ms)

    async def block(self, host: str, until_ms: int, strikes: int, now_ms: int) -> None:
        blocked = {"blocked_until": until_ms, "strikes": strikes, "struck_at": now_ms}
        update, values = assign(blocked | {"expires_at": now_ms // 1000 + HOST_KEPT_S})
        longer = "attribute_not_exists(#blocked_until) OR #blocked_until < :blocked_until"
        await self._write(self._cached(host), update, values, longer)

    async def fail(self, host: str, now_ms: int, chance: float, *, probe: bool) -> Host:
        state = await self.read_host(host)
        for _ in range(RESERVE_TRIES):
            after = after_failure(state, now_ms, chance, probe=probe)
            if after == state:
                break
            fields = {
                "failures": after.failures,
                "failed_at": now_ms,
                "blocked_until": after.blocked_until_ms,
                "expires_at": now_ms // 1000 + HOST_KEPT_S,
            }
            state, done = await self._write(state, *if_as_seen(state, fields))
            if done:
                break
        return state

    async def recover(self, host: str) -> None:
        update, values = assign({"failures": 0})
        await self._write(self._cached(host), update, values, "#failures > :failures")

    async def _write(
        self, state: Host, update: str, values: Fields, when: str
    ) -> tuple[Host, bool]:
        """Update a host under a condition. Return and cache its current state."""
        key = {"host": state.name}
        try:
            fields = await self._dynamo.updated(self._table, key, update, values, when=when)
        except ConditionFailed as refusal:
            return self._refresh(state, refusal.fields), False
        return self._refresh(state, fields), True

    async def release(self, host: str, from_ms: int, to_ms: int) -> None:
        """Do nothing: containers rely on request times that only grow, and a write costs money."""

    async def take_probe(self, host: str, until_ms: int, now_ms: int) -> bool:
        state = await self.read_host(host)
        if not is_doubtful(state, now_ms):
            return False
        _, done = await self._write(state, *if_as_seen(state, {"blocked_until": until_ms}))
        return done

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None:
        fields = {
            "host": robots_key(host),
            "fetched_at": entry.fetched_at_ms,
            "body": None if entry.body is None else compress(entry.body),
            "verdict": entry.verdict,
            "detail": entry.detail,
            "reason": entry.reason,
            "expires_at": entry.fetched_at_ms // 1000 + HOST_KEPT_S,
        }
        await self._dynamo.put(self._table, fields)
        self._seen.update(replace(self._cached(host), robots=entry))

    async def cookies(self, crawl_id: str, site: str) -> str | None:
        key = {"host": cookies_key(crawl_id, site)}
        items = await self._dynamo.get_many(self._table, [key], consistent=True)
        return str(items[0]["jar"]) if items else None

    async def keep_cookies(self, crawl_id: str, site: str, text: str, now_ms: int) -> None:
        fields = {
            "host": cookies_key(crawl_id, site),
            "jar": text,
            "expires_at": now_ms // 1000 + COOKIES_KEPT_S,
        }
        await self._dynamo.put(self._table, fields)

    async def session(self, crawl_id: str, origin: str) -> str | None:
        # No site contains "://", so an origin cannot be the key of a site's cookies.
        return await self.cookies(crawl_id, origin)

    async def keep_session(
        self, crawl_id: str, origin: str, text: str, was: str | None, now_ms: int
    ) -> bool:
        key = {"host": cookies_key(crawl_id, origin)}
        update, values = assign({"jar": text, "expires_at": now_ms // 1000 + COOKIES_KEPT_S})
        when = "attribute_not_exists(#jar)"
        if was is not None:
            when, values[":was"] = "#jar = :was", was
        try:
            await self._dynamo.updated(self._table, key, update, values, when=when)
        except ConditionFailed:
            return False
        return True

    def _cached(self, host: str) -> Host:
        return self._seen.get(host)[0] or Host(name=host)

    def _refresh(self, state: Host, fields: Fields) -> Host:
        """Cache the fields that a write returned. They do not contain the robots.txt."""
        fresh = later(host_of_item(state.name, fields), state)
        self._seen.update(fresh)
        return fresh


class _Seen:
    """Cache of hosts with their read times. The least recently used are evicted."""

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, tuple[Host, int]] = OrderedDict()
        self._robots_bytes = 0

    def get(self, host: str) -> tuple[Host | None, int]:
        if host not in self._hosts:
            return None, NEVER_MS
        self._hosts.move_to_end(host)
        return self._hosts[host]

    def put(self, state: Host, read_at_ms: int) -> None:
        self._forget(state.name)
        self._hosts[state.name] = (state, read_at_ms)
        self._robots_bytes += _robots_bytes(state)
        while len(self._hosts) > HOSTS_MAX or self._robots_bytes > ROBOTS_BYTES_KEPT_MAX:
            self._forget(next(iter(self._hosts)))

    def update(self, state: Host) -> None:
        """Replace a host and keep its read time, because its robots.txt was not read."""
        _, read_at_ms = self.get(state.name)
        self.put(state, read_at_ms)

    def _forget(self, host: str) -> None:
        if host in self._hosts:
            self._robots_bytes -= _robots_bytes(self._hosts.pop(host)[0])


def _robots_bytes(state: Host) -> int:
    return len(state.robots.body or b"") if state.robots else 0


def robots_key(host: str) -> str:
    return f"{host}#robots"


def cookies_key(crawl_id: str, site: str) -> str:
    return f"{COOKIES}{crawl_id}#{site}"


def cookies_of_key(key: str) -> tuple[str, str] | None:
    """Return the crawl and the site in a key, or None if it is not a key of cookies."""
    if not key.startswith(COOKIES):
        return None
    crawl_id, _, site = key.removeprefix(COOKIES).partition("#")
    return crawl_id, site


def later(found: Host, known: Host) -> Host:
    """Merge a new read of a host (`found`) into an earlier one, because it might be older data."""
    latest = known if known.blocked_until_ms > found.blocked_until_ms else found
    robots = max(
        (entry for entry in (known.robots, found.robots) if entry),
        key=lambda entry: entry.fetched_at_ms,
        default=None,
    )
    return replace(
        found,
        tat_ms=max(found.tat_ms, known.tat_ms),
        line_ms=max(found.line_ms, known.line_ms),
        blocked_until_ms=latest.blocked_until_ms,
        strikes=latest.strikes,
        struck_at_ms=latest.struck_at_ms,
        robots=robots,
    )


def host_of_item(name: str, fields: Fields) -> Host:
    return Host(
        name=name,
        tat_ms=fields.get("tat", 0),
        line_ms=fields.get("line", 0),
        blocked_until_ms=fields.get("blocked_until", 0),
        strikes=fields.get("strikes", 0),
        struck_at_ms=fields.get("struck_at", 0),
        failures=fields.get("failures", 0),
        failed_at_ms=fields.get("failed_at", 0),
    )


def robots_of_item(fields: Fields | None) -> RobotsEntry | None:
    if fields is None:
        return None
    return RobotsEntry(
        fetched_at_ms=fields["fetched_at"],
        body=zlib.decompress(fields["body"]) if "body" in fields else None,
        verdict=fields["verdict"],
        detail=fields.get("detail"),
        reason=fields.get("reason"),
    )


def compress(body: bytes) -> bytes:
    """Compress a robots.txt. A large one is truncated at the end of a line, as RFC 9309 allows."""
    body = body[:ROBOTS_BYTES_MAX]
    while len(blob := zlib.compress(body)) > BLOB_BYTES_MAX:
        body = body[: len(body) // 2].rpartition(b"\n")[0]
    return blob


def if_as_seen(state: Host, fields: Fields) -> tuple[str, Fields, str]:
    """Return an update that fails if the host's failures or block differ from `state`."""
    update, values = assign(fields)
    conditions = []
    for name, seen in (("failures", state.failures), ("blocked_until", state.blocked_until_ms)):
        values[f":seen_{name}"] = seen
        absent = "" if seen else f"attribute_not_exists(#{name}) OR "
        conditions.append(f"({absent}#{name} = :seen_{name})")
    return update, values, " AND ".join(conditions)
