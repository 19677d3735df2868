"""Groups of modules, and a draw of mutants from them."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tests.mutants.operators import Mutation, compiles, mutations

_ROOMS = "functions/orbweaver/"
# A module belongs to the first group with a matching pattern; `*` matches slashes, too.
GROUPS: dict[str, tuple[str, ...]] = {
    "parsing": (f"{_ROOMS}parsing/*.py",),
    "extraction": (f"{_ROOMS}extraction/*.py",),
    "politeness": (f"{_ROOMS}politeness/*.py", f"{_ROOMS}fetching/*.py"),
    "actors": (f"{_ROOMS}worker/*.py", f"{_ROOMS}budget/reservation.py"),
    "protocol": (f"{_ROOMS}frontier/*.py", f"{_ROOMS}model/*.py", f"{_ROOMS}budget/*.py"),
    "tables": (f"{_ROOMS}adapters/dynamodb/*.py",),
    "web": (f"{_ROOMS}adapters/web/*.py",),
    "exporting": (f"{_ROOMS}exporting/*.py",),
    "cli": (f"{_ROOMS}cli/*.py",),
    "infra": ("infra/*.py",),
    "rest": ("functions/*.py",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one module."""

    id: str
    path: str
    mutation: Mutation


def group_of(path: str) -> str | None:
    found = (name for name, globs in GROUPS.items() if any(fnmatch(path, one) for one in globs))
    return next(found, None)


def modules(root: Path) -> dict[str, dict[str, str]]:
    """Return the texts of each group's modules by path."""
    found: dict[str, dict[str, str]] = {name: {} for name in GROUPS}
    for path in sorted(root.glob("[fi]*/**/*.py")):
        name = path.relative_to(root).as_posix()
        if group := group_of(name):
            found[group][name] = path.read_text()
    return found


def shares(lines: dict[str, int], count: int) -> dict[str, int]:
    """Divide a count in proportion to lines; the largest remainders get the rest."""
    whole = sum(lines.values())
    exact = {name: count * number / whole for name, number in lines.items()}
    given = {name: int(share) for name, share in exact.items()}
    behind = sorted(exact, key=lambda name: given[name] - exact[name])
    for name in behind[: count - sum(given.values())]:
        given[name] += 1
    return given


def draw(
    read: dict[str, dict[str, str]], *, count: int, seed: int, only: Collection[str] = ()
) -> list[Mutant]:
    """Draw mutants by lines of group, then sort of change, then place.

    `only` contains patterns of paths.
    """
    wanted = {
        group: {
            path: text
            for path, text in texts.items()
            if not only or any(fnmatch(path, one) for one in only)
        }
        for group, texts in read.items()
    }
    lines = {group: sum(text.count("\n") for text in wanted[group].values()) for group in wanted}
    if not any(lines.values()):
        raise SystemExit("no module is asked for: see --groups and --only")
    drawn: list[Mutant] = []
    for group, share in shares(lines, count).items():
        chance = random.Random(f"{seed} {group}")
        places: dict[str, list[tuple[str, Mutation]]] = {}
        for path, text in wanted[group].items():
            for one in mutations(text):
                places.setdefault(one.kind, []).append((path, one))
        left = share
        while left and places:
            kind = chance.choice(sorted(places))
            path, one = places[kind].pop(chance.randrange(len(places[kind])))
            if not places[kind]:
                del places[kind]
            if compiles(one.applied(wanted[group][path])):
                drawn.append(Mutant(id=f"{group}-{share - left + 1:02}", path=path, mutation=one))
                left -= 1
    return drawn
