"""Identifiers of the package: the field's words, and none that this code alone would use."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import orbweaver

PACKAGE = Path(orbweaver.__file__).parent
# What is not said, and the word of the glossary for it.
INSTEAD = {
    "purse purses treasury allowance allowances": "budget, reservation",
    "attendance attended": "shared clock",
    "draft drafts": "result",
    "settler": "applier",
    "advancer": "processor",
    "visitor": "pack fetcher",
    "concluder": "handler",
    "ingester": "seeder",
    "crowd crowds crowded": "others, busy",
    "tally tallies": "counts",
    "books": "counters",
    "desk bench": "workspace",
    "mender mend": "repairer, repair",
    "sealer": "finalizer",
    "fate fates": "URL status",
    "meant": "scope",
    "tame wild": "safe, unsafe",
    "survey": "preview",
    "sweep sweeper blot blotter restate restater": "erase, eraser",
}
BANNED = {word: better for words, better in INSTEAD.items() for word in words.split()}
# Names of fields in answers of the API.
PUBLIC = {("api/responses.py", "fate")}


def words_of(identifier: str) -> list[str]:
    """Split a name at underscores and capitals, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)]


def test_names_are_split_into_words() -> None:
    """Whatever way of writing them a name has."""
    assert words_of("_MemoryPurses") == ["memory", "purses"]
    assert words_of("PURSES_MAX2") == ["purses", "max"]
    assert words_of("HTTPTally") == ["http", "tally"]


def test_identifiers_use_the_words_of_the_field() -> None:
    """Of modules, classes, functions, parameters, attributes and variables alike."""
    found: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        with tokenize.open(path) as file:
            names = {
                token.string
                for token in tokenize.generate_tokens(file.readline)
                if token.type == tokenize.NAME
            }
        for name in names | {path.stem}:
            found |= {
                f"{place}: {name}: say {BANNED[word]}"
                for word in words_of(name)
                if word in BANNED and (place, name) not in PUBLIC
            }
    assert not sorted(found)
