"""How assets are built: once per inputs, atomically, and with users' own modules."""

from __future__ import annotations

import os
import zipfile
from threading import Event, Thread
from typing import TYPE_CHECKING, get_args

import pytest

from infra import asset, wheels
from infra.asset import EXTRACTOR, Libraries, build, source_of
from infra.config import Config
from infra.wheels import AssetError
from orbweaver.adapters.local import custom_extractors

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = Config.from_context({"target": "local"}).functions_run_on


def small_project(root: Path, text: str = "x = 1\n") -> Path:
    """Create a project whose functions need no library."""
    for name in ("handlers/__init__.py", "orbweaver/__init__.py"):
        (root / "functions" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "functions" / name).write_text(text)
    (root / "requirements").mkdir(exist_ok=True)
    for libraries in get_args(Libraries):
        (root / "requirements" / f"{libraries}.txt").touch()
    return root


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Install nothing, and record the target folders."""
    installed: list[Path] = []
    monkeypatch.setattr(wheels, "install", lambda _runtime, _pins, folder: installed.append(folder))
    return installed


def test_same_inputs_give_same_asset_built_once(tmp_path: Path, no_libraries: list[Path]) -> None:
    project = small_project(tmp_path)
    first = build(LOCAL, root=project, store=tmp_path / "store")
    assert build(LOCAL, root=project, store=tmp_path / "store") == first
    assert len(no_libraries) == 1
    elsewhere = build(LOCAL, root=project, store=tmp_path / "elsewhere")
    assert elsewhere.hash == first.hash
    made = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.py*")}
        for folder in (first.folder, elsewhere.folder)
    ]
    assert made[0] == made[1]


def test_concurrent_builder_waits_and_reuses_asset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, store = small_project(tmp_path), tmp_path / "store"
    installed: list[Path] = []
    both = Event()
    second = Thread(target=lambda: build(LOCAL, root=project, store=store))

    def install(_runtime: object, _pins: object, folder: Path) -> None:
        installed.append(folder)
        if len(installed) == 1:
            second.start()
            both.wait(0.5)  # The time that the other builder would need to start.
        else:
            both.set()

    monkeypatch.setattr(wheels, "install", install)
    build(LOCAL, root=project, store=store)
    second.join()
    assert len(installed) == 1


def test_code_change_keeps_installed_libraries(tmp_path: Path, no_libraries: list[Path]) -> None:
    store = tmp_path / "store"
    first = build(LOCAL, root=small_project(tmp_path), store=store)
    second = build(LOCAL, root=small_project(tmp_path, "x = 2\n"), store=store)
    assert first.hash != second.hash
    assert (second.folder / "handlers" / "__init__.py").read_text() == "x = 2\n"
    with zipfile.ZipFile(second.archive) as archive:
        assert archive.read("handlers/__init__.py") == b"x = 2\n"
    assert len(no_libraries) == 1


def test_assets_have_separate_libraries_and_same_code(
    tmp_path: Path, no_libraries: list[Path]
) -> None:
    project, store = small_project(tmp_path), tmp_path / "store"
    first, second = (build(LOCAL, name, root=project, store=store) for name in get_args(Libraries))
    assert first.hash != second.hash
    assert [str(first).split(":")[0], str(second).split(":")[0]] == [
        "code asset",
        "code asset for files",
    ]
    assert len(no_libraries) == 2


def test_pin_change_installs_again(tmp_path: Path, no_libraries: list[Path]) -> None:
    store = tmp_path / "store"
    first = build(LOCAL, root=small_project(tmp_path), store=store)
    (tmp_path / "requirements" / "runtime.txt").write_text("# other\n")
    assert build(LOCAL, root=tmp_path, store=store).hash != first.hash
    assert len(no_libraries) == 2


def test_only_newest_assets_are_kept(tmp_path: Path, no_libraries: list[Path]) -> None:
    store = tmp_path / "store"
    for number in range(asset.KEPT_MAX + 3):
        built = build(LOCAL, root=small_project(tmp_path, f"x = {number}\n"), store=store)
        os.utime(built.archive, (number, number))
        assert built.folder.is_dir()
    kept = [path for path in store.iterdir() if "libraries" not in path.name]
    assert len(kept) == 2 * asset.KEPT_MAX


def test_failed_installation_leaves_no_asset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssetError("no index")

    monkeypatch.setattr(wheels, "install", fail)
    with pytest.raises(AssetError):
        build(LOCAL, root=small_project(tmp_path), store=tmp_path / "store")
    assert list((tmp_path / "store").iterdir()) == []


def test_user_module_is_packaged(tmp_path: Path, no_libraries: list[Path]) -> None:
    project, store = small_project(tmp_path), tmp_path / "store"
    (project / "own.py").write_text("def books(page, url): ...\n")
    without = build(LOCAL, root=project, store=store)
    own = source_of("own.py", project)
    made = build(LOCAL, root=project, store=store, extractor=own)
    assert made.hash != without.hash
    with zipfile.ZipFile(made.archive) as archive:
        assert archive.read(f"{EXTRACTOR}/__init__.py") == b"def books(page, url): ...\n"
    (project / "own.py").write_text("def other(page, url): ...\n")
    assert build(LOCAL, root=project, store=store, extractor=own).hash != made.hash
    assert source_of("", project) is None
    assert EXTRACTOR == custom_extractors.MODULE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "context key extractor=own.py: there is no such file in "),
        ("def (", "context key extractor=own.py: it is not Python: "),
        ("def _books(page, url): ...", "context key extractor=own.py: it has no function: "),
    ],
)
def test_invalid_user_module_stops_deployment(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "own.py").write_text(text)
    with pytest.raises(AssetError) as stopped:
        source_of("own.py", tmp_path)
    assert str(stopped.value).startswith(said)
