"""Libraries for the functions' platform: wheels, unpacked and compiled.

The wheels are pinned by hash in a compiled requirements file. No wheel is built from source, and
installing runs no code. They are compiled if this machine has a Python of the functions' version.
/var/task is read-only, so otherwise every cold start compiles 600 modules. Measured with Python
3.13: importing the libraries takes 1.40 s without compiled files, 0.43 s with them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.runtime import Runtime

MTIME_S = 315_532_800  # 1980-01-01, the earliest time a zip file can store


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
    """Return a Python on this machine that compiles for the runtime, or None."""
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
    """Compile a folder, and give all files the same time and modes on every machine."""
    if compiler:
        # Unchecked: deployed files never change, so timestamps need no comparison.
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
