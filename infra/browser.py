"""The renderer's browser on AWS: a Chromium built for Lambda, fetched from npm and repacked.

One version is pinned, and its digest is checked. This module does not run its code. The package is
fetched for the first stack with rendering. The repacked archive is cached next to the assets.
Included are the browser, the libraries that Amazon Linux lacks, fonts and the licence. The graphics
library is left out, because the browser draws without it (`--disable-gpu`).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from infra import node
from infra.wheels import AssetError
from orbweaver.model.compression import zstd_module
from orbweaver.rendering.launch import ARCHIVE, FONTS, LIBRARIES, MANIFEST, PROGRAM

PACKAGE, VERSION = "@sparticuz/chromium", "153.0.0"
INTEGRITY = (
    "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/E"
    "HYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
)
ARCHITECTURE = "x86_64"  # the package exists only for this architecture
# Folder of the browser in a code asset, and therefore in Lambda's task folder.
FOLDER = "browser"
PLACE = f"/var/task/{FOLDER}"
PREFIX = "browser-"
LEVEL = 10
_BINARY, _LIBRARIES, _FONTS = "bin/chromium.br", "bin/al2023.tar.br", "bin/fonts.tar.br"
_LICENCE = "LICENSE"


def obtain(root: Path, store: Path, integrity: str = INTEGRITY) -> Path:
    """Return the folder with the packed browser. The package is fetched if the cache lacks it.

    Raises AssetError if its digest is not `integrity`.
    """
    recipe = hashlib.sha256(Path(__file__).read_bytes() + integrity.encode()).hexdigest()
    kept = store / f"{PREFIX}{recipe[:32]}"
    if kept.is_dir():
        return kept
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=store) as draft:
        folder = Path(draft) / FOLDER
        folder.mkdir()
        pack(checked(_fetched(root, Path(draft)), integrity), folder)
        for old in store.glob(f"{PREFIX}*"):
            shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process was faster, with the same result
            folder.rename(kept)
    return kept


def checked(package: bytes, integrity: str) -> bytes:
    """Return `package` unchanged. Raises AssetError if its digest is not `integrity`."""
    digest = digest_of(package)
    if digest != integrity:
        raise AssetError(
            f"{PACKAGE} {VERSION} has the digest {digest}, not the one pinned in infra/browser.py"
        )
    return package


def digest_of(package: bytes) -> str:
    return f"sha512-{base64.b64encode(hashlib.sha512(package).digest()).decode()}"


def pack(package: bytes, folder: Path) -> None:
    """Write the needed files of a package as one archive, and a manifest of their sizes."""
    import brotli

    # zstd unpacks in 0.4 s of CPU and takes 80 MB; brotli takes 1.1 s and 68 MB (measured
    # 2026-11-23, AMD EPYC).
    zstd = zstd_module()
    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as tar:
        parts = {one: _read(tar, f"package/{one}") for one in (_BINARY, _LIBRARIES, _FONTS)}
        licence = _read(tar, f"package/{_LICENCE}")
    files = {PROGRAM: brotli.decompress(parts.pop(_BINARY)), _LICENCE: licence}
    for part in parts.values():
        files |= _files_of(brotli.decompress(part))
    with (
        zstd.open(folder / ARCHIVE, "wb", level=LEVEL) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if name == PROGRAM else 0o644
            tar.addfile(member, io.BytesIO(content))
    sizes = {name: len(content) for name, content in sorted(files.items())}
    manifest = {"package": f"{PACKAGE} {VERSION} {digest_of(package)}", "files": sizes}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))


def _files_of(archive: bytes) -> dict[str, bytes]:
    """Return the libraries and fonts in an archive, by name.

    The font configuration is left out: it is written when the browser is unpacked.
    """
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        names = [member.name for member in tar if member.isfile()]
        kept = [name for name in names if name.partition("/")[0] in (LIBRARIES, FONTS)]
        return {name: _read(tar, name) for name in kept}


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    try:
        found = tar.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise AssetError(f"{PACKAGE} {VERSION} holds no {name}")
    with found:
        return found.read()


def _fetched(root: Path, folder: Path) -> bytes:
    """Fetch the package with npm, and return it. Raises AssetError."""
    found = node.folder()
    if found is None:
        raise AssetError(f"npm must fetch {PACKAGE}: install Node {node.VERSION_MIN} or newer")
    words = [*node.npm(found), "pack", f"{PACKAGE}@{VERSION}", "--ignore-scripts"]
    words += ["--loglevel=error", f"--pack-destination={folder}"]
    path = f"{found}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(  # noqa: S603 - no shell
        words,
        cwd=root,
        env={**os.environ, "PATH": path, "NODE_USE_SYSTEM_CA": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    files = [*folder.glob("*.tgz")]
    if done.returncode != 0 or len(files) != 1:
        fix = "Is an npm registry reachable? npm reads npm_config_registry and .npmrc"
        raise AssetError(f"{done.stderr.strip()[-1500:]}\n{PACKAGE} could not be fetched. {fix}")
    package = files[0].read_bytes()
    files[0].unlink()
    return package
