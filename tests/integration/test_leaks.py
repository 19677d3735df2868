"""Attempts to find credentials of crawls where they must not be: a table of places.

One module-wide fixture runs the commands, and each row searches one place for all secrets.
`python -m bench.proxies --leaks` has more attempts with a real proxy.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeAlias
from urllib.request import ProxyHandler, Request, build_opener, urlopen

import pytest

pytestmark = pytest.mark.thorough

FUNCTIONS = Path(__file__).parents[2] / "functions"
COMMAND = "import sys; from orbweaver.cli.main import main; sys.exit(main())"
WAIT_S = 60
KINDS = ("basic", "bearer", "header", "cookies", "form")
SECRETS = {kind: f"s3cret-of-{kind}-7h4t" for kind in (*KINDS, "plain", "proxy", "session")}
# In other forms, too.
ENCODED = {
    "basic": b64encode(f"me:{SECRETS['basic']}".encode()).decode(),
    "proxy": b64encode(f"me:{SECRETS['proxy']}".encode()).decode(),
}
# The store keeps cookies and plain headers, because workers need them.
OF_STORE = frozenset({"cookies", "session", "plain"})


# Status, headers and body.
Page: TypeAlias = tuple[int, dict[str, str], str]


def found_in(data: bytes, *, without: frozenset[str] = frozenset()) -> list[str]:
    secrets = [*SECRETS.items(), *ENCODED.items()]
    return sorted({kind for kind, text in secrets if kind not in without and text.encode() in data})


@dataclass
class Sites:
    """Loopback servers: one with each kind of login, and a foreign one."""

    ports: dict[str, int] = field(default_factory=dict)
    # Requests by the name of their server: method, path, Host header, all headers and the body.
    asked: defaultdict[str, list[tuple[str, str, str, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def url(self, name: str, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.ports[name]}{path}"

    def page(self, name: str, path: str) -> Page:
        local = ("/away", "/renamed", "/fails", "/echo?token=of-the-page")
        names = (f"http://localhost:{self.ports[name]}", f"http://sub.localhost:{self.ports[name]}")
        links = [*local, *(f"{one}/below" for one in names)]
        links += [self.url("other", f"/link-of-{name}"), self.url("other", "/fails")]
        anchors = "".join(f'<a href="{link}">x</a>' for link in links)
        page: Page = (200, {}, f"<title>{name}</title><p id=in>text of {name}</p>{anchors}")
        form = "<form method=post action=/session><input name=user><input name=password"
        sitemap = f"User-agent: *\nSitemap: {self.url('other', f'/sitemap-of-{name}.xml')}\n"
        robots: Page = (200, {"Content-Type": "text/plain"}, sitemap)
        if name == "bearer":
            robots = (302, {"Location": self.url("other", "/moved-robots.txt")}, "")
        cookie = {"Set-Cookie": f"sid={SECRETS['session']}; HttpOnly"}
        pages: dict[str, Page] = {
            "/robots.txt": robots,
            "/away": (302, {"Location": self.url("other", f"/from-{name}")}, ""),
            "/renamed": (307, {"Location": f"{names[0]}/renamed-here"}, ""),
            "/fails": (500, {}, "an error"),
            "/login": (200, {}, f'{form} type="password"></form>'),
            "/session": (302, {"Location": "/", **cookie}, ""),
        }
        return pages.get(path.partition("?")[0], page)

    def start(self) -> None:
        for name in (*KINDS, "other"):
            server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(name))
            self.ports[name] = server.server_address[1]
            threading.Thread(target=server.serve_forever, daemon=True).start()
        proxy = ThreadingHTTPServer(("127.0.0.1", 0), self._proxy())
        self.ports["proxy"] = proxy.server_address[1]
        threading.Thread(target=proxy.serve_forever, daemon=True).start()

    def _handler(self, name: str) -> type[BaseHTTPRequestHandler]:
        sites = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                text = f"{self.headers}{self.rfile.read(size).decode()}"
                sites.asked[name].append((self.command, self.path, self.headers["Host"], text))
                status, headers, body = sites.page(name, self.path)
                self.send_response(status)
                sent = {"Content-Type": "text/html", "Content-Length": str(len(body)), **headers}
                for key, value in sent.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body.encode())

            do_HEAD = do_POST = do_GET  # noqa: N815 - names of the library

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _proxy(self) -> type[BaseHTTPRequestHandler]:
        sites = self

        class Proxy(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                given = self.headers.get("Proxy-Authorization", "")
                sites.asked["proxy"].append((self.command, self.path, "", given))
                if given != f"Basic {ENCODED['proxy']}":
                    self.send_error(407)
                    return
                headers = {key: value for key, value in self.headers.items() if key != "Host"}
                headers.pop("Proxy-Authorization")
                request = Request(self.path, headers=headers)  # noqa: S310 - loopback
                with build_opener(ProxyHandler({})).open(request, timeout=5) as answer:
                    body = answer.read()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(body)

            def do_CONNECT(self) -> None:
                self.send_error(502)

            def log_message(self, *_: object) -> None:
                pass

        return Proxy

    def heads(self, is_wanted: Callable[[str, str, str, str], bool]) -> bytes:
        """Return the requests of other servers and names: name, path, host and method decide."""
        found = [
            f"{method} {path} {text}"
            for name, requests in self.asked.items()
            if name != "proxy"
            for method, path, host, text in requests
            if is_wanted(name, path, host, method)
        ]
        assert found, "nothing was requested there"
        return "\n".join(found).encode()


@dataclass
class Evidence:
    """A folder with crawls of the sites, and the output of commands."""

    folder: Path
    sites: Sites
    said: dict[str, bytes] = field(default_factory=dict)
    processes: bytes = b""

    def run(
        self,
        name: str,
        *words: str,
        kill_at: str = "",
        own: Mapping[str, str] | None = None,
    ) -> None:
        secrets = {f"S_{kind.upper()}": SECRETS[kind] for kind in (*KINDS, "plain")}
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *words],
            cwd=self.folder,
            env={
                **{name: text for name, text in os.environ.items() if not name.startswith("AWS_")},
                **secrets,
                "PYTHONPATH": str(FUNCTIONS),
                "ORBWEAVER_RETRY_BASE_S": "0.05",
                **(own or {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        threading.Thread(target=self._watch, args=(process,), daemon=True).start()
        assert process.stdout is not None
        said = b""
        for line in process.stdout if kill_at else ():
            said += line
            if re.search(kill_at.encode(), line):
                os.killpg(process.pid, signal.SIGKILL)
        self.said[name] = said + process.communicate(timeout=WAIT_S)[0]

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Collect the arguments of a command and its children."""
        while process.poll() is None:
            for path in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError, IndexError):
                    if (
                        int((path / "stat").read_text().rpartition(")")[2].split()[2])
                        == process.pid
                    ):
                        self.processes += (path / "cmdline").read_bytes()
            time.sleep(0.1)

    def tree(self, *patterns: str) -> bytes:
        """Return all files that match, compressed ones unpacked."""
        files = [path for one in patterns for path in self.folder.glob(one) if path.is_file()]
        assert files, patterns
        return b"".join(
            data + (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else b"")
            for data in (path.read_bytes() for path in files)
        )


def definition(sites: Sites) -> str:
    seeds = json.dumps([sites.url(name) for name in (*KINDS, "other")])
    auth = {
        "basic": 'basic = { user = "me", password = "env:S_BASIC" }',
        "bearer": 'bearer = "env:S_BEARER"',
        "header": 'header = { X-Key = "env:S_HEADER" }',
        "cookies": 'cookies = "file:cookies.txt"',
        "form": 'login = { url = "/login", fields = { user = "me", password = "env:S_FORM" },'
        ' check = { selector = "#in" } }',
    }
    tables = "".join(f'[auth."{sites.url(kind)[:-1]}"]\n{text}\n' for kind, text in auth.items())
    plain = f'[identity.hosts."{sites.url("basic")[:-1]}"]\n'
    plain += f'headers = {{ X-Plain = "{SECRETS["plain"]}" }}\n'
    return (
        f'name = "leaks"\nseeds = {seeds}\n[scope]\nlinks = "any"\n'
        "[limits]\npages = 80\ndepth = 1\n"
        '[politeness]\ndelay = "0s"\n[network]\nreferer = "page"\nretries = 1\n'
        f'[records]\ntext = true\nlinks = true\nbodies = "all"\n{plain}{tables}'
    )


def console(evidence: Evidence) -> bytes:
    """Return answers of the API of `serve`."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "serve", "--listen", "127.0.0.1:0"],
        cwd=evidence.folder,
        env={**os.environ, "PYTHONPATH": str(FUNCTIONS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = next(line for line in process.stdout if "http://" in line)
        try:
            base = said[said.index("http://") :].split()[0].rstrip("/.,;")
            token = (evidence.folder / ".orbweaver" / "serve.token").read_text().strip()
            found = said.encode()
            for path in ("/crawls", "/crawls/leaks", "/crawls/leaks/pages", "/openapi.json"):
                headers = {"Authorization": f"Bearer {token}"}
                request = Request(f"{base}{path}", headers=headers)  # noqa: S310 - loopback
                with contextlib.suppress(OSError), urlopen(request, timeout=20) as answer:  # noqa: S310 - loopback
                    found += answer.read()
            return found
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    sites = Sites()
    sites.start()
    found = Evidence(tmp_path_factory.mktemp("leaks"), sites)
    line = f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{SECRETS['cookies']}\n"
    (found.folder / "cookies.txt").write_text(f"# Netscape HTTP Cookie File\n{line}")
    (found.folder / "crawl.toml").write_text(definition(sites))
    _crawl(found)
    _mistype(found)
    _ask(found)
    return found


@pytest.fixture(scope="module")
def later(evidence: Evidence) -> Evidence:
    _crawl_again(evidence)
    return evidence


def _crawl(found: Evidence) -> None:
    formats = ["--format", "jsonl,csv,parquet,warc", "--out", "out"]
    crawl = ("crawl", "--config", "crawl.toml")
    found.run("crawl", *crawl, *formats, "--log-format", "json", "--log-level", "debug")


def _crawl_again(found: Evidence) -> None:
    crawl = ("crawl", "--config", "crawl.toml")
    found.run("second run", *crawl, "--out", "out2", "--workers", "2", "--log-level", "debug")
    killed = ("--store", "killed", "--delay", "200ms", "--out", "out3")
    found.run("killed", *crawl, *killed, kill_at="^0:0[1-9] ")
    found.said["store after a kill"] = found.tree("killed/**/*")
    found.run("continued", *crawl, *killed, "--delay", "0s", "--json")
    proxy = f"http://me:{SECRETS['proxy']}@127.0.0.1:{found.sites.ports['proxy']}"
    (found.folder / "proxies.txt").write_text(proxy)
    site = found.sites.url("other")
    words = ("crawl", site, "--store", "proxied", "--max-pages", "4", "--delay", "0s")
    proxied = ("--proxy-list", "proxies.txt", "--log-level", "debug", "--format", "jsonl,warc")
    found.run("proxied", *words, *proxied, "--out", "out4")
    (found.folder / "wrong.txt").write_text(proxy.replace("me:", "you:"))
    rejected = ("crawl", site, "--store", "wrong", "--max-pages", "1", "--delay", "0s")
    found.run(
        "rejected by its proxy", *rejected, "--proxy-list", "wrong.txt", kill_at="quarantined"
    )
    found.run("status only", *crawl, "--store", "status", "--status-only", "--out", "out6")
    links = ("check-links", found.sites.url("basic"), "--delay", "0s", "--duration", "20s")
    found.run("links", *links, "--header", f"X-Key: {SECRETS['plain']}")
    wrong = (found.folder / "crawl.toml").read_text().replace("#in", "#nowhere")
    (found.folder / "fails.toml").write_text(wrong)
    failing = ("crawl", "--config", "fails.toml", "--store", "failing", "--out", "out7")
    found.run("failed login", *failing, "--log-level", "debug")
    broken = {"S_BEARER": f"{SECRETS['bearer']}\nX-More: 1"}
    bad = ("crawl", "--config", "crawl.toml", "--store", "invalid", "--max-pages", "8")
    found.run("secret that is no header", *bad, "--out", "out8", own=broken)


def _mistype(found: Evidence) -> None:
    text = (found.folder / "crawl.toml").read_text()
    mistakes = {
        "typed secret as reference": ('"env:S_BEARER"', f'"{SECRETS["bearer"]}"'),
        "typed secret as a key": ("bearer =", f'"{SECRETS["bearer"]}" ='),
        "typed secret in the origin": (
            found.sites.url("basic")[:-1],
            f"http://me:{SECRETS['basic']}@h",
        ),
        "password as a field": ('"env:S_FORM"', f'"{SECRETS["form"]}"'),
    }
    for name, (given, wrong) in mistakes.items():
        (found.folder / "bad.toml").write_text(text.replace(given, wrong))
        found.run(name, "check", "bad.toml")
    url = found.sites.url("basic")
    origin = f"{url[:-1]}=basic:me:{SECRETS['basic']}"
    found.run("typed secret as --auth", "crawl", url, "--auth", origin, "--store", "none")
    found.run("typed header", "crawl", url, "--header", f"X-{SECRETS['plain']}", "--store", "none")
    proxy = f"ftp://me:{SECRETS['proxy']}@127.0.0.1"
    found.run("typed proxy", "crawl", url, "--proxy", proxy, "--store", "none")
    seed = f"http://me:{SECRETS['basic']}@127.0.0.1/"
    found.run("password in a seed", "crawl", seed, "--store", "none")


def _ask(found: Evidence) -> None:
    for words in (
        ("check", "crawl.toml"),
        ("check", "--json", "crawl.toml"),
        ("check", "--login", "crawl.toml"),
        ("url", found.sites.url("basic"), "--config", "crawl.toml"),
        ("explain", found.sites.url("basic")),
        ("explain", "--json", found.sites.url("form")),
        ("status", "--json"),
        ("hosts", "--json"),
        ("report",),
        ("crawls", "--json"),
        ("pages", "leaks"),
        ("dlq", "list"),
        ("query", "--from", "out", "SELECT * FROM pages"),
        ("audit", "--out", "audit.html"),
        ("export", "--format", "csv", "--out", "again"),
    ):
        found.run(f"orbweaver {' '.join(word for word in words if '/' not in word)}", *words)
    found.said["answers of the API"] = console(found)


def is_foreign(name: str, _path: str, host: str, _method: str) -> bool:
    return name == "other" or not host.startswith("127.0.0.1")


def without_cookies(data: Callable[[Evidence], bytes]) -> Callable[[Evidence], bytes]:
    """Hide the cookies of 127.0.0.1, because cookies have no port (docs/login.md)."""

    def found(evidence: Evidence) -> bytes:
        lines = data(evidence).splitlines()
        return b"\n".join(one for one in lines if not one.lower().startswith(b"cookie:"))

    return found


def received(is_wanted: Callable[[str, str, str, str], bool]) -> Callable[[Evidence], bytes]:
    return lambda evidence: evidence.sites.heads(is_wanted)


ON_THE_WAY: dict[str, Callable[[Evidence], bytes]] = {
    "another port": without_cookies(received(lambda name, *_: name == "other")),
    "another port, by a redirect": without_cookies(
        received(lambda name, path, *_: name == "other" and path.startswith("/from-"))
    ),
    "another name of the host": received(lambda _n, _p, host, _m: host.startswith("localhost")),
    "another name, by a redirect": received(lambda _n, path, *_: path == "/renamed-here"),
    "a subdomain": received(lambda _n, _p, host, _m: host.startswith("sub.")),
    "robots.txt of another host": received(
        lambda _n, path, host, _m: path == "/robots.txt" and not host.startswith("127.")
    ),
    "a redirected robots.txt": without_cookies(
        received(lambda _n, path, *_: path == "/moved-robots.txt")
    ),
    "a sitemap on another host": without_cookies(
        received(lambda _n, path, *_: path.startswith("/sitemap-of-"))
    ),
    "retries at another host": without_cookies(
        received(lambda name, path, *_: name == "other" and path == "/fails")
    ),
    "HEAD requests": without_cookies(
        received(lambda name, _p, _h, method: name == "other" and method == "HEAD")
    ),
    "query of the page in a Referer": lambda evidence: b"\n".join(
        line
        for line in evidence.sites.heads(is_foreign).splitlines()
        if line.lower().startswith(b"referer:") and b"token=" in line
    ),
    "headers of a proxied request": lambda evidence: b"\n".join(
        line
        for line in evidence.sites.heads(lambda name, *_: name == "other").splitlines()
        if b"proxy" in line.lower()
    ),
    "arguments of processes": lambda evidence: b"\0".join(
        word
        for word in evidence.processes.split(b"\0")
        # The commands of the attempts were typed with secrets.
        if not word.startswith((b"http://", b"ftp://", b"X-"))
    ),
}
# Attempts that need the crawls of the fixture `later`.
LATER = frozenset({"HEAD requests", "headers of a proxied request"})
SOURCES = ("evidence", pytest.param("later", marks=pytest.mark.long))
# Folders of exports and of stores, by the fixture whose commands write them.
FILES = {"evidence": ("out", "again", "audit.html"), "later": ("out2", "out3", "out4", "out7")}
STORES = {"evidence": (".orbweaver",), "later": ("killed", "proxied", "wrong", "failing")}
TABLES = ("pages", "links", "changes", "manifests")
FORMATS = ("jsonl", "csv", "parquet", "warc")


def test_each_server_gets_its_own_secret(evidence: Evidence) -> None:
    """Otherwise the other tests would find nothing in any case."""
    for kind in KINDS:
        requests = evidence.sites.asked[kind]
        heads = "".join(text for _, _, host, text in requests if host.startswith("127.")).encode()
        others = {"plain"} if kind == "basic" else set()
        shared = {"cookies", "session"}  # cookies have no port
        assert kind in found_in(heads)
        assert set(found_in(heads)) <= {kind, *others, *shared}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in LATER else ()) for name in ON_THE_WAY],
)
def test_no_secret_is_sent_to_others(name: str, request: pytest.FixtureRequest) -> None:
    found = ON_THE_WAY[name](request.getfixturevalue("later" if name in LATER else "evidence"))
    assert found_in(found) == []
    if "Referer" in name or "proxied" in name:
        assert found == b""


@pytest.mark.parametrize("source", SOURCES)
def test_no_secret_is_in_files(source: str, request: pytest.FixtureRequest) -> None:
    evidence: Evidence = request.getfixturevalue(source)
    written = [path.as_posix() for path in (evidence.folder / "out").rglob("*") if path.is_file()]
    assert [one for one in TABLES if not any(f"/{one}/" in path for path in written)] == []
    assert [one for one in FORMATS if not any(f".{one}" in path for path in written)] == []
    for folder in FILES[source]:
        assert found_in(evidence.tree(f"{folder}*", f"{folder}/**/*")) == [], folder


@pytest.mark.parametrize("source", SOURCES)
def test_no_secret_is_in_store(source: str, request: pytest.FixtureRequest) -> None:
    evidence: Evidence = request.getfixturevalue(source)
    for folder in STORES[source]:
        assert found_in(evidence.tree(f"{folder}/**/*"), without=OF_STORE) == [], folder


@pytest.mark.parametrize("source", SOURCES)
def test_no_command_shows_secret(source: str, request: pytest.FixtureRequest) -> None:
    said: dict[str, bytes] = request.getfixturevalue(source).said
    assert all(said.values())
    found = {
        name: found_in(data, without=OF_STORE if name.startswith("store") else frozenset())
        for name, data in said.items()
    }
    assert not {name: kinds for name, kinds in found.items() if kinds}


@pytest.mark.long
def test_proxy_gets_its_own_secret(later: Evidence) -> None:
    assert ENCODED["proxy"] in str(later.sites.asked["proxy"])
