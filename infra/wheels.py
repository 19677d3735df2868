"""Libraries for the functions' platform: wheels, unpacked, pruned and compiled.

The wheels are pinned by hash in a compiled requirements file. No wheel is built from source, and
installing runs no code. The modules are compiled if this machine has a Python of the functions'
version. Otherwise every cold start compiles 600 modules, because /var/task is read-only. Measured
with Python 3.13: importing the libraries takes 1.40 s without compiled files, 0.43 s with them.

Files that functions never read are removed. The largest are botocore's models of unused services.
The METADATA of each package is kept, because vulnerability scanners need it.

A runtime is architecture and version in one setting, because wheels depend on both. On AWS, all
runtimes use Amazon Linux 2023, whose C library is new enough for today's wheels. An emulator runs
functions on this machine, so it has this machine's runtime.
Source: docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MTIME_S = 315_532_800  # 1980-01-01, the earliest time that a zip file can contain
# AWS services whose models are kept. botocore itself uses sts for the credentials of a role.
SERVICES = frozenset(
    {"dynamodb", "events", "glue", "lambda", "s3", "secretsmanager", "sqs", "ssm", "sts"}
)
# Suffixes of files to remove: files for compilers and type checkers, and scripts of a web page that
# is never shown.
SUFFIXES_LEFT_OUT = frozenset(
    {".c", ".cfg", ".cpp", ".css", ".h", ".js", ".lock", ".pxd", ".pxi", ".pyc", ".pyi", ".pyx"}
    | {".rst", ".typed"}
)
# Folders to remove. cffi and pycparser compile C; a compiled module needs only _cffi_backend.
FOLDERS_LEFT_OUT = (
    *("bin", "docs", "cffi", "pycparser", "boto3/data", "boto3/examples"),
    "html_to_markdown/bin",  # a command-line program, 14 MB
    "duckdb/experimental",  # an interface like Spark's
)
NO_WORDS = {"documentation": ""}
# On arm64, computing costs a fifth less than on x86_64. All pinned libraries have wheels for 3.13.
AWS_RUNTIME = "arm64/python3.13"
ARCHITECTURES = {"arm64": "arm64", "aarch64": "arm64", "x86_64": "x86_64", "AMD64": "x86_64"}


class AssetError(Exception):
    """The asset cannot be built. The message contains a remedy."""


def install(runtime: Runtime, requirements: Path, folder: Path) -> None:
    """Unpack the pinned wheels with uv, or with pip if uv reaches no index."""
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
    raise AssetError("\n".join([*said, f"Neither uv nor pip could install {requirements.name}"]))


@functools.cache
def find_compiler(runtime: Runtime) -> str | None:
    """Return a Python on this machine that can compile for the runtime, or None."""
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


def is_needed(path: Path) -> bool:
    """Return whether a function ever reads a library's file. `path` is relative to the folder."""
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
    """Remove files that no function needs, and folders that are then empty."""
    for file in [*folder.rglob("*")]:
        if file.is_file() and not is_needed(file.relative_to(folder)):
            file.unlink()
    # Containers read these files when they start. Shortened, they take a worker 10 ms instead of
    # 35.
    models = folder / "botocore" / "data"
    for file in [models / "endpoints.json", *models.glob("*/*/*.json.gz")]:
        if file.is_file():
            _shorten(file)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _shorten(file: Path) -> None:
    """Remove documentation from a model file, or unused services from the list of endpoints."""
    packed = file.suffix == ".gz"
    data = file.read_bytes()
    model = without_words(json.loads(gzip.decompress(data) if packed else data))
    for partition in model.get("partitions", ()):
        services = partition["services"]
        partition["services"] = {name: services[name] for name in services if name in SERVICES}
    data = json.dumps(model, separators=(",", ":")).encode()
    # No timestamp is written, so that the same wheels give the same asset.
    file.write_bytes(gzip.compress(data, mtime=0) if packed else data)


def without_words(value: Any) -> Any:
    """Empty all `documentation` texts, which botocore requires. Other members do not change."""
    match value:
        case {"documentation": str()}:
            return {**{key: without_words(inner) for key, inner in value.items()}, **NO_WORDS}
        case dict():
            return {key: without_words(inner) for key, inner in value.items()}
        case list():
            return [without_words(inner) for inner in value]
        case _:
            return value


def finish(folder: Path, compiler: str | None) -> None:
    """Compile a folder. All files get the same time and modes on every machine."""
    if compiler:
        # Python does not compare timestamps of these bytecode files, because deployed files never
        # change.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """An architecture and a Python version. `native`: both are this machine's, for an emulator."""

    architecture: str
    python: str
    native: bool = False

    @classmethod
    def parse(cls, name: str, *, native: bool) -> Runtime:
        architecture, python = name.split("/python")
        return cls(architecture=architecture, python=python, native=native)


def host_runtime() -> str:
    machine = platform.machine()
    major, minor, *_ = sys.version_info
    return f"{ARCHITECTURES.get(machine, machine)}/python{major}.{minor}"
