"""An application of this benchmark: its packages, its folder and servers, and its articles.

Packages of Debian are used without installation: fetched by apt, unpacked below .local/yield/root.
Installed packages are used from the system. The benchmark configures no package and writes no file
outside .local/yield. Servers listen on 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import inspect
import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import free_port
from bench.serving import ADDRESS, CALLER, HOME, ROOT, Place, Unavailable
from bench.yields.judging import Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

TRUTH = "truth.json"
SERVER = ("apache2-bin", "apache2-data", "media-types")
FETCH_LIMIT_S = 600
MODULES = (
    "mpm_event authn_core authz_core alias autoindex cgid dir env headers mime negotiation proxy "
    "proxy_fcgi proxy_http rewrite setenvif"
)
LOG = "access.log"
# Runs a Python application in its own process, behind Apache.
WSGI_SERVER = """
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server
class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
make_server(sys.argv[1], int(sys.argv[2]), application, Server).serve_forever()
"""
CONFIGURATION = """\
ServerRoot "{folder}"
DefaultRuntimeDir "{folder}"
PidFile "{folder}/apache.pid"
Listen {address}:{port}
ServerName {address}:{port}
UseCanonicalName Off
{modules}
TypesConfig "{types}"
AddDefaultCharset off
Timeout 60
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 5
# Debian's defaults: an idle connection takes no thread.
StartServers 2
MaxRequestWorkers 150
MaxConnectionsPerChild 0
ScriptSock "{folder}/cgi"
ErrorLog "{folder}/error.log"
LogFormat "%{{begin:usec}}t\\t%>s\\t%r" yield
# Its own questions to itself, by which it wakes workers up, are no requests.
CustomLog "{folder}/{log}" yield "expr=%{{REQUEST_METHOD}} != 'OPTIONS'"
<Directory "/">
  AllowOverride None
  Options FollowSymLinks
  Require all granted
</Directory>
{site}
"""


@contextlib.contextmanager
def placed(name: str) -> Iterator[Place]:
    """Provide a place whose servers end with the block. Waits while another run uses it."""
    place = Place(name=name)
    lock = HOME / "locks" / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held, place.open:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name}: another run has it, so this one waits", file=sys.stderr, flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield place


@dataclass(frozen=True, slots=True)
class Application:
    """An application with content."""

    name: str
    title: str
    # Fills the new folder with the application and its content. Returns its articles.
    prepare: Callable[[Place], Truth]
    # Starts all servers. The server on the port writes the access log.
    serve: Callable[[Place, int], None]
    # Returns the keys of the articles that a GET of a target shows, usually none.
    keys_of: Callable[[str], Iterable[str]]
    packages: Sequence[str] = ()

    def made(self, place: Place) -> Truth:
        """Make the application, once per version of its code. Return its articles."""
        unpack(self.packages)
        stamp = place.path(".made")
        source = inspect.getsource(sys.modules[self.keys_of.__module__])
        version = hashlib.sha256(source.encode()).hexdigest()
        if not stamp.is_file() or stamp.read_text() != version:
            place.renew()
            truth = self.prepare(place)
            if not truth.articles:
                raise RuntimeError(f"{place.name} was made without articles")
            kept = {"articles": sorted(truth.articles), "aliases": dict(truth.aliases)}
            place.write(TRUTH, json.dumps(kept, ensure_ascii=False, indent=1))
            place.open.close()  # stops servers that were started to make it
            stamp.write_text(version)
        kept = json.loads(place.path(TRUTH).read_text())
        return Truth(articles=frozenset(kept["articles"]), aliases=kept["aliases"])


def unpack(packages: Sequence[str]) -> None:
    """Unpack packages and their dependencies. Raises Unavailable with apt's message."""
    wanted = [*SERVER, *packages]
    stamp = HOME / "unpacked" / hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:16]
    if stamp.is_file():
        return
    archives = HOME / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    options = ("Debug::NoLocking=1", f"Dir::Cache::archives={archives}")
    words = ["install", "--download-only", "--no-install-recommends", "-y"]
    _apt([*words, *(word for option in options for word in ("-o", option))], wanted)
    ROOT.mkdir(parents=True, exist_ok=True)
    stamp.parent.mkdir(exist_ok=True)
    for archive in sorted(archives.glob("*.deb")):
        if not (done_with := stamp.with_name(archive.name)).exists():
            extract(archive, ROOT)
            done_with.touch()
    _relink()
    stamp.write_text(" ".join(wanted) + "\n")


def fetched(packages: Sequence[str], folder: Path) -> list[Path]:
    """Fetch packages without dependencies. Raises Unavailable with apt's message."""
    folder.mkdir(parents=True, exist_ok=True)
    _apt(["download"], packages, folder)
    return sorted(folder.glob("*.deb"))


def _apt(words: Sequence[str], packages: Sequence[str], folder: Path | None = None) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no {tool}: the applications are packages of Debian")
    command = ["apt-get", *words, "-qq", "-o", "APT::Sandbox::User=", *packages]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_LIMIT_S,
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:]
        raise Unavailable(f"apt cannot have {' '.join(packages)} (try apt-get update): {said}")


def extract(archive: Path, folder: Path) -> None:
    """Unpack a package into a folder. Existing files stay, because some packages share a folder."""
    # Packages are not unpacked in the order of their dependencies, so links may be dangling:
    # DokuWiki has one in place of a library that it needs. A folder replaces such a link.
    folder.mkdir(parents=True, exist_ok=True)
    read = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with (
        subprocess.Popen(read, stdout=subprocess.PIPE) as reading,
        tarfile.open(fileobj=reading.stdout, mode="r|") as members,
    ):
        for place in [folder / member.name for member in members if member.isdir()]:
            if place.is_symlink() and not place.exists():
                place.unlink()
    write = ["tar", "-x", "--skip-old-files", "-C", str(folder)]
    with subprocess.Popen(read, stdout=subprocess.PIPE) as reading:
        subprocess.run(write, stdin=reading.stdout, check=True)
    if reading.returncode:
        raise Unavailable(f"{archive.name} cannot be unpacked")


def file(path: str) -> Path:
    """Find a package's file by a pattern, unpacked or installed. Raises Unavailable."""
    for folder in (ROOT, Path("/")):
        if found := sorted(folder.glob(path)):
            return found[-1]
    raise Unavailable(f"no package has brought /{path}")


def _relink() -> None:
    """Make absolute links point to their unpacked targets."""
    for folder, names, files in os.walk(ROOT):
        for name in (*names, *files):
            link = Path(folder, name)
            if link.is_symlink() and (target := link.readlink()).is_absolute():
                within = ROOT / target.relative_to("/")
                if within.is_symlink() or within.exists():
                    link.unlink()
                    link.symlink_to(within)


def serve(place: Place, port: int, site: str) -> None:
    """Serve a site with Apache, by a part of its configuration."""
    folder = file("usr/lib/apache2/modules")
    modules = (f'LoadModule {name}_module "{folder}/mod_{name}.so"' for name in MODULES.split())
    text = CONFIGURATION.format(
        folder=place.folder,
        address=ADDRESS,
        port=port,
        modules="\n".join(modules),
        types=file("etc/mime.types"),
        log=LOG,
        site=site,
    )
    place.path(LOG).unlink(missing_ok=True)
    configuration = place.write("apache.conf", text)
    place.hand_over()
    apache = file("usr/sbin/apache2")
    place.start([apache, "-f", configuration, "-D", "FOREGROUND"], port=port)


def serve_wsgi(place: Place, port: int, python: Path, application: str, home: Path) -> None:
    """Serve an application with its own server, run by the caller, behind Apache.

    `application` is Python code that defines it. `sys.argv[3]` is its `home`.
    """
    own = free_port()
    script = place.write("serve.py", application + WSGI_SERVER)
    place.start([python, script, ADDRESS, str(own), home], port=own, **CALLER)
    serve(place, port, f'ProxyPreserveHost On\nProxyPass "/" "http://{ADDRESS}:{own}/"')
