"""Checks of `make release`."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def checkout(folder: Path) -> None:
    """Make a repository that can be released as 1.2.3, with a tag on its first commit."""
    package = folder / "functions/orbweaver"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Docs."""\n\n__version__ = "1.2.3"\n')
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2026-11-29\n")
    git(folder, "init", "--quiet")
    commit(folder)
    git(folder, "tag", "v1.2.2")


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a")


@pytest.mark.parametrize(
    ("file", "old", "new", "is_committed", "problem"),
    [
        ("CHANGELOG.md", "", "", True, None),
        ("CHANGELOG.md", "1.2.3", "1.2.30", True, "CHANGELOG.md: no heading has the version 1.2.3"),
        ("CHANGELOG.md", "## [1.2.3]", "Since 1.2.3:", True, "CHANGELOG.md: no heading"),
        ("CHANGELOG.md", "2026", "2027", False, "the tree has changes"),
        ("new", "", "", False, "the tree has changes"),
        ("functions/orbweaver/__init__.py", "1.2.3", "1.2.4", True, "set __version__ to 1.2.3"),
        ("pyproject.toml", "1.2.3", "1.2", True, "'1.2' is not X.Y.Z"),
        ("pyproject.toml", "1.2.3", "1.2.2", True, "the tag v1.2.2 names another commit"),
    ],
)
def test_release_problems_name_each_fault(
    release: ModuleType,
    tmp_path: Path,
    file: str,
    old: str,
    new: str,
    *,
    is_committed: bool,
    problem: str | None,
) -> None:
    checkout(tmp_path)
    path = tmp_path / file
    text = path.read_text() if path.exists() else ""
    path.write_text(text.replace(old, new) if old else text)
    if is_committed and old:
        commit(tmp_path)
    found = list(release.problems(tmp_path))
    assert (problem is None) == (not found)
    assert problem is None or any(problem in one for one in found)


def test_release_of_tagged_commit_can_be_repeated(release: ModuleType, tmp_path: Path) -> None:
    checkout(tmp_path)
    git(tmp_path, "tag", "--annotate", "--message", "a", "v1.2.3")
    assert not list(release.problems(tmp_path))


def test_checksums_have_form_of_sha256sum(release: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"abc")
    (tmp_path / "SHA256SUMS").write_text("old")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert release.checksums(tmp_path) == f"{digest}  a.whl\n"
