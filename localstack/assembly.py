"""Synthesized stacks (CDK assemblies), cached because a synthesis takes about 8 s.

The cache key is a hash of all files that a synthesis reads (`INPUTS`), the given context and the
Python version. Only the most recently used assemblies are kept, because each contains a code asset.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from infra import asset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

# Files and folders that the app and its code asset read. dev.txt contains the version of the CDK
# library.
INPUTS = (
    "app.py",
    "cdk.json",
    "infra",
    "functions",
    "requirements/runtime.txt",
    "requirements/files.txt",
    "requirements/dev.txt",
    "package-lock.json",
)
STACK = "aws:cloudformation:stack"
KEPT_MAX = 4
DRAFT_AGE_S_MAX = 3600.0  # an older unfinished assembly was left by a killed process


def fingerprint(root: Path, context: Mapping[str, str], inputs: tuple[str, ...] = INPUTS) -> str:
    """Return a hash of the inputs of a synthesis.

    Files in `inputs` that do not exist are skipped.
    """
    settings = {"context": dict(context), "python": list(sys.version_info[:2])}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    digest.update(digest_of(root, (*inputs, *_extractor(root, context))))
    return digest.hexdigest()[:32]


def digest_of(root: Path, names: Iterable[str] = ("",)) -> bytes:
    """Return a hash of the paths and contents of files and folders in `root`."""
    digest = hashlib.sha256()
    for name in names:
        for file in _files(root / name):
            path = os.path.relpath(file, root).encode()
            content = hashlib.sha256(file.read_bytes()).digest()
            digest.update(len(path).to_bytes(4, "big") + path + content)
    return digest.digest()


def obtain(key: str, store: Path, make: Callable[[Path], None]) -> Path:
    """Return the cached assembly with this key. If it is missing, `make` creates it in a folder."""
    kept = asset.obtain(store / key, make)
    os.utime(kept)  # the least recently used assembly is deleted first
    _drop_oldest(store)
    return kept


def stack_of(assembly: Path) -> tuple[str, dict[str, Any]]:
    """Return the name and the template of an assembly's only stack."""
    artifacts = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    ((name, stack),) = (one for one in artifacts.items() if one[1]["type"] == STACK)
    template = json.loads((assembly / stack["properties"]["templateFile"]).read_text())
    return stack["properties"].get("stackName", name), template


def _extractor(root: Path, context: Mapping[str, str]) -> list[str]:
    """Return the path in the context key `extractor`, whose file the asset contains, as a list."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        context = {**json.loads((root / "cdk.json").read_text()).get("context", {}), **context}
    return [context["extractor"]] if context.get("extractor") else []


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.suffix != ".pyc" and "__pycache__" not in file.parts:
            yield file


def _drop_oldest(store: Path) -> None:
    by_age = sorted(store.iterdir(), key=lambda entry: entry.stat().st_mtime)
    old = [entry for entry in by_age if not entry.name.startswith(".")][:-KEPT_MAX]
    expired_s = time.time() - DRAFT_AGE_S_MAX
    drafts = [entry for entry in by_age if entry.name.startswith(".")]
    old += [entry for entry in drafts if entry.stat().st_mtime < expired_s]
    for entry in old:
        shutil.rmtree(entry, ignore_errors=True)
