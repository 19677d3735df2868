"""Code assets: the common one, and one for functions that write and deliver files."""

from __future__ import annotations

import email
import gzip
import json
import re
import struct
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args
from zlib import crc32

import botocore
import pytest

from infra.asset import FILES_ONLY, UNPACKED_BYTES_MAX, Asset, Libraries, build, own_files
from infra.config import Config
from infra.wheels import MTIME_S, SERVICES, is_needed, prune, without_words
from orbweaver.exporting.formats import NAMES
from orbweaver.model.columns import TEXTS
from tests.unit.exporting.reading import written

if TYPE_CHECKING:
    from infra.wheels import Runtime

ROOT = Path(__file__).resolve().parents[2]
ELF_AARCH64 = 183
LOCAL = Config.from_context({"target": "local"}).functions_run_on
# Libraries whose import name differs from the package name.
MODULES = {"google-re2": "re2", "python-jsonpath": "jsonpath"}

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
    ("_duckdb.abi3.so", True),
    ("duckdb/__init__.py", True),
    ("duckdb/experimental/spark/sql/session.py", False),
    (".lock", False),
]


@pytest.mark.parametrize(("name", "needed"), NEEDED)
def test_asset_omits_files_functions_never_read(name: str, *, needed: bool) -> None:
    assert is_needed(Path(name)) is needed


def test_pruning_keeps_readable_files_and_no_empty_folder(tmp_path: Path) -> None:
    for name in ("aiohttp/client.py", "aiohttp/_websocket/mask.c", "pkg/tests/test_it.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    prune(tmp_path)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert left == {"aiohttp", "aiohttp/client.py"}


def test_bytecode_is_omitted(tmp_path: Path) -> None:
    """An asset must not depend on earlier runs."""
    for name in ("handlers/a.py", "handlers/a.pyc", "handlers/__pycache__/a.cpython-313.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.as_posix() for path in own_files(tmp_path)] == ["handlers/a.py"]


def test_command_line_is_omitted() -> None:
    files = {path.as_posix() for path in own_files(ROOT / "functions")}
    assert {"handlers/worker.py", "orbweaver/model/settings.py"} <= files
    assert not {
        name
        for name in files
        if name.startswith(("orbweaver/cli", "orbweaver/console", "handlers/console"))
    }
    assert not {name for name in files if "__pycache__" in name}


def test_console_files_are_deployed_only_when_hosted() -> None:
    usual, hosted = (
        {path.as_posix() for path in own_files(ROOT / "functions", console=console)}
        for console in (False, True)
    )
    assert usual < hosted
    assert {"handlers/console.py", "orbweaver/console/static/app.js"} <= hosted - usual
    assert all(
        name.startswith(("handlers/console", "orbweaver/console/")) for name in hosted - usual
    )


def test_modules_with_extra_libraries_are_in_one_asset_only() -> None:
    some, all_of_it = (
        {path.as_posix() for path in own_files(ROOT / "functions", libraries)}
        for libraries in get_args(Libraries)
    )
    assert all_of_it - some == set(FILES_ONLY)
    assert some < all_of_it


def test_shared_libraries_have_same_hashes_in_both_assets() -> None:
    small, large = (
        (ROOT / "requirements" / f"{libraries}.txt").read_text().splitlines()
        for libraries in get_args(Libraries)
    )
    assert {line for line in small if "==" in line or "--hash" in line} <= set(large)


def test_sizes_are_in_megabytes_beside_lambdas_limit() -> None:
    nowhere = Path()
    asset = Asset(libraries="files", folder=nowhere, archive=nowhere, hash="",
                  unpacked_bytes=3 * 2**19, zipped_bytes=2**19)  # fmt: skip
    assert str(asset) == "code asset for files: 1.5 MB, zipped 0.5 MB (limit 250 MB)"
    slow = replace(asset, compiled=False)
    assert str(slow).startswith(f"{asset}; not compiled, so workers take twice as long to start")


@pytest.fixture(scope="module", params=get_args(Libraries))
def arm64(request: pytest.FixtureRequest) -> Asset:
    return build(Config().functions_run_on, request.param)


@pytest.fixture(scope="module", params=get_args(Libraries))
def local(request: pytest.FixtureRequest) -> Asset:
    return build(LOCAL, request.param)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_compiled_files_are_arm64_python_313(arm64: Asset) -> None:
    compiled = list(arm64.folder.rglob("*.so*"))
    assert len(compiled) > 10
    for file in compiled:
        (machine,) = struct.unpack_from("<H", file.read_bytes()[:20], 18)
        assert machine == ELF_AARCH64, file
        # ".so." is not a Python module.
        named = (".cpython-313-", ".abi3.", ".so.")
        assert any(sign in file.name for sign in named), file


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime", [Config().functions_run_on, LOCAL])
def test_asset_sizes_are_within_limits(runtime: Runtime) -> None:
    """A quarter of Lambda's limit for most functions, three quarters for the others."""
    built = build(runtime)
    assert built.unpacked_bytes < UNPACKED_BYTES_MAX / 4
    assert built.zipped_bytes < 25 * 2**20
    larger = build(runtime, "files")
    assert larger.unpacked_bytes < UNPACKED_BYTES_MAX * 3 / 4
    assert larger.zipped_bytes < 60 * 2**20


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_models_of_used_services_are_deployed(local: Asset) -> None:
    models = {path.name for path in (local.folder / "botocore" / "data").iterdir() if path.is_dir()}
    assert models == SERVICES


def test_documentation_text_is_removed_from_models() -> None:
    member = {"shape": "S", "documentation": "<p>of a member</p>"}
    model = {"documentation": "<p>of all</p>", "shapes": [{"documentation": member}, 1, None]}
    assert without_words(model) == {
        "documentation": "",
        "shapes": [{"documentation": {"shape": "S", "documentation": ""}}, 1, None],
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_models_equal_botocores_without_text(local: Asset) -> None:
    ours, theirs = local.folder / "botocore" / "data", Path(botocore.__file__).parent / "data"
    files = [file.relative_to(ours) for file in ours.glob("*/*/*.json.gz")]
    assert len(files) >= 2 * len(SERVICES)
    for file in files:
        short, whole = (
            json.loads(gzip.decompress((data / file).read_bytes())) for data in (ours, theirs)
        )
        assert short == without_words(whole), file
    endpoints = json.loads((ours / "endpoints.json").read_text())
    services = [set(partition["services"]) for partition in endpoints["partitions"]]
    assert set.union(*services) <= SERVICES
    assert {"dynamodb", "s3", "sqs"} <= services[0]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_archive_equals_folder(local: Asset) -> None:
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
def test_packages_are_visible_to_scanners(arm64: Asset) -> None:
    lines = (ROOT / "requirements" / f"{arm64.libraries}.txt").read_text().splitlines()
    pinned = {line.split()[0] for line in lines if re.match(r"[a-z0-9-]+==", line)}
    found = set()
    for metadata in arm64.folder.glob("*.dist-info/METADATA"):
        told = email.message_from_string(metadata.read_text())
        name = re.sub("[-_.]+", "-", told["Name"]).lower()
        found.add(f"{name}=={told['Version']}")
    assert found <= pinned
    assert len(found) > 20


# One call of each service that needs no parameters.
OPERATIONS = {
    "dynamodb": "list_tables",
    "events": "list_event_buses",
    "glue": "get_databases",
    "lambda": "list_functions",
    "s3": "list_buckets",
    "secretsmanager": "list_secrets",
    "sqs": "list_queues",
    "ssm": "describe_parameters",
    "sts": "get_caller_identity",
}
assert OPERATIONS.keys() == SERVICES

# Imports all modules of the product and all libraries of pyproject.toml, and creates a client of
# each service, with only the asset and the standard library.
IMPORT_ALL = """
import asyncio, importlib, json, pkgutil, sys
folder, libraries, services = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
sys.path.insert(0, folder)
for package in ("handlers", "orbweaver"):
    for found in pkgutil.walk_packages([f"{folder}/{package}"], f"{package}."):
        importlib.import_module(found.name)
for library in libraries:
    importlib.import_module(library)
from aiobotocore.session import AioSession
async def clients():
    session = AioSession()
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    for service, operation in services.items():
        async with session.create_client(service, region_name="us-east-1", **keys) as client:
            # Takes everything but the network: the model, the rules for endpoints, a signature.
            url = await client.generate_presigned_url(operation)
            assert url.startswith("https://") and "amazonaws.com" in url, url
asyncio.run(clients())
foreign = {
    name for name, module in sys.modules.items()
    if "site-packages" in (getattr(module, "__file__", None) or "")
}
assert not foreign, foreign
print(len(sys.modules))
"""


# Writes a row of a format and describes the file, with only the asset.
WRITE = """
import sys
folder, name, place = sys.argv[1:]
sys.path.insert(0, folder)
from pathlib import Path
from orbweaver.exporting.formats import writer as writer_of
from orbweaver.exporting.cells import cells_of
from orbweaver.model.columns import TEXTS
writer = writer_of(name, TEXTS, Path(place))
writer.add(cells_of(TEXTS)({"title": "a"}))
print(writer.close().sha256)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_imports_work_with_asset_alone(local: Asset) -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    words = [*groups["runtime"]]
    if local.libraries == "files":
        words += groups["files"]
    names = [word.split(">=")[0].split(";")[0].strip() for word in words]
    modules = [MODULES.get(name, name.replace("-", "_")) for name in names]
    modules.append("selectolax.lexbor")
    command = [sys.executable, "-I", "-S", "-W", "error::ImportWarning", "-c", IMPORT_ALL]
    arguments = [str(local.folder), json.dumps(modules), json.dumps(OPERATIONS)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("handler", ["worker", "api", "exporter"])
def test_container_starts_with_asset_alone(handler: str) -> None:
    built = build(LOCAL, "files" if handler == "exporter" else "runtime")
    code = f"import sys; sys.path.insert(0, {str(built.folder)!r}); import handlers.{handler}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    environment = {"AWS_LAMBDA_FUNCTION_NAME": handler, "AWS_DEFAULT_REGION": "us-east-1", **keys}
    words = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_written_with_asset_alone(name: str, tmp_path: Path) -> None:
    built = build(LOCAL, "files")
    words = [sys.executable, "-I", "-S", "-c", WRITE, str(built.folder), name, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [written(name, TEXTS, [{"title": "a"}], tmp_path).sha256]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_module_is_compiled(local: Asset) -> None:
    """Otherwise a cold start would compile modules."""
    sources = {path for path in local.folder.rglob("*.py") if "lib2to3" not in path.parts}
    compiled = {
        path.parent.parent / f"{path.name.split('.')[0]}.py" for path in local.folder.rglob("*.pyc")
    }
    assert sources - compiled == set()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_archive_does_not_depend_on_builder_or_time(local: Asset) -> None:
    stats = {
        (path.stat().st_mtime, oct(path.stat().st_mode & 0o777), path.is_dir())
        for path in local.folder.rglob("*")
    }
    assert stats == {(MTIME_S, "0o755", True), (MTIME_S, "0o644", False)}
