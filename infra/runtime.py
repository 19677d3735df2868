"""The functions' runtime: `arm64/python3.13`, one setting, since wheels fit both or neither.

Rule: on AWS only what runs on Amazon Linux 2023, whose C library is new enough for today's wheels;
on an emulator, which runs functions on this machine, only what this machine has.

Source: docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass

PATTERN = r"(arm64|x86_64)/python3\.(12|13|14)"
TAKES = "arm64 or x86_64, a slash, and python3.12, python3.13 or python3.14"
ARCHITECTURES = {"arm64": "arm64", "aarch64": "arm64", "x86_64": "x86_64", "AMD64": "x86_64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A runtime in its parts; a native one is that of this machine, for an emulator on it."""

    architecture: str
    python: str
    native: bool = False

    @classmethod
    def of(cls, name: str, *, native: bool) -> Runtime:
        """Take a name apart that fits."""
        architecture, python = name.split("/python")
        return cls(architecture=architecture, python=python, native=native)


def host_runtime() -> str:
    """Name the runtime of this interpreter on this machine."""
    machine = platform.machine()
    major, minor, *_ = sys.version_info
    return f"{ARCHITECTURES.get(machine, machine)}/python{major}.{minor}"
