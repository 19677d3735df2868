"""The code of the functions as one folder, built without Docker.

Rules
- What goes in: the wheels that requirements/runtime.txt pins, for the functions' platform, and
  functions/ without the command line. Nothing is built from source, nothing runs while installing.
- What stays out: what no function reads (`is_needed`); above all botocore's models of services
  that are not used. METADATA of each package stays: vulnerability scanners find packages by it.
- With compiled files, where a Python of the functions' version is at hand: /var/task is read-only,
  so without them every cold start compiles 600 modules. Measured, importing the libraries with
  Python 3.13: 1.40 s without, 0.43 s with.
- Kept under a fingerprint of all that goes in, which is also the asset's hash: equal inputs give an
  equal asset on any machine. Libraries are kept apart, so that a change to functions/ costs
  milliseconds. A folder appears whole, by a rename; the newest few are kept.

Source: docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html (250 MB unpacked).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infra.config import Config
from infra.keys import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from infra.runtime import Runtime

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / ".local" / "asset"
KEPT_MAX = 6
UNPACKED_BYTES_MAX = 250 * 1024 * 1024
MTIME_S = 315_532_800  # 1980-01-01, the earliest time a zip file can name

# sts is what botocore itself asks for credentials of a role.
SERVICES = frozenset({"dynamodb", "events", "lambda", "s3", "secretsmanager", "sqs", "sts"})
# For those who compile or type-check against a library; and the scripts of a web page nobody shows.
SUFFIXES_LEFT_OUT = frozenset(
    {".c", ".cfg", ".cpp", ".css", ".h", ".js", ".lock", ".pxd", ".pxi", ".pyc", ".pyi", ".pyx"}
    | {".rst", ".typed"}
)
# cffi and pycparser compile C; a compiled module needs only _cffi_backend.
FOLDERS_LEFT_OUT = ("bin", "docs", "cffi", "pycparser", "boto3/data", "boto3/examples")


class AssetError(Exception):
    """The asset cannot be built; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A folder to deploy; `hash` follows from what went in."""

    folder: Path
    hash: str
    unpacked_bytes: int
    zipped_bytes: int

    def __str__(self) -> str:
        """Say what it weighs."""
        unpacked, zipped = self.unpacked_bytes / 2**20, self.zipped_bytes / 2**20
        limit = UNPACKED_BYTES_MAX / 2**20
        return f"code asset: {unpacked:.1f} MB, zipped {zipped:.1f} MB (of {limit:.0f} MB at most)"


def build(runtime: Runtime, *, root: Path = ROOT, store: Path = STORE) -> Asset:
    """Return the asset for a runtime, built now where it is not kept."""
    compiler = find_compiler(runtime)
    requirements = root / "requirements" / "runtime.txt"
    recipe = [Path(__file__).read_bytes(), json.dumps([asdict(runtime), bool(compiler)]).encode()]
    libraries_key = _digest([*recipe, requirements.read_bytes()])
    own = {path.as_posix(): root / "functions" / path for path in own_files(root / "functions")}
    parts = [part for name, file in own.items() for part in (name.encode(), file.read_bytes())]
    key = _digest([libraries_key.encode(), *parts])

    def make_libraries(folder: Path) -> None:
        install(runtime, requirements, folder)
        prune(folder)
        finish(folder, compiler)

    def make(folder: Path) -> None:
        libraries = _obtain(store, f"libraries-{libraries_key}", make_libraries)
        shutil.copytree(libraries, folder, copy_function=os.link, dirs_exist_ok=True)
        for name, file in own.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / name)
        for package in {Path(name).parts[0] for name in own}:
            finish(folder / package, compiler)

    folder = _obtain(store, key, make)
    asset = Asset(folder=folder, hash=key, **_weigh(folder, store / f"{key}.json"))
    if asset.unpacked_bytes > UNPACKED_BYTES_MAX:
        raise AssetError(f"{asset}: leave libraries out of requirements/runtime.txt")
    _drop_oldest(store)
    return asset


def own_files(functions: Path) -> Iterator[Path]:
    """Yield what of functions/ is deployed, relative to it: the command line is not."""
    for file in sorted(functions.rglob("*")):
        path = file.relative_to(functions)
        if file.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
            if path.parts[0] == "orbweaver" and Path(path.parts[1]).stem == "cli":
                continue
            yield path


def is_needed(path: Path) -> bool:
    """Tell whether a file of an installed library, named from the folder's top, is ever read."""
    name = path.as_posix()
    if path.suffix in SUFFIXES_LEFT_OUT or "tests" in path.parts or path.name == ".lock":
        return False
    if any(name.startswith(f"{folder}/") for folder in FOLDERS_LEFT_OUT):
        return False
    if ".dist-info" in path.parts[0]:
        return path.name == "METADATA"
    match path.parts:
        case ["botocore", "data", service, _, file]:
            return service in SERVICES and not file.startswith("examples-")
        case _:
            return True


def prune(folder: Path) -> None:
    """Remove what is not needed, and the folders that this empties."""
    for file in [*folder.rglob("*")]:
        if file.is_file() and not is_needed(file.relative_to(folder)):
            file.unlink()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def install(runtime: Runtime, requirements: Path, folder: Path) -> None:
    """Unpack the pinned wheels: by uv, or by pip where uv finds no index."""
    common = ["--target", str(folder), "--only-binary", ":all:", "--require-hashes", "--no-compile"]
    common += ["--quiet", "-r", str(requirements)]
    machine = {"arm64": "aarch64"}.get(runtime.architecture, runtime.architecture)
    uv_for = ["--python", sys.executable]
    pip_for: list[str] = []
    if not runtime.native:
        uv_for = ["--python-platform", f"{machine}-manylinux_2_28"]
        uv_for += ["--python-version", runtime.python]
        pip_for = ["--python-version", runtime.python, "--implementation", "cp"]
        for glibc in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"):
            pip_for += ["--platform", f"{glibc}_{machine}"]
    uv = [_uv(), "pip", "install", "--link-mode", "copy"]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    said = []
    for command in ([*uv, *uv_for, *common], [*pip, *pip_for, *common]):
        with contextlib.suppress(FileNotFoundError):
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
            if done.returncode == 0:
                return
            said.append(done.stderr.strip()[-1500:])
    raise AssetError(
        "\n".join([*said, "Neither uv nor pip could install requirements/runtime.txt"])
    )


@functools.cache
def find_compiler(runtime: Runtime) -> str | None:
    """Return a Python that compiles for a runtime, or None where there is none on this machine."""
    if runtime.native:
        return sys.executable
    question = "import sys; print(*sys.version_info[:2], sep='.')"
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates = [sys.executable, f"python{runtime.python}", *_found_by_uv(runtime.python)]
    candidates += map(str, sorted(pyenv.glob(f"{runtime.python}.*/bin/python")))
    for candidate in candidates:
        with contextlib.suppress(OSError):
            asked = subprocess.run(  # noqa: S603 - no shell
                [candidate, "-c", question], capture_output=True, text=True, check=False
            )
            if asked.stdout.strip() == runtime.python:
                return candidate
    return None


def _found_by_uv(python: str) -> list[str]:
    command = [_uv(), "python", "find", "--no-python-downloads", python]
    with contextlib.suppress(OSError):
        found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
        return found.stdout.split()
    return []


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else "uv"


def finish(folder: Path, compiler: str | None) -> None:
    """Compile a folder, and make times and modes of its files the same everywhere."""
    if compiler:
        # Unchecked: nothing in a deployed asset ever changes, so nothing need be compared.
        options = [
            "-q",
            "-j",
            "0",
            "--invalidation-mode",
            "unchecked-hash",
            "-s",
            str(folder.parent),
        ]
        command = [compiler, "-m", "compileall", *options, str(folder)]
        subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - no shell
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (MTIME_S, MTIME_S))


def _obtain(store: Path, key: str, make: Callable[[Path], None]) -> Path:
    """Return a kept folder, or have it filled and then appear at once."""
    kept = store / key
    if not kept.exists():
        store.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=store) as draft:
            folder = Path(draft) / "asset"
            folder.mkdir()
            make(folder)
            with contextlib.suppress(OSError):  # another builder was faster: theirs is the same
                folder.rename(kept)
    return kept


def _weigh(folder: Path, note: Path) -> dict[str, int]:
    """Measure a folder, once: the zipped size takes a second."""
    with contextlib.suppress(OSError, ValueError):
        noted = json.loads(note.read_text())
        os.utime(note)  # used last, dropped last
        return {"unpacked_bytes": noted["unpacked_bytes"], "zipped_bytes": noted["zipped_bytes"]}
    files = [file for file in folder.rglob("*") if file.is_file()]
    with tempfile.TemporaryFile() as target:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, file.relative_to(folder))
        zipped_bytes = target.tell()
    sizes = {
        "unpacked_bytes": sum(file.stat().st_size for file in files),
        "zipped_bytes": zipped_bytes,
    }
    note.write_text(json.dumps(sizes))
    return sizes


def _drop_oldest(store: Path) -> None:
    notes = sorted(store.glob("*.json"), key=lambda note: note.stat().st_mtime)
    for note in notes[:-KEPT_MAX]:
        shutil.rmtree(note.with_suffix(""), ignore_errors=True)
        note.unlink(missing_ok=True)
    libraries = sorted(store.glob("libraries-*"), key=lambda folder: folder.stat().st_ctime)
    for folder in libraries[:-KEPT_MAX]:
        shutil.rmtree(folder, ignore_errors=True)


def _digest(parts: list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:32]


def main() -> int:
    """Build the asset for `key=value` context given on the command line, and say what it weighs."""
    try:
        config = Config.from_context(dict(word.split("=", 1) for word in sys.argv[1:]))
        asset = build(config.functions_run_on)
    except (AssetError, ConfigError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{asset}\n{asset.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
