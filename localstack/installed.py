"""Sets up an installed package, as `make setup` sets up a checkout. Does nothing in a checkout.

- The folder `layout.ROOT` of an installed package contains three parts: a copy of the project's
  files, the emulator and the CDK command line. Each part is installed when it is first needed, and
  again for another version of the package or of Python.
- A stamp in each part shows for which version it was installed. If two commands need the same
  part, one waits for the other.
- Only packages pinned by hash in requirements/ and package-lock.json are installed, with pip, or
  with uv if this environment has no pip.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from infra import node
from localstack import assembly, extras, guard, layout, processes
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Say = Callable[[str], None]

# Project files that the wheel contains and that belong to no package (pyproject.toml).
SHIPPED = Path(__file__).with_name("shipped")
STAMP = ".orbweaver-stamp"
LINES_SHOWN = 20


def ensure_project() -> None:
    """Copy the project's files, which a synthesis and code assets need."""
    if layout.CHECKOUT:
        return
    packages = {f"functions/{name}": _package(name) for name in ("orbweaver", "handlers")}
    sources = {**packages, "infra": _package("infra"), "": SHIPPED}
    stamp = _stamp(sys.executable.encode(), *map(assembly.digest_of, sources.values()))
    with _alone():
        if _is_current(layout.ROOT, stamp):
            return
        (layout.ROOT / STAMP).unlink(missing_ok=True)
        for name, folder in sources.items():
            if name:
                shutil.rmtree(layout.ROOT / name, ignore_errors=True)
            shutil.copytree(
                folder,
                layout.ROOT / name,
                ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
                dirs_exist_ok=True,
            )
        file = layout.ROOT / "cdk.json"
        app = {"app": f"{shlex.quote(sys.executable)} app.py"}
        file.write_text(json.dumps({**json.loads(file.read_text()), **app}, indent=2))
        (layout.ROOT / STAMP).write_text(stamp)


def ensure_emulator(say: Say) -> None:
    if layout.CHECKOUT:
        return
    ensure_project()
    requirements = layout.ROOT / "requirements" / "emulator.txt"
    stamp = _stamp(sys.version.encode(), sys.base_prefix.encode(), requirements.read_bytes())
    folder = layout.EMULATOR_PYTHON.parent.parent
    with _alone():
        if _is_current(folder, stamp):
            return
        shutil.rmtree(folder, ignore_errors=True)
        say(f"first start: fetching the emulator of AWS (some 50 MB, once) into {folder}")
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], say)
        _run([*_installer(folder / "bin" / "python"), "-r", str(requirements)], say)
        (folder / STAMP).write_text(stamp)


def ensure_cdk(say: Say) -> None:
    """Install the CDK command line. Raises ExtraMissing if CDK's library or Node is missing."""
    if layout.CHECKOUT:
        return
    extras.require_cdk()
    ensure_project()
    folder = layout.node_directory()
    if layout.CDK.exists():
        return
    with _alone():
        say(f"first use: fetching the CDK command line (once) into {layout.ROOT}")
        path = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        words = [*node.npm(folder), "ci", "--ignore-scripts", "--loglevel=error"]
        _run(words, say, PATH=path)


def _package(name: str) -> Path:
    found = find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise LocalStackError(f"The package {name} is not installed: install it anew")
    return Path(next(iter(found.submodule_search_locations)))


def _stamp(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _is_current(folder: Path, stamp: str) -> bool:
    try:
        return (folder / STAMP).read_text() == stamp
    except OSError:
        return False


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    layout.LOCAL.mkdir(parents=True, exist_ok=True)
    with guard.locked(layout.LOCAL / "setup.lock"):
        yield


def _installer(python: Path) -> list[str]:
    """Return the command that installs pinned packages for `python`, an interpreter without pip."""
    if extras.is_installed("pip"):
        words = [sys.executable, "-m", "pip", "--python", str(python), "install"]
        words.append("--disable-pip-version-check")
    else:
        beside = Path(sys.executable).with_name("uv")
        uv = str(beside) if beside.exists() else shutil.which("uv")
        if uv is None:
            fix = "install pip"
            raise LocalStackError(f"Neither pip nor uv is at hand to fetch the emulator: {fix}")
        words = [uv, "pip", "install", "--python", str(python)]
    return [*words, "--quiet", "--require-hashes"]


def _run(words: Sequence[str], say: Say, **variables: str) -> None:
    try:
        code, said = processes.run(words, layout.ROOT, {**os.environ, **variables}, say)
    except OSError as error:
        raise LocalStackError(f"Cannot run {words[0]}: {error}") from error
    if code != 0:
        tail = "\n".join(said.splitlines()[-LINES_SHOWN:])
        fix = "is a package index reachable? The next try begins anew"
        raise LocalStackError(f"{tail}\n`{' '.join(words[:4])} …` failed: {fix}")
