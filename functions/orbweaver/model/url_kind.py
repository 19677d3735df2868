"""Group similar URLs. URLs of one kind have the same shape, like `/wiki/*?action=edit`.

A shape is a tuple of tokens, a pure function of the URL. `Kinds` keeps data for each shape of a
crawl and merges shapes if there are too many.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

# Tokens in this order: the origin, the first three folders of the path, `**` if there are more, the
# extension of the name (`.html`), the name without it, the names of the first `PARAMETERS_MAX`
# parameters (`?title=&action=`), then the value of each. With more than three folders, `*` replaces
# the name, and an extension before a query is dropped.
Shape: TypeAlias = tuple[str, ...]

WORD_CHARS_MAX = 20
NAME_CHARS_MAX = 40
PARAMETERS_MAX = 8
SIBLINGS_MAX = 24
KINDS_MAX = 500
IDS_WITHIN = 8
FOLDED_SHARE = 0.01
_VALUE_TEXT = re.compile("=[^&;]+")
# Positions of tokens in a shape. From `_VALUES` on there is one for each named parameter.
_ORIGIN, _FOLDERS, _DEEPER, _EXTENSION, _NAME, _QUERY, _VALUES = 0, (1, 2, 3), 4, 5, 6, 7, 8

ANY, NUMBER, DEEPER, ANY_QUERY, MORE = "*", "0", "**", "?**", "…"
# Suffix of a variable token: its value occurred before.
AGAIN = "+"
_NO_WORDS = frozenset({"", ANY, NUMBER, DEEPER, ANY_QUERY, ANY + AGAIN, NUMBER + AGAIN})
_RUN = "(?:[A-Za-z]++[0-9]*+|[0-9]++)"
_WORD = re.compile(rf"[-_.~]?{_RUN}(?:[-_.~]{_RUN})?")
_NAMESPACE = re.compile(rf"([A-Za-z][A-Za-z_]{{0,{WORD_CHARS_MAX - 1}}})(?::|%3A)")
_EXTENDED = re.compile(r"([^?]+)(\.[A-Za-z][A-Za-z0-9]{0,4})", re.DOTALL)
# Digits that are not part of an escape.
_DIGITS = re.compile("(?<!%)[0-9]+")
_A_DIGIT = re.compile("(?<!%)(?<!%[0-9A-Fa-f])[0-9]")
_PARAMETER_NAME = re.compile(r"(?:[A-Za-z0-9_.~-]|%5[BD]|[\[\]])*")
_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{}])")


def shape_of(url: str) -> Shape:
    """Return the shape of a URL. Never raises, because every text has a shape."""
    stem, question, query = url.partition("?")
    before, _, name = stem.rpartition("/")
    if "://" in before:
        places = _places_of(before)
    elif "://" in stem:
        places, name = _places(stem, ()), ""
    else:
        *folders, name = stem.split("/")
        places = _places(stem, folders)
    deeper = bool(places[_DEEPER])
    if (found := _EXTENDED.fullmatch(name)) is None or _NAMESPACE.match(name):
        named = ("", name and ANY if deeper else _token(name))
    elif deeper:
        named = ("" if question else found[2], ANY)
    else:
        named = (found[2], _token(found[1]))
    return (*places, *named, *(_parameters(query) if question else ("",)))


@lru_cache(maxsize=1_024)
def _places_of(folder: str) -> Shape:
    scheme, separator, rest = folder.partition("://")
    origin, *folders = rest.split("/")
    return _places(f"{scheme}{separator}{origin}", folders)


def _places(origin: str, folders: Sequence[str]) -> Shape:
    first = [_token(folder) or ANY for folder in folders[: len(_FOLDERS)]]
    deeper = DEEPER if len(folders) > len(_FOLDERS) else ""
    return (origin, *first, *[""] * (len(_FOLDERS) - len(first)), deeper)


def in_any_folder(shape: Shape, kept: int = 0) -> Shape:
    """Replace the folders after the first `kept` ones by `**`, and the name by `*`."""
    first = [shape[at] for at in _FOLDERS[:kept] if shape[at]]
    folders = (*first, DEEPER, *[""] * (len(_FOLDERS) - len(first)))
    return (shape[_ORIGIN], *folders, "", shape[_NAME] and ANY, *shape[_QUERY:])


def in_two_folders(shape: Shape) -> Shape:
    """Return a more general shape: with `**` for folders below the second, and `*` for names.

    Names of namespaces (`Special:*`) are kept. `*` also replaces values that begin with a capital
    letter, because titles do and program actions do not.
    """
    deeper = DEEPER if shape[_FOLDERS[-1]] or shape[_DEEPER] else ""
    name = shape[_NAME]
    if not name.endswith(":*"):
        name = (name or shape[_EXTENSION]) and ANY
    first, second, _ = _FOLDERS
    values = (ANY if "A" <= one[:1] <= "Z" and one[-2:] != ":*" else one for one in shape[_VALUES:])
    extension = shape[_EXTENSION]
    places = (shape[_ORIGIN], shape[first], shape[second], "", deeper, extension, name)
    return (*places, shape[_QUERY], *values)


def with_open_id(url: str) -> str | None:
    """Return a URL without query, with `*` for its first folder that is an id. None: it has none.

    An id is a number, or a text with a digit that is not a word, like a revision. Only the first
    `IDS_WITHIN` folders are searched.
    """
    folder, _, name = url.partition("?")[0].rpartition("/")
    opened, behind = _open_first_id(folder)
    return f"{opened}/{name}" if opened and (behind or name) else None


@lru_cache(maxsize=1_024)
def _open_first_id(folder: str) -> tuple[str, bool]:
    parts = folder.split("/")
    for at in range(3, min(len(parts), 3 + IDS_WITHIN)):
        token = _token(parts[at])
        if token == NUMBER or (token == ANY and _A_DIGIT.search(parts[at])):
            parts[at] = ANY
            return "/".join(parts), any(parts[at + 1 :])
    return "", False


def values_of(url: str, shape: Shape) -> list[tuple[int, str]]:
    """Return the values of a URL's parameters, each with its position in the URL's shape."""
    if len(shape) <= _VALUES:
        return []
    query = url.partition("?")[2]
    separator = ";" if ";" in shape[_QUERY] else "&"
    values = (one.partition("=")[2] for one in query.split(separator, PARAMETERS_MAX))
    return list(zip(range(_VALUES, len(shape)), values, strict=False))


def varies(token: str) -> bool:
    return token in (ANY, NUMBER) or token.endswith(":*")


def folded(weights: Mapping[Shape, int], least: float) -> dict[Shape, Shape]:
    """Map shapes to more general shapes: words with a weight below `least` become `*`.

    `weights` are the weights of the shapes. A word is kept if it is the only such word at its
    position and no shape has `*` there.
    """
    places = {shape: shape for shape in weights}
    for at in range(max(map(len, weights), default=0)):
        there = [one for one in places.values() if at < len(one)]
        whole: Counter[Shape] = Counter()
        for shape, now in places.items():
            if at < len(now) and now[at] not in _NO_WORDS:
                whole[now[: at + 1]] += weights[shape]
        light = {start for start, weight in whole.items() if weight < least}
        number = Counter(start[:at] for start in light)
        number.update({one[:at] for one in there if one[at] == ANY})
        for shape, now in places.items():
            if now[: at + 1] in light and number[now[:at]] > 1:
                places[shape] = _generalize(now, at)
    return places


def kind_text(shape: Shape) -> str:
    """Format a shape as a URL for people, with `*` for variable parts."""
    folders = "".join(f"{one}/" for one in (*(shape[at] for at in _FOLDERS), shape[_DEEPER]) if one)
    text = f"{shape[_ORIGIN]}/{folders}{shape[_NAME]}{shape[_EXTENSION]}"
    if shape[_QUERY] in ("", ANY_QUERY):
        return f"{text}?*" if shape[_QUERY] else text
    more = MORE if shape[_QUERY].endswith(MORE) else ""
    return f"{text}?{_join_parameters(shape, str, str)}{more}"


def example_of(url: str) -> str:
    """Return a URL without the values of its parameters, which may be secret."""
    return _VALUE_TEXT.sub("=…", url)


def pattern_of(shape: Shape) -> str:
    """Return a shape as a regular expression for `--exclude`.

    It matches the URLs of all shapes that this one `covers`, and no others.
    """
    origin = "https?://[^/?]*" if shape[_ORIGIN] == ANY else _quoted(shape[_ORIGIN])
    folders = [
        "(?:[^/?]*/)*" if shape[at] == DEEPER else f"{_pattern(shape[at], '[^/?]')}/"
        for at in _FOLDERS
        if shape[at]
    ]
    deeper = "(?:[^/?]*/)+" if shape[_DEEPER] else ""
    name = _pattern(shape[_NAME], "[^/?]") + _quoted(shape[_EXTENSION])
    path = f"^{origin}/{''.join(folders)}{deeper}{name}"
    match shape[_QUERY]:
        case "":
            return f"{path}$"
        case _ if shape[_QUERY] == ANY_QUERY:
            return rf"{path}\?"
    # A value may contain the other separator, unless there is only one parameter.
    char = "[^&]" if "&" in shape[_QUERY] else "[^&;]"
    query = _join_parameters(shape, _with_number_pattern, lambda value: _pattern(value, char))
    return rf"{path}\?{query}" + "$" * (not shape[_QUERY].endswith(MORE))


def covers(general: Shape, other: Shape) -> bool:
    """Whether the pattern of one shape matches all URLs of another."""
    for at in (_ORIGIN, *_FOLDERS, _DEEPER):
        if general[at] == DEEPER and at != _DEEPER:
            break
        if not (general[at] == other[at] or (general[at] == ANY and other[at])):
            return False
    if general[_NAME] != ANY:
        named = general[_EXTENSION : _NAME + 1] == other[_EXTENSION : _NAME + 1]
    else:
        named = general[_EXTENSION] in ("", other[_EXTENSION])
    if not named:
        return False
    if general[_QUERY] == ANY_QUERY:
        return bool(other[_QUERY])
    if general[_QUERY] != other[_QUERY]:
        return False
    values = zip(general[_VALUES:], other[_VALUES:], strict=True)
    return all(one in (ANY, another) for one, another in values)


# --- tokens -------------------------------------------------------------------------------------


@lru_cache(maxsize=4_096)
# A word is literal: up to `WORD_CHARS_MAX` letters, in one piece or in two (`blob_plain`,
# `index.php`). Numbers are `0`, alone or in a word (`page-0`). A namespace keeps its name
# (`Special:*`). Everything else is `*`: ids, long words, words in more pieces, escapes.
def _token(text: str) -> str:
    if not text:
        return ""
    if (namespace := _NAMESPACE.match(text)) is not None:
        return f"{namespace[1]}:*"
    if len(text) > WORD_CHARS_MAX or _WORD.fullmatch(text) is None:
        return NUMBER if text.isascii() and text.isdigit() else ANY
    return _DIGITS.sub(NUMBER, text)


def _parameters(query: str) -> tuple[str, ...]:
    """Return the token of a query, then the token of each value.

    A query with a parameter name that is too long or has unusual characters is `?**` as a whole.
    Single letters as values are `*`.
    """
    names, values = [], []
    separator = ";" if ";" in query and "&" not in query else "&"
    parameters = query.split(separator, PARAMETERS_MAX)
    for parameter in parameters[:PARAMETERS_MAX]:
        name, equals, value = parameter.partition("=")
        if len(name) > NAME_CHARS_MAX or _PARAMETER_NAME.fullmatch(name) is None:
            return (ANY_QUERY,)
        names.append(_DIGITS.sub(NUMBER, name) + equals)
        token = _token(value)
        values.append(ANY if len(token) == 1 and token != NUMBER else token)
    if len(parameters) > PARAMETERS_MAX:
        names.append(MORE)
    return (f"?{separator.join(names)}", *values)


def _join_parameters(
    shape: Shape, name_of: Callable[[str], str], value_of: Callable[[str], str]
) -> str:
    separator = ";" if ";" in shape[_QUERY] else "&"
    names = shape[_QUERY].removeprefix("?").split(separator)
    values = zip(names, shape[_VALUES:], strict=False)
    more = [""] * (names[-1] == MORE)
    return separator.join([*(name_of(name) + value_of(value) for name, value in values), *more])


def _pattern(token: str, char: str) -> str:
    if token == ANY:
        return f"{char}*"
    if token.endswith(":*"):
        return f"{_quoted(token[:-2])}(?::|%3A){char}*"
    return _with_number_pattern(token)


def _with_number_pattern(text: str) -> str:
    return _quoted(text).replace(NUMBER, "[0-9]+")


def _quoted(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


# --- the kinds of a crawl -----------------------------------------------------------------------


class Mergeable(Protocol):
    """Data about a group of similar URLs."""

    def merge(self, other: Self) -> None:
        """Add the data of `other`, a group that becomes a part of this group."""

    @property
    def weight(self) -> int:
        """Importance of the group. If there are too many groups, the heaviest are kept."""


K = TypeVar("K", bound=Mergeable)


class Kinds(Generic[K]):
    """Data about each kind (group of similar URLs) of a crawl. `rest` is the data of dropped kinds.

    If one position of a shape has more than `SIBLINGS_MAX` words (`/wiki/Apple`, `/wiki/Pear` …),
    all of them become `*`. If there are more than `kinds_max` kinds, words that are rare at their
    position become `*`. If that is not enough, the lightest kinds are dropped. A dropped kind that
    occurs again starts without data. The order of URLs has no effect.

    Queries also become `*`, unless `keeps_query` returns True for their merged data. All scripts of
    a site have one position, `/*.php?…`. Without `keeps_query`, productive and unproductive scripts
    would count as one kind.
    """

    def __init__(
        self,
        new: Callable[[], K],
        kinds_max: int = KINDS_MAX,
        keeps_query: Callable[[K], bool] | None = None,
    ) -> None:
        self.rest = new()
        # Number of merges. A kind that was looked up before a merge may be outdated.
        self.changes = 0
        self._new = new
        self._kinds_max = kinds_max
        self._keeps_query = keeps_query
        self._known: dict[Shape, K] = {}
        # By prefix of a shape: the words found at the next position. If they were too many, the
        # words that were not replaced by `*`.
        self._words: dict[Shape, set[str]] = {}
        self._literal: dict[Shape, set[str]] = {}

    def data_of(self, url: str) -> K:
        return self.data_at(shape_of(url))

    def data_at(self, shape: Shape) -> K:
        return self.entry(shape)[1]

    def heaviest(self) -> dict[Shape, K]:
        """Return at most `kinds_max` kinds with their data: the heaviest first, then by text."""
        self._shrink(self._kinds_max)
        return dict(sorted(self._known.items(), key=_sort_key))

    @property
    def known(self) -> Mapping[Shape, K]:
        return self._known

    def entry(self, shape: Shape) -> tuple[Shape, K]:
        """Return the shape under which `shape` is counted (see `narrowed`), and its data."""
        narrowed = self.narrowed(shape)
        found = self._known.get(narrowed)
        if found is None:
            # Half as many kinds more than the limit are allowed, so that sorting is rare.
            self._shrink(self._kinds_max * 3 // 2)
            found = self._known[narrowed] = self._new()
        return narrowed, found

    def keep_query(self, shape: Shape) -> None:
        """Count this shape's query (its parameter names) apart from other queries of its path.

        Has an effect only if the path had too many queries, so that `*` replaces them.
        """
        standing = self._literal.get(shape[:_QUERY])
        if standing is not None and shape[_QUERY] not in standing:
            standing.add(shape[_QUERY])
            self.changes += 1

    def narrowed(self, shape: Shape) -> Shape:
        """Return the shape under which `shape` is counted: with `*` where words are too many."""
        found = self._narrow_once(shape)
        while found is None:
            found = self._narrow_once(shape)
        return found

    def _narrow_once(self, shape: Shape) -> Shape | None:
        """Replace words by `*` at positions of a shape with too many words.

        Returns None if a position has just exceeded the limit, so that the call must be repeated.
        """
        at = 0
        while at < len(shape):
            if shape[at] not in _NO_WORDS:
                start = shape[:at]
                standing = self._literal.get(start)
                if standing is None:
                    words = self._words.setdefault(start, set())
                    words.add(shape[at])
                    if len(words) > SIBLINGS_MAX:
                        self._merge_words(start, self._literal_words(start))
                        return None
                elif shape[at] not in standing:
                    shape = _generalize(shape, at)
                    continue
            at += 1
        return shape

    def _literal_words(self, start: Shape) -> set[str]:
        at = len(start)
        if at != _QUERY or self._keeps_query is None:
            return set()
        together: defaultdict[str, K] = defaultdict(self._new)
        for shape, known in self._known.items():
            if shape[:at] == start and shape[at] in self._words[start]:
                together[shape[at]].merge(known)
        return {word for word, known in together.items() if self._keeps_query(known)}

    def _merge_words(self, start: Shape, standing: set[str]) -> None:
        self.changes += 1
        at = len(start)

        def goes(shape: Shape) -> bool:
            behind = len(shape) > at and shape[:at] == start
            return behind and shape[at] not in _NO_WORDS and shape[at] not in standing

        self._words.pop(start, None)
        standing |= self._literal.get(start, set())
        self._literal[start] = standing
        gone = {shape: self._known.pop(shape) for shape in [*filter(goes, self._known)]}
        for one in [*filter(goes, self._words)]:
            del self._words[one]
        for one in [*filter(goes, self._literal)]:
            self._merge_words(_generalize(one, at), self._literal.pop(one))
        for shape, found in gone.items():
            self.data_at(_generalize(shape, at)).merge(found)

    def _shrink(self, most: int) -> None:
        """Merge similar kinds if there are more than `most`, then drop the lightest."""
        if len(self._known) <= most:
            return
        self.changes += 1
        weights = {shape: found.weight for shape, found in self._known.items()}
        places = folded(weights, FOLDED_SHARE * sum(weights.values()))
        known: dict[Shape, K] = {}
        for shape, found in self._known.items():
            if (standing := known.setdefault(places[shape], found)) is not found:
                standing.merge(found)
        self._known = dict(sorted(known.items(), key=_sort_key)[: self._kinds_max])
        for shape, found in known.items():
            if shape not in self._known:
                self.rest.merge(found)
        starts = {shape[:at] for shape in self._known for at in range(len(shape))}
        for met in (self._words, self._literal):
            for start in met.keys() - starts:
                del met[start]


def _sort_key(one: tuple[Shape, Mergeable]) -> tuple[int, str]:
    return (-one[1].weight, kind_text(one[0]))


def _generalize(shape: Shape, at: int) -> Shape:
    """Replace one position of a shape by `*`, and the positions that depend on it."""
    if at == _QUERY:
        return (*shape[:at], ANY_QUERY)
    if at == _EXTENSION:
        return (*shape[:at], "", ANY, *shape[_NAME + 1 :])
    return (*shape[:at], ANY, *shape[at + 1 :])
