"""The distribution: name, dependencies, and contents of the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from localstack import extras

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Files that may contain an install command.
TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")),
    *(ROOT / "docs").rglob("*.md"),
    *(
        path
        for folder in ("functions", "infra", "localstack")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md")
    ),
]
INSTALL = re.compile(r"\b(?:pip3?|pipx|uv pip|uv tool) install ((?:-\S+ )*)(['\"]?[^\s`'\")]+)")
# A local file, or a name that is composed elsewhere.
FILES = re.compile(r"['\"]?(\S+\.whl|\{DISTRIBUTION\}\S*|\.|/\S*)")


def names(requirements: list[str]) -> set[str]:
    return {re.sub(r"\s+", "", one) for one in requirements}


def test_install_commands_name_own_distribution() -> None:
    """Another project owns the name `orbweaver` on the package index."""
    assert PROJECT["project"]["name"] == extras.DISTRIBUTION
    told = [
        (path.relative_to(ROOT).as_posix(), found[2].strip("'\""))
        for path in TEXTS
        for found in INSTALL.finditer(path.read_text())
    ]
    assert len(told) >= 3
    for where, what in told:
        name = what.partition("[")[0]
        assert name == extras.DISTRIBUTION or FILES.fullmatch(what), f"{where}: {what}"


def test_named_extras_exist_with_their_size() -> None:
    known = set(PROJECT["project"]["optional-dependencies"])
    assert known == {extras.AWS, extras.DEPLOY, extras.NODE}
    for path in TEXTS:
        for found in re.finditer(r"orbweaver-crawler\[([a-z,]+)\]", path.read_text()):
            assert set(found[1].split(",")) <= known, path
    page = (ROOT / "docs" / "install.md").read_text()
    for name in known:
        assert re.search(rf"^\| `\[{name}\]` \|.* \d+ MB", page, re.MULTILINE), name


def test_dependencies_equal_runtime_without_aws() -> None:
    needed = names(PROJECT["project"]["dependencies"])
    runtime = names(PROJECT["dependency-groups"]["runtime"])
    aws = names(PROJECT["project"]["optional-dependencies"][extras.AWS])
    assert runtime <= needed | aws
    assert not needed & aws
    words = " ".join(needed)
    for heavy in ("boto", "node", "pyarrow", "mypy", "moto", "ministack"):
        assert heavy not in words
    speaks_to_a_stack = {
        package for package, (extra, _) in extras.PACKAGES.items() if extra == extras.AWS
    }
    assert {re.split(r"[<>=]", one)[0].replace("-", "_") for one in aws} <= speaks_to_a_stack


def test_deploy_extra_includes_aws_extra() -> None:
    deploy = PROJECT["project"]["optional-dependencies"][extras.DEPLOY]
    assert f"{extras.DISTRIBUTION}[{extras.AWS}]" in deploy


@pytest.mark.thorough
def test_wheel_has_files_of_crawl_without_tests(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("functions", "infra", "localstack", "requirements"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copyfile(path, tree / path.name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=tree,
        check=True,
        capture_output=True,
    )
    (file,) = tmp_path.glob("*.whl")
    assert file.name.startswith("orbweaver_crawler-")
    with zipfile.ZipFile(file) as wheel:
        held = wheel.namelist()
        (about,) = (name for name in held if name.endswith(".dist-info/METADATA"))
        (entry,) = (name for name in held if name.endswith("entry_points.txt"))
        metadata = Parser().parsestr(wheel.read(about).decode())
        assert "orbweaver = orbweaver.cli.main:main" in wheel.read(entry).decode()
    assert metadata["Name"] == extras.DISTRIBUTION
    assert set(metadata.get_all("Provides-Extra", [])) == {"aws", "deploy", "node"}
    for part in (
        "orbweaver/cli/query/queries/",
        "handlers/worker.py",
        "infra/asset.py",
        "localstack/guard.py",
        "localstack/shipped/app.py",
        "localstack/shipped/cdk.json",
        "localstack/shipped/package-lock.json",
        "localstack/shipped/requirements/runtime.txt",
        "localstack/shipped/requirements/files.txt",
        "localstack/shipped/requirements/emulator.txt",
    ):
        assert any(name.startswith(part) for name in held), part
    tops = {name.partition("/")[0] for name in held}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        *("orbweaver", "handlers", "infra", "localstack"),
    }


@pytest.mark.parametrize("name", ["runtime", "files", "emulator"])
def test_requirements_installed_later_have_hashes(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    pinned = re.findall(r"^[a-z0-9][^\n]*==[^\n]*\\\n    --hash=sha256:", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE))
