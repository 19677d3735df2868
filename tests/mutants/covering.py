"""Tests by the lines that they run, and their times, measured once per state of the tests.

Each chunk of test files has a file of coverage contexts below .local, named by a digest of the
chunk, so changed tests are measured anew. Lines of a changed module are unknown: all tests that ran
any of its lines count. Use `--measure` after moved modules or many changes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

from tests.mutants.groups import Mutant
from tests.mutants.plugin import test_of

# Tests that start no outside process, and the fixed seeds of the simulation that a merge runs.
FOLDERS = ("tests/unit", "tests/property", "tests/contract", "tests/integration", "tests/infra")
SEEDS = "tests/simulation/test_simulation.py"
FIXED_SEEDS = (
    "test_all_faults_and_situations_occur",
    *(f"test_fixed_seeds[{first}]" for first in (60, 85, 110)),
)
CASES = {SEEDS: [f"{SEEDS}::{case}" for case in FIXED_SEEDS]}
CHUNK_FILES_MAX = 20
# Rooms (folders of the product) with tests in the folder of another room.
ROOMS = {"handlers": "app", "__init__.py": "library"}
# Folders whose lines are recorded.
MEASURED = ("functions", "infra")
# A session fixture is recorded with the first test of each chunk that uses it.
_SET_UP_ONCE = 2


@dataclass(frozen=True, slots=True)
class Chunk:
    """Test files of a folder that are measured together."""

    name: str
    folder: str
    files: tuple[str, ...]

    def data(self, home: Path) -> Path:
        """Return the path of its contexts; a JSON file there has the times of its tests."""
        return home / f"{self.name}.coverage"


def chunks(root: Path) -> Iterator[Chunk]:
    """Return chunks of test files, folder by folder."""
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("test_*.py")):
            name = path.relative_to(root).as_posix()
            folders[name.rpartition("/")[0]].append(name)
    folders[SEEDS.rpartition("/")[0]].append(SEEDS)
    for folder, files in folders.items():
        for at in range(0, len(files), CHUNK_FILES_MAX):
            taken = files[at : at + CHUNK_FILES_MAX]
            digest = hashlib.sha256(b"".join((root / name).read_bytes() for name in taken))
            slug = folder.removeprefix("tests/").replace("/", "-")
            yield Chunk(f"{slug}-{at}-{digest.hexdigest()[:16]}", folder, tuple(taken))


def mirror(path: str) -> str:
    room = path.removeprefix("functions/").removeprefix("orbweaver/").partition("/")[0]
    return "tests/infra" if room == "infra" else f"tests/unit/{ROOMS.get(room, room)}"


def sources(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for top in MEASURED
        for path in (root / top).rglob("*.py")
    }


def cases(files: Iterable[str]) -> list[str]:
    """Return arguments of pytest: files, or some cases of them."""
    return [case for name in dict.fromkeys(files) for case in CASES.get(name, [name])]


class Covering:
    """Tests of each line, and their times in seconds, from the named chunks."""

    def __init__(self, root: Path, home: Path, named: Iterable[Chunk]) -> None:
        self._root = root
        self.seconds: dict[str, float] = {}
        self._data: list[tuple[CoverageData, dict[str, str]]] = []
        self._files: dict[str, dict[int, set[str]]] = {}
        self._changed: set[str] = set()
        now = sources(root).items()
        for chunk in named:
            took = json.loads(chunk.data(home).with_suffix(".json").read_text())
            self.seconds |= took["seconds"]
            self._changed |= {name for name, _ in took["sources"].items() ^ now}
            data = CoverageData(str(chunk.data(home)))
            data.read()
            # Measured in a copy of the tree: paths are relative to it.
            names = {re.sub(r".*/lanes/\d+/", "", name): name for name in data.measured_files()}
            self._data.append((data, names))

    def _contexts(self, path: str) -> dict[int, set[str]]:
        if path not in self._files:
            found = self._files[path] = defaultdict(set)
            for data, names in self._data:
                if path in names:
                    for line, contexts in data.contexts_by_lineno(names[path]).items():
                        found[line].update(contexts)
        return self._files[path]

    def tests(self, mutant: Mutant, *, near: bool) -> list[str]:
        """Return tests of its room, or others, that may detect a mutant; fastest first."""
        lines = self._contexts(mutant.path)
        change = mutant.mutation
        places = {change.statement, *range(change.line, change.line_last + 1)}
        there = {context for line in places for context in lines.get(line, ())}
        found = {_test(context) for context in there}
        set_up: defaultdict[str, set[str]] = defaultdict(set)
        for context in there:
            if context.endswith("|setup"):
                set_up[context.partition("::")[0].rpartition("/")[0]].add(context)
        shared = tuple(f"{name}/" for name, those in set_up.items() if len(those) <= _SET_UP_ONCE)
        found |= {name for name in self.seconds if shared and name.startswith(shared)}
        covered = Counter(
            name for those in lines.values() for name in {_test(context) for context in those}
        )
        if mutant.path in self._changed:
            found |= set(covered)
        if change.at_import or "" in there:
            found |= self._readers(mutant.path)
        stem, folder = _words(Path(mutant.path).stem), f"{mirror(mutant.path)}/"
        found = {name for name in found & self.seconds.keys() if name.startswith(folder) is near}

        def cost(name: str) -> float:
            alike = len(stem & _words(Path(name.partition("::")[0]).stem))
            return (0.01 + self.seconds[name]) / (1 + covered[name]) / (1 + 4 * alike)

        return sorted(found, key=cost)

    def _readers(self, path: str) -> set[str]:
        """Return tests that run a module or an importer of it, or whose file imports it."""
        module = path.removeprefix("functions/").removesuffix(".py").removesuffix("/__init__")
        package, _, name = module.replace("/", ".").rpartition(".")
        asked = re.compile(rf"from {re.escape(package)}(\.{name} import|\b.* import .*\b{name}\b)")
        found: set[str] = set()
        for top in ("functions", "infra", "tests"):
            for reader in sorted((self._root / top).rglob("*.py")):
                where = reader.relative_to(self._root).as_posix()
                if where == path or asked.search(reader.read_text()):
                    for contexts in self._contexts(where).values():
                        found |= {_test(context) for context in contexts}
                    found |= {name for name in self.seconds if name.startswith(f"{where}::")}
        return found


def _test(context: str) -> str:
    return test_of(context.rpartition("|")[0])


def _words(name: str) -> set[str]:
    return set(re.findall("[a-z]+", name))
