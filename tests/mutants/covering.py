"""Which tests run a line, and how long each takes: measured once for each state of the tests.

What is measured lies below .local, a file of coverage contexts for each chunk of test files, named
by a digest of these: changed tests are measured anew. Of a module that was changed since, lines
mean nothing any more, so all tests count that ran any of it; where modules moved, or after many
changes, `--measure` begins anew.
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

# Tests that start nothing outside, and the first hundred of the simulation's fixed seeds.
FOLDERS = ("tests/unit", "tests/property", "tests/contract", "tests/integration", "tests/infra")
SEEDS = "tests/simulation/test_simulation.py"
CASES = {SEEDS: [f"{SEEDS}::test_fixed_seeds[{first}]" for first in range(0, 100, 25)]}
CHUNK_FILES_MAX = 20
# What has tests in the folder of another room.
ROOMS = {"handlers": "app", "__init__.py": "library"}
# The folders whose lines are noted.
MEASURED = ("functions", "infra")
# A fixture of the session is noted with the test that asked for it first, in each chunk.
_SET_UP_ONCE = 2


@dataclass(frozen=True, slots=True)
class Chunk:
    """Test files of a folder that are measured together."""

    name: str
    folder: str
    files: tuple[str, ...]

    def data(self, home: Path) -> Path:
        """Return where its contexts lie; what its tests took lies beside, as JSON."""
        return home / f"{self.name}.coverage"


def chunks(root: Path) -> Iterator[Chunk]:
    """Divide the test files, folder by folder."""
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
    """Name the folder of the tests that mirror the room of a module."""
    room = path.removeprefix("functions/").removeprefix("orbweaver/").partition("/")[0]
    return "tests/infra" if room == "infra" else f"tests/unit/{ROOMS.get(room, room)}"


def sources(root: Path) -> dict[str, str]:
    """Return a digest of each module that is measured."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for top in MEASURED
        for path in (root / top).rglob("*.py")
    }


def cases(files: Iterable[str]) -> list[str]:
    """Return what pytest is told: files, or the cases of them that are taken."""
    return [case for name in dict.fromkeys(files) for case in CASES.get(name, [name])]


class Covering:
    """The tests of each line, and what they take, in seconds; of the chunks that are named."""

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
            # Measured in a copy of the tree: paths count from there.
            names = {re.sub(r".*/lanes/\d+/", "", name): name for name in data.measured_files()}
            self._data.append((data, names))

    def _contexts(self, path: str) -> dict[int, set[str]]:
        """Return the contexts of each line of a module."""
        if path not in self._files:
            found = self._files[path] = defaultdict(set)
            for data, names in self._data:
                if path in names:
                    for line, contexts in data.contexts_by_lineno(names[path]).items():
                        found[line].update(contexts)
        return self._files[path]

    def tests(self, mutant: Mutant, *, near: bool) -> list[str]:
        """Name tests that may notice a mutant, nearest and fastest first: of its room, or not."""
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
        """Name the tests that run a module or one that imports it, or whose file imports it."""
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
