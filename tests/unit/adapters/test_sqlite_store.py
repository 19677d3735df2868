"""The file of the embedded store: opening, errors, concurrent processes, kills and torn logs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orbweaver.adapters.sqlite import schema
from orbweaver.adapters.sqlite.store import SqliteStore, StoreBusy, StoreUnusable
from orbweaver.model.errors import StoredNewer
from tests.unprivileged import unwritable, writable

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore.open(path)
    yield opened
    opened.close()


def note(store: SqliteStore, *names: str) -> None:
    with store.writing() as db:
        db.executemany("INSERT INTO facts VALUES (?, '')", [(name,) for name in names])


def noted(store: SqliteStore) -> set[str]:
    return {name for (name,) in store.rows("SELECT name FROM facts WHERE name != 'id'")}


def child(program: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


# --- opening ----------------------------------------------------------------------------------


def test_store_is_created_once_and_reopened(path: Path) -> None:
    store = SqliteStore.open(path)
    note(store, "a")
    store.close()
    again = SqliteStore.open(path)
    assert (again.id, noted(again)) == (store.id, {"a"})
    assert again.rows("PRAGMA journal_mode") == [("wal",)]
    assert again.rows("PRAGMA synchronous") == [(1,)]
    assert path.parent.stat().st_mode & 0o777 == 0o700
    again.close()


def test_durable_store_syncs_every_commit(path: Path) -> None:
    store = SqliteStore.open(path, durable=True)
    assert store.rows("PRAGMA synchronous") == [(2,)]
    store.close()


def test_newer_schema_is_refused(path: Path, store: SqliteStore) -> None:
    with store.writing() as db:
        db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(StoredNewer, match=f"version {schema.VERSION + 1}, and up to.*install"):
        SqliteStore.open(path)
    assert store.rows("PRAGMA user_version") == [(schema.VERSION + 1,)]


def test_store_of_checkout_before_first_release_is_refused(path: Path) -> None:
    with SqliteStore.open(path).writing() as db:
        db.execute("PRAGMA user_version = 1")
    with pytest.raises(StoreUnusable, match=r"before 0\.1\.0.*name another folder, or delete"):
        SqliteStore.open(path)


def test_other_file_is_refused_as_store(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database\n" * 1_000)
    with pytest.raises(StoreUnusable, match=r"text\.db: it is no database: name another file"):
        SqliteStore.open(text)
    assert text.read_text().startswith("no database\n")
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE claims (a)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreUnusable, match="database of another program"):
        SqliteStore.open(other)
    with pytest.raises(StoreUnusable, match="cannot be opened"):
        SqliteStore.open(tmp_path)
    with pytest.raises(StoreUnusable, match="there is no such folder, and none can be made"):
        SqliteStore.open(text / "store.db")


def test_damaged_store_is_reported(path: Path) -> None:
    store = SqliteStore.open(path)
    note(store, *(f"{number}" + "x" * 500 for number in range(200)))
    store.close()
    body = bytearray(path.read_bytes())
    body[8192:] = b"\xff" * (len(body) - 8192)
    path.write_bytes(body)
    with pytest.raises(StoreUnusable, match="it is damaged: move it away"):
        SqliteStore.open(path).rows("SELECT * FROM facts")


# --- writing ----------------------------------------------------------------------------------


def test_transaction_is_atomic(store: SqliteStore) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        note(store, "a", "b", "a")
    assert noted(store) == set()
    note(store, "a")
    assert noted(store) == {"a"}


def test_lock_held_too_long_is_reported(path: Path, store: SqliteStore) -> None:
    other = SqliteStore.open(path, busy_s=0.01)
    with store.writing() as db:
        db.execute("INSERT INTO facts VALUES ('a', '')")
        with pytest.raises(StoreBusy, match="another process holds it for too long"):
            note(other, "b")
        assert noted(other) == set()
    note(other, "b")
    assert noted(store) == {"a", "b"}
    other.close()


def test_full_disk_is_reported_and_store_continues(store: SqliteStore) -> None:
    note(store, "a")
    ((pages,),) = store.rows("PRAGMA page_count")
    store.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreBusy, match="the disk is full: make room"):
        note(store, *(f"{number}" + "x" * 500 for number in range(500)))
    assert noted(store) == {"a"}
    store.rows("PRAGMA max_page_count = 100000")
    note(store, "b")
    assert noted(store) == {"a", "b"}


def test_store_without_write_permission_is_reported(store: SqliteStore) -> None:
    store.rows("PRAGMA query_only = 1")
    with pytest.raises(StoreUnusable, match="give this user the right to write"):
        note(store, "a")


def share(path: Path) -> None:
    """Let other users read a store; its owner must do so for each file."""
    for file in path.parent.glob(f"{path.name}*"):
        file.chmod(0o644)


@pytest.fixture
def shared_path(open_folder: Path) -> Path:
    path = open_folder / "store.db"
    store = SqliteStore.open(path)
    note(store, "a")
    store.close()
    share(path)
    return path


def test_read_only_store_is_read(shared_path: Path) -> None:
    with unwritable(shared_path.parent):
        with closing(SqliteStore.open(shared_path, writes=False)) as store:
            assert noted(store) == {"a"}
            for refused in (lambda: note(store, "b"), lambda: SqliteStore.open(shared_path)):
                with pytest.raises(StoreUnusable, match="can be read, but not written: give"):
                    refused()
        assert [file.name for file in shared_path.parent.iterdir()] == [shared_path.name]


def test_reader_sees_commits_of_other_user(shared_path: Path) -> None:
    with unwritable(shared_path.parent):
        with writable(shared_path.parent):
            writer = SqliteStore.open(shared_path)
            note(writer, "b")
            share(shared_path)
        with closing(SqliteStore.open(shared_path, writes=False)) as reader:
            assert noted(reader) == {"a", "b"}
            with writable(shared_path.parent):
                note(writer, "c")
            assert noted(reader) == {"a", "b", "c"}
        with writable(shared_path.parent):
            writer.close()


def test_file_changed_during_read_only_access_is_reported(shared_path: Path) -> None:
    with (
        unwritable(shared_path.parent),
        closing(SqliteStore.open(shared_path, writes=False)) as reader,
    ):
        with writable(shared_path.parent), closing(SqliteStore.open(shared_path)) as writer:
            note(writer, "b")
            share(shared_path)
            assert noted(reader) == {"a"}  # a separate log does not change the file
        with pytest.raises(StoreBusy, match="written while it was read: repeat"):
            noted(reader)


def test_unread_log_of_killed_process_is_reported(shared_path: Path) -> None:
    with unwritable(shared_path.parent):
        copy = shared_path.parent / "copy" / shared_path.name
        with writable(shared_path.parent), closing(SqliteStore.open(shared_path)) as writer:
            note(writer, "b")
            copy.parent.mkdir()
            for end in ("", "-wal"):
                shutil.copy(f"{shared_path}{end}", f"{copy}{end}")
            share(copy)
            copy.parent.chmod(0o555)
        with pytest.raises(StoreUnusable, match="a killed process left its last commits there"):
            SqliteStore.open(copy, writes=False)


def test_other_read_only_file_is_refused(open_folder: Path) -> None:
    path = open_folder / "store.db"
    for text, words in (("", "is empty"), ("SQLite", "no database")):
        path.write_text(text)
        with unwritable(open_folder), pytest.raises(StoreUnusable, match=words):
            SqliteStore.open(path, writes=False)


def test_deleted_row_is_overwritten(path: Path, store: SqliteStore) -> None:
    note(store, "kept", "erased-" + "x" * 40)
    with store.writing() as db:
        db.execute("DELETE FROM facts WHERE name LIKE 'erased-%'")
    store.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"kept" in path.read_bytes()
    assert b"erased-" not in path.read_bytes()


# --- processes --------------------------------------------------------------------------------

CLAIMING = """
import asyncio, json, sys
from orbweaver.adapters.sqlite.claims import SqliteFrontier
from orbweaver.adapters.sqlite.store import SqliteStore
from orbweaver.frontier.claims import Claimer
from orbweaver.model.target import Target
from pathlib import Path

async def main(path, pack):
    frontier = SqliteFrontier(SqliteStore.open(Path(path)))
    asks = Claimer(
        name="shop", crawl="shop-1", pack=pack, at_ms=1_000_000, stale_before_ms=0, expires_s=2_000
    )
    won = set()
    print("ready", flush=True)
    sys.stdin.readline()
    for start in range(0, 1_000, 20):
        targets = [
            Target(url=f"https://example.com/{place}", depth=1)
            for place in range(start, start + 20)
        ]
        won |= await frontier.claim(asks, targets)
    print(json.dumps(sorted(won)), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_two_processes_claim_each_url_once(path: Path) -> None:
    claimers = [child(CLAIMING, path, pack) for pack in ("a", "b")]
    for one in claimers:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in claimers:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    won = [json.loads(one.communicate()[0]) for one in claimers]
    assert sorted(url for urls in won for url in urls) == sorted(
        f"https://example.com/{number}" for number in range(1_000)
    )


WRITING = """
import sys
from itertools import count
from orbweaver.adapters.sqlite.store import SqliteStore
from pathlib import Path

store = SqliteStore.open(Path(sys.argv[1]))
for number in count(int(sys.argv[2])):
    with store.writing() as db:
        for part in "abc":
            db.execute("INSERT INTO facts VALUES (?, ?)", (f"{number}{part}", "x" * 300))
    print(number, flush=True)
"""


def test_killed_process_loses_no_commit(path: Path) -> None:
    begin = 0
    for commits in (1, 40, 200):
        writer = child(WRITING, path, begin)
        assert writer.stdout is not None
        for _ in range(commits):
            told = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        # Output written before the kill counts as well.
        told = max([told, *map(int, writer.stdout.read().split())])
        writer.communicate()
        store = SqliteStore.open(path)
        found = noted(store)
        assert store.rows("PRAGMA integrity_check") == [("ok",)]
        store.close()
        last = max(int(name[:-1]) for name in found)
        assert told <= last <= told + 1
        assert found == {f"{number}{part}" for number in range(last + 1) for part in "abc"}
        begin = last + 1


def test_truncated_log_contains_whole_commits(path: Path, tmp_path: Path) -> None:
    """After a power failure the end of the write-ahead log may be missing or torn."""
    store = SqliteStore.open(path)
    for number in range(30):
        note(store, *(f"{number}{part}" for part in "abc"))
    log = path.with_name("store.db-wal")
    body, size = path.read_bytes(), log.stat().st_size
    logged = log.read_bytes()
    store.close()
    seen = set()
    for cut in [0, 1, 31, 32, 33, *range(1_000, size, size // 40), size - 1, size]:
        for torn in (b"", b"\x00" * 5_000, b"\xff" * 5_000):
            copy = tmp_path / "copy" / "store.db"
            shutil.rmtree(copy.parent, ignore_errors=True)
            copy.parent.mkdir()
            copy.write_bytes(body)
            copy.with_name("store.db-wal").write_bytes(logged[:cut] + torn)
            again = SqliteStore.open(copy)
            found = noted(again)
            commits = len(found) // 3
            assert found == {f"{number}{part}" for number in range(commits) for part in "abc"}
            note(again, "after")
            assert noted(again) == found | {"after"}
            again.close()
            seen.add(commits)
    assert {0, 30} <= seen
    assert len(seen) > 10


# --- imports ----------------------------------------------------------------------------------

IMPORTING = """
import asyncio, json, sys
from pathlib import Path
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.wiring import control_of, explainer_of, notifying, starting, stores_of, worker_of
from orbweaver.app.wiring import delivering
from orbweaver.app.wiring_exporting import alone_of, exporter_of
from orbweaver.model.settings import Settings

async def main():
    ports = StorePorts(Settings.of(copy_bucket="other"), Path(sys.argv[1]))
    worker_of(ports)
    explainer_of(ports, control_of(ports))
    stores_of(ports)
    exporter_of(ports)
    alone_of(ports, Path(sys.argv[1]), ("jsonl",))
    with delivering(ports), starting(ports):
        async with notifying(ports):
            pass
    ports.ending.close()

asyncio.run(main())
print(json.dumps(sorted(sys.modules)))
"""


def test_actors_over_store_import_no_aws_library(tmp_path: Path) -> None:
    importing: Any = child(IMPORTING, tmp_path)
    modules = {name.partition(".")[0] for name in json.loads(importing.communicate()[0])}
    assert "orbweaver" in modules
    foreign = {"boto3", "botocore", "aioboto3", "aiobotocore", "aws_lambda_powertools"}
    assert not modules & foreign


@pytest.mark.parametrize("existing", [False, True])
def test_store_files_in_a_shared_folder_are_private(path: Path, *, existing: bool) -> None:
    path.parent.mkdir(mode=0o755)
    umask = os.umask(0)
    try:
        if existing:
            SqliteStore.open(path).close()
            path.chmod(0o644)
        store = SqliteStore.open(path)
        note(store, "one")
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        store.close()
    finally:
        os.umask(umask)
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("trigger", "CREATE TRIGGER x AFTER INSERT ON facts BEGIN DELETE FROM claims; END"),
        ("view", "CREATE VIEW x AS SELECT * FROM facts"),
    ],
)
def test_store_with_a_foreign_schema_object_is_refused(
    path: Path, kind: str, statement: str
) -> None:
    SqliteStore.open(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
    with pytest.raises(StoreUnusable, match=f"has a {kind} 'x' that Orbweaver did not make"):
        SqliteStore.open(path)
