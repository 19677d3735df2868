"""Architecture rules: import order, cycles, purity, length."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import orbweaver

ROOT = Path(__file__).parents[3]
PACKAGE = Path(orbweaver.__file__).parent
# Limits within which related code may stay together.
FUNCTION_LINES_MAX, MODULE_LINES_MAX = 60, 500
CONSTRUCTOR_PARAMETERS_MAX = 7
# Longer functions, with the reason.
LONGER = {"infra/watch.py watches": "a table of alarms"}
PRODUCT = ("app.py", "functions", "infra", "localstack", "tools")

# From inner to outer: a room (subpackage) imports only itself and those before it.
ROOMS = (
    *("model", "parsing", "extraction", "fetching", "rendering", "politeness", "frontier"),
    *("budget", "worker"),
    *("exporting", "delivery", "diagnostics", "control", "erasure", "adapters", "api", "app"),
    *("console", "cli", "library"),
)
# Rooms whose modules may do anything: technologies, wiring, a browser, a shell, Python programs.
OUTER = ("adapters", "app", "console", "cli", "library")
# Impure modules of the other rooms: they wait, read the clock, log, or read the environment. All
# other modules decide by their arguments.
ACTORS = frozenset(
    f"{room}.{name}"
    for room, names in {
        "model": "settings turns",
        "rendering": ("browser launch page_rendering paused_requests process renderer"),
        "politeness": "host_health pacer robots_cache",
        "frontier": "retrying stored_record",
        "budget": "reservation",
        "worker": (
            "apply_journal batch body_writer call_batching cookies crawl_cache shutdown "
            "fetch_pack group_commit host_claims host_visits kind_learning late_packs link_dedup "
            "login pack page_fault page_rendering render_lane rendering_choice response_handling "
            "earlier_runs rounds seeding seen_store sessions sitemap_handling succession"
        ),
        "exporting": (
            "change_feed exporter file_store finalizer formats.hashed_file "
            "formats.parquet formats.warc runs snapshot unit_worker"
        ),
        "delivery": "deliverer",
        "diagnostics": "explainer request_counts spared_links",
        "control": (
            "crawl_control crawl_queries dead_letter_admin progress.reader "
            "rerun rule_trial scheduler seed_preview webhook"
        ),
        "erasure": "dead_letters erasure files",
        "api": "app context crawls pages",
    }.items()
    for name in names.split()
)
IMPURE = frozenset(
    {"asyncio", "contextvars", "ctypes", "importlib", "io", "logging", "multiprocessing", "os"}
    | {"pathlib", "queue", "random", "secrets", "select", "shutil", "signal", "socket", "sqlite3"}
    | {"ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid"}
    | {"aioboto3", "aiobotocore", "aiohttp", "aws_lambda_powertools", "boto3", "botocore"}
)
# Only looks like a file.
IN_MEMORY = frozenset({"io.BytesIO", "io.StringIO"})
# User-facing and deployment packages.
APART = (
    *("orbweaver.cli", "orbweaver.console", "infra", "localstack", "tests", "tools"),
    *("aws_cdk", "rich"),
)
# Clocks that look like plain functions.
CLOCKS = frozenset({"now", "utcnow", "today", "localtime", "gmtime"})
TECHNOLOGIES = frozenset({"aioboto3", "aiobotocore", "aiohttp", "boto3", "botocore"})
# Modules that may read the environment of the process, with the reason.
ENVIRONMENT = {
    "model/settings.py": "the settings",
    "adapters/web/tls.py": "OpenSSL is told by it where certificate authorities are",
    "adapters/local/reader.py": "the process for costly pages gets it, without credentials",
    "cli/main.py": "a person's shell says which account and stack is meant",
    "library/client.py": "as the command line, for a program",
    "cli/local_machine.py": "AWS clients of the command line read the environment themselves",
    "app/further_processes.py": "as the next one",
    "app/store_runner.py": "a further process over a store has that of the one that started it",
}


@dataclass(frozen=True)
class Import:
    """One imported name, and whether only type checkers see it."""

    name: str
    typing_only: bool
    line: int


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@cache
def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "__init__.py"
    }


def imports(path: Path) -> Iterator[Import]:
    typing_blocks = [
        node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    hidden = {id(inner) for block in typing_blocks for inner in ast.walk(block)}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            # `from orbweaver.model import url` imports a module; `… import Url` imports a name.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield Import(name, id(node) in hidden, node.lineno)


def belongs(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def ours(item: Import) -> str | None:
    if not belongs(item.name, "orbweaver"):
        return None
    parts = item.name.split(".")[1:]
    return next(
        (
            name
            for end in (len(parts), len(parts) - 1)
            if (name := ".".join(parts[:end])) in modules()
        ),
        None,
    )


# --- rooms ------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "path"), sorted(modules().items()))
def test_rooms_import_inwards(name: str, path: Path) -> None:
    room = ROOMS.index(name.partition(".")[0])
    for item in imports(path):
        if (other := ours(item)) is not None:
            where = f"{name}:{item.line} imports {item.name}"
            assert ROOMS.index(other.partition(".")[0]) <= room, where
        outside = ("handlers", "infra", "tests", "tools", "aws_cdk")
        assert not belongs(item.name, *outside) or name.startswith("cli."), f"{name}:{item.line}"


def test_modules_have_no_import_cycle() -> None:
    leads = {
        name: {other for item in imports(path) if (other := ours(item)) not in (None, name)}
        for name, path in modules().items()
    }
    left = dict(leads)
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    assert not left, sorted(left)


def test_every_room_lists_its_modules_once() -> None:
    for door in [PACKAGE / "__init__.py", *(PACKAGE.rglob("*/__init__.py"))]:
        text = ast.get_docstring(tree(door), clean=False) or ""
        listed = re.findall(r"^ *(\w+)  +\S", text, re.MULTILINE)
        there = {path.stem for path in door.parent.glob("*.py")} - {"__init__"}
        if door.parent == PACKAGE:
            there = set(ROOMS)
            assert tuple(listed) == ROOMS
        assert len(listed) == len(set(listed)), door
        assert set(listed) == there, f"{door}: {set(listed) ^ there}"


def test_worker_modules_import_only_later_ones() -> None:
    """The list in `worker/__init__.py` is the order."""
    text = ast.get_docstring(tree(PACKAGE / "worker/__init__.py"), clean=False) or ""
    way = [f"worker.{name}" for name in re.findall(r"^ *(\w+)  +\S", text, re.MULTILINE)]
    for place, name in enumerate(way):
        for item in imports(modules()[name]):
            if (other := ours(item)) in way:
                assert way.index(other) > place, f"{name}:{item.line} imports {item.name}"


def test_class_names_are_unique_in_package() -> None:
    homes = defaultdict(list)
    for name, path in modules().items():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    assert not {name: where for name, where in homes.items() if len(where) > 1}


# --- purity -----------------------------------------------------------------------------------


def impurities(path: Path) -> Iterator[str]:
    """Yield impure imports and calls of a module. Ports are exempt."""
    for item in imports(path):
        top = item.name.partition(".")[0]
        # Randomness is an argument, so its type may be imported.
        if top in IMPURE and item.name not in IN_MEMORY and not item.typing_only:
            yield f"imports {item.name}"
    declared = {
        id(inner)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.AsyncFunctionDef) and id(node) not in declared:
            yield f"waits in {node.name}"
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            owner, _, method = name.rpartition(".")
            if method in CLOCKS and owner.endswith(("datetime", "date", "time")):
                yield f"calls {name}"
            if name in {"open", "print", "input", "eval", "exec"}:
                yield f"calls {name}"


def test_only_listed_modules_are_impure() -> None:
    found = {
        name: list(impurities(path))
        for name, path in modules().items()
        if not name.startswith(tuple(f"{room}." for room in OUTER))
    }
    impure = {name for name, what in found.items() if what}
    assert impure == ACTORS, {name: found[name] for name in impure ^ ACTORS}


@pytest.mark.parametrize("name", sorted(ACTORS))
def test_actors_import_no_technology(name: str) -> None:
    for item in imports(modules()[name]):
        where = f"{name}:{item.line} imports {item.name}"
        assert item.name.partition(".")[0] not in TECHNOLOGIES, where


def test_product_imports_no_cli_or_deployment_code() -> None:
    outer = ("console.", "cli.", "library.")
    paths = [path for name, path in modules().items() if not name.startswith(outer)]
    for path in [*paths, *(ROOT / "functions/handlers").glob("*.py")]:
        own = ("orbweaver.console",) if path == ROOT / "functions/handlers/console.py" else ()
        for item in imports(path):
            apart = belongs(item.name, *APART) and not belongs(item.name, *own)
            assert not apart, f"{path}:{item.line} imports {item.name}"


def test_environment_is_read_only_in_listed_modules() -> None:
    reading = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}
    }
    assert reading == set(ENVIRONMENT)


def test_import_of_module_runs_no_code() -> None:
    for name, path in modules().items():
        for node in tree(path).body:
            assert not isinstance(node, ast.For | ast.While | ast.With), f"{name}:{node.lineno}"
            if isinstance(node, ast.Expr):
                assert isinstance(node.value, ast.Constant), f"{name}:{node.lineno}"


# --- docstrings -------------------------------------------------------------------------------


@pytest.mark.thorough
def test_modules_and_public_classes_have_docstrings() -> None:
    for path in sources(*PRODUCT):
        nodes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
        assert ast.get_docstring(tree(path)), path
        for node in nodes:
            told = node.name.startswith("_") or ast.get_docstring(node)
            assert told, f"{path}:{node.lineno} {node.name}"


# --- length -----------------------------------------------------------------------------------


def sources(*names: str) -> Iterator[Path]:
    for name in names:
        path = ROOT / name
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def test_modules_and_functions_are_short() -> None:
    long: list[str] = []
    for path in sources(*PRODUCT):
        name = path.relative_to(ROOT)
        length = len(path.read_text().splitlines())
        if length > MODULE_LINES_MAX:
            long.append(f"{name}: {length} lines")
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno + 1
                if length > FUNCTION_LINES_MAX and f"{name} {node.name}" not in LONGER:
                    long.append(f"{name} {node.name}: {length} lines")
    assert not long, "\n".join(long)


def test_constructors_have_few_parameters() -> None:
    many: list[str] = []
    for path in sources("functions"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                parameters = len(node.args.args[1:]) + len(node.args.kwonlyargs)
                if parameters > CONSTRUCTOR_PARAMETERS_MAX:
                    many.append(f"{path.relative_to(ROOT)}:{node.lineno}: {parameters}")
    assert not many, "\n".join(many)


def test_sources_name_no_registry_and_no_machine_path() -> None:
    hosts = [
        ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"))
    ]
    folders = [f"/{name}/" for name in ("root", "work", "home")]
    foreign = re.compile("|".join(re.escape(text) for text in [*hosts, *folders]))
    names = ["package.json", "package-lock.json", "pyproject.toml", "Makefile"]
    texts = [path for name in names for path in [ROOT / name] if path.is_file()]
    texts += [*(ROOT / "requirements").glob("*.txt"), *(ROOT / "docs").rglob("*.md")]
    for path in [*texts, ROOT / "README.md", *sources(*PRODUCT)]:
        assert not foreign.search(path.read_text()), path
