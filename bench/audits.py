"""Time and memory of `orbweaver audit` on generated tables.

    python -m bench.audits --folder DIR [--pages 200000] [OPTION OF AUDIT …]

43 links of a page lead to pages, the others to images and scripts. A sitemap lists all pages. One
page in a hundred does not exist, one image in five has no alt text. A folder is written once.
"""

import argparse
import hashlib
import resource
import subprocess
import sys
import time
from pathlib import Path

import duckdb

from orbweaver.exporting.manifest import File, Manifest, Sums, encode_manifest, path_of
from orbweaver.model.columns import Column, Type

CRAWL, DAY = "shop-20261121-120000", "2026-11-21"
FIRST = "'shop-20261121-120000' AS crawl, TIMESTAMP '2026-11-21 12:00:00' AS fetched_at"
SQL = {
    "pages": """SELECT {first}, page_url(n) AS url, least(n, 3) AS depth, 80 AS latency_ms,
        if(gone, 'failed', 'fetched') AS outcome, if(gone, 'http_client_error', 'ok') AS reason,
        if(gone, 404, 200) AS status, 20000 AS bytes, if(gone, NULL, 'utf-8') AS charset,
        if(gone, NULL, 'Product ' || n // 2) AS title, 'en' AS "language",
        if(gone, NULL, 'The description of product ' || n) AS description,
        if(gone, NULL, page_url(n)) AS canonical, sha256(n::VARCHAR) AS sha256
        FROM (SELECT range AS n, range % 100 = 7 AS gone FROM range({pages}))
        UNION ALL BY NAME SELECT {first}, 'https://shop.example/sitemap.xml' AS url,
        'fetched' AS outcome, 'sitemap' AS reason, 200 AS status, 0 AS depth""",
    "links": """SELECT {first}, page_url(p) AS url, i AS position, NULL::VARCHAR AS rel,
        if(i < 43, page_url(t), 'https://cdn.example/' || md5((p * i)::VARCHAR)) AS target_url,
        CASE WHEN i < 43 THEN 'a' WHEN i < 48 THEN 'img' ELSE 'script' END AS kind,
        if(i < 47, 'The text of link ' || t, NULL) AS text, NULL::VARCHAR AS lang,
        if(i < 43, 'followed', 'not_followed') AS decision, NULL::VARCHAR AS spelling
        FROM (SELECT p.range AS p, i.range AS i, {pages} AS m,
              if(i.range < 20, i.range * 97 + 1, p.range + i.range * i.range) % m AS t
              FROM range({pages}) p, range(50) i)
        UNION ALL BY NAME SELECT {first}, 'https://shop.example/sitemap.xml' AS url,
        page_url(range) AS target_url, 'sitemap' AS kind, 'followed' AS decision,
        range AS position FROM range({pages})""",
}
TYPES = {"BIGINT": "integer", "INTEGER": "integer", "TIMESTAMP": "moment", "VARCHAR": "string"}


def write(folder: Path, pages: int) -> None:
    files, columns, connection = [], {}, duckdb.connect()
    connection.execute("CREATE MACRO page_url(n) AS 'https://shop.example/' || md5(n::VARCHAR)")
    for table, sql in SQL.items():
        path = path_of(table, "parquet", DAY, CRAWL, 0, 0, ".parquet")
        (folder / path).parent.mkdir(parents=True)
        query = sql.format(pages=pages, first=FIRST)
        described = [one[:2] for one in connection.execute(f"DESCRIBE {query}").fetchall()]
        connection.execute(f"COPY ({query}) TO '{folder / path}' (FORMAT parquet, CODEC zstd)")
        body = (folder / path).read_bytes()
        named = {"path": path, "table": table, "format": "parquet", "crawl": CRAWL}
        named["sha256"] = hashlib.sha256(body).hexdigest()
        files.append(File(**named, rows=pages, bytes=len(body)))
        columns[table] = tuple(
            Column(name=name, type=Type(TYPES[kind])) for name, kind in described
        )
    crawls = {CRAWL: Sums(name="shop")}
    manifest = Manifest(day=DAY, crawls=crawls, files=tuple(files), columns=columns)
    (folder / manifest.path).parent.mkdir(parents=True)
    (folder / manifest.path).write_bytes(encode_manifest(manifest))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=200_000)
    given, rest = parser.parse_known_args()
    if not given.folder.exists():
        write(given.folder, given.pages)
    began_s = time.monotonic()
    words = [sys.executable, "-m", "orbweaver.cli.main", "audit", "--from", str(given.folder)]
    subprocess.run([*words, *rest], check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{time.monotonic() - began_s:.1f} s, {peak / 1024:.0f} MB")
