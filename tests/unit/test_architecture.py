"""The shape of the code: which way imports point, that the map is true, how long things are."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import orbweaver

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = Path(orbweaver.__file__).parent
# Up to here nobody asks why: what is read together stands together.
FUNCTION_LINES_MAX, MODULE_LINES_MAX = 60, 500
# What may be longer, and why.
LONGER = {"infra/watch.py watches": "a table of alarms"}
PRODUCT = ("app.py", "functions", "infra", "localstack", "tools")

# Whoever is in core decides by its arguments alone.
IMPURE = frozenset(
    {"asyncio", "contextvars", "ctypes", "importlib", "io", "logging", "multiprocessing", "os"}
    | {"pathlib", "queue", "random", "secrets", "select", "shutil", "signal", "socket", "sqlite3"}
    | {"ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid"}
    | {"aioboto3", "aiobotocore", "aiohttp", "aws_lambda_powertools", "boto3", "botocore"}
)
# Clocks that look like plain functions.
CLOCKS = frozenset({"now", "utcnow", "today", "localtime", "gmtime"})
TECHNOLOGIES = frozenset(
    {"ada_url", "aioboto3", "aiobotocore", "aiohttp", "boto3", "botocore", "selectolax"}
)
# Where the process's environment may be looked at, and why.
ENVIRONMENT = {
    "settings.py": "the settings",
    "adapters/tls.py": "OpenSSL is told by it where certificate authorities are",
    "adapters/reading.py": "the process for costly pages gets it, without credentials",
    "cli/__init__.py": "a person's shell says which account and stack is meant",
    "cli/machine.py": "AWS clients of the command line read the process's environment themselves",
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


def modules(folder: Path) -> dict[str, Path]:
    """Name the modules below the package as the map does: `worker`, `core/url`."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        found[name.removesuffix("/__init__")] = path
    found.pop("__init__", None)
    return found


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
            # `from orbweaver.core import answer` imports a module, `… import Answer` a name of one.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield Import(name, id(node) in hidden, node.lineno)


def belongs(name: str, *packages: str) -> bool:
    """Whether a dotted name is one of these packages, or in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def actors() -> dict[str, Path]:
    """Find the modules that stand beside core: they order effects and know no technology."""
    wirings = ("bootstrap", "wiring", "wiring_delivery", "wiring_exporting", "wiring_ports")
    outside = ("core", "adapters", "cli", *wirings)
    return {
        name: path
        for name, path in modules(PACKAGE).items()
        if name.partition("/")[0] not in outside
    }


# --- imports ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    sorted((PACKAGE / "core").rglob("*.py")),
    ids=lambda path: path.relative_to(PACKAGE / "core").with_suffix("").as_posix(),
)
def test_core_decides_by_its_arguments(path: Path) -> None:
    """No I/O, clock, chance, environment, logging or AWS in core, and nothing but core of ours."""
    for item in imports(path):
        where = f"{path.name}:{item.line} imports {item.name}"
        top = item.name.partition(".")[0]
        if top == "random":
            # Chance comes in as an argument, so its type may be named.
            assert item.typing_only, where
        else:
            assert top not in IMPURE, where
        assert top != "orbweaver" or belongs(item.name, "orbweaver.core"), where
    calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    for call in calls:
        name = ast.unparse(call.func)
        owner, _, method = name.rpartition(".")
        timed = method in CLOCKS and owner.endswith(("datetime", "date", "time"))
        assert not timed, f"{path.name}:{call.lineno} calls {name}"
        assert name not in {"open", "print", "input", "eval", "exec"}, f"{path.name}:{call.lineno}"


@pytest.mark.parametrize(("name", "path"), sorted(actors().items()))
def test_actors_know_ports_only(name: str, path: Path) -> None:
    """Actors speak to ports: no adapter, no technology, no wiring, no command line."""
    for item in imports(path):
        where = f"{name}:{item.line} imports {item.name}"
        assert not belongs(item.name, "orbweaver.adapters", "orbweaver.bootstrap"), where
        assert not belongs(item.name, "orbweaver.cli", "handlers", "infra", "localstack"), where
        assert item.name.partition(".")[0] not in TECHNOLOGIES, where


def test_adapters_know_no_actor() -> None:
    """Adapters know ports and core; what is done with them is not theirs."""
    allowed = ("orbweaver.adapters", "orbweaver.core", "orbweaver.ports")
    for name, path in modules(PACKAGE / "adapters").items():
        for item in imports(path):
            if belongs(item.name, "orbweaver"):
                assert belongs(item.name, *allowed), f"{name}:{item.line} imports {item.name}"


def test_one_place_wires() -> None:
    """Only bootstrap, its ports and the command line around it know both settings and adapters."""
    both = set()
    for name, path in modules(PACKAGE).items():
        names = [item.name for item in imports(path)]
        if all(
            any(belongs(one, package) for one in names)
            for package in ("orbweaver.settings", "orbweaver.adapters")
        ):
            both.add(name.partition("/")[0])
    assert "bootstrap" in both
    assert both <= {"bootstrap", "wiring_exporting", "wiring_ports", "cli"}


def test_nothing_of_the_product_needs_the_command_line_or_the_stack() -> None:
    """What runs in Lambda imports neither the CLI, nor infra, localstack or tests."""
    paths = [path for name, path in modules(PACKAGE).items() if not name.startswith("cli")]
    for path in [*paths, *(ROOT / "functions/handlers").glob("*.py")]:
        for item in imports(path):
            outside = ("orbweaver.cli", "infra", "localstack", "tests", "tools", "aws_cdk", "rich")
            assert not belongs(item.name, *outside), f"{path}:{item.line} imports {item.name}"


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
    for name, path in modules(PACKAGE).items():
        for node in tree(path).body:
            assert not isinstance(node, ast.For | ast.While | ast.With), f"{name}:{node.lineno}"
            if isinstance(node, ast.Expr):
                assert isinstance(node.value, ast.Constant), f"{name}:{node.lineno}"


def at_once(path: Path) -> set[str]:
    """Name what a module imports when it is imported itself, not later."""
    found: set[str] = set()
    for node in tree(path).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_tests_are_collected_without_node() -> None:
    """CDK starts Node when it is imported: only a test that needs it does so, when it runs."""
    bridges = {"aws_cdk", "cdk_nag", "constructs"}
    files = (ROOT / "infra").glob("*.py")
    starting = bridges | {f"infra.{path.stem}" for path in files if bridges & at_once(path)}
    assert "infra.stack" in starting
    needing = [
        path
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(
            r"^(from|import) (infra|aws_cdk|cdk_nag|constructs)\b", path.read_text(), re.MULTILINE
        )
    ]
    assert len(needing) > 10
    assert [path.name for path in needing if at_once(path) & starting] == []


# --- the map ----------------------------------------------------------------------------------


def map_of(text: str) -> list[str]:
    """Read the names off the map: the first and the third column of its indented lines."""
    names: list[str] = []
    for line in text.splitlines():
        if re.match(r"    \S", line):
            names += re.split(r"\s{2,}", line.strip())[::2]
    return names


def test_the_map_is_true() -> None:
    """Every module is on the map once, and nothing else is; packages of technologies are one."""
    there = {name for name in modules(PACKAGE) if not name.startswith(("adapters/", "cli/"))}
    named = map_of(orbweaver.__doc__ or "")
    assert len(named) == len(set(named))
    assert {name.removesuffix("/") for name in named} == there - {"core"}


def test_modules_say_what_they_are() -> None:
    """Every module of the product begins with a docstring, and so does every public thing in it."""
    for path in sources(*PRODUCT):
        nodes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
        assert ast.get_docstring(tree(path)), path
        for node in nodes:
            assert ast.get_docstring(node), f"{path}:{node.lineno} {node.name}"


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
