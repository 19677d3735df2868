"""The code assets: what most functions run, and what those run that write and deliver files."""

from __future__ import annotations

import email
import json
import os
import re
import struct
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, get_args
from zlib import crc32

import pytest

from infra import asset, wheels
from infra.asset import FILES_ONLY, UNPACKED_BYTES_MAX, Asset, Libraries, build, own_files
from infra.config import Config
from infra.custom import MODULE, source_of
from infra.pruning import SERVICES, is_needed
from infra.wheels import MTIME_S, AssetError
from orbweaver.adapters import extractors
from orbweaver.core.tables import TEXTS
from orbweaver.formats import NAMES
from tests.unit.formats.reading import written

if TYPE_CHECKING:
    from infra.runtime import Runtime

ROOT = Path(__file__).resolve().parents[2]
ELF_AARCH64 = 183
LOCAL = Config.from_context({"target": "local"}).functions_run_on
# Libraries that are imported by another name than they are installed by.
MODULES = {"google-re2": "re2"}

NEEDED = [
    ("aiohttp/client.py", True),
    ("aiohttp/_http_parser.cpython-313-aarch64-linux-gnu.so", True),
    ("botocore/cacert.pem", True),
    ("botocore/data/endpoints.json", True),
    ("botocore/data/partitions.json", True),
    ("botocore/data/sqs/2012-11-05/service-2.json.gz", True),
    ("botocore/data/sqs/2012-11-05/examples-1.json", False),
    ("botocore/data/ec2/2016-11-15/service-2.json.gz", False),
    ("boto3/session.py", True),
    ("boto3/data/s3/2006-03-01/resources-1.json", False),
    ("aiohttp-3.14.5.dist-info/METADATA", True),
    ("aiohttp-3.14.5.dist-info/RECORD", False),
    ("selectolax/lexbor.c", False),
    ("selectolax/lexbor.pyi", False),
    ("publicsuffixlist/public_suffix_list.dat", True),
    ("pkg/tests/test_it.py", False),
    ("bin/jp.py", False),
    ("pyarrow/parquet/core.py", True),
    ("pyarrow/_parquet.cpython-313-aarch64-linux-gnu.so", True),
    ("pyarrow/libarrow.so.2600", True),
    ("pyarrow/libarrow_python.so.2600", True),
    ("pyarrow/libarrow_python.so", False),
    ("pyarrow/libarrow_python.so.2600.1.0", False),
    ("pyarrow/libarrow_flight.so.2600", False),
    ("pyarrow/libarrow_python_flight.so.2600", False),
    ("pyarrow/libarrow_s3.so.2600", False),
    ("pyarrow/_s3fs.cpython-313-aarch64-linux-gnu.so", False),
    ("pyarrow/flight.py", False),
    ("pyarrow/include/arrow/api.hpp", False),
    ("pyarrow/src/arrow/python/CMakeLists.txt", False),
    (".lock", False),
]


@pytest.mark.parametrize(("name", "needed"), NEEDED)
def test_what_is_left_out(name: str, *, needed: bool) -> None:
    """Only what a function may read is deployed."""
    assert is_needed(Path(name)) is needed


def test_the_command_line_is_left_out() -> None:
    """All of functions/ is deployed but the command line."""
    files = {path.as_posix() for path in own_files(ROOT / "functions")}
    assert {"handlers/worker.py", "orbweaver/settings.py"} <= files
    assert not {name for name in files if name.startswith("orbweaver/cli")}
    assert not {name for name in files if "__pycache__" in name}


def test_what_needs_other_libraries_goes_with_them() -> None:
    """Modules that import what only one asset has are in that one only."""
    some, all_of_it = (
        {path.as_posix() for path in own_files(ROOT / "functions", libraries)}
        for libraries in get_args(Libraries)
    )
    assert all_of_it - some == set(FILES_ONLY)
    assert some < all_of_it


def test_both_have_the_same_versions() -> None:
    """What both assets hold of libraries is the same to the hash."""
    small, large = (
        (ROOT / "requirements" / f"{libraries}.txt").read_text().splitlines()
        for libraries in get_args(Libraries)
    )
    assert {line for line in small if "==" in line or "--hash" in line} <= set(large)


@pytest.fixture(scope="module", params=get_args(Libraries))
def arm64(request: pytest.FixtureRequest) -> Asset:
    """Return the assets that a deployment to AWS takes by default."""
    return build(Config().functions_run_on, request.param)


@pytest.fixture(scope="module", params=get_args(Libraries))
def local(request: pytest.FixtureRequest) -> Asset:
    """Return the assets that an emulator on this machine takes."""
    return build(LOCAL, request.param)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_arm64(arm64: Asset) -> None:
    """Everything compiled in the assets for AWS is for arm64 and Python 3.13."""
    compiled = list(arm64.folder.rglob("*.so*"))
    assert len(compiled) > 10
    for file in compiled:
        (machine,) = struct.unpack_from("<H", file.read_bytes()[:20], 18)
        assert machine == ELF_AARCH64, file
        named = (".cpython-313-", ".abi3.", ".so.")  # the last: a library of no Python
        assert any(sign in file.name for sign in named), file


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime", [Config().functions_run_on, LOCAL])
def test_size(runtime: Runtime) -> None:
    """Most functions have a quarter of what Lambda takes, the others less than three quarters."""
    built = build(runtime)
    assert built.unpacked_bytes < UNPACKED_BYTES_MAX / 4
    assert built.zipped_bytes < 25 * 2**20
    larger = build(runtime, "files")
    assert larger.unpacked_bytes < UNPACKED_BYTES_MAX * 3 / 4
    assert larger.zipped_bytes < 60 * 2**20


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_models(local: Asset) -> None:
    """Of what botocore knows, models of the services that are used are deployed."""
    models = {path.name for path in (local.folder / "botocore" / "data").iterdir() if path.is_dir()}
    assert models == SERVICES


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_archive_is_the_folder(local: Asset) -> None:
    """What is deployed holds every file of the folder once, as it is there, readable by all."""
    with zipfile.ZipFile(local.archive) as archive:
        infos = archive.infolist()
        assert len({info.filename for info in infos}) == len(infos)
        assert {info.external_attr >> 16 & 0o777 for info in infos} == {0o644}
        held = {info.filename: (info.file_size, info.CRC) for info in infos}
    files = [path for path in local.folder.rglob("*") if path.is_file()]
    assert held == {
        path.relative_to(local.folder).as_posix(): (path.stat().st_size, crc32(path.read_bytes()))
        for path in files
    }
    assert local.zipped_bytes == local.archive.stat().st_size


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_packages_can_be_told(arm64: Asset) -> None:
    """Every library still says its name and version to a scanner, and is the pinned one."""
    lines = (ROOT / "requirements" / f"{arm64.libraries}.txt").read_text().splitlines()
    pinned = {line.split()[0] for line in lines if re.match(r"[a-z0-9-]+==", line)}
    found = set()
    for metadata in arm64.folder.glob("*.dist-info/METADATA"):
        told = email.message_from_string(metadata.read_text())
        name = re.sub("[-_.]+", "-", told["Name"]).lower()
        found.add(f"{name}=={told['Version']}")
    assert found <= pinned
    assert len(found) > 20


# Imports every module of ours and every library that pyproject.toml names, and makes a client of
# each service, with nothing but the asset and the standard library to import from.
IMPORT_ALL = """
import asyncio, importlib, json, pkgutil, sys
folder, libraries, services = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
sys.path.insert(0, folder)
for package in ("handlers", "orbweaver"):
    for found in pkgutil.walk_packages([f"{folder}/{package}"], f"{package}."):
        importlib.import_module(found.name)
for library in libraries:
    importlib.import_module(library)
import aioboto3
async def clients():
    session = aioboto3.Session(
        aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
    )
    for service in services:
        async with session.client(service) as client:
            assert client.meta.service_model.operation_names
asyncio.run(clients())
foreign = {
    name for name, module in sys.modules.items()
    if "site-packages" in (getattr(module, "__file__", None) or "")
}
assert not foreign, foreign
print(len(sys.modules))
"""


# Writes a row of a format and says what the file is, of nothing but the asset.
WRITE = """
import sys
folder, name, place = sys.argv[1:]
sys.path.insert(0, folder)
from pathlib import Path
from orbweaver import formats
from orbweaver.core.tables import TEXTS
writer = formats.writer(name, TEXTS, Path(place))
writer.add({"title": "a"})
print(writer.close().sha256)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_imports(local: Asset) -> None:
    """All of our modules, all libraries and all clients work with only the asset to import from."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    words = [*project["dependencies"]]
    if local.libraries == "files":
        words += project["optional-dependencies"]["files"]
    names = [word.split(">=")[0].split(";")[0].strip() for word in words]
    modules = [MODULES.get(name, name.replace("-", "_")) for name in names]
    modules.append("selectolax.lexbor")
    command = [sys.executable, "-I", "-S", "-W", "error::ImportWarning", "-c", IMPORT_ALL]
    arguments = [str(local.folder), json.dumps(modules), json.dumps(sorted(SERVICES))]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_written(name: str, tmp_path: Path) -> None:
    """With only the asset to import from, files come out as they do here."""
    built = build(LOCAL, "files")
    words = [sys.executable, "-I", "-S", "-c", WRITE, str(built.folder), name, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [written(name, TEXTS, [{"title": "a"}], tmp_path).sha256]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_compiled(local: Asset) -> None:
    """Every module is compiled, so that a cold start compiles none."""
    sources = {path for path in local.folder.rglob("*.py") if "lib2to3" not in path.parts}
    compiled = {
        path.parent.parent / f"{path.name.split('.')[0]}.py" for path in local.folder.rglob("*.pyc")
    }
    assert sources - compiled == set()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_tells_when_it_was_built(local: Asset) -> None:
    """Times and modes of all files are the same, whoever builds, whenever."""
    stats = {
        (path.stat().st_mtime, oct(path.stat().st_mode & 0o777), path.is_dir())
        for path in local.folder.rglob("*")
    }
    assert stats == {(MTIME_S, "0o755", True), (MTIME_S, "0o644", False)}


def small_project(root: Path, text: str = "x = 1\n") -> Path:
    """Make a project whose functions need no library."""
    for name in ("handlers/__init__.py", "orbweaver/__init__.py"):
        (root / "functions" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "functions" / name).write_text(text)
    (root / "requirements").mkdir(exist_ok=True)
    for libraries in get_args(Libraries):
        (root / "requirements" / f"{libraries}.txt").touch()
    return root


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Install nothing, and note into which folder it would have been."""
    installed: list[Path] = []
    monkeypatch.setattr(wheels, "install", lambda _runtime, _pins, folder: installed.append(folder))
    return installed


def test_same_inputs_same_asset(tmp_path: Path, no_libraries: list[Path]) -> None:
    """The same inputs give the same asset, kept or built anew; nothing is built twice."""
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


def test_a_change_of_code_keeps_the_libraries(tmp_path: Path, no_libraries: list[Path]) -> None:
    """A change to functions/ gives another asset without installing anything again."""
    store = tmp_path / "store"
    first = build(LOCAL, root=small_project(tmp_path), store=store)
    second = build(LOCAL, root=small_project(tmp_path, "x = 2\n"), store=store)
    assert first.hash != second.hash
    assert (second.folder / "handlers" / "__init__.py").read_text() == "x = 2\n"
    with zipfile.ZipFile(second.archive) as archive:
        assert archive.read("handlers/__init__.py") == b"x = 2\n"
    assert len(no_libraries) == 1


def test_each_has_libraries_of_its_own(tmp_path: Path, no_libraries: list[Path]) -> None:
    """The two assets are two, with the same code of ours."""
    project, store = small_project(tmp_path), tmp_path / "store"
    first, second = (build(LOCAL, name, root=project, store=store) for name in get_args(Libraries))
    assert first.hash != second.hash
    assert [str(first).split(":")[0], str(second).split(":")[0]] == [
        "code asset",
        "code asset for files",
    ]
    assert len(no_libraries) == 2


def test_a_change_of_pins_installs_again(tmp_path: Path, no_libraries: list[Path]) -> None:
    """Other libraries make another asset."""
    store = tmp_path / "store"
    first = build(LOCAL, root=small_project(tmp_path), store=store)
    (tmp_path / "requirements" / "runtime.txt").write_text("# other\n")
    assert build(LOCAL, root=tmp_path, store=store).hash != first.hash
    assert len(no_libraries) == 2


def test_old_assets_go(tmp_path: Path, no_libraries: list[Path]) -> None:
    """Only the newest few are kept."""
    store = tmp_path / "store"
    for number in range(asset.KEPT_MAX + 3):
        built = build(LOCAL, root=small_project(tmp_path, f"x = {number}\n"), store=store)
        os.utime(built.archive, (number, number))
        assert built.folder.is_dir()
    kept = [path for path in store.iterdir() if "libraries" not in path.name]
    assert len(kept) == 2 * asset.KEPT_MAX


def test_nothing_half_made_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that fails leaves nothing that a later one would take for whole."""

    def fail(*_: object) -> None:
        raise AssetError("no index")

    monkeypatch.setattr(wheels, "install", fail)
    with pytest.raises(AssetError):
        build(LOCAL, root=small_project(tmp_path), store=tmp_path / "store")
    assert list((tmp_path / "store").iterdir()) == []


def test_a_module_of_the_users_own_goes_along(tmp_path: Path, no_libraries: list[Path]) -> None:
    """As a package of a name that the worker knows; another content is another asset."""
    project, store = small_project(tmp_path), tmp_path / "store"
    (project / "own.py").write_text("def books(page, url): ...\n")
    without = build(LOCAL, root=project, store=store)
    own = source_of("own.py", project)
    made = build(LOCAL, root=project, store=store, extractor=own)
    assert made.hash != without.hash
    with zipfile.ZipFile(made.archive) as archive:
        assert archive.read(f"{MODULE}/__init__.py") == b"def books(page, url): ...\n"
    (project / "own.py").write_text("def other(page, url): ...\n")
    assert build(LOCAL, root=project, store=store, extractor=own).hash != made.hash
    assert source_of("", project) is None
    assert MODULE == extractors.MODULE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "context key extractor=own.py: there is no such file in "),
        ("def (", "context key extractor=own.py: it is not Python: "),
        ("def _books(page, url): ...", "context key extractor=own.py: it has no function: "),
    ],
)
def test_a_module_that_cannot_work_stops_the_deployment(
    tmp_path: Path, text: str | None, said: str
) -> None:
    """Before anything is built, with the file and the fix."""
    if text is not None:
        (tmp_path / "own.py").write_text(text)
    with pytest.raises(AssetError) as stopped:
        source_of("own.py", tmp_path)
    assert str(stopped.value).startswith(said)
