"""Table definitions of the embedded store.

Values that queries filter or sort by have columns. Other values are JSON or blobs with versions of
their own. Tables with wide rows have a rowid, so that rows are appended and a random key touches
only an index. Sources: sqlite.org/withoutrowid.html, sqlite.org/queryplanner.html.
"""

from __future__ import annotations

# Version of the file's format. It changes if an earlier release would misread the data. Checkouts
# before 0.1.0 wrote versions 1 and 2.
VERSION = 3
# "OrbW": marks the file as an Orbweaver store.
APPLICATION_ID = 0x4F726257

TABLES = (
    # The store's id, which begins the ids of its messages.
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # `k` is a short hash of name and URL, which few claims share.
    """CREATE TABLE claims (
        n INTEGER PRIMARY KEY, k INTEGER NOT NULL, url TEXT NOT NULL, name TEXT NOT NULL,
        crawl TEXT NOT NULL, pack TEXT NOT NULL, depth INTEGER NOT NULL, at INTEGER NOT NULL,
        expires INTEGER NOT NULL, unasked INTEGER NOT NULL, was TEXT)""",
    "CREATE INDEX claims_by_key ON claims (k)",
    # `part` is the partition of a day (`YYYY-MM-DD#shard`), `k` the key within it.
    """CREATE TABLE pages (
        n INTEGER PRIMARY KEY, part TEXT NOT NULL, k TEXT NOT NULL, expires INTEGER NOT NULL,
        fields BLOB NOT NULL)""",
    "CREATE UNIQUE INDEX pages_by_key ON pages (part, k)",
    """CREATE TABLE journals (
        n INTEGER PRIMARY KEY, pack TEXT NOT NULL UNIQUE, v INTEGER NOT NULL, blob BLOB NOT NULL,
        expires INTEGER NOT NULL)""",
    """CREATE TABLE ledgers (
        pack TEXT PRIMARY KEY, v INTEGER NOT NULL, children BLOB, surplus INTEGER NOT NULL,
        sent INTEGER NOT NULL, leases INTEGER NOT NULL, expires INTEGER NOT NULL)
        WITHOUT ROWID""",
    """CREATE TABLE strikes (
        pack TEXT PRIMARY KEY, strikes INTEGER NOT NULL, expires INTEGER NOT NULL)
        WITHOUT ROWID""",
    """CREATE TABLE parked (
        crawl TEXT NOT NULL, pack TEXT NOT NULL, body BLOB NOT NULL, expires INTEGER NOT NULL,
        PRIMARY KEY (crawl, pack))""",
    """CREATE TABLE backlog (
        crawl TEXT NOT NULL, host TEXT NOT NULL, place TEXT NOT NULL, body BLOB NOT NULL,
        due INTEGER NOT NULL, expires INTEGER NOT NULL,
        PRIMARY KEY (crawl, host, place))""",
    # The leased pack of each host (`out`), and its holder (`name`). `edits` counts changes.
    """CREATE TABLE lines (
        crawl TEXT NOT NULL, host TEXT NOT NULL, out TEXT NOT NULL, name TEXT NOT NULL,
        edits INTEGER NOT NULL, expires INTEGER NOT NULL, PRIMARY KEY (crawl, host))
        WITHOUT ROWID""",
    # Last time that a waiting pack was sent, if several packs of a host can be sent.
    """CREATE TABLE sendings (
        crawl TEXT NOT NULL, host TEXT NOT NULL, place TEXT NOT NULL, at INTEGER NOT NULL,
        expires INTEGER NOT NULL, PRIMARY KEY (crawl, host, place)) WITHOUT ROWID""",
    # Counts of a crawl's URLs by kind (a group of similar URLs).
    """CREATE TABLE kinds (
        crawl TEXT NOT NULL, k TEXT NOT NULL, n INTEGER NOT NULL, expires INTEGER,
        PRIMARY KEY (crawl, k)) WITHOUT ROWID""",
    """CREATE TABLE crawls (
        id TEXT PRIMARY KEY, state TEXT NOT NULL, edits INTEGER NOT NULL,
        started_at_ms INTEGER NOT NULL, forgotten INTEGER NOT NULL, expires INTEGER,
        fields TEXT NOT NULL)""",
    """CREATE TABLE shards (
        crawl TEXT NOT NULL, number INTEGER NOT NULL, commits INTEGER NOT NULL,
        closed INTEGER NOT NULL, counts TEXT NOT NULL, expires INTEGER,
        PRIMARY KEY (crawl, number))""",
    """CREATE TABLE samples (
        crawl TEXT NOT NULL, reason TEXT NOT NULL, urls TEXT NOT NULL, expires INTEGER,
        PRIMARY KEY (crawl, reason))""",
    """CREATE TABLE budgets (
        crawl TEXT NOT NULL, part TEXT NOT NULL, used INTEGER NOT NULL, reserved INTEGER NOT NULL,
        taken_at_ms INTEGER NOT NULL, expires INTEGER, PRIMARY KEY (crawl, part)) WITHOUT ROWID""",
    """CREATE TABLE host_pages (
        crawl TEXT NOT NULL, host TEXT NOT NULL, pages INTEGER NOT NULL, expires INTEGER,
        PRIMARY KEY (crawl, host)) WITHOUT ROWID""",
    """CREATE TABLE counted (
        pack TEXT NOT NULL, host TEXT NOT NULL, urls TEXT NOT NULL, expires INTEGER NOT NULL,
        PRIMARY KEY (pack, host))""",
    """CREATE TABLE hosts (
        host TEXT PRIMARY KEY, tat INTEGER NOT NULL, line INTEGER NOT NULL,
        blocked_until INTEGER NOT NULL, strikes INTEGER NOT NULL, struck_at INTEGER NOT NULL,
        failures INTEGER NOT NULL, failed_at INTEGER NOT NULL, expires INTEGER NOT NULL)
        WITHOUT ROWID""",
    """CREATE TABLE robots (
        host TEXT PRIMARY KEY, fetched_at INTEGER NOT NULL, body BLOB, verdict TEXT NOT NULL,
        detail TEXT, reason TEXT, expires INTEGER NOT NULL)""",
    """CREATE TABLE cookies (
        crawl TEXT NOT NULL, site TEXT NOT NULL, jar TEXT NOT NULL, expires INTEGER NOT NULL,
        PRIMARY KEY (crawl, site))""",
    # `due` is when a message can be taken, and `takes` counts its takes. `holder` is the process
    # that took it last, or that sent it and already works on it. `deaths` counts dead holders.
    """CREATE TABLE messages (
        n INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, grp TEXT NOT NULL,
        due INTEGER NOT NULL, body TEXT NOT NULL, sent_at INTEGER NOT NULL,
        takes INTEGER NOT NULL, first_taken_at INTEGER, reason TEXT, source TEXT,
        since_ms INTEGER, holder TEXT, deaths INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX messages_due ON messages (queue, grp, due)",
    "CREATE INDEX messages_taken ON messages (queue) WHERE takes > 0",
    """CREATE TABLE schedules (
        name TEXT PRIMARY KEY, expression TEXT NOT NULL, timezone TEXT, first_ms INTEGER,
        told TEXT NOT NULL, fired_ms INTEGER, paused INTEGER NOT NULL DEFAULT 0)""",
    """CREATE TABLE metrics (
        service TEXT NOT NULL, metric TEXT NOT NULL, number INTEGER NOT NULL, total REAL NOT NULL,
        PRIMARY KEY (service, metric)) WITHOUT ROWID""",
)
