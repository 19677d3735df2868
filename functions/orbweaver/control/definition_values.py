"""What keys of a definition take: values of each kind, read from a decoded document and written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orbweaver.model.amounts import AmountError, nanodollars, size_bytes
from orbweaver.model.durations import DurationError, duration_ms
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from collections.abc import Callable

# TOML has no greater ones, and whoever gives one means something else.
NUMBER_MAX = 2**63
SHOWN_CHARS_MAX = 60


class Unfit(Exception):
    """A value does not fit; the text says the fix."""


class UnfitWithin(Exception):
    """Some of a value does not fit: paths within it, and words; `rest` is what could be read."""

    def __init__(self, rest: Any, problems: list[tuple[str, str]]) -> None:
        super().__init__(problems)
        self.rest = rest
        self.problems = problems


def shown(value: object) -> str:
    """Write a value so that it may be shown: what it is, where it is long."""
    if isinstance(value, str):
        return ascii(redacted(value, SHOWN_CHARS_MAX))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= NUMBER_MAX):
        return str(value)
    if isinstance(value, int):
        return "a very large number"
    return "a table" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def plain(name: str) -> str:
    """Write the name of a key that somebody has made up so that it may be shown."""
    known = re.fullmatch(r"[\w-]{1,60}", name, re.ASCII)
    return name if known else ascii(name[:SHOWN_CHARS_MAX])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unfit("give a text in quotes")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unfit('give a list of texts, like ["…", "…"]')
    return tuple(value)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > NUMBER_MAX:
        raise Unfit("give a whole number without quotes, like 1000")
    return value


def _bytes(value: object) -> int:
    return _amount(value, size_bytes, 'give a size like "500MB" or "10GB", or a number of bytes')


def _dollars(value: object) -> int:
    return _amount(value, nanodollars, "give an amount of dollars, like 5 or 0.25")


def _amount(value: object, read: Callable[[str], int], fix: str) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Neither negative, nor infinite, nor no number at all.
        value = f"{value:.9f}".rstrip("0").rstrip(".") if 0 <= value < NUMBER_MAX else ""
    if isinstance(value, str):
        try:
            return read(value)
        except AmountError:
            pass
    raise Unfit(fix)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise Unfit("give true or false, without quotes")
    return value


def _milliseconds(value: object) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Neither negative, nor infinite, nor no number at all.
        value = f"{value:.9f}" if 0 <= value < NUMBER_MAX else ""
        value = value.rstrip("0").rstrip(".")
    if isinstance(value, str):
        try:
            return duration_ms(value)
        except DurationError:
            pass
    raise Unfit('give a time like "250ms", "1.5s", "2h" or "7d", or a number of seconds')


def _seconds(value: object) -> int:
    return -(-_milliseconds(value) // 1_000)


def _headers(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise Unfit('give a table of names and texts, like { "Accept-Language" = "de" }')
    return tuple(value.items())


def _hosts(value: object) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Read headers by host; what does not fit in a host's table leaves it out."""
    if not isinstance(value, Mapping):
        raise Unfit('write [identity.hosts."example.org"] with its headers below')
    problems: list[tuple[str, str]] = []
    hosts: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for host, table in value.items():
        path = f".{redacted(host, SHOWN_CHARS_MAX)!a}"
        if not isinstance(table, Mapping):
            problems.append((path, 'give a table, like { headers = { "X-Key" = "…" } }'))
            continue
        unknown = "there is no such key: a host has headers"
        problems += [(f"{path}.{plain(name)}", unknown) for name in table if name != "headers"]
        try:
            hosts.append((host, _headers(table.get("headers", {}))))
        except Unfit as error:
            problems.append((f"{path}.headers", str(error)))
    if problems:
        raise UnfitWithin(tuple(hosts), problems)
    return tuple(hosts)


def _hosts_written(hosts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> dict[str, Any]:
    return {host: {"headers": dict(own)} for host, own in hosts}


def _one_of(words: Mapping[str, Any]) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if isinstance(value, str) and value in words:
            return words[value]
        near = difflib.get_close_matches(str(value)[:SHOWN_CHARS_MAX].lower(), words, n=1)
        hint = f"did you mean {near[0]}? It takes " if near else "give "
        raise Unfit(f"{hint}{' or '.join(words)}")

    return read


def _same(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of the document, and the part of a plan that it is."""

    path: str
    part: str
    read: Callable[[object], Any]
    write: Callable[[Any], Any] = _same
    secret: bool = False
    words: tuple[str, ...] = ()
    # The keys of the tables that it lists.
    inner: tuple[Key, ...] = ()


def _key(path: str, part: str, read: Callable[[object], Any], **more: Any) -> Key:
    return Key(path=path, part=part, read=read, **more)


def _words(path: str, part: str, words: Mapping[str, Any]) -> Key:
    names = {value: word for word, value in words.items()}
    return _key(path, part, _one_of(words), write=names.__getitem__, words=tuple(words))


def no_such_key(name: str, keys: tuple[Key, ...], what: str) -> str:
    """Say that there is no such key, with the nearest that there is; `what` has them."""
    names = [key.path for key in keys]
    near = difflib.get_close_matches(name[:SHOWN_CHARS_MAX].lower(), names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"{what} has {', '.join(names)}"
    return f"there is no such key: {hint}"
