#!/usr/bin/env python3
"""Build a release into dist/, and print the commands that publish it.

It fails with a list of problems if the checkout is not ready: versions differ, the changelog has no
section of the version, the tree has changes, or the tag names another commit. Builds of one commit
are identical, because their files have the time of the commit.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
SUMS = "SHA256SUMS"
NEXT = """
To publish {version}, after `make test`, `make test-long` and `make chaos` have passed:

  git tag --sign v{version} --message "Orbweaver {version}"
  git push origin v{version}
  .venv/bin/uv publish dist/*.whl dist/*.tar.gz
  gh release create v{version} dist/* --verify-tag --notes-file CHANGELOG.md
"""


def git(root: Path, *words: str) -> str:
    command = ["git", *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.rstrip()


def version_of(root: Path) -> str:
    declared: str = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    return declared


def problems(root: Path) -> Iterator[str]:
    """Yield each reason why this checkout cannot be released."""
    version = version_of(root)
    if not VERSION.fullmatch(version):
        yield f"pyproject.toml: {version!r} is not X.Y.Z"
    package = (root / "functions/orbweaver/__init__.py").read_text()
    if re.findall(r'^__version__ = "(.*)"$', package, re.MULTILINE) != [version]:
        yield f"functions/orbweaver/__init__.py: set __version__ to {version}"
    changelog = (root / "CHANGELOG.md").read_text()
    if not re.search(rf"^#+ .*(?<![\d.]){re.escape(version)}(?![\d.])", changelog, re.MULTILINE):
        yield f"CHANGELOG.md: no heading has the version {version}"
    if changed := git(root, "status", "--porcelain"):
        yield f"the tree has changes; commit or remove them:\n{changed}"
    tagged = git(root, "rev-parse", "--verify", "--quiet", f"v{version}^{{commit}}")
    if tagged and tagged != git(root, "rev-parse", "HEAD"):
        yield f"the tag v{version} names another commit, {tagged[:12]}: raise the version"


def checksums(folder: Path) -> str:
    """Return lines in the form of `sha256sum`."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files
    )


def main() -> int:
    found = list(problems(ROOT))
    if found:
        print("not ready for a release:", *found, sep="\n- ", file=sys.stderr)
        return 1
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    committed_s = git(ROOT, "log", "-1", "--format=%ct")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel"],
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": committed_s},
        check=True,
    )
    sums = checksums(folder)
    (folder / SUMS).write_text(sums)
    print(f"\ndist/{SUMS}:\n{sums}{NEXT.format(version=version_of(ROOT))}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
