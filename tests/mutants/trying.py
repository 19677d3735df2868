"""Copies of the tree, and processes in them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.corpora import BESIDE, VARIABLE
from tests.mutants.covering import MEASURED, Chunk, cases, sources
from tests.mutants.groups import Mutant
from tests.mutants.plugin import SECONDS_MAX, TOOK, WANTED

MARKS = "not e2e and not emulator and not long and not chaos and not slow"
# Large files that the setup makes, which are not copied.
LINKED = (".venv", "node_modules", ".local/emulator")
# Total time of the tests that run first, and of all others.
FIRST_S, REST_S_MAX = 40.0, 160.0
# Time limit of a process: a multiple of the normal time, plus its start.
SLOWER, START_S = 5.0, 20.0
_MEASURING_S_MAX = 1_800.0


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a mutant: the test that detected it, if any, and the number of tests that ran."""

    noticed_by: str | None
    tried: int
    left: int


class Lane:
    """A copy of the tree, for one process at a time."""

    def __init__(self, root: Path, home: Path, *, prefix: Sequence[str]) -> None:
        self._root, self._folder, self._prefix = root, home, prefix
        self._written = 0
        self._running: subprocess.Popen[str] | None = None
        shutil.rmtree(home, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"],  # noqa: S607 - of the PATH
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (home / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, home / name)
        (home / ".local").mkdir()
        for name in LINKED:
            (home / name).symlink_to(root / name)

    def stop(self) -> None:
        if self._running:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)

    def _pytest(self, options: Sequence[str], env: dict[str, str]) -> tuple[int, str]:
        paths = [str(self._folder / "functions"), str(self._folder)]
        beside = os.environ.get(VARIABLE) or str(BESIDE)
        self._running = subprocess.Popen(
            [
                *(*self._prefix, sys.executable, "-m", "pytest", "-p", "tests.mutants.plugin"),
                *("-o", "addopts=", "--import-mode=importlib", "-p", "no:cacheprovider", "-q"),
                *("-rfE", "--tb=no", "--no-header", "--hypothesis-seed=0", "-m", MARKS, *options),
            ],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), VARIABLE: beside, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = self._running.communicate()
        finally:
            self.stop()
        return self._running.returncode, said

    def measure(self, chunk: Chunk, data: Path) -> None:
        """Run unchanged test files, and store the lines of each test."""
        part, took = data.with_suffix(".part"), data.with_suffix(".took")
        part.unlink(missing_ok=True)
        options = (*(f"--cov={top}" for top in MEASURED), "--cov-context=test", "--cov-report=")
        _, said = self._pytest(
            [*options, f"--cov-config={os.devnull}", *cases(chunk.files)],
            {"COVERAGE_FILE": str(part), TOOK: str(took), SECONDS_MAX: str(_MEASURING_S_MAX)},
        )
        print(chunk.name, *said.splitlines()[-12:], sep="\n  ", flush=True)
        noted = {"seconds": json.loads(took.read_text()), "sources": sources(self._root)}
        data.with_suffix(".json").write_text(json.dumps(noted))
        part.rename(data)

    def tried(self, mutant: Mutant, tests: Sequence[str], seconds: dict[str, float]) -> Result:
        path = self._folder / mutant.path
        original = self._root / mutant.path
        self._written += 1
        path.write_text(mutant.mutation.applied(original.read_text()))
        # Each text of a module gets another modification time, so that its bytecode is not reused.
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime + self._written))
        done = 0
        try:
            for batch in batches(tests, seconds):
                if noticed := self._noticed(batch, sum(seconds[name] for name in batch)):
                    return Result(noticed, done + len(batch), len(tests) - done - len(batch))
                done += len(batch)
            return Result(None, done, len(tests) - done)
        finally:
            shutil.copy2(original, path)

    def _noticed(self, batch: Sequence[str], seconds: float) -> str | None:
        wanted = self._folder / ".local" / "wanted"
        wanted.write_text("\n".join(batch))
        limit = START_S + SLOWER * seconds
        code, said = self._pytest(
            ["-x", *cases(name.partition("::")[0] for name in batch)],
            {WANTED: str(wanted), SECONDS_MAX: str(limit)},
        )
        if code == 0:
            return None
        failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if code == 1:  # pytest names the failed test, except after a timeout.
            return failed[0].split(" - ")[0] if failed else f"a hang of {limit:.0f} s"
        if code == 5 or "unrecognized arguments" in said:
            raise RuntimeError(f"nothing was run of {batch[:3]}: {said[-2_000:]}")
        return failed[0] if failed else f"the process ended with {code}"


def batches(tests: Sequence[str], seconds: dict[str, float]) -> Iterator[list[str]]:
    """Return batches of tests: the first ones, and the rest within the limit."""
    first: list[str] = []
    rest: list[str] = []
    whole = 0.0
    for name in tests:
        whole += seconds[name]
        if whole <= FIRST_S or not first:
            first.append(name)
        elif whole <= REST_S_MAX:
            rest.append(name)
    yield from filter(None, (first, rest))
