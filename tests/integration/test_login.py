"""Crawls behind a login by the command line: real processes, a site whose sessions end."""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orbweaver.model.settings import STORE
from tests.sites.members import PASSWORD, USER, Members
from tests.sites.server import background

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.thorough

FUNCTIONS = Path(__file__).parents[2] / "functions"
COMMAND = "import sys; from orbweaver.cli.main import main; sys.exit(main())"
DEFINITION = """
seeds = ["{url}/p/0"]
[limits]
pages = 200
[politeness]
delay = "0s"
concurrency = 4
[records]
text = true
links = true
[auth."{url}".login]
url = "/login"
form = "#login"
fields = {{ user = "{user}", pass = "{secret}" }}
check = {{ text = "For members" }}
"""
REFERENCE = "env:SITE_PASSWORD"
# Parts of secrets, which nothing outside of the table of cookies may contain.
SECRETS = (PASSWORD, "sid-of-member", "token-of-form")


@pytest.fixture
def site() -> Iterator[Members]:
    served = Members()
    with background(served, 0):
        yield served


def ran(folder: Path, *words: str, password: str = PASSWORD) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment = given | {"PYTHONPATH": str(FUNCTIONS), "SITE_PASSWORD": password}
    command = [sys.executable, "-c", COMMAND, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def write(folder: Path, site: Members, secret: str = REFERENCE) -> None:
    made = DEFINITION.format(url=site.url, user=USER, secret=secret)
    (folder / "crawl.toml").write_text(made)


def everything_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each written file as it is, unpacked, and each table except the table of cookies."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.startswith("store.db"):
            continue
        body = path.read_bytes()
        yield path.name, body
        if path.suffix == ".gz":
            yield path.name, gzip.decompress(body)
    database = sqlite3.connect(folder / STORE / "store.db")
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        if table != "cookies":
            rows = database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - own table
            yield table, repr(rows).encode()
    rows = database.execute("SELECT jar FROM cookies WHERE site LIKE '%://%'").fetchall()
    yield "states of logins", repr(rows).encode()
    database.close()


def test_crawl_with_ending_sessions_is_complete_and_keeps_secrets(
    site: Members, tmp_path: Path
) -> None:
    write(tmp_path, site)
    formats = ("--format", "jsonl,csv,parquet,warc")
    done = ran(tmp_path, "crawl", "--config", "crawl.toml", "--workers", "2", "--json", *formats)
    assert done.returncode == 0, done.stderr
    assert site.served >= set(range(site.pages))
    assert (site.refused, site.logouts) == (0, 0)
    assert site.logins >= site.pages // site.lasts
    explained = ran(tmp_path, "explain", f"{site.url}/p/7", "--json")
    status = ran(tmp_path, "status", "--json")
    said = done.stdout + done.stderr + explained.stdout + status.stdout
    shown = [("output", said.encode()), *everything_in(tmp_path)]
    names = {name for name, _ in shown}
    assert {"pages", "crawls", "states of logins"} <= names
    assert any(name.endswith(".warc.gz") for name in names)
    found = {(name, one) for name, body in shown for one in SECRETS if one.encode() in body}
    assert found == set()
    archived = b"".join(body for name, body in shown if name.endswith(".warc.gz"))
    assert b"Members' page 7<" in archived
    assert b'id="login"' not in archived
    exported = b"".join(body for name, body in shown if name.endswith(".jsonl.gz"))
    assert exported.count(b'"reason":"ok"') >= site.pages


@pytest.mark.parametrize(
    ("password", "secret", "code", "said"),
    [
        (PASSWORD, REFERENCE, 0, "check passed"),
        ("wrong", REFERENCE, 1, "failed: the check failed"),
        (PASSWORD, "env:MISSING", 1, "failed: there is no secret 'env:MISSING': set the variable"),
        (PASSWORD, "file:missing", 1, "failed: there is no secret 'file:"),
        (PASSWORD, PASSWORD, 2, "give a reference to the secret"),
    ],
)
def test_check_reports_each_step_of_login(
    site: Members, tmp_path: Path, password: str, secret: str, code: int, said: str
) -> None:
    write(tmp_path, site, secret)
    done = ran(tmp_path, "check", "--login", password=password)
    assert done.returncode == code, done.stderr
    output = done.stdout + done.stderr
    assert said in output
    assert not [one for one in SECRETS if one in output]
    if code == 0:
        steps = [line.strip().partition(":")[0] for line in done.stdout.splitlines()]
        assert steps == [
            "http",
            "secrets read",
            "page fetched",
            "form found",
            "hidden fields",
            "redirected",
            "form sent",
            "cookies",
            "check passed",
            "logged in",
        ]
    assert not (tmp_path / STORE).exists()


@pytest.mark.parametrize(
    ("session", "code", "said"),
    [
        ("valid", 0, "logged in"),
        ("dead", 1, "/p/0 redirects to {url}/login: the cookies do not log in"),
    ],
)
def test_check_of_imported_cookies_notices_ended_session(
    site: Members, tmp_path: Path, session: str, code: int, said: str
) -> None:
    site.sessions["valid"] = 1
    row = f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{session}"
    (tmp_path / "cookies.txt").write_text(f"# Netscape HTTP Cookie File\n{row}\n")
    lines = (f'seeds = ["{site.url}/p/0"]', f'[auth."{site.url}"]', 'cookies = "file:cookies.txt"')
    (tmp_path / "crawl.toml").write_text("\n".join(lines))
    done = ran(tmp_path, "check", "--login")
    assert (done.returncode, said.format(url=site.url) in done.stdout) == (code, True), done.stdout
