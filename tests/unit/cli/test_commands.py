"""Registration of commands by module. A module is imported when its command is typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

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
    ("words", "imported"),
    [(["local", "status"], {"steer"}), (["workers", "status"], {"workers"})],
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
