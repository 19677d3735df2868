"""The shape of the code: the order of rooms, no circles, what is pure, how long things are."""

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
# Up to here nobody asks why: what is read together stands together.
FUNCTION_LINES_MAX, MODULE_LINES_MAX = 60, 500
# What may be longer, and why.
LONGER = {"infra/watch.py watches": "a table of alarms"}
PRODUCT = ("app.py", "functions", "infra", "localstack", "tools")

# Inner to outer: a room imports itself and those before it.
ROOMS = (
    *("model", "parsing", "extraction", "fetching", "rendering", "politeness", "frontier"),
    *("budget", "worker"),
    *("exporting", "delivery", "diagnostics", "control", "erasure", "adapters", "api", "app"),
    *("console", "cli", "library"),
)
# Rooms whose modules may do anything: technologies, wiring, a browser, a shell, Python programs.
OUTER = ("adapters", "app", "console", "cli", "library")
# The modules of the other rooms that are not pure: they wait, look at the clock, log, or read the
# environment. All others decide by their arguments alone.
ACTORS = frozenset(
    f"{room}.{name}"
    for room, names in {
        "model": "settings turns",
        "rendering": (
            "browser launch packed_browser page_rendering paused_requests process protocol renderer"
        ),
        "politeness": "host_health pacer robots_cache",
        "frontier": "retrying stored_record",
        "budget": "reservation",
        "worker": (
            "apply_journal batch body_writer call_batching cookies crawl_cache ending "
            "fetch_pack group_commit host_claims kind_learning link_dedup pack page_fault "
            "page_rendering render_lane rendering_choice response_handling retracing rounds "
            "seeding sitemap_handling succession"
        ),
        "exporting": (
            "change_feed exporter file_store finalizer formats.duckdb_parquet formats.hashed_file "
            "formats.parquet formats.surt formats.warc "
            "repair row_reader runs snapshot_store unit_worker workspace"
        ),
        "delivery": "deliverer transfer",
        "diagnostics": "explainer request_texts spared_links",
        "control": (
            "crawl_control crawl_queries dead_letter_admin progress.reader retry_failures "
            "rule_trial scheduler seed_preview stored_reading webhook_sender"
        ),
        "erasure": "erasure files messages preview",
        "api": "app context crawls pages results seeds",
    }.items()
    for name in names.split()
)
IMPURE = frozenset(
    {"asyncio", "contextvars", "ctypes", "importlib", "io", "logging", "multiprocessing", "os"}
    | {"pathlib", "queue", "random", "secrets", "select", "shutil", "signal", "socket", "sqlite3"}
    | {"ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid"}
    | {"aioboto3", "aiobotocore", "aiohttp", "aws_lambda_powertools", "boto3", "botocore"}
)
# Memory that only looks like a file.
IN_MEMORY = frozenset({"io.BytesIO", "io.StringIO"})
# What a person uses, or what deploys.
APART = (
    *("orbweaver.cli", "orbweaver.console", "infra", "localstack", "tests", "tools"),
    *("aws_cdk", "rich"),
)
# Clocks that look like plain functions.
CLOCKS = frozenset({"now", "utcnow", "today", "localtime", "gmtime"})
TECHNOLOGIES = frozenset({"aioboto3", "aiobotocore", "aiohttp", "boto3", "botocore"})
# Where the process's environment may be looked at, and why.
ENVIRONMENT = {
    "model/settings.py": "the settings",
    "adapters/web/tls.py": "OpenSSL is told by it where certificate authorities are",
    "adapters/local/reader.py": "the process for costly pages gets it, without credentials",
    "cli/main.py": "a person's shell says which account and stack is meant",
    "library/client.py": "as the command line, for a program",
    "cli/local_machine.py": "AWS clients of the command line read the environment themselves",
    "app/store_runner.py": "a further process over a store has that of the one that started it",
}


@dataclass(frozen=True)
class Import:
    """One name that a module imports, and whether only type checkers see it."""

    name: str
    typing_only: bool
    line: int


@cache
def tree(path: Path) -> ast.Module:
    """Parse a module."""
    return ast.parse(path.read_text(), str(path))


@cache
def modules() -> dict[str, Path]:
    """Name the modules of the package: `worker.batch`, but no room's door."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "__init__.py"
    }


def imports(path: Path) -> Iterator[Import]:
    """List what a module imports, wherever in it."""
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
            # `from orbweaver.model import url` imports a module, `… import Url` a name of one.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield Import(name, id(node) in hidden, node.lineno)


def belongs(name: str, *packages: str) -> bool:
    """Whether a dotted name is one of these packages, or in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def ours(item: Import) -> str | None:
    """Name the module of the package that an import leads to; None for what is not of it."""
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
    """A room imports itself and those before it, for type checkers too."""
    room = ROOMS.index(name.partition(".")[0])
    for item in imports(path):
        if (other := ours(item)) is not None:
            where = f"{name}:{item.line} imports {item.name}"
            assert ROOMS.index(other.partition(".")[0]) <= room, where
        outside = ("handlers", "infra", "tests", "tools", "aws_cdk")
        assert not belongs(item.name, *outside) or name.startswith("cli."), f"{name}:{item.line}"


def test_no_module_imports_itself_in_a_circle() -> None:
    """Not by way of others, nor for type checkers."""
    leads = {
        name: {other for item in imports(path) if (other := ours(item)) not in (None, name)}
        for name, path in modules().items()
    }
    left = dict(leads)
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    assert not left, sorted(left)


def test_every_room_lists_its_modules() -> None:
    """In reading order, each once; and the package lists its rooms."""
    for door in [PACKAGE / "__init__.py", *(PACKAGE.rglob("*/__init__.py"))]:
        text = ast.get_docstring(tree(door), clean=False) or ""
        listed = re.findall(r"^ *(\w+)  +\S", text, re.MULTILINE)
        there = {path.stem for path in door.parent.glob("*.py")} - {"__init__"}
        if door.parent == PACKAGE:
            there = set(ROOMS)
            assert tuple(listed) == ROOMS
        assert len(listed) == len(set(listed)), door
        assert set(listed) == there, f"{door}: {set(listed) ^ there}"


def test_the_way_of_a_url_goes_forward() -> None:
    """A module of `worker/` imports those that stand below it in the list, none above."""
    text = ast.get_docstring(tree(PACKAGE / "worker/__init__.py"), clean=False) or ""
    way = [f"worker.{name}" for name in re.findall(r"^ *(\w+)  +\S", text, re.MULTILINE)]
    for place, name in enumerate(way):
        for item in imports(modules()[name]):
            if (other := ours(item)) in way:
                assert way.index(other) > place, f"{name}:{item.line} imports {item.name}"


def test_a_class_name_stands_for_one_thing() -> None:
    """In the whole package, but for what a module keeps to itself within a function."""
    homes = defaultdict(list)
    for name, path in modules().items():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    assert not {name: where for name, where in homes.items() if len(where) > 1}


# --- purity -----------------------------------------------------------------------------------


def impurities(path: Path) -> Iterator[str]:
    """Say what a module does beside deciding by its arguments; ports only declare."""
    for item in imports(path):
        top = item.name.partition(".")[0]
        # Chance comes in as an argument, so its type may be named.
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


def test_modules_are_pure_but_for_the_actors() -> None:
    """No I/O, waiting, clock, chance, environment or logging; who is on the list has some."""
    found = {
        name: list(impurities(path))
        for name, path in modules().items()
        if not name.startswith(tuple(f"{room}." for room in OUTER))
    }
    impure = {name for name, what in found.items() if what}
    assert impure == ACTORS, {name: found[name] for name in impure ^ ACTORS}


@pytest.mark.parametrize("name", sorted(ACTORS))
def test_actors_know_no_technology(name: str) -> None:
    """They speak to ports."""
    for item in imports(modules()[name]):
        where = f"{name}:{item.line} imports {item.name}"
        assert item.name.partition(".")[0] not in TECHNOLOGIES, where


def test_nothing_of_the_product_needs_the_command_line_or_the_stack() -> None:
    """What runs in Lambda imports neither the CLI, nor infra, localstack or tests.

    The console is imported by its own function, which not every stack has, and by no other.
    """
    outer = ("console.", "cli.", "library.")
    paths = [path for name, path in modules().items() if not name.startswith(outer)]
    for path in [*paths, *(ROOT / "functions/handlers").glob("*.py")]:
        own = ("orbweaver.console",) if path == ROOT / "functions/handlers/console.py" else ()
        for item in imports(path):
            apart = belongs(item.name, *APART) and not belongs(item.name, *own)
            assert not apart, f"{path}:{item.line} imports {item.name}"


def test_the_environment_is_read_in_one_place() -> None:
    """Functions learn of their environment by settings alone."""
    reading = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}
    }
    assert reading == set(ENVIRONMENT)


def test_nothing_is_done_at_import() -> None:
    """Importing a module of the package defines things, and calls nothing of AWS or the event loop."""  # noqa: E501 - one sentence
    for name, path in modules().items():
        for node in tree(path).body:
            assert not isinstance(node, ast.For | ast.While | ast.With), f"{name}:{node.lineno}"
            if isinstance(node, ast.Expr):
                assert isinstance(node.value, ast.Constant), f"{name}:{node.lineno}"


# --- words ------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_modules_say_what_they_are() -> None:
    """Every module of the product begins with a docstring, and so does every public thing in it."""
    for path in sources(*PRODUCT):
        nodes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
        assert ast.get_docstring(tree(path)), path
        for node in nodes:
            told = node.name.startswith("_") or ast.get_docstring(node)
            assert told, f"{path}:{node.lineno} {node.name}"


# --- length -----------------------------------------------------------------------------------


def sources(*names: str) -> Iterator[Path]:
    """List source files below folders of the project."""
    for name in names:
        path = ROOT / name
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def test_modules_and_functions_are_short() -> None:
    """A module fits a reader's head, and a function a screen."""
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


def test_no_host_of_a_registry_and_no_path_of_a_machine() -> None:
    """Sources name no package index and no folder outside the project."""
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
