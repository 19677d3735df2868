"""One fuzzer in its own process and environment, which ends with the process."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["orbweaver"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Fuzz the target of the first argument; the others are options of the fuzzer."""
    name, *options = sys.argv[1:]
    atheris.Setup([sys.argv[0], *options], TARGETS[name].play)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
