"""A crawl as a document, `crawl.toml` or the same as JSON: read into a plan, and written.

- Every key is in `control/definition_keys.py`; one that is left out takes the default of the plan.
- Nothing is guessed: what does not fit is a problem with key, value and fix, an unknown key one
  with the nearest that is known. All problems are found, not only the first.
- What headers hold may be a secret, so no problem shows it.

Decoded documents come in, so that TOML, JSON and whatever is sent to an API are the same thing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orbweaver.control.crawl_spec import SEEDS_FILE, CrawlSpec
from orbweaver.control.definition_keys import BY_PATH, KEYS, PATHS, TABLES
from orbweaver.control.definition_values import (
    SHOWN_CHARS_MAX,
    UnfitSetting,
    UnfitWithin,
    plain,
    shown,
)
from orbweaver.control.spec_checks import problems_of


@dataclass(frozen=True, slots=True)
class DefinitionProblem:
    """What does not fit: `path` is the key, as `limits.pages`; empty for the whole."""

    path: str
    text: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.path}: {self.text}" if self.path else self.text


class DefinitionError(ValueError):
    """A document does not fit; `problems` are all that was found."""

    def __init__(self, problems: tuple[DefinitionProblem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


# --- reading ------------------------------------------------------------------------------------


# To find the key that was probably meant takes a comparison with all of them.
HINTS_MAX = 100
NO_TABLE = (
    'it is no table of keys: give some, like {"seeds": ["https://example.com/"]};'
    " docs/definition.md has all of them"
)


def parse(document: object, lines: str | None = None) -> CrawlSpec:
    """Read a plan from a decoded document; raises DefinitionError with all that does not fit.

    `lines` is what the file holds that `seeds_file` names; None where no file can be read.
    """
    plan, problems = read(document, lines)
    problems = (*problems, *check(plan, problems))
    if problems:
        raise DefinitionError(problems)
    return plan


def read(
    document: object, lines: str | None = None
) -> tuple[CrawlSpec, tuple[DefinitionProblem, ...]]:
    """Read as much of a plan as there is, and what cannot be read; values are not checked yet."""
    if not isinstance(document, Mapping):
        return CrawlSpec(), (DefinitionProblem("", NO_TABLE),)
    parts: dict[str, Any] = {}
    problems: list[DefinitionProblem] = []
    for path, value in _leaves(document):
        key = BY_PATH.get(path)
        if isinstance(value, DefinitionProblem):
            problems.append(value)
        elif key is not None:
            try:
                parts[key.part] = key.codec.read(value)
            except UnfitSetting as error:
                given = "" if key.secret else f"{shown(value)} does not fit: "
                problems.append(DefinitionProblem(path, f"{given}{error}"))
            except UnfitWithin as error:
                parts[key.part] = error.rest
                problems += [DefinitionProblem(f"{path}{at}", said) for at, said in error.problems]
    if (file := parts.pop("", None)) is not None:
        if lines is None:
            fix = "no file can be read here: give its lines as seeds"
            problems.append(DefinitionProblem(SEEDS_FILE, f"{shown(file)}: {fix}"))
        parts["seeds"] = (*parts.get("seeds", ()), *lines_of(lines or ""))
    return replace(CrawlSpec(), **parts), tuple(problems)


def check(
    plan: CrawlSpec, known: tuple[DefinitionProblem, ...] = (), now_ms: int | None = None
) -> tuple[DefinitionProblem, ...]:
    """Find what does not fit in a plan's values, beside what is known not to.

    With `now_ms` that includes a schedule whose last time has passed.
    """
    paths = {problem.path for problem in known}
    if paths & {"", "seeds", SEEDS_FILE, "sitemaps"} and not (plan.seeds or plan.sitemap_urls):
        paths.add("seeds")  # there are some that could not be read
    found = (
        DefinitionProblem(PATHS.get(error.field, error.field), str(error))
        for error in problems_of(plan, now_ms)
    )
    return tuple(problem for problem in found if not _is_known(problem.path, paths))


def _is_known(path: str, known: set[str]) -> bool:
    """Whether something is known not to fit there, or in what that is a part of, or within."""
    return any(
        path == other or path.startswith(f"{other}.") or other.startswith(f"{path}.")
        for other in known
    )


def seeds_file_of(document: object) -> str | None:
    """Return the name of the file that seeds are read from, `-` for the standard input."""
    name = document.get(SEEDS_FILE) if isinstance(document, Mapping) else None
    return name if isinstance(name, str) else None


def given_in(document: object) -> tuple[str, ...]:
    """List the keys that a document gives a value to, of those that there are."""
    if not isinstance(document, Mapping):
        return ()
    return tuple(path for path, _ in _leaves(document) if path in BY_PATH)


def lines_of(text: str) -> tuple[str, ...]:
    """Read seeds, one a line; lines that are empty or begin with `#` are passed over."""
    lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def document_of(plan: CrawlSpec) -> dict[str, Any]:
    """Write a plan as the document that it is read from; what has no value is left out."""
    document: dict[str, Any] = {}
    for key in KEYS:
        value = getattr(plan, key.part) if key.part else None
        if value is not None:
            put_at(document, key.path, key.codec.write(value))
    return document


def put_at(document: dict[str, Any], path: str, value: Any) -> None:
    """Write a value at a key's path; what is no table where that has one is left to `read`."""
    table, _, name = path.rpartition(".")
    if not table:
        document[name] = value
    elif isinstance(holder := document.get(table, {}), Mapping):
        document[table] = {**holder, name: value}


def _leaves(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """List paths and values; a problem stands in place of a value that has no place."""
    hints = iter(range(HINTS_MAX))
    for name, value in document.items():
        if name not in TABLES:
            known = name in BY_PATH and "." not in name
            yield (
                name,
                value
                if known
                else _unknown("", name, a_table=isinstance(value, Mapping), hints=hints),
            )
        elif not isinstance(value, Mapping):
            keys = _listed(name)
            text = f"{shown(value)} does not fit: it is a table, [{name}], of {keys}"
            yield name, DefinitionProblem(name, text)
        else:
            for inner, one in value.items():
                path = f"{name}.{inner}"
                yield (
                    path,
                    one if path in BY_PATH else _unknown(name, inner, a_table=False, hints=hints),
                )


def _unknown(table: str, name: str, *, a_table: bool, hints: Iterator[int]) -> DefinitionProblem:
    path = f"{table}.{plain(name)}" if table else plain(name)
    kind = "table" if a_table else "key"
    if next(hints, None) is None:
        return DefinitionProblem(path, f"there is no such {kind}")
    near = _near(table, name, a_table=a_table)
    if near is not None:
        hint = f"did you mean {near}?"
    elif a_table:
        hint = f"tables are {', '.join(TABLES)}"
    else:
        where = f"[{table}] has" if table else "outside of tables there are"
        hint = f"{where} {_listed(table)}"
    return DefinitionProblem(path, f"there is no such {kind}: {hint}")


def _near(table: str, name: str, *, a_table: bool) -> str | None:
    """Find the key or table that was probably meant: of this table first, then of any."""
    if a_table:
        tables = difflib.get_close_matches(name, TABLES, n=1)
        return f"[{tables[0]}]" if tables else None
    names = {key.rpartition(".")[2]: key for key in BY_PATH}
    if name in names:  # in another table
        return names[name]
    own = [key for key in BY_PATH if key.rpartition(".")[0] == table]
    words = {key.rpartition(".")[2]: key for key in own}
    for candidates, word in ((words, name), (names, name)):
        if found := difflib.get_close_matches(word[:SHOWN_CHARS_MAX].lower(), candidates, n=1):
            return candidates[found[0]]
    return None


def _listed(table: str) -> str:
    """List the keys of a table, or those that stand in none."""
    names = [path.rpartition(".") for path in BY_PATH]
    return ", ".join(name for holder, _, name in names if holder == table)
