"""The functions' code as two folders (one for each of `Libraries`), built without Docker.

Contents: the wheels pinned in requirements/ without files that no function reads (infra/wheels.py),
and functions/ without the command line. Assets are cached under a digest of all inputs. The digest
is also the asset's hash: equal inputs give equal assets on any machine.

Source: docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html (250 MB unpacked).
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from infra import wheels
from infra.browser import FOLDER as BROWSER
from infra.wheels import AssetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from infra.wheels import Runtime

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / ".local" / "asset"
KEPT_MAX = 8  # archives of each kind in the cache: four pairs of assets, if no stack renders
PACKED = ".zst"
# Python package that contains the user's own extraction functions
# (orbweaver/adapters/local/custom_extractors.py).
EXTRACTOR = "orbweaver_extractor"
UNPACKED_BYTES_MAX = 250 * 1024 * 1024

# Libraries of an asset, and name of their requirements file. `runtime` is for most functions,
# `files` for functions that write or deliver files. The `files` libraries are ten times as large.
Libraries = Literal["runtime", "files"]
# Modules that only the `files` asset contains, because they need its libraries.
FILES_ONLY = (
    "orbweaver/adapters/local/sftp.py",
    "orbweaver/adapters/local/sftp_connection.py",
    "orbweaver/exporting/formats/parquet.py",
)
# The hosted console, which only some stacks have.
CONSOLE = ("orbweaver/console", "handlers/console.py")

NOT_COMPILED = (
    "not compiled, so workers take twice as long to start: install the functions' Python on this"
    " machine (uv python install 3.13)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """The code of functions: a folder, and an archive of it for deployment.

    `hash` is a digest of the inputs.
    """

    libraries: Libraries
    folder: Path
    archive: Path
    hash: str
    unpacked_bytes: int
    zipped_bytes: int
    # True if the asset contains bytecode. Otherwise a function compiles the modules at every start,
    # because it cannot write bytecode.
    compiled: bool = True

    def __str__(self) -> str:
        """Return a line with the sizes, and a warning if bytecode is missing."""
        unpacked, zipped = self.unpacked_bytes / 2**20, self.zipped_bytes / 2**20
        limit = UNPACKED_BYTES_MAX / 2**20
        name = "code asset" if self.libraries == "runtime" else f"code asset for {self.libraries}"
        size = f"{name}: {unpacked:.1f} MB, zipped {zipped:.1f} MB (limit {limit:.0f} MB)"
        return size if self.compiled else f"{size}; {NOT_COMPILED}"


def build(
    runtime: Runtime,
    libraries: Libraries = "runtime",
    *,
    root: Path = ROOT,
    store: Path = STORE,
    extractor: Path | None = None,
    console: bool = False,
    browser: Path | None = None,
) -> Asset:
    """Return an asset for a runtime. It is taken from the cache, or built.

    `extractor` is a file with the user's extraction functions. `console` includes the console,
    `browser` is the folder of a packed browser.
    """
    compiler = wheels.find_compiler(runtime)
    requirements = root / "requirements" / f"{libraries}.txt"
    recipe = [Path(file).read_bytes() for file in (__file__, wheels.__file__)]
    recipe += [libraries.encode(), json.dumps([asdict(runtime), bool(compiler)]).encode()]
    libraries_key = _digest([*recipe, requirements.read_bytes()])
    paths = own_files(root / "functions", libraries, console=console)
    own = {path.as_posix(): root / "functions" / path for path in paths}
    own |= {f"{EXTRACTOR}/__init__.py": extractor} if extractor else {}
    own |= {f"{BROWSER}/{file.name}": file for file in sorted(browser.iterdir())} if browser else {}
    parts = [part for name, file in own.items() for part in (name.encode(), file.read_bytes())]
    key = _digest([libraries_key.encode(), *parts])

    def make_libraries(folder: Path) -> None:
        wheels.install(runtime, requirements, folder)
        wheels.prune(folder)
        wheels.finish(folder, compiler)

    packages = sorted({Path(name).parts[0] for name in own})

    def make(folder: Path) -> None:
        shutil.copytree(installed, folder, copy_function=os.link, dirs_exist_ok=True)
        for name, file in own.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / name)
        for package in packages:
            wheels.finish(folder / package, compiler)

    with _alone(store):
        installed = obtain(store / f"libraries-{libraries_key}", make_libraries)
        folder = obtain(store / key, make)
        # CDK would compress all files, which takes ten seconds for the libraries. Here their
        # archive is copied, so an asset with changes only in functions/ takes one second.
        base = _archived(installed, installed.with_suffix(".zip"))
        archive = _archived(folder, folder.with_suffix(".zip"), packages, base)
        for used in (archive, base):
            os.utime(used)  # the least recently used is deleted first
        asset = _weighed(libraries, folder, archive, key, compiled=bool(compiler))
        _drop_oldest(store)
    return asset


def source_of(path: str, root: Path) -> Path | None:
    """Return the file that the context key `extractor` names, or None if `path` is empty.

    The file is parsed, not run. Raises AssetError unless it is valid Python and defines a public
    function.
    """
    if not path:
        return None
    file = root / path
    if not file.is_file():
        raise AssetError(f"context key extractor={path}: there is no such file in {root}")
    try:
        tree = ast.parse(file.read_bytes(), filename=path)
    except (SyntaxError, ValueError) as error:
        raise AssetError(f"context key extractor={path}: it is not Python: {error}") from error
    if not any(isinstance(node, ast.FunctionDef) and node.name[0] != "_" for node in tree.body):
        fix = "define one that takes a page and its URL, and whose name begins with no underscore"
        raise AssetError(f"context key extractor={path}: it has no function: {fix}")
    return file


@contextlib.contextmanager
def _alone(store: Path) -> Iterator[None]:
    """Lock the cache, so that only one process builds an asset."""
    store.mkdir(parents=True, exist_ok=True)
    place = os.open(store, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # without locks, two processes may build the same asset
            fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)  # also releases the lock


def _weighed(
    libraries: Libraries, folder: Path, archive: Path, key: str, *, compiled: bool
) -> Asset:
    with zipfile.ZipFile(archive) as opened:
        unpacked = sum(info.file_size for info in opened.infolist())
    asset = Asset(
        libraries=libraries,
        folder=folder,
        archive=archive,
        hash=key,
        unpacked_bytes=unpacked,
        zipped_bytes=archive.stat().st_size,
        compiled=compiled,
    )
    if asset.unpacked_bytes > UNPACKED_BYTES_MAX:
        raise AssetError(f"{asset}: remove libraries from requirements/{libraries}.txt")
    return asset


def own_files(
    functions: Path, libraries: Libraries = "runtime", *, console: bool = False
) -> Iterator[Path]:
    """Yield the files of the folder `functions` to deploy, relative to it."""
    left_out = ("orbweaver/cli", *(() if console else CONSOLE))
    for file in sorted(functions.rglob("*")):
        path = file.relative_to(functions)
        if file.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
            if any(map(path.is_relative_to, left_out)):
                continue
            if libraries == "files" or path.as_posix() not in FILES_ONLY:
                yield path


def obtain(kept: Path, make: Callable[[Path], None]) -> Path:
    """Return a cached folder. If it is missing, `make` fills it, and a rename publishes it."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=kept.parent) as draft:
            folder = Path(draft) / "asset"
            folder.mkdir()
            make(folder)
            with contextlib.suppress(OSError):  # another process was faster, with the same result
                folder.rename(kept)
    return kept


def _archived(
    folder: Path, kept: Path, packages: Sequence[str] = (".",), base: Path | None = None
) -> Path:
    """Return an archive of a folder's `packages` from the cache, or create it.

    The packages are appended to a copy of the archive `base`.
    """
    if not kept.exists():
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=kept.parent) as draft:
            target = Path(draft) / "asset.zip"
            if base is not None:
                shutil.copyfile(base, target)
            # West of Greenwich, the earliest time that a zip file can contain (1980-01-01 UTC) is
            # still in 1979.
            with zipfile.ZipFile(
                target, "a", zipfile.ZIP_DEFLATED, strict_timestamps=False
            ) as archive:
                for package in packages:
                    for path in sorted((folder / package).rglob("*")):
                        if path.is_file():
                            # Already compressed files are stored without compression.
                            packing = zipfile.ZIP_STORED if path.suffix == PACKED else None
                            archive.write(path, path.relative_to(folder), packing)
            target.rename(kept)
    return kept


def _drop_oldest(store: Path) -> None:
    for pattern in ("[!.l]*.zip", "libraries-*.zip"):
        archives = sorted(store.glob(pattern), key=lambda archive: archive.stat().st_mtime)
        for archive in archives[:-KEPT_MAX]:
            shutil.rmtree(archive.with_suffix(""), ignore_errors=True)
            archive.unlink(missing_ok=True)


def _digest(parts: list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:32]
