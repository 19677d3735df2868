"""Crawls through real proxies on loopback: squid (http, https), tinyproxy, dante (SOCKS5).

    apt-get install squid tinyproxy dante-server
    python -m bench.proxies                       all proxies and cases, as a table
    python -m bench.proxies --only socks5h --socks-user me:word
    python -m bench.proxies --leaks

Each case is one `orbweaver crawl`. The proxies connect from their own loopback addresses, so the
site knows by which way a request came. dante checks passwords of accounts of this machine, so its
cases with a password need `--socks-user`. `--leaks` searches for a password in output, files,
errors, and the arguments and environments of child processes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from bench.measure import free_port
from bench.serving import CALLER, Place, orbweaver, stop, unpacked
from tests.integration.fetcher.authority import Leaf, authority, server_context

USER, PASSWORD = "me", "w0rd_7h4t_1s"
SECRETS = (PASSWORD.encode(), b64encode(f"{USER}:{PASSWORD}".encode()), b"roxy-Auth")
PAGES = 20
CRAWL_S = 90.0
RETRIES = {"ORBWEAVER_RETRY_BASE_S": "0.05"}


@dataclass
class Site:
    """Two loopback servers with the same pages, http and https, and their requests."""

    folder: Path
    asked: list[tuple[str, str, str]] = field(default_factory=list)  # address, path, head
    ports: dict[str, int] = field(default_factory=dict)

    def url(self, which: str, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{'https' if which == 'tls' else 'http'}://{host}:{self.ports[which]}{path}"

    def start(self) -> None:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.asked.append((self.client_address[0], self.path, str(self.headers)))
                body, kind, status = b"", "text/html", 200
                if self.path == "/robots.txt":
                    body, kind = b"User-agent: *\nDisallow: /secret\n", "text/plain"
                elif self.path == "/jump":
                    status = 302
                elif self.path == "/private":
                    body = b'<a href="http://10.0.0.1/">a</a><a href="http://router/">b</a>'
                else:
                    links = "".join(f'<a href="/p{number}">p</a>' for number in range(PAGES))
                    body = f"<title>p</title><a href='/secret'>s</a>{links}".encode()
                self.send_response(status)
                if status != 200:
                    self.send_header("Location", site.url("other", "/landed", "localhost"))
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        leaf = Leaf(names=("localhost",), addresses=("127.0.0.1",))
        for name in ("plain", "other", "refused", "tls"):
            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            if name == "tls":
                context = server_context(leaf, self.folder)
                server.socket = context.wrap_socket(server.socket, server_side=True)
            self.ports[name] = server.server_address[1]
            threading.Thread(target=server.serve_forever, daemon=True).start()
        (self.folder / "ca.pem").write_bytes(authority("trusted").pem)


@dataclass
class Daemon:
    """A running proxy. `source` is the address from which it connects to sites."""

    scheme: str
    port: int
    source: str
    process: subprocess.Popen[bytes]

    def url(self, credentials: str = "") -> str:
        at = f"{credentials}@" if credentials else ""
        return f"{self.scheme}://{at}127.0.0.1:{self.port}"


def squid(folder: Path, site: Site, *, auth: bool, source: str, tls: bool) -> tuple[list[str], int]:
    port = free_port()
    folder.chmod(0o777)
    lines = [f"{'https' if tls else 'http'}_port 127.0.0.1:{port}"]
    if tls:
        server_context(Leaf(addresses=("127.0.0.1",)), folder)
        both = (folder / "chain.pem").read_bytes() + (folder / "key.pem").read_bytes()
        (folder / "both.pem").write_bytes(both)
        lines[0] += f" tls-cert={folder}/both.pem"
    if auth:
        hashed = subprocess.run(
            ["openssl", "passwd", "-apr1", PASSWORD],  # noqa: S607 - of this machine
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        (folder / "users").write_text(f"{USER}:{hashed}\n")
        lines.append(f"auth_param basic program /usr/lib/squid/basic_ncsa_auth {folder}/users")
        lines.append("acl known proxy_auth REQUIRED")
        lines.append("http_access deny !known")
    lines += [
        f"acl closed port {site.ports['refused']}",
        "http_access deny closed",
        "http_access allow all",
        f"tcp_outgoing_address {source}",
        "dns_nameservers 127.0.0.1",
        "dns_timeout 1 seconds",
        f"pid_filename {folder}/pid",
        f"access_log stdio:{folder}/access.log",
        f"cache_log {folder}/cache.log",
        "cache deny all",
        "shutdown_lifetime 0 seconds",
    ]
    (folder / "conf").write_text("\n".join(lines) + "\n")
    return ["squid", "-N", "-f", f"{folder}/conf"], port


def tinyproxy(folder: Path, site: Site, *, auth: bool, source: str) -> tuple[list[str], int]:
    port = free_port()
    (folder / "filter").write_text(f":{site.ports['refused']}/\n")
    lines = [f"Port {port}", "Listen 127.0.0.1", f"Bind {source}", "Timeout 20", "MaxClients 99"]
    lines += [f'Filter "{folder}/filter"', "FilterURLs On", "FilterExtended On"]
    lines += [f"BasicAuth {USER} {PASSWORD}"] if auth else []
    (folder / "conf").write_text("\n".join(lines) + "\n")
    return ["tinyproxy", "-d", "-c", f"{folder}/conf"], port


def dante(folder: Path, site: Site, *, auth: bool, source: str) -> tuple[list[str], int]:
    port = free_port()
    lines = [
        f"logoutput: {folder}/log",
        f"internal: 127.0.0.1 port = {port}",
        "external: lo",
        f"socksmethod: {'username' if auth else 'none'}",
        "clientmethod: none",
        "user.privileged: root",
        "user.unprivileged: nobody",
        "client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }",
        f"socks block {{ from: 0/0 to: 0/0 port = {site.ports['refused']} }}",
        "socks pass { from: 0/0 to: 0/0 }",
    ]
    (folder / "conf").write_text("\n".join(lines) + "\n")
    return ["danted", "-f", f"{folder}/conf"], port


@dataclass
class Ran:
    """A finished crawl: exit code, text, and its records by path or URL."""

    code: int
    text: str
    records: list[dict[str, object]]

    def record(self, url: str) -> dict[str, object]:
        return next((one for one in self.records if one["url"] == url), {})


class Bench:
    """One kind of proxy: its instances, and the cases."""

    def __init__(self, kind: str, root: Path, site: Site, user: tuple[str, str]) -> None:
        self.kind, self.root, self.site, self.user = kind, root, site, user
        self._number = 0
        self.servers = contextlib.ExitStack()

    def daemon(self, *, auth: bool = False) -> Daemon:
        self._number += 1
        place = Place(
            name=f"{self.kind}-{self._number}", home=self.root, user=CALLER, open=self.servers
        )
        folder = place.folder
        folder.mkdir(parents=True)
        source = f"127.0.0.{10 + self._number}"
        scheme = {"squid": "http", "squid-tls": "https", "tinyproxy": "http"}.get(self.kind)
        if scheme is None:
            words, port = dante(folder, self.site, auth=auth, source=source)
            source = "127.0.0.1"
        elif self.kind == "tinyproxy":
            words, port = tinyproxy(folder, self.site, auth=auth, source=source)
        else:
            words, port = squid(folder, self.site, auth=auth, source=source, tls=scheme == "https")
        return Daemon(scheme or self.kind, port, source, place.start(words, port=port))

    def crawl(
        self,
        *words: str,
        environment: dict[str, str] | None = None,
        watch: Callable[[subprocess.Popen[str]], None] | None = None,
    ) -> Ran:
        """Run a crawl in a new store."""
        self._number += 1
        folder = self.root / f"{self.kind}-crawl-{self._number}"
        folder.mkdir(parents=True)
        bundle = str(self.site.folder / "ca.pem")
        code, text = orbweaver(
            *("crawl", *words, "--store", "store", "--out", "pages.jsonl", "--ca-bundle", bundle),
            folder=folder,
            environment={**RETRIES, "SSL_CERT_FILE": bundle, **(environment or {})},
            limit_s=CRAWL_S,
            watch=watch,
        )
        (folder / "said").write_text(text)
        pages = folder / "pages.jsonl"
        lines = pages.read_text().splitlines() if pages.exists() else []
        return Ran(code, text, [json.loads(line) for line in lines])

    # --- cases: each returns None, or the fault ---------------------------------------------------

    def fetched(self, ran: Ran, url: str, *daemons: Daemon) -> str | None:
        record = ran.record(url)
        names = {f"127.0.0.1:{daemon.port}" for daemon in daemons}
        if (record.get("outcome"), record.get("proxy") in names) == ("fetched", True):
            return None
        return f"{record or ran.text[-300:]}"

    def by_proxy(self, since: int, daemon: Daemon) -> str | None:
        others = {address for address, _, _ in self.site.asked[since:]} - {daemon.source}
        return f"requests from {others}" if others else None

    def plain(self) -> str | None:
        since, daemon, url = len(self.site.asked), self.daemon(), self.site.url("plain")
        ran = self.crawl(url, "--proxy", daemon.url(), "--delay", "0s")
        robots = [path for _, path, _ in self.site.asked[since:]].count("/robots.txt")
        if robots != 1 or any(path == "/secret" for _, path, _ in self.site.asked[since:]):
            return f"{robots} requests of robots.txt"
        return self.fetched(ran, url, daemon) or self.by_proxy(since, daemon)

    def tunnel(self) -> str | None:
        since, daemon, url = len(self.site.asked), self.daemon(), self.site.url("tls")
        ran = self.crawl(url, "--proxy", daemon.url(), "--delay", "0s", "--workers", "2")
        return self.fetched(ran, url, daemon) or self.by_proxy(since, daemon)

    def from_environment(self) -> str | None:
        # Loopback hosts are never proxied by the environment, so the name must be another one.
        daemon = self.daemon()
        words = ("http://nosuch.invalid/", "--ignore-robots")
        ran = self.crawl(*words, environment={"http_proxy": daemon.url()})
        (record,) = ran.records or [{}]
        used = record.get("proxy") == f"127.0.0.1:{daemon.port}"
        return None if used or self.kind == "socks5" else f"{record} {ran.text[-300:]}"

    def _with_password(self, credentials: str) -> tuple[Ran, Daemon, str]:
        daemon, url = self.daemon(auth=True), self.site.url("tls")
        ran = self.crawl(url, "--proxy", daemon.url(credentials), "--delay", "0s")
        return ran, daemon, url

    def right_password(self) -> str | None:
        user, password = self.user
        ran, daemon, url = self._with_password(f"{quote(user)}:{quote(password, safe='')}")
        return self.fetched(ran, url, daemon)

    def wrong_password(self) -> str | None:
        ran, _, _ = self._with_password(f"{quote(self.user[0])}:wrong")
        known = "needs another user and password" in ran.text or "rejected the user" in ran.text
        return None if ran.code and known else ran.text[-300:]

    def missing_password(self) -> str | None:
        ran, _, _ = self._with_password("")
        known = "needs another user and password" in ran.text or "none is given" in ran.text
        return None if ran.code and known else ran.text[-300:]

    def one_dead(self) -> str | None:
        daemon, url = self.daemon(), self.site.url("plain")
        file = self.root / f"{self.kind}-list"
        dead = [f"{daemon.scheme}://127.0.0.1:{free_port()}" for _ in range(3)]
        file.write_text("\n".join([*dead, daemon.url()]))
        ran = self.crawl(url, "--proxy-list", str(file), "--delay", "0s")
        return self.fetched(ran, url, daemon)

    def dies(self) -> str | None:
        first, second = self.daemon(), self.daemon()
        since = len(self.site.asked)

        def kill(process: subprocess.Popen[str]) -> None:
            while process.poll() is None and len(self.site.asked) < since + 6:
                time.sleep(0.05)
            used = self.site.asked[-1][0]
            stop((first if used == first.source else second).process)

        proxies = ("--proxy", first.url(), "--proxy", second.url())
        ran = self.crawl(self.site.url("plain"), *proxies, "--delay", "150ms", watch=kill)
        done = [one for one in ran.records if one["outcome"] == "fetched"]
        return None if len(done) == PAGES + 1 else f"{len(done)} of {PAGES + 1}: {ran.text[-300:]}"

    def refused(self) -> str | None:
        daemon, url = self.daemon(), self.site.url("refused")
        since = len(self.site.asked)
        ran = self.crawl(url, "--proxy", daemon.url(), "--delay", "0s")
        if ran.record(url).get("outcome") == "fetched" or len(self.site.asked) > since:
            return "fetched"
        record = ran.record(url)
        return None if ran.code and record else ran.text[-300:]

    def unknown_name(self) -> str | None:
        daemon = self.daemon()
        ran = self.crawl("http://nosuch.invalid/", "--proxy", daemon.url(), "--ignore-robots")
        (record,) = ran.records or [{}]
        return None if record.get("outcome") == "failed" else f"{record} {ran.text[-300:]}"

    def slow(self) -> str | None:
        daemon, url = self.daemon(), self.site.url("tls")
        with slow_relay(daemon.port) as port:
            behind = Daemon(daemon.scheme, port, daemon.source, daemon.process)
            words = ("--proxy", behind.url(), "--delay", "0s", "--max-pages", "5")
            return self.fetched(self.crawl(url, *words), url, behind)

    def private(self) -> str | None:
        daemon, url = self.daemon(), self.site.url("plain", "/private")
        ran = self.crawl(url, "--proxy", daemon.url(), "--delay", "0s", "--scope", "any")
        errors = [str(one["error"]) for one in ran.records if one["url"] != url]
        # `socks5` looks the name up here, where it is unknown.
        known = ("private", "Domain name not found")
        refused = [error for error in errors if any(words in error for words in known)]
        return None if len(refused) == 2 else f"{errors} {ran.text[-300:]}"

    def redirect(self) -> str | None:
        daemon = self.daemon()
        seeds = (self.site.url("plain", "/jump"), self.site.url("other", "/seed", "localhost"))
        ran = self.crawl(*seeds, "--proxy", daemon.url(), "--delay", "0s")
        return self.fetched(ran, self.site.url("other", "/landed", "localhost"), daemon)


@contextlib.contextmanager
def slow_relay(target: int) -> Iterator[int]:
    """Relay connections to a port, one second late."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            time.sleep(1)
            with socket.create_connection(("127.0.0.1", target)) as other:
                pumps = [
                    threading.Thread(target=pump, args=pair, daemon=True)
                    for pair in ((self.request, other), (other, self.request))
                ]
                for one in pumps:
                    one.start()
                for one in pumps:
                    one.join()

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


CASES = (
    *("plain", "tunnel", "from_environment", "right_password", "wrong_password"),
    *("missing_password", "one_dead", "dies", "refused", "unknown_name", "slow", "private"),
    "redirect",
)
WITH_PASSWORD = frozenset({"right_password", "wrong_password", "missing_password"})
KINDS = ("squid", "squid-tls", "tinyproxy", "socks5h", "socks5")


class Leaks:
    """Attempts to find the password of a proxy in what crawls show, write and start."""

    def __init__(self, root: Path, site: Site) -> None:
        self.root, self.site = root, site
        self.bench = Bench("squid", root, site, (USER, PASSWORD))
        self.given = f"{USER}:{PASSWORD}"
        self.folder = root / "leaks"
        self.folder.mkdir()
        self.processes: dict[str, bytes] = {}

    def run(self, *words: str, environment: dict[str, str] | None = None) -> bytes:
        _, text = orbweaver(
            *words,
            folder=self.folder,
            environment={**RETRIES, **(environment or {})},
            limit_s=CRAWL_S,
            watch=self._watch,
        )
        return text.encode()

    def _watch(self, process: subprocess.Popen[str]) -> None:
        """Collect arguments and environments of the children of a command."""
        while process.poll() is None:
            for path in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError, IndexError):
                    parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                    if parent == process.pid:
                        for name in ("cmdline", "environ"):
                            key, data = f"{path.name} {name}", (path / name).read_bytes()
                            self.processes[key] = max(self.processes.get(key, b""), data, key=len)
            time.sleep(0.05)

    def tree(self, *names: str) -> bytes:
        """Return all files below folders, unpacked."""
        found = (content for name in names for _, content in unpacked(self.folder / name))
        return b"".join(found)

    def attempts(self) -> Iterator[tuple[str, bytes]]:
        daemon, url = self.bench.daemon(auth=True), self.site.url("plain")
        proxy = daemon.url(self.given)
        common = ("--store", "store", "--delay", "0s", "--max-pages", "6")
        crawl = ("crawl", url, *common)
        warc = ("--format", "jsonl,csv,parquet,warc", "--text", "--links", "--workers", "3")
        yield "output of crawl", self.run(*crawl, "--proxy", proxy, "--out", "out", *warc)
        for place in ("pages", "links", "changes", "manifests", "texts"):
            yield f"files of {place}", self.tree(f"out/{place}")
        yield "store with its files", self.tree("store")
        (self.folder / "list").write_text(proxy)
        again = ("--window", "0s", "--out", "out2")
        yield "output with --json", self.run(*crawl, *again, "--json", "--proxy-list", "list")
        wrong = proxy.replace(PASSWORD, f"{PASSWORD}x")
        yield "wrong password", self.run(*crawl, *again, "--proxy", wrong)
        dead = f"http://{self.given}@127.0.0.1:{free_port()}"
        yield "dead proxy", self.run(*crawl, *again, "--proxy", dead)
        for name, typed in (
            ("no scheme", f"{self.given}@127.0.0.1:1"),
            ("another scheme", f"ftp://{self.given}@127.0.0.1:1"),
            ("a port of letters", f"http://127.0.0.1:{PASSWORD}"),
            ("# in the password", f"http://{USER}:#{PASSWORD}@127.0.0.1:1"),
            ("as a path", f"http://127.0.0.1:1/{PASSWORD}"),
        ):
            yield f"typed {name}", self.run(*crawl, "--proxy", typed)
        (self.folder / "bad").write_text(f"{proxy}\n{self.given}@127.0.0.1\n")
        yield "invalid line of a list", self.run(*crawl, "--proxy-list", "bad")
        invalid = {"https_proxy": f"socks4://{self.given}@127.0.0.1"}
        yield "invalid variable", self.run(*crawl, environment=invalid)
        yield "list that breaks in a crawl", self._broken_list(crawl)
        for words in (
            ("explain", url),
            ("status", "--json"),
            ("hosts", "--json"),
            ("report",),
            ("query", "--from", "out", "SELECT * FROM pages"),
            ("export", "--out", "csv", "--format", "csv"),
        ):
            store = () if words[0] == "query" else ("--store", "store")
            yield f"orbweaver {words[0]}", self.run(*words, *store)
        yield "exported CSV", self.tree("csv")
        for what in ("cmdline", "environ"):
            found = [data for name, data in self.processes.items() if name.endswith(what)]
            yield f"{what} of {len(found)} child processes", b"".join(found)
        heads = "".join(head for _, _, head in self.site.asked)
        yield "headers that the site received", heads.encode()

    def _broken_list(self, crawl: tuple[str, ...]) -> bytes:
        file = self.folder / "list"

        def spoil() -> None:
            time.sleep(3)
            file.write_text(f"{self.given}@127.0.0.1")
            time.sleep(6)
            file.write_text(proxy)

        proxy = file.read_text()
        threading.Thread(target=spoil, daemon=True).start()
        words = [word if word != "0s" else "1s" for word in crawl]
        return self.run(*words, "--window", "0s", "--out", "out3", "--proxy-list", "list")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.proxies")
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--socks-user", metavar="USER:PASSWORD", help="an account of this machine")
    parser.add_argument("--leaks", action="store_true", help="search for the password instead")
    given = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="orbweaver-proxies-") as temporary:
        root = Path(temporary)
        root.chmod(0o755)
        (root / "site").mkdir()
        site = Site(root / "site")
        site.start()
        for kind in () if given.leaks else given.only or KINDS:
            socks = tuple((given.socks_user or "").split(":", 1))
            user = socks if kind.startswith("socks") else (USER, PASSWORD)
            for case in given.case or CASES:
                if case in WITH_PASSWORD and len(user) != 2:
                    print(f"{kind:10} {case:18} skipped", flush=True)
                    continue
                bench = Bench(kind, root / f"{kind}-{case}", site, user)
                with bench.servers:
                    why = getattr(bench, case)()
                wrong += why is not None
                print(f"{kind:10} {case:18} {'ok' if why is None else why}", flush=True)
        if given.leaks:
            leaks = Leaks(root, site)
            with leaks.bench.servers:
                for number, (name, data) in enumerate(leaks.attempts(), 1):
                    hit = any(secret in data for secret in SECRETS)
                    wrong += hit
                    said = "FOUND" if hit else "none"
                    print(f"leak {number:2} {name:40} {len(data):9,} B {said}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
