"""The SQLite file of the embedded store: opening, creating, transactions, errors.

Operations take tens of microseconds and run in the event loop, because a thread would cost more
(docs/adr/0020-embedded-store.md). No transaction stays open across an `await`. Sources:
sqlite.org/wal.html, sqlite.org/pragma.html#pragma_synchronous, sqlite.org/rescode.html.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, NoReturn, Self

from orbweaver.adapters.sqlite.schema import (
    APPLICATION_ID,
    TABLES,
    VERSION,
)
from orbweaver.model.errors import Permanent, PortError, StoredNewer, StoreError, Transient
from orbweaver.model.http_exchange import one_line
from orbweaver.model.version import NEWER

BUSY_S = 30.0
PAGE_BYTES = 4096
CACHE_KB = 16 * 1024
# Size at which the write-ahead log is copied into the file. A page with several writes is copied
# once.
CHECKPOINT_PAGES = 32_768
STATEMENTS_KEPT = 256
OPEN_PAUSE_S = 0.02
# The first version with upserts.
SQLITE_MIN = (3, 24, 0)


class StoreBusy(StoreError, Transient):
    """Another process holds the lock, or the disk is full. A later attempt might succeed."""


class StoreUnusable(StoreError, Permanent):
    """The file cannot be used. The text contains the remedy."""


class SqliteStore:
    """One SQLite file, opened by this process for one event loop."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, writes: bool = True) -> None:
        self._db = connection
        self.path = path
        self.id = ""
        self.writes = writes
        # Modification time and size of a file that is opened as immutable: this user cannot write
        # it, and it is not open elsewhere.
        self._frozen: tuple[int, int] | None = None

    @classmethod
    def open(
        cls, path: Path, *, durable: bool = False, busy_s: float = BUSY_S, writes: bool = True
    ) -> Self:
        """Open a store, or create it if the file is missing. Raises PortError with a remedy.

        `durable`: a commit also survives a power failure. `busy_s`: how long a write waits for
        other processes. `writes=False` also opens a file that this user cannot write.
        """
        if sqlite3.sqlite_version_info < SQLITE_MIN:
            raise StoreUnusable(f"SQLite {sqlite3.sqlite_version} is too old: use 3.24 or newer")
        if not _is_writable(path):
            if writes:
                raise StoreUnusable(_unwritable(path))
            return cls._open_to_read(path, busy_s)
        try:
            # The file contains cookies and secrets, which other users must not read.
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _keep_private(path)
            connection = sqlite3.connect(
                path, timeout=busy_s, isolation_level=None, cached_statements=STATEMENTS_KEPT
            )
        except sqlite3.DatabaseError as error:
            _raise(error, path)
        except OSError as error:
            said = f"{path}: there is no such folder, and none can be made: {error.strerror}"
            raise StoreUnusable(said) from error
        store = cls(connection, path)
        try:
            with store.reading():
                store._prepare(durable=durable, until_s=time.monotonic() + busy_s)
        except BaseException:
            connection.close()
            raise
        return store

    @classmethod
    def _open_to_read(cls, path: Path, busy_s: float) -> Self:
        state = _state(path)
        try:
            store = cls(_connected(path, "mode=ro", busy_s), path, writes=False)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in _FILES_LACK:
                _raise(error, path)
            if _size(path, "-wal"):
                said = "a killed process left its last commits there: reading them takes writing"
                raise StoreUnusable(f"{path}-wal: {said}; {_unwritable(path)}") from error
            try:
                store = cls(_connected(path, "immutable=1", busy_s), path, writes=False)
            except sqlite3.DatabaseError as unreadable:
                _raise(unreadable, path)
            store._frozen = state
        try:
            with store.reading():
                store._prepare_to_read()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction. The block must not await."""
        if not self.writes:
            raise StoreUnusable(_unwritable(self.path))
        db = self._db
        try:
            db.execute("BEGIN IMMEDIATE")  # takes the write lock, so that reads stay valid
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk may have ended it
                    db.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            _raise(error, self.path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Run the block's reads. Two statements can see two different states."""
        try:
            yield self._db
        except sqlite3.DatabaseError as error:
            self._check_frozen()
            _raise(error, self.path)
        self._check_frozen()

    def _check_frozen(self) -> None:
        if self._frozen is not None and self._frozen != _state(self.path):
            raise StoreBusy(f"{self.path}: it was written while it was read: repeat the command")

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.reading() as db:
            return db.execute(statement, parameters).fetchall()

    def row(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        with self.reading() as db, closing(db.execute(statement, parameters)) as cursor:
            found: tuple[Any, ...] | None = cursor.fetchone()
            return found

    def _prepare(self, *, durable: bool, until_s: float) -> None:
        db = self._db
        tables = self._count_tables()
        if not tables:
            db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        self._enable_wal(until_s)
        # A commit survives a killed process. With NORMAL, a power failure may lose the last ones.
        db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        db.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_PAGES * PAGE_BYTES}")
        # Overwrite deleted content in pages that are written anyway.
        db.execute("PRAGMA secure_delete = FAST")
        if not tables:
            self._make()
        self._check()

    def _prepare_to_read(self) -> None:
        if not self._count_tables():
            raise StoreUnusable(f"{self.path} is empty, and {_unwritable(self.path)}")
        self._check()

    def _count_tables(self) -> int:
        # In this order, because another process may be writing both now.
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID and tables:
            raise StoreUnusable(f"{self.path} is a database of another program: name another file")
        return int(tables)

    def _enable_wal(self, until_s: float) -> None:
        mode = None
        while mode is None:
            try:
                (mode,) = self._db.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() >= until_s:
                    raise
                time.sleep(OPEN_PAUSE_S)
        if mode not in ("wal", "memory"):
            said = "its file system cannot share memory: put the store on a local disk"
            raise StoreUnusable(f"{self.path}: {said}")

    def _make(self) -> None:
        with self.writing() as db:
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if tables:  # another process was faster
                return
            for statement in TABLES:
                db.execute(statement)
            db.execute("INSERT INTO facts VALUES ('id', ?)", (token_hex(6),))
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {VERSION}")

    def _check(self) -> None:
        # A store has no triggers or views.
        foreign = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"
        for kind, name in self._db.execute(foreign):
            raise StoreUnusable(
                f"{self.path} has a {kind} {one_line(name)!r} that Orbweaver did not make: another"
                f" program changed the store. Drop the {kind}, or name another store"
            )
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StoredNewer(
                f"{NEWER}: {self.path} is of version {version}, and up to {VERSION} is read here:"
                " install that version of Orbweaver or a newer one, or name another folder"
            )
        if version < VERSION:
            raise StoreUnusable(
                f"{self.path}: a checkout before 0.1.0 made it, and no release reads it:"
                " name another folder, or delete this one"
            )
        self._db.execute(f"PRAGMA cache_size = -{CACHE_KB}")
        self._db.execute("PRAGMA temp_store = MEMORY")
        (self.id,) = self._db.execute("SELECT value FROM facts WHERE name = 'id'").fetchone()


def put(db: sqlite3.Connection, table: str, *row: Any, otherwise: str = "REPLACE") -> int:
    """Write a row with a value for each column. Return the number of written rows.

    `otherwise` is what happens if its key exists: REPLACE or IGNORE.
    """
    marks = ", ".join("?" * len(row))
    statement = f"INSERT OR {otherwise} INTO {table} VALUES ({marks})"  # noqa: S608 - constants
    return db.execute(statement, row).rowcount


def _connected(path: Path, mode: str, busy_s: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{mode}"
    db = sqlite3.connect(
        uri, timeout=busy_s, isolation_level=None, cached_statements=STATEMENTS_KEPT, uri=True
    )
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the companion files
    except BaseException:
        db.close()
        raise
    return db


def _is_writable(path: Path) -> bool:
    """Whether this user can write the file, its companions and its folder, if they exist."""
    files = [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm")]
    there = [file for file in files if _has_access(file, os.F_OK)]
    return not there or all(_has_access(one, os.W_OK) for one in (path.parent, *there))


def _keep_private(path: Path) -> None:
    """Create the file if it is missing, and remove other users' permissions."""
    # SQLite gives its log and index the mode of the file.
    with suppress(OSError):  # SQLite raises its own error later
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for file in (path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm")):
        # only the owner can change the mode
        with suppress(FileNotFoundError, PermissionError):
            if (mode := file.stat().st_mode) & 0o077:
                file.chmod(mode & 0o700)


def _has_access(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _unwritable(path: Path) -> str:
    return (
        f"{path.parent} can be read, but not written: give this user the right to write the folder"
        " and the files in it, on a file system that is not read-only, or name another store"
    )


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _size(path: Path, end: str) -> int:
    beside = path.with_name(f"{path.name}{end}")
    return beside.stat().st_size if beside.exists() else 0


# SQLite's errors if the files of the log are missing and cannot be created.
_FILES_LACK = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

# Port error and remedy by primary error code.
_REMEDIES: dict[int, tuple[type[PortError], str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "another process holds it for too long: end that process, or try again",
    ),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "it is locked: try again"),
    sqlite3.SQLITE_FULL: (StoreBusy, "the disk is full: make room, then go on; nothing is lost"),
    sqlite3.SQLITE_IOERR: (StoreBusy, "the disk could not be read or written: see to it"),
    sqlite3.SQLITE_READONLY: (
        StoreUnusable,
        "it cannot be written: give this user the right to write the file and its folder",
    ),
    sqlite3.SQLITE_PERM: (StoreUnusable, "this user may not open it: give it the right to"),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnusable,
        "it cannot be opened: name a file that this user may read in a folder that it may write",
    ),
    sqlite3.SQLITE_NOTADB: (
        StoreUnusable,
        "it is no database: name another file, or move this one away",
    ),
    sqlite3.SQLITE_CORRUPT: (
        StoreUnusable,
        "it is damaged: move it away, and begin anew or take a copy of before",
    ),
}


def _raise(error: sqlite3.DatabaseError, path: Path) -> NoReturn:
    """Raise the port error for an error of SQLite. Errors in our SQL are raised unchanged."""
    kind, remedy = _REMEDIES.get(error.sqlite_errorcode & 0xFF, (None, ""))
    if kind is None:
        raise error
    raise kind(f"{path}: {remedy} ({error.sqlite_errorname})") from error
