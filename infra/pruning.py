"""Removes files from installed libraries that functions never read.

The largest are botocore's models of unused services, and all of pyarrow except reading and writing
files: clients of stores and services, headers, tests, and copies of a library under other names (a
wheel holds no symbolic links, and the loader uses the SONAME). Each package keeps its METADATA, by
which vulnerability scanners find it.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# botocore itself uses sts for a role's credentials.
SERVICES = frozenset({"dynamodb", "events", "glue", "lambda", "s3", "secretsmanager", "sqs", "sts"})
# Files for compilers and type checkers, and scripts of a web page that is never shown.
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
    """Return whether a library's file is ever read. `path` is relative to the folder."""
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
    """Remove unneeded files and the folders left empty."""
    for file in [*folder.rglob("*")]:
        if file.is_file() and not is_needed(file.relative_to(folder)):
            file.unlink()
    # Containers read these files when they start: a worker now takes 10 ms instead of 35.
    models = folder / "botocore" / "data"
    for file in [models / "endpoints.json", *models.glob("*/*/*.json.gz")]:
        if file.is_file():
            _shorten(file)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _shorten(file: Path) -> None:
    """Remove documentation from a model, and unused services from the list of endpoints."""
    packed = file.suffix == ".gz"
    data = file.read_bytes()
    model = without_words(json.loads(gzip.decompress(data) if packed else data))
    for partition in model.get("partitions", ()):
        services = partition["services"]
        partition["services"] = {name: services[name] for name in services if name in SERVICES}
    data = json.dumps(model, separators=(",", ":")).encode()
    # Without a timestamp, so the same wheels give the same asset.
    file.write_bytes(gzip.compress(data, mtime=0) if packed else data)


def without_words(value: Any) -> Any:
    """Empty all `documentation` texts, which botocore requires. Other members stay."""
    match value:
        case {"documentation": str()}:
            return {**{key: without_words(inner) for key, inner in value.items()}, **NO_WORDS}
        case dict():
            return {key: without_words(inner) for key, inner in value.items()}
        case list():
            return [without_words(inner) for inner in value]
        case _:
            return value
