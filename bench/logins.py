"""Crawl real applications behind their login: `python -m bench.logins [APPLICATION…]`.

    apt-get install mediawiki php-cli php-sqlite3 redmine-sqlite
    apt-get install wordpress wordpress-theme-twentytwentythree php-mysql mariadb-server

Django and its OpenID packages come from PyPI. All sessions are deleted from the application's
database several times during the crawl. The result compares the stored pages with the database, and
searches all written files for the password.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from bench import login_sites as sites
from bench.measure import free_port
from bench.serving import ADDRESS, CALLER, Place, installed, orbweaver, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds between two deletions of all sessions, and the maximum number of deletions.
ENDS_S, ENDS = 5.0, 10
# Matches a request in the log of a server that would end the session.
LOGOUT = re.compile(rb'(?i)GET "?/\S*log-?out')
PHP = ("php", "-d", "error_reporting=E_ALL&~E_DEPRECATED", "-d", "memory_limit=512M")
MARIADB = ("mariadb", "--socket=socket", "--skip-column-names", "--batch", "blog")
DJANGO = ("django==5.2.19", "django-oauth-toolkit==3.4.1", "mozilla-django-oidc==5.0.2")
DEFINITION = """
seeds = ["{origin}{seed}"]
[limits]
pages = 5000
[politeness]
delay = "0s"
concurrency = 2
robots = false
nofollow = false
[records]
links = true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application whose content needs a login.

    `start` makes the content and starts the servers. `pages` is the SQL that selects the paths of
    all pages, `sessions` deletes all sessions. `database` is a file of SQLite with the pages, or ""
    for MariaDB. Sessions are in the files `kept`, of which each second deletion changes only the
    first. `form` is text of the login page.
    """

    start: Callable[[Place, int, int], None]
    definition: str
    pages: str
    sessions: str
    form: bytes
    seed: str = "/"
    database: str = ""
    kept: tuple[str, ...] = ()

    def query(self, place: Place, sql: str, database: str) -> list[str]:
        """Return the first column of the rows, or else the number of changed rows."""
        if not database:
            return place.run([*MARIADB, "--execute", f"{sql}; SELECT ROW_COUNT()"]).splitlines()
        path = place.path(database)
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as opened, opened:
            opened.text_factory = lambda text: text.decode()
            done = opened.execute(sql)
            return [row[0] for row in done] or [str(done.rowcount)]

    def end_sessions(self, place: Place, number: int) -> bool:
        """Delete all sessions. Return False if there were none."""
        kept = self.kept or (self.database,)
        kept = kept[: 1 if number % 2 else None]
        return sum(int(self.query(place, self.sessions, one)[-1]) for one in kept) > 0


def main() -> int:
    """Crawl the named applications. Return 1 if a page is missing or a login page is stored."""
    wrong = False
    for name in sys.argv[1:] or APPLICATIONS:
        with (
            tempfile.TemporaryDirectory(prefix="logins-") as home,
            contextlib.ExitStack() as servers,
        ):
            place = Place(name=name, home=Path(home), user=CALLER, open=servers)
            place.folder.mkdir(parents=True)
            found = _crawled(APPLICATIONS[name], place)
        print(json.dumps({name: found}, indent=1), flush=True)
        wrong |= bool(found["missing"] or found["login_pages"] or found["files_with_password"])
    return int(wrong)


# --- applications -------------------------------------------------------------------------------


def _django(place: Place, port: int, other: int, role: str = "admin") -> None:
    place.write("bench_site.py", sites.DJANGO)
    python = installed(DJANGO, "logins")
    words: tuple[str | Path, ...] = (python, "bench_site.py", role, str(port), str(other))
    place.run([*words, "prepare"])
    place.start([*words, "serve"], port=port)


def _openid(place: Place, port: int, other: int) -> None:
    _django(place, other, port, "provider")
    _django(place, port, other, "member")


def _mediawiki(place: Place, port: int, _: int) -> None:
    code = Path("/usr/share/mediawiki")
    place.path("data").mkdir()
    settings = place.path("LocalSettings.php")
    environment = {"MW_CONFIG_FILE": str(place.path("absent.php"))}
    words: list[str | Path] = [
        *PHP, code / "maintenance/install.php", "--dbtype=sqlite", "--dbname=wiki",
        f"--dbpath={place.path('data')}", f"--confpath={place.folder}", "--scriptpath=",
        f"--server=http://{ADDRESS}:{port}", f"--pass={sites.PASSWORD}", "The wiki", "Crawler",
    ]  # fmt: skip
    place.run(words, environment=environment)
    with settings.open("a") as opened:
        opened.write(sites.MEDIAWIKI)
    environment = {"MW_CONFIG_FILE": str(settings)}
    dump = place.write("pages.xml", sites.wiki_dump())
    place.run([*PHP, code / "maintenance/importDump.php", dump], environment=environment)
    _serve_php(place, port, code, environment)


def _wordpress(place: Place, port: int, other: int) -> None:
    data, root = place.path("data"), ["--no-defaults", "--user=root"]
    place.run(["mariadb-install-db", *root, f"--datadir={data}"])
    listening = [f"--port={other}", f"--bind-address={ADDRESS}", f"--socket={place.path('socket')}"]
    place.start(["mariadbd", *root, f"--datadir={data}", *listening], port=other)
    place.run([*MARIADB[:-1], "--execute", "CREATE DATABASE blog"])
    shutil.copytree("/usr/share/wordpress", place.path("blog"), ignore_dangling_symlinks=True)
    place.write(
        "blog/wp-config.php", sites.WORDPRESS_SETTINGS.replace("{folder}", str(place.folder))
    )
    place.run([*PHP, place.write("blog/fill.php", sites.WORDPRESS), f"{ADDRESS}:{port}"])
    _serve_php(place, port, place.path("blog"), {})


def _serve_php(place: Place, port: int, code: Path, environment: dict[str, str]) -> None:
    environment = {**environment, "PHP_CLI_SERVER_WORKERS": "2"}
    place.start([*PHP, "-S", f"{ADDRESS}:{port}", "-t", code], port=port, environment=environment)


def _redmine(place: Place, port: int, _: int) -> None:
    without = shutil.ignore_patterns("instances")
    code = place.path("code")
    shutil.copytree("/usr/share/redmine", code, symlinks=True, ignore=without)
    instance = "code/instances/default"
    place.write(f"{instance}/config/secret_key.txt", "0123456789abcdef" * 8)
    place.write(f"{instance}/log/empty", "")
    database = place.path("redmine.sqlite")
    text = f'production:\n  adapter: sqlite3\n  database: "{database}"\n  timeout: 20000\n'
    place.write(f"{instance}/config/database.yml", text)
    fill = place.write("fill.rb", sites.REDMINE)
    more: dict[str, Any] = {"environment": {"RAILS_ENV": "production"}, "cwd": code}
    place.run(["bin/rake", "db:migrate"], **more)
    place.run(["bin/rails", "runner", fill], **more)
    # Bundler hides the servers that Redmine does not require, so the server loads Redmine.
    words = ["puma", "--environment=production", f"--bind=tcp://{ADDRESS}:{port}"]
    place.start(words, port=port, **more)


APPLICATIONS = {
    "django": Application(
        start=_django,
        definition="""
[scope]
exclude = ["/delete/", "/admin/auth/user/", "/admin/(?:jsi18n|r)/", "[?&]_", "[?&](?:o|all)="]
[dedup]
strip_parameters = ["_changelist_filters"]
[auth."{origin}".login]
url = "/admin/login/"
form = "#login-form"
fields = { username = "crawler", password = "env:BENCH_PASSWORD" }
check = { selector = "#user-tools" }
""",
        pages="SELECT '/admin/auth/group/' || id || '/' || view || '/' FROM auth_group,"
        " (SELECT 'change' AS view UNION SELECT 'history')",
        sessions="DELETE FROM django_session",
        form=b'id="login-form"',
        seed="/admin/",
        database="admin.sqlite3",
    ),
    "openid": Application(
        start=_openid,
        definition="""
[auth."{origin}".login]
url = "/oidc/authenticate/"
origins = ["{other}"]
fields = { username = "crawler", password = "env:BENCH_PASSWORD" }
check = { selector = "#member", url = "/" }
""",
        pages="SELECT '/doc/' || id || '/' FROM auth_group",
        sessions="DELETE FROM django_session",
        form=b'id="login-form"',
        database="member.sqlite3",
        kept=("member.sqlite3", "provider.sqlite3"),
    ),
    "mediawiki": Application(
        start=_mediawiki,
        definition="""
[scope]
exclude = ["action=", "oldid=", "diff=", "Special(:|%3A)", "printable=", "veaction="]
[auth."{origin}".login]
url = "/index.php?title=Special:UserLogin"
form = 'form[name="userlogin"]'
fields = { wpName = "Crawler", wpPassword = "env:BENCH_PASSWORD" }
check = { selector = "#pt-logout", url = "/index.php?title=Article_0" }
lost = { without = "#pt-logout" }
""",
        pages="SELECT '/index.php?title=' || page_title FROM page"
        " WHERE page_namespace = 0 AND page_title LIKE 'Article%'",
        sessions="DELETE FROM objectcache WHERE keyname LIKE '%MWSession%'",
        form=b"<title>Login required",
        seed="/index.php?title=Article_0",
        database="data/wiki.sqlite",
        kept=("data/wikicache.sqlite",),
    ),
    "wordpress": Application(
        start=_wordpress,
        definition="""
[scope]
exclude = ["/wp-", "/xmlrpc.php", "/feed/", "[?&](?:replytocom|rest_route|p)="]
[auth."{origin}".login]
url = "/wp-login.php"
fields = { log = "crawler", pwd = "env:BENCH_PASSWORD" }
check = { selector = "#wpadminbar", url = "/" }
lost = { without = "#wpadminbar", status = 404 }
""",
        pages="SELECT CONCAT('/', post_name, '/') FROM wp_posts WHERE post_status = 'private'",
        sessions="DELETE FROM wp_usermeta WHERE meta_key = 'session_tokens'",
        form=b'id="loginform"',
    ),
    "redmine": Application(
        start=_redmine,
        definition="""
[scope]
exclude = ["[.](?:atom|csv|pdf|txt|html)",
    "/(?:edit|new|copy|quoted|watchers|preview|export|settings)",
    "[?&](?:sort|set_filter|per_page|query_id|from|year|month|issue_id|show_|f)"]
[auth."{origin}".login]
url = "/login"
form = "#login-form form"
fields = { username = "crawler", password = "env:BENCH_PASSWORD" }
check = { selector = "a.logout", url = "/my/page" }
""",
        pages="SELECT '/issues/' || id FROM issues UNION SELECT '/projects/secret/wiki/' || title"
        " FROM wiki_pages WHERE title LIKE 'Page%'",
        sessions="DELETE FROM tokens WHERE action = 'session'",
        form=b'id="login-form"',
        database="redmine.sqlite",
    ),
}


# --- crawl --------------------------------------------------------------------------------------


def _crawled(application: Application, place: Place) -> dict[str, Any]:
    port, other = free_port(), free_port()
    # Cookies have no port, so a second server of this machine has another name.
    origins = {"{origin}": f"http://{ADDRESS}:{port}", "{other}": f"http://localhost:{other}"}
    application.start(place, port, other)
    text = DEFINITION.replace("{seed}", application.seed) + application.definition
    for mark, origin in origins.items():
        text = text.replace(mark, origin)
    folder = place.write("crawl/crawl.toml", text).parent
    environment, ends = {"BENCH_PASSWORD": sites.PASSWORD}, 0
    checked, tried = orbweaver("check", "--login", folder=folder, environment=environment)

    def watch(process: subprocess.Popen[str]) -> None:
        nonlocal ends
        while ends < ENDS:
            time.sleep(ENDS_S)
            if process.poll() is not None:
                return
            ends += application.end_sessions(place, ends)

    started_s = time.monotonic()
    words = ("crawl", "--config", "crawl.toml", "--workers", "2", "--format", "jsonl,csv,warc")
    code, said = orbweaver(*words, folder=folder, environment=environment, watch=watch)
    seconds = round(time.monotonic() - started_s, 1)
    _, status = orbweaver("status", "--json", folder=folder)
    place.write("crawl/terminal.log", tried + said + status)
    asked = [*place.folder.glob("*.out"), *place.folder.rglob("production.log")]
    counts = re.findall(r'"(logins|session_lost|retries|refused\.logout)": ?(\d+)', status)
    wanted = {
        unquote(origins["{origin}"] + path)
        for path in application.query(place, application.pages, application.database)
        if path.startswith("/")
    }
    return {
        "codes": [checked, code],
        "seconds": seconds,
        "sessions_ended": ends,
        "logouts": sum(len(LOGOUT.findall(path.read_bytes())) for path in asked),
        "counts": dict(counts),
        **_judged(folder, wanted, application.form),
        "said": (tried + said).split("\nout/")[0].splitlines(),
    }


def _judged(folder: Path, wanted: set[str], form: bytes) -> dict[str, Any]:
    texts = dict(unpacked(folder))
    records = [
        json.loads(line)
        for path, text in texts.items()
        if path.name.endswith(".jsonl.gz")
        for line in text.splitlines()
    ]
    pages = [one for one in records if "outcome" in one]
    fetched = {unquote(one["url"]) for one in pages if one["outcome"] == "fetched"}
    missing = sorted(wanted - fetched)
    stored = b"".join(text for path, text in texts.items() if path.name.endswith(".warc.gz"))
    secret = sites.PASSWORD.encode()
    return {
        "wanted": len(wanted),
        "missing": len(missing),
        "first_missing": missing[:5],
        "reasons": Counter(f"{one['outcome']}.{one['reason']}" for one in pages),
        "first_failed": [one["url"] for one in pages if one["outcome"] == "failed"][:5],
        "stored": stored.count(b"WARC-Type: response"),
        "login_pages": stored.count(form),
        "files": len(texts),
        "files_with_password": [path.name for path, text in texts.items() if secret in text],
    }


if __name__ == "__main__":
    sys.exit(main())
