"""Crawl real applications behind their login: `python -m bench.logins django|mediawiki`.

Django's admin comes from the Python package index, in its own environment. MediaWiki is the
installed Debian package (mediawiki, php-cli, php-sqlite3) on PHP's own server. Sessions end during
the crawl. The result compares the crawled pages with the application's database.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import unquote
from urllib.request import urlopen

from bench.measure import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
USER, PASSWORD = "crawler", "s3cr3t-of-the-bench"
ARTICLES = 120
START_S = 60
# Seconds after a login at which Django ends the session.
SESSION_S = 4
# Seconds between two deletions of all sessions of MediaWiki, and the maximum number of deletions.
ENDS_S, ENDS = 3.0, 10
DJANGO = f"""
import sys
from pathlib import Path
import django
from django.conf import settings
from django.core.management import call_command, execute_from_command_line
settings.configure(
    DEBUG=False, SECRET_KEY="bench", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__,
    SESSION_COOKIE_AGE={SESSION_S}, USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}}},
    INSTALLED_APPS=["django.contrib." + one for one in
                    ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.middleware.csrf.CsrfViewMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware"],
    STATIC_URL="static/",
    TEMPLATES=[{{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
                "OPTIONS": {{"context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages"]}}}}],
)
django.setup()
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
if sys.argv[1] == "prepare":
    call_command("migrate", verbosity=0)
    User.objects.create_superuser("{USER}", password="{PASSWORD}")
    Group.objects.bulk_create(Group(name=f"Group number {{n}}") for n in range({ARTICLES}))
else:
    execute_from_command_line(["x", "runserver", "--noreload", "--nostatic", sys.argv[1]])
"""
DEFINITION = """
seeds = ["{seed}"]
[scope]
exclude = {exclude}
[limits]
pages = 5000
[politeness]
delay = "0s"
concurrency = 2
robots = false
nofollow = false
[dedup]
strip_parameters = ["_changelist_filters"]
[records]
links = true
[auth."{origin}".login]
url = "{login}"
form = "{form}"
fields = {fields}
check = {check}
"""


def main() -> int:
    """Crawl the named application. Return 1 if a page is missing or the form was stored."""
    application = {"django": _django, "mediawiki": _mediawiki}[sys.argv[1]]
    with tempfile.TemporaryDirectory(prefix="logins-") as folder:
        found = application(Path(folder))
    print(json.dumps(found, indent=1))
    return 0 if not found["missing"] and not found["login_pages"] else 1


# --- applications -------------------------------------------------------------------------------


def _django(folder: Path) -> dict[str, Any]:
    python = folder / "venv/bin/python"
    _run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    _run([str(python), "-m", "pip", "install", "-q", "django"], folder)
    (folder / "site.py").write_text(DJANGO)
    site = folder / "bench_site.py"
    (folder / "site.py").rename(site)
    _run([str(python), str(site), "prepare"], folder)
    address = f"127.0.0.1:{free_port()}"
    with _served([str(python), str(site), address], folder, f"http://{address}/admin/login/"):
        crawled = _crawl(
            folder,
            f"http://{address}",
            seed="/admin/",
            login="/admin/login/",
            form="#login-form",
            fields={"username": USER, "password": "env:BENCH_PASSWORD"},
            check={"selector": "#user-tools"},
            exclude=[
                "/delete/",
                "/admin/auth/user/",
                "/admin/(?:jsi18n|r)/",
                r"[?&]_",
                r"[?&](?:o|all)=",
            ],
        )
    with contextlib.closing(sqlite3.connect(folder / "db.sqlite3")) as database:
        groups = database.execute("SELECT id, name FROM auth_group").fetchall()
    wanted = {
        f"http://{address}/admin/auth/group/{number}/{view}/"
        for number, _ in groups
        for view in ("change", "history")
    }
    return _judged(crawled, wanted, b'id="login-form"')


def _mediawiki(folder: Path) -> dict[str, Any]:
    code = Path("/usr/share/mediawiki")
    data = folder / "data"
    data.mkdir()
    environment = {"MW_CONFIG_FILE": str(folder / "absent.php")}
    php = ["php", "-d", "error_reporting=E_ALL&~E_DEPRECATED", "-d", f"session.save_path={data}"]
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    _run(
        [
            *php, str(code / "maintenance/install.php"), "--dbtype=sqlite", "--dbname=wiki",
            f"--dbpath={data}", f"--confpath={folder}", "--scriptpath=", f"--server={origin}",
            f"--pass={PASSWORD}", "The wiki", USER.capitalize(),
        ],
        folder, environment,
    )  # fmt: skip
    settings = folder / "LocalSettings.php"
    with settings.open("a") as opened:
        opened.write(
            "\n$wgGroupPermissions['*']['read'] = false; $wgMainCacheType = CACHE_NONE;"
            "$wgSessionCacheType = CACHE_DB;"
            "$wgParserCacheType = CACHE_NONE; $wgJobRunRate = 0; $wgUsePathInfo = false;\n"
        )
    environment = {"MW_CONFIG_FILE": str(settings)}
    dump = "<mediawiki xml:lang='en'>" + "".join(map(_article, range(ARTICLES))) + "</mediawiki>"
    (folder / "pages.xml").write_text(dump)
    words = [*php, str(code / "maintenance/importDump.php"), str(folder / "pages.xml")]
    _run(words, folder, environment)
    server = [*php, "-S", f"127.0.0.1:{port}", "-t", str(code)]
    database = data / "wiki.sqlite"
    with _served(
        server, folder, f"{origin}/index.php", {**environment, "PHP_CLI_SERVER_WORKERS": "2"}
    ):
        crawled = _crawl(
            folder,
            origin,
            seed="/index.php?title=Article_0",
            login="/index.php?title=Special:UserLogin",
            form='form[name="userlogin"]',
            fields={"wpName": USER.capitalize(), "wpPassword": "env:BENCH_PASSWORD"},
            check={"selector": "#pt-logout", "url": "/index.php?title=Article_0"},
            lost={"without": "#pt-logout"},
            exclude=["action=", "oldid=", "diff=", "Special(:|%3A)", "printable=", "veaction="],
            meanwhile=lambda: _end_sessions(data),
        )
    with contextlib.closing(sqlite3.connect(database)) as opened:
        rows = opened.execute(
            "SELECT page_title FROM page WHERE page_namespace = 0 AND page_title LIKE 'Article%'"
        ).fetchall()
    titles = {row[0].decode() if isinstance(row[0], bytes) else row[0] for row in rows}
    wanted = {f"{origin}/index.php?title={title}" for title in titles}
    return _judged(crawled, wanted, b"<title>Login required")


def _article(number: int) -> str:
    links = " ".join(
        f"[[Article {one}]]" for one in range(3 * number + 1, 3 * number + 4) if one < ARTICLES
    )
    text = f"This is article number {number}. {links}"
    return (
        f"<page><title>Article {number}</title><ns>0</ns><revision><timestamp>2026-01-01T00:00:00Z"
        f"</timestamp><model>wikitext</model><format>text/x-wiki</format><text>{text}</text>"
        "</revision></page>"
    )


def _end_sessions(data: Path) -> int:
    """End all sessions of the wiki, as if they had expired. Return the number of entries."""
    ended = 0
    for path in data.glob("*.sqlite"):
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as database:
            tables = [
                name for (name,) in database.execute("SELECT name FROM sqlite_master")
                if name == "objectcache"
            ]  # fmt: skip
            for table in tables:
                sql = f"DELETE FROM {table} WHERE keyname LIKE '%MWSession%'"  # noqa: S608
                ended += database.execute(sql).rowcount
            database.commit()
    return ended


# --- crawl --------------------------------------------------------------------------------------


def _crawl(  # noqa: PLR0913 - facts of an application
    folder: Path,
    origin: str,
    *,
    seed: str,
    login: str,
    form: str,
    fields: dict[str, str],
    check: dict[str, str],
    exclude: list[str],
    lost: dict[str, str] | None = None,
    meanwhile: Callable[[], int] | None = None,
) -> dict[str, Any]:
    text = DEFINITION.format(
        seed=origin + seed,
        origin=origin,
        login=login,
        form=form.replace('"', '\\"'),
        fields=_table(fields),
        check=_table(check),
        exclude=json.dumps(exclude),
    )
    (folder / "crawl.toml").write_text(text + (f"lost = {_table(lost)}\n" if lost else ""))
    environment = {"BENCH_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT / "functions")}
    command = "import sys; from orbweaver.cli.main import main; sys.exit(main())"
    tried = _run([sys.executable, "-c", command, "check", "--login"], folder, environment)
    words = [sys.executable, "-c", command, "crawl", "--config", "crawl.toml", "--workers", "2"]
    started_s, ends = time.monotonic(), 0
    with (folder / "crawl.log").open("w+") as log:
        crawl = subprocess.Popen(
            [*words, "--format", "jsonl,warc"], cwd=folder, env={**os.environ, **environment},
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        next_s = time.monotonic() + ENDS_S
        while crawl.poll() is None:
            time.sleep(0.1)
            if meanwhile is not None and ends < ENDS and time.monotonic() > next_s:
                ends += meanwhile() > 0
                next_s = time.monotonic() + ENDS_S
        log.seek(0)
        said = log.read()
    status = _run([sys.executable, "-c", command, "status", "--json"], folder, environment)
    return {
        "folder": folder,
        "seconds": round(time.monotonic() - started_s, 1),
        "sessions_ended": ends,
        "login": tried.splitlines(),
        "said": said.splitlines()[-12:],
        "status": status,
    }


def _judged(crawled: dict[str, Any], wanted: set[str], form: bytes) -> dict[str, Any]:
    import gzip

    folder: Path = crawled.pop("folder")
    records, bodies, secrets = {}, b"", 0
    for path in folder.rglob("*.jsonl.gz"):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            record = json.loads(line)
            if "outcome" in record:
                records[unquote(record["url"])] = record
    for path in (folder / "out").rglob("*.warc.gz"):
        bodies += gzip.decompress(path.read_bytes())
    for path in folder.rglob("*"):
        if path.is_file() and ("out" in path.parts or ".orbweaver" in path.parts):
            secrets += PASSWORD.encode() in path.read_bytes()
    fetched = {url for url, one in records.items() if one["outcome"] == "fetched"}
    reasons: dict[str, int] = {}
    for one in records.values():
        key = f"{one['outcome']}.{one['reason']}"
        reasons[key] = reasons.get(key, 0) + 1
    counts = re.findall(
        r'"(logins|session_lost|retries|refused\.logout)": ?(\d+)', crawled.pop("status")
    )
    missing = sorted(url for url in wanted if unquote(url) not in fetched)
    return {
        **crawled,
        "wanted": len(wanted),
        "missing": missing[:20],
        "missing_number": len(missing),
        "reasons": reasons,
        "counts": dict(counts),
        "login_pages": bodies.count(form),
        "files_with_password": secrets,
    }


def _table(values: dict[str, str] | None) -> str:
    pairs = (f"{name} = {json.dumps(value)}" for name, value in (values or {}).items())
    return f"{{ {', '.join(pairs)} }}"


def _run(words: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{words[:4]}: {done.returncode}\n{done.stdout}\n{done.stderr}"[-3_000:])
    return done.stdout


@contextlib.contextmanager
def _served(
    words: list[str], folder: Path, url: str, environment: dict[str, str] | None = None
) -> Iterator[None]:
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            words, cwd=folder, env={**os.environ, **(environment or {})}, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            until_s = time.monotonic() + START_S
            while time.monotonic() < until_s:
                with contextlib.suppress(URLError, OSError):
                    urlopen(url, timeout=5).close()  # noqa: S310 - loopback
                    break
                time.sleep(0.2)
            yield
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()


if __name__ == "__main__":
    sys.exit(main())
