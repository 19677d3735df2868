"""How commands are registered: by their modules, and imported when they are typed."""

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
def test_a_command_is_one_of_its_module(name: str) -> None:
    """It has a help of one line, and what carries it out."""
    command = commands.load(name)
    assert command.name == name
    assert command.help
    assert "\n" not in command.help
    assert callable(command.run)


def test_no_command_of_a_module_is_forgotten() -> None:
    """All that modules have registered are in the list, each once."""
    folder = Path(commands.__file__).parent
    modules = {f"commands.{path.stem}" for path in folder.glob("[!_]*.py")}
    registered = [
        (command.name, name)
        for name in sorted(modules | set(commands.MODULES.values()))
        for command in getattr(import_module(f"orbweaver.cli.{name}"), "COMMANDS", ())
    ]
    assert sorted(registered) == sorted(commands.MODULES.items())


def test_the_help_is_in_the_order_of_the_list() -> None:
    """And has each command with its help."""
    with pytest.raises(UsageError) as raised:
        arguments.parse([])
    shown = re.findall(r"^    ([a-z]+) ", str(raised.value), re.MULTILINE)
    assert shown == list(commands.MODULES)


@pytest.mark.parametrize(
    ("words", "imported"),
    [(["local", "status"], {"steer"}), (["workers", "status"], {"workers"})],
)
def test_only_the_module_of_what_is_typed_is_imported(words: list[str], imported: set[str]) -> None:
    """A command does not wait for the imports of the others."""
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
