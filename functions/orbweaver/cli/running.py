"""Run a parsed command, and convert its errors to messages and exit codes."""

from __future__ import annotations

import asyncio
import io
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.adapters.local.logs import FORMAT, FORMATS, LEVEL, LEVELS
from orbweaver.cli import exit_codes
from orbweaver.cli.commands import load
from orbweaver.cli.exit_codes import PageError, UsageError, WriteError
from orbweaver.cli.option_types import one_of
from orbweaver.cli.stack import StackUnreachable
from orbweaver.model.errors import ControlError, PortError, StoredNewer, StoreError
from orbweaver.model.settings import SettingsError
from orbweaver.model.version import REMEDY

if TYPE_CHECKING:
    from argparse import Namespace

    from orbweaver.cli.context import CliContext


def run_command(arguments: Namespace, around: CliContext) -> int:
    """Run a command and return its exit code. Raises UsageError and KeyboardInterrupt."""
    around = _with_logs(arguments, around)
    if getattr(arguments, "quiet", False) and not arguments.json:
        around = replace(around, out=io.StringIO())
    try:
        result = load(arguments.command).run(arguments, around)
        return result if isinstance(result, int) else asyncio.run(result)
    except (ControlError, SettingsError) as error:
        raise UsageError(str(error)) from error
    except ModuleNotFoundError as error:
        raise UsageError(_lacking(error)) from error
    except PageError as error:
        around.note(str(error))
        return error.code
    except WriteError as error:
        around.note(f"{error}: check --out and the free disk space, and run it again")
        return exit_codes.NOT_WRITTEN
    except StoredNewer as error:
        around.note(f"{error}; {REMEDY} (docs/upgrade.md)")
        return exit_codes.UNREACHABLE
    except (StackUnreachable, StoreError) as error:
        around.note(str(error))
    except PortError as error:
        around.note(f"cannot reach the stack: {error}; is it up? See `orbweaver local status`")
    around.note(*around.machine.lost_data())
    return exit_codes.UNREACHABLE


def _with_logs(arguments: Namespace, around: CliContext) -> CliContext:
    """Begin to write log events. Return `around` with the variables for worker processes."""
    level, form = (getattr(arguments, name, None) for name in ("log_level", "log_format"))
    given = (LEVEL, level, LEVELS), (FORMAT, form, FORMATS)
    own = {
        name: _log_setting(name, around.environment[name], words) if value is None else value
        for name, value, words in given
        if value is not None or name in around.environment
    }
    if own:
        around = replace(around, environment={**around.environment, **own})
    if around.start_logging is not None:
        around.start_logging(around.environment)
    return around


def _log_setting(variable: str, text: str, words: Sequence[str]) -> str:
    """Return the value of a variable. An empty one is the default. Raises UsageError."""
    if not text:
        return "warning" if variable == LEVEL else "text"
    try:
        return one_of(words)(text.lower())
    except ArgumentTypeError as error:
        raise UsageError(f"{variable}: {error}") from None


def _lacking(error: ModuleNotFoundError) -> str:
    """Return a message with the extra that contains a missing module.

    Raises the error again if no extra contains the module.
    """
    from localstack import extras

    said = extras.missing_extra_text(error)
    if said is None:
        raise error
    return said
