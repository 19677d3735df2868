"""The compiled requirement files agree with each other and with pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
DECLARED = {
    "pyproject.toml": PROJECT["project"]["dependencies"],
    **PROJECT["project"]["optional-dependencies"],
    **PROJECT["dependency-groups"],
}
# Files compiled from each list. `make lock` gives files of one environment the same versions.
FILES = {
    "pyproject.toml": ("dev", "image"),
    **dict.fromkeys(("aws", "deploy", "node", "dev"), ("dev",)),
    "runtime": ("runtime", "files", "dev"),
    "files": ("files", "dev"),
    **{name: (name,) for name in ("build", "emulator", "bench", "fuzz", "site")},
}
ONE_ENVIRONMENT = ("runtime", "files", "dev", "image", "build")


def pins(name: str) -> dict[str, set[str]]:
    """Return the versions of each package in a file. Markers can give a package several."""
    text = (ROOT / f"requirements/{name}.txt").read_text()
    found: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, re.MULTILINE):
        found.setdefault(package, set()).add(version)
    return found


def test_every_list_and_every_file_is_checked() -> None:
    assert FILES.keys() == DECLARED.keys()
    stems = {path.stem for path in (ROOT / "requirements").glob("*.txt")}
    assert stems == {name for names in FILES.values() for name in names}


@pytest.mark.parametrize("source", FILES)
def test_pinned_versions_are_in_declared_ranges(source: str) -> None:
    for name in FILES[source]:
        found = pins(name)
        for requirement in map(Requirement, DECLARED[source]):
            if requirement.name == PROJECT["project"]["name"]:
                continue
            package = requirement.name.lower().replace(".", "-").replace("_", "-")
            assert package in found, f"{name}: {package}"
            assert any(requirement.specifier.contains(one) for one in found[package]), package


def test_package_has_one_version_in_all_files_of_product() -> None:
    versions: dict[str, set[str]] = {}
    for name in ONE_ENVIRONMENT:
        for package, found in pins(name).items():
            versions.setdefault(package, set()).add(str(sorted(found)))
    assert not {package: found for package, found in versions.items() if len(found) > 1}


def test_aiohttp_is_pinned_below_next_minor_version() -> None:
    """The fetcher uses internals of aiohttp, which a minor version may change."""
    for source in ("pyproject.toml", "runtime"):
        (one,) = [line for line in DECLARED[source] if line.startswith("aiohttp")]
        found = re.fullmatch(r"aiohttp>=3\.(\d+)\.\d+,<3\.(\d+)", one)
        assert found is not None
        assert int(found[2]) == int(found[1]) + 1
