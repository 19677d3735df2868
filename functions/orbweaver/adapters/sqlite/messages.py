"""Queues in the `messages` table, with the rules of SQS.

A taken message is hidden for a time, and each take increases its count. After too many takes it
moves to the dead-letter queue. Groups of messages (one per crawl) take turns, so that a large crawl
does not delay others. A message never expires: a machine that is off for a month loses no URL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, TypeAlias

from orbweaver.adapters.sqlite.store import SqliteStore
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock


class QueueName(StrEnum):
    """Queues of a store. Settings use the names of the first three."""

    CRAWL = "crawl"
    EXPRESS = "express"
    SEEDS = "seeds"
    DEAD_LETTERS = "dead-letters"
    EXPORTS = "exports"
    FAILED_EXPORTS = "failed-exports"
    DELIVERIES = "deliveries"
    FAILED_DELIVERIES = "failed-deliveries"
    EVENTS = "events"
    FAILED_EVENTS = "failed-events"


# Dead-letter queue of each queue. Messages of other queues can be taken without a limit.
DEAD = {
    QueueName.CRAWL: QueueName.DEAD_LETTERS,
    QueueName.EXPRESS: QueueName.DEAD_LETTERS,
    QueueName.SEEDS: QueueName.DEAD_LETTERS,
    QueueName.EXPORTS: QueueName.FAILED_EXPORTS,
    QueueName.DELIVERIES: QueueName.FAILED_DELIVERIES,
    QueueName.EVENTS: QueueName.FAILED_EVENTS,
}


# Longer than any delay, and than any time for which a taken message is hidden.
AHEAD_MS_MAX = 3_600_000
# A process takes a message beyond its share if the message has been due for this time. Idle
# processes check the queue more often.
LEFT_MS = 500


@value_class
class Sharing:
    """Rule by which processes share a queue, so that each holds an equal number of messages."""

    processes: Callable[[], int]  # counts all, this one included. Called only if there are messages
    held_max: int  # messages that one process holds


@value_class
class Outgoing:
    """A message to send. Only dead letters have `source` (their queue) and `reason`."""

    body: str
    group: str = ""
    delay_s: float = 0
    in_flight: bool = False  # this process already works on it. It becomes due if the process dies
    reason: str | None = None
    source: str | None = None
    since_ms: int | None = None


@value_class
class ReceivedMessage:
    """A message taken for the `receives`-th time. `handle` is valid until the next take."""

    id: str
    handle: str
    body: str
    receives: int
    group: str
    sent_at_ms: int
    first_taken_at_ms: int
    reason: str | None
    source: str | None
    since_ms: int | None


@value_class
class QueueDepth:
    """Numbers of messages: available (`waiting`), taken (`in_flight`), not yet due (`delayed`)."""

    waiting: int = 0
    in_flight: int = 0
    delayed: int = 0
    # Messages that their sender already processes. They become due if that process dies.
    copies: int = 0


class SqliteMessages:
    """All queues of a store."""

    def __init__(self, store: SqliteStore, *, clock: Clock, receive_max: int | None = None) -> None:
        self._store = store
        self._clock = clock
        self._receive_max = receive_max
        # Id of this process, stored with its messages. If it dies, other processes requeue them.
        self.holder: str | None = None
        # The last group of each queue from which a message was taken.
        self._last: dict[QueueName, str] = {}

    def send(self, queue: QueueName, outgoing: Iterable[Outgoing]) -> None:
        """Put messages on a queue: all of them, or none if it fails."""
        now_ms = self._clock.now_ms()
        rows = [
            (
                queue,
                _without_surrogates(one.group),
                now_ms + round(one.delay_s * 1000),
                _without_surrogates(one.body),
                now_ms,
                None if one.reason is None else _without_surrogates(one.reason),
                one.source,
                one.since_ms,
                self.holder if one.in_flight else None,
            )
            for one in outgoing
        ]
        if not rows:
            return
        with self._store.writing() as db:
            db.executemany(
                "INSERT INTO messages"
                " (queue, grp, due, body, sent_at, takes, reason, source, since_ms, holder)"
                " VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
                rows,
            )

    def bring_near(self) -> None:
        """Make messages due now if they are due in more than `AHEAD_MS_MAX`.

        Such a message was sent before the clock was set back.
        """
        now_ms = self._clock.now_ms()
        with self._store.writing() as db:
            far_ms = now_ms + AHEAD_MS_MAX
            db.execute("UPDATE messages SET due = ? WHERE due > ?", (now_ms, far_ms))

    def take(
        self, queue: QueueName, count_max: int, hold_s: float, sharing: Sharing | None = None
    ) -> tuple[ReceivedMessage, ...]:
        """Take due messages and hide them from other readers for `hold_s` seconds.

        With `sharing`, a process takes no more than its share of the queue's messages.
        """
        now_ms = self._clock.now_ms()
        due_ms = self.next_due_ms(queue)
        if due_ms is None or due_ms > now_ms:  # most calls end here, without the write lock
            return ()
        if sharing is not None:
            least = int(now_ms - due_ms > LEFT_MS)
            count_max = min(count_max, max(least, self._share(queue, now_ms, sharing)))
            if not count_max:
                return ()
        hold_ms = round(hold_s * 1000)
        with self._store.writing() as db:
            self._dead_letter_exhausted(db, queue, now_ms)
            taken = [
                _take(db, number, now_ms, hold_ms, self.holder)
                for number in self._due(db, queue, now_ms, count_max)
            ]
        return tuple(_message(self._store.id, row) for row in taken)

    def _share(self, queue: QueueName, now_ms: int, sharing: Sharing) -> int:
        """Return how many messages this process can take until it holds its share."""
        # Read before the take's transaction, so that a call without a share needs no write lock. If
        # two processes read at once, each takes the share that is fair without the other.
        processes = sharing.processes()
        enough = processes * sharing.held_max
        waiting = self._due_up_to(queue, now_ms, enough)
        if processes <= 1 or waiting >= enough:
            return waiting
        (held, own) = self._store.rows(
            "SELECT count(*), coalesce(sum(holder = ?), 0) FROM messages"
            " WHERE queue = ? AND takes > 0 AND due > ? AND holder IS NOT NULL",
            (self.holder, queue, now_ms),
        )[0]
        return max(0, -(-(waiting + int(held)) // processes) - int(own))

    def _due_up_to(self, queue: QueueName, now_ms: int, most: int) -> int:
        counted = 0
        with self._store.reading() as db:
            for group in _groups(db, queue, None):
                (number,) = db.execute(
                    "SELECT count(*) FROM (SELECT 1 FROM messages"
                    " WHERE queue = ? AND grp = ? AND due <= ? LIMIT ?)",
                    (queue, group, now_ms, most - counted),
                ).fetchone()
                counted += int(number)
                if counted >= most:
                    break
        return counted

    def _dead_letter_exhausted(self, db: sqlite3.Connection, queue: QueueName, now_ms: int) -> None:
        dead = DEAD.get(queue)
        if dead is None or self._receive_max is None:
            return
        db.execute(
            "UPDATE messages SET queue = ?, due = ?, source = queue, reason = NULL"
            " WHERE queue = ? AND takes > 0 AND due <= ? AND takes - deaths >= ?",
            (dead, now_ms, queue, now_ms, self._receive_max),
        )

    def _due(
        self, db: sqlite3.Connection, queue: QueueName, now_ms: int, count_max: int
    ) -> list[int]:
        """Pick due messages round-robin: one of each group, then the next of each."""
        after = self._last.get(queue, "")
        groups = [*_groups(db, queue, after), *_groups(db, queue, None, after)]
        picked: list[list[tuple[int, str]]] = []
        for group in groups:
            rows = db.execute(
                "SELECT n FROM messages WHERE queue = ? AND grp = ? AND due <= ?"
                " ORDER BY due, n LIMIT ?",
                (queue, group, now_ms, count_max),
            ).fetchall()
            if rows:
                picked.append([(number, group) for (number,) in rows])
            if len(picked) == count_max:
                break
        turns = [one for one in chain.from_iterable(zip_longest(*picked)) if one is not None]
        if turns:
            self._last[queue] = turns[:count_max][-1][1]
        return [number for number, _ in turns[:count_max]]

    def delete(self, handles: Iterable[str]) -> None:
        """Delete messages. A handle has no effect if its message was taken again."""
        taken = [_parse_handle(handle) for handle in handles]
        if taken:
            with self._store.writing() as db:
                db.executemany("DELETE FROM messages WHERE n = ? AND takes = ?", taken)

    def show(self, handles: Iterable[str], after_s: float = 0) -> None:
        """Make messages visible after `after_s` seconds.

        Messages that were taken again stay hidden.
        """
        due_ms = self._clock.now_ms() + round(after_s * 1000)
        taken = [(due_ms, *_parse_handle(handle)) for handle in handles]
        if taken:  # usually empty, and then no write lock is needed
            with self._store.writing() as db:
                db.executemany(
                    "UPDATE messages SET due = ?, holder = NULL WHERE n = ? AND takes = ?", taken
                )

    def release(self, queue: QueueName, group: str, text: str, after_s: float) -> bool:
        """Make messages due that this process sent as in flight, to work on them at once.

        The queue never delivered them to this process. Only messages whose bodies contain `text`
        become due, after `after_s` seconds. Returns True if there was one.
        """
        now_ms = self._clock.now_ms()
        due_ms = now_ms + round(after_s * 1000)
        with self._store.writing() as db:
            changed = db.execute(
                "UPDATE messages SET due = ?, holder = NULL WHERE queue = ? AND grp = ? AND due > ?"
                " AND takes = 0 AND holder = ? AND instr(body, ?)",
                (due_ms, queue, group, now_ms, self.holder, text),
            )
        return changed.rowcount > 0

    def take_back(self, holder: str) -> int:
        """Make all messages of a dead process due. Return their number."""
        now_ms = self._clock.now_ms()
        with self._store.writing() as db:
            # A received message may have caused the death, so the take counts. All deaths together
            # count as one take, so they alone do not make it a dead letter.
            return db.execute(
                "UPDATE messages SET due = ?, deaths = deaths + (takes > 0), holder = NULL"
                " WHERE holder = ? AND due > ?",
                (now_ms, holder, now_ms),
            ).rowcount

    def depth(self, queue: QueueName) -> QueueDepth:
        now_ms = self._clock.now_ms()
        row = self._store.row(
            "SELECT (SELECT count(*) FROM messages WHERE queue = ?1),"
            " (SELECT count(*) FROM messages WHERE queue = ?1 AND due > ?2),"
            " (SELECT count(*) FROM messages WHERE queue = ?1 AND takes > 0 AND due > ?2),"
            " (SELECT count(*) FROM messages"
            "  WHERE queue = ?1 AND takes = 0 AND due > ?2 AND holder IS NOT NULL)",
            (queue, now_ms),
        )
        total, later, held, copies = row or (0, 0, 0, 0)
        return QueueDepth(
            waiting=total - later, in_flight=held, delayed=later - held - copies, copies=copies
        )

    def retries_of(self, group: str, most: int) -> list[tuple[str, int]]:
        """Return bodies and due times (ms) of the next messages of a group that will retry URLs."""
        rows = self._store.rows(
            "SELECT body, due FROM messages WHERE queue IN (?, ?) AND grp = ? AND due > ?"
            " AND holder IS NULL AND body LIKE '%\"failed\":%' ORDER BY due LIMIT ?",
            (QueueName.CRAWL, QueueName.EXPRESS, group, self._clock.now_ms(), most),
        )
        return [(str(body), int(at_ms)) for body, at_ms in rows]

    def in_work_of(self, group: str | None = None, most: int = -1) -> list[tuple[str, int, bool]]:
        """Return messages that processes hold: body, start time (ms), True if this one holds it.

        Without `group`, the messages belong to all groups.
        """
        chosen, groups = ("", ()) if group is None else (" AND grp = ?", (group,))
        rows = self._store.rows(
            "SELECT body, coalesce(first_taken_at, sent_at) AS since, holder = ?"  # noqa: S608
            f" FROM messages WHERE queue IN (?, ?){chosen} AND due > ? AND holder IS NOT NULL"
            " ORDER BY since LIMIT ?",
            (self.holder, QueueName.CRAWL, QueueName.EXPRESS, *groups, self._clock.now_ms(), most),
        )
        return [(str(body), int(at_ms), bool(own)) for body, at_ms, own in rows]

    def next_due_ms(self, queue: QueueName) -> int | None:
        """Return when the next message can be taken, or None if the queue is empty."""
        with self._store.reading() as db:
            firsts = [
                db.execute(
                    "SELECT min(due) FROM messages WHERE queue = ? AND grp = ?", (queue, group)
                ).fetchone()[0]
                for group in _groups(db, queue, None)
            ]
        return min((due for due in firsts if due is not None), default=None)


def _groups(
    db: sqlite3.Connection, queue: QueueName, after: str | None, last: str | None = None
) -> Iterator[str]:
    """Yield a queue's groups in order, after `after` and up to `last`.

    Each costs one index step.
    """
    beyond, at = ("grp >= ?", "") if after is None else ("grp > ?", after)
    while True:
        row = db.execute(
            f"SELECT grp FROM messages WHERE queue = ? AND {beyond} ORDER BY grp LIMIT 1",  # noqa: S608
            (queue, at),
        ).fetchone()
        if row is None or (last is not None and row[0] > last):
            return
        yield row[0]
        beyond, at = "grp > ?", row[0]


# A taken message: n, takes, deaths, body, grp, sent_at, first_taken_at, reason, source, since_ms.
_Row: TypeAlias = tuple[int, int, int, str, str, int, int, str | None, str | None, int | None]


def _take(
    db: sqlite3.Connection, number: int, now_ms: int, hold_ms: int, holder: str | None
) -> _Row:
    db.execute(
        "UPDATE messages SET due = ?, takes = takes + 1, holder = ?,"
        " first_taken_at = coalesce(first_taken_at, ?) WHERE n = ?",
        (now_ms + hold_ms, holder, now_ms, number),
    )
    row: _Row = db.execute(
        "SELECT n, takes, deaths, body, grp, sent_at, first_taken_at, reason, source, since_ms"
        " FROM messages WHERE n = ?",
        (number,),
    ).fetchone()
    return row


def _message(store_id: str, row: _Row) -> ReceivedMessage:
    number, takes, deaths, body, group, sent_at, first, reason, source, since_ms = row
    return ReceivedMessage(
        id=f"{store_id}-{number}",
        handle=f"{number}:{takes}",
        body=body,
        # All takes that ended with a death count as one.
        receives=takes - max(0, deaths - 1),
        group=group,
        sent_at_ms=sent_at,
        first_taken_at_ms=first,
        reason=reason,
        source=source,
        since_ms=since_ms,
    )


def _parse_handle(handle: str) -> tuple[int, int]:
    number, _, takes = handle.partition(":")
    return int(number), int(takes)


def _without_surrogates(text: str) -> str:
    # Text from the web can contain lone surrogates, but UTF-8 cannot.
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass").decode(errors="replace")
    return text
