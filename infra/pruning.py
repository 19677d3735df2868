"""Pruning of installed libraries: what functions never read is not deployed.

Above all botocore's models of services that are not used, and of pyarrow all but the writing and
reading of files: clients of stores and services, headers, tests, and copies of a library by other
names (a wheel holds no symbolic links; the loader asks for the one by its SONAME). METADATA of each
package stays: vulnerability scanners find packages by it.

Of the models that stay, what is written for people goes, and of the list of endpoints the services
that are not used. A container reads them when it starts: a worker took 35 ms for it, and now 10.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# sts is what botocore itself asks for credentials of a role.
SERVICES = frozenset({"dynamodb", "events", "glue", "lambda", "s3", "secretsmanager", "sqs", "sts"})
# For compilers and type checkers; and the scripts of a web page that is never shown.
SUFFIXES_LEFT_OUT = frozenset(
    {".c", ".cfg", ".cpp", ".css", ".h", ".js", ".lock", ".pxd", ".pxi", ".pyc", ".pyi", ".pyx"}
    | {".rst", ".typed"}
)
# cffi and pycparser compile C; a compiled module needs only _cffi_backend.
FOLDERS_LEFT_OUT = (
    *("bin", "docs", "cffi", "pycparser", "boto3/data", "boto3/examples"),
    "html_to_markdown/bin",  # its command line, 14 MB
    *("pyarrow/include", "pyarrow/includes", "pyarrow/src"),
)
NO_WORDS = {"documentation": ""}
PYARROW_LEFT_OUT = re.compile(
    r"pyarrow/(_(azurefs|cuda|flight|gcsfs|hdfs|orc|parquet_encryption|s3fs|substrait)\."
    r"|(cuda|flight|jvm|orc|substrait)\.py$"
    r"|libarrow_(python_)?(flight|gcs|parquet_encryption|s3)\b"
    r"|libarrow_python\.so(\.\d+\.\d+\.\d+)?$)"
)


def is_needed(path: Path) -> bool:
    """Tell whether a file of an installed library, named from the folder's top, is ever read."""
    name = path.as_posix()
    if path.suffix in SUFFIXES_LEFT_OUT or "tests" in path.parts or path.name == ".lock":
        return False
    if any(name.startswith(f"{folder}/") for folder in FOLDERS_LEFT_OUT):
        return False
    if ".dist-info" in path.parts[0]:
        return path.name == "METADATA"
    match path.parts:
        case ["botocore", "data", service, _, file]:
            return service in SERVICES and not file.startswith("examples-")
        case ["pyarrow", *_]:
            return not PYARROW_LEFT_OUT.match(name)
        case _:
            return True


def prune(folder: Path) -> None:
    """Remove what is not needed, and the folders that this empties."""
    for file in [*folder.rglob("*")]:
        if file.is_file() and not is_needed(file.relative_to(folder)):
            file.unlink()
    models = folder / "botocore" / "data"
    for file in [models / "endpoints.json", *models.glob("*/*/*.json.gz")]:
        if file.is_file():
            _shorten(file)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _shorten(file: Path) -> None:
    """Leave out of a model what no code reads."""
    packed = file.suffix == ".gz"
    data = file.read_bytes()
    model = without_words(json.loads(gzip.decompress(data) if packed else data))
    for partition in model.get("partitions", ()):
        services = partition["services"]
        partition["services"] = {name: services[name] for name in services if name in SERVICES}
    data = json.dumps(model, separators=(",", ":")).encode()
    # Without the moment at which it was packed: the same wheels give the same asset.
    file.write_bytes(gzip.compress(data, mtime=0) if packed else data)


def without_words(value: Any) -> Any:
    """Empty all documentation, which botocore asks for; a member of that name is no text."""
    match value:
        case {"documentation": str()}:
            return {**{key: without_words(inner) for key, inner in value.items()}, **NO_WORDS}
        case dict():
            return {key: without_words(inner) for key, inner in value.items()}
        case list():
            return [without_words(inner) for inner in value]
        case _:
            return value
