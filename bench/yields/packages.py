"""Debian packages used without installation: fetched by apt, unpacked below .local/yield/root.

Installed packages are used from the system. Nothing is configured, no service is started, and no
file outside the folder is written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sysconfig
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.yields.place import HOME, ROOT, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

TRIPLET = sysconfig.get_config_var("MULTIARCH") or ""
LIBRARIES = os.pathsep.join(
    str(ROOT / folder) for folder in (f"usr/lib/{TRIPLET}", f"lib/{TRIPLET}", "usr/lib", "lib")
)
SERVER = ("apache2-bin", "apache2-data", "media-types")
PHP = tuple(
    f"php-{name}"
    for name in ("fpm", "cli", "sqlite3", "mysql", "mbstring", "intl", "xml", "gd", "apcu")
)
FETCH_LIMIT_S = 600


def unpack(packages: Sequence[str]) -> None:
    """Unpack packages and their dependencies. Raises Unavailable with apt's message."""
    wanted = [*SERVER, *packages]
    stamp = HOME / "unpacked" / hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:16]
    if stamp.is_file():
        return
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no {tool}: the applications are packages of Debian")
    archives = HOME / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    options = ["Debug::NoLocking=1", f"Dir::Cache::archives={archives}", "APT::Sandbox::User="]
    words = ["apt-get", "install", "--download-only", "--no-install-recommends", "-qq", "-y"]
    done = subprocess.run(
        [*words, *(word for option in options for word in ("-o", option)), *wanted],
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_LIMIT_S,
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:]
        raise Unavailable(f"apt cannot have {' '.join(packages)} (try apt-get update): {said}")
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
    words = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=", *packages]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, timeout=FETCH_LIMIT_S
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:]
        raise Unavailable(f"apt cannot have {' '.join(packages)} (try apt-get update): {said}")
    return sorted(folder.glob("*.deb"))


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
