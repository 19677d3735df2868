"""The functions' runtime, such as `arm64/python3.13`.

Architecture and version are one setting, because wheels depend on both. On AWS, all runtimes use
Amazon Linux 2023, whose C library is new enough for today's wheels. An emulator runs functions on
this machine, so it has this machine's runtime.

Source: docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass

# On arm64, computing costs a fifth less than on x86_64. All pinned libraries have wheels for 3.13.
AWS_RUNTIME = "arm64/python3.13"
ARCHITECTURES = {"arm64": "arm64", "aarch64": "arm64", "x86_64": "x86_64", "AMD64": "x86_64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """An architecture and a Python version. `native`: both are this machine's, for an emulator."""

    architecture: str
    python: str
    native: bool = False

    @classmethod
    def parse(cls, name: str, *, native: bool) -> Runtime:
        architecture, python = name.split("/python")
        return cls(architecture=architecture, python=python, native=native)


def host_runtime() -> str:
    machine = platform.machine()
    major, minor, *_ = sys.version_info
    return f"{ARCHITECTURES.get(machine, machine)}/python{major}.{minor}"
