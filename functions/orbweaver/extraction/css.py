"""CSS selectors, in time that grows with the page alone.

lexbor finds the nodes of one compound selector (`a.next[href]`) in one walk, but tries every way
to satisfy several combinators: `.none div div p` takes it 5 s on 2,000 paragraphs within 100 `div`.
So a selector is cut at its combinators; each step takes the nodes of its compound that stand where
the nodes of the step before say. Within `:not()`, `:is()`, `:where()` and `:has()` one combinator
is allowed.

Rules
- Within a node (`each`) only nodes inside of it are found; what stands before a combinator may be
  the node itself, but nothing outside.
- Nodes come in the order of the document, each once.

Source: https://www.w3.org/TR/selectors-4/.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from orbweaver.extraction.work import BYTES_A_UNIT, FOUND_UNITS, STEPS_A_UNIT

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

SELECTOR_CHARS_MAX = 500
COMPOUNDS_MAX = 20

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')|(?P<escape>\\.)
    |(?P<open>[(\[])|(?P<close>[)\]])|(?P<comma>\s*,\s*)|(?P<joint>\s*[>+~]\s*|\s+)|(?P<rest>.)""",
    re.VERBOSE | re.DOTALL,
)
# Places among siblings are counted anew for each node; combinators in brackets are tried for each.
_STEEP = re.compile(r":nth-|-of-type|:(?:not|is|where|has)\(.*[\s>+~]", re.IGNORECASE | re.DOTALL)
# Below this no steps are counted: it takes 0.3 us a node.
_FEW_STEPS = 1_000_000
# As Scrapy has them (`p::text`, `a::attr(href)`), and as styles have them.
_PSEUDO = re.compile(r"::(?:attr\(\s*(?P<attribute>[\w:.-]*)\s*\)|[\w-]+(?:\([^)]*\))?)", re.ASCII)
_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")
_FUNCTION = re.compile(r":(?:not|is|where|has)\(", re.IGNORECASE)

# Compounds, each with the combinator before it: " ", ">", "+", "~"; of the first one " ".
Steps: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A selector, cut up: the alternatives between its commas."""

    alternatives: tuple[Steps, ...]
    # How many compounds have lexbor look at all siblings, or at all that a node lies in.
    steep: int

    @property
    def compounds(self) -> int:
        """How many compounds it has."""
        return sum(map(len, self.alternatives))


def problem_of(text: str) -> str | None:
    """Say what does not fit in a selector, or None."""
    shown = ascii(text[:100])
    if not 1 <= len(text.strip()) <= SELECTOR_CHARS_MAX:
        return f"{shown} has {len(text):,} characters: give 1 to {SELECTOR_CHARS_MAX}"
    selector = parsed(text)
    if selector.compounds > COMPOUNDS_MAX:
        return f"{shown} has {selector.compounds} parts: give at most {COMPOUNDS_MAX}"
    if (pseudo := _PSEUDO.search(_STRING.sub("", text))) is not None:
        return f"{shown} has a pseudo-element, which is not needed: {_instead(text, pseudo)}"
    nothing = LexborHTMLParser("")
    for one in [text, *(compound for steps in selector.alternatives for _, compound in steps)]:
        try:
            nothing.css(one)
        except (SelectolaxError, ValueError):
            part = "" if one == text else f" ({one[:60]!a})"
            fix = 'give one like "h1" or "ul.books > li a"'
            return f"{shown} is not a CSS selector{part}: {fix}"
    if any(_is_nested(compound) for steps in selector.alternatives for _, compound in steps):
        return f"{shown} has a selector of several parts in brackets: give one with less in them"
    return None


def _instead(text: str, pseudo: re.Match[str]) -> str:
    """Say how a rule asks for what other tools ask for by a pseudo-element."""
    rest = text.replace(pseudo[0], "").strip()
    css = f"css = {rest[:60]!a}" if rest else "no css, which is the item itself"
    if pseudo["attribute"]:
        return f'for an attribute give {css} and attribute = "{pseudo["attribute"]}"'
    return f"text is taken by default; give {css}"


@lru_cache(maxsize=512)
def parsed(text: str) -> Selector:
    """Cut a selector up; what is none is refused by lexbor."""
    alternatives: list[list[tuple[str, str]]] = [[]]
    joint, compound, depth = " ", "", 0
    for token in _TOKEN.finditer(text.strip()):
        kind = token.lastgroup
        depth += (kind == "open") - (kind == "close")
        if depth == 0 and kind in ("joint", "comma"):
            alternatives[-1].append((joint, compound))
            joint, compound = token[0].strip() or " ", ""
            if kind == "comma":
                alternatives.append([])
        else:
            compound += token[0]
    alternatives[-1].append((joint, compound))
    compounds = [one for steps in alternatives for _, one in steps]
    steep = sum(_STEEP.search(one) is not None for one in compounds)
    return Selector(alternatives=tuple(map(tuple, alternatives)), steep=steep)


class Extent:
    """How much a selector passes within a node: tags, characters, steps between siblings and up."""

    def __init__(self, *, tags: int, chars: int, root: LexborNode) -> None:
        self.tags = tags
        self.chars = chars
        self._root = root
        self._steps: int | None = None
        # What this is a part of; not itself, which would keep the tree until garbage is collected.
        self._whole: Extent | None = None

    def part(self, tags: int, chars: int) -> Extent:
        """Return the extent of a node within this one."""
        part = Extent(tags=tags, chars=chars, root=self._root)
        part._whole = self
        return part

    @property
    def steps(self) -> int:
        """Steps if each node looks at all its siblings and all that it lies in; at most those."""
        most = self.tags * self.tags
        if most <= _FEW_STEPS:
            return most
        whole = self._whole or self
        if whole._steps is None:  # noqa: SLF001 - of the same class
            whole._steps = _steps_within(self._root)  # noqa: SLF001 - of the same class
        return min(most, whole._steps)  # noqa: SLF001 - of the same class


def _steps_within(root: LexborNode) -> int:
    depths: dict[int, int] = {}
    children: Counter[int] = Counter()
    for node in root.traverse(include_text=True):
        parent = node.parent
        if parent is not None:
            above = parent.mem_id
            children[above] += 1
            depths[node.mem_id] = depths.get(above, 0) + 1
    return sum(depths.values()) + sum(number * number for number in children.values())


def weight_of(text: str, extent: Extent) -> int:
    """Count the units of work that lexbor's walks take for a selector."""
    selector = parsed(text)
    units = selector.compounds * (extent.tags + extent.chars // BYTES_A_UNIT)
    return units + (selector.steep * extent.steps // STEPS_A_UNIT if selector.steep else 0)


def found(
    text: str,
    within: LexborNode,
    *,
    itself: bool = False,
    spend: Callable[[int], None] = lambda _: None,
) -> list[LexborNode]:
    """Find the nodes that a selector means within a node; `itself`: this one, too.

    `spend` is told the units of work that come on top of lexbor's walks, and may raise.
    """
    selector = parsed(text)
    if selector.compounds == 1:
        nodes = _of(text, within)
        spend(FOUND_UNITS * len(nodes))
    elif len(selector.alternatives) == 1:
        nodes = _followed(selector.alternatives[0], within, spend)
    else:
        wanted = {
            node.mem_id
            for steps in selector.alternatives
            for node in _followed(steps, within, spend)
        }
        last = {steps[-1][1] for steps in selector.alternatives}
        # In document order: lexbor finds alternatives one after the other for each node.
        nodes = [node for node in _of(",".join(sorted(last)), within) if node.mem_id in wanted]
        spend(FOUND_UNITS * len(nodes))
    here = within.mem_id
    return nodes if itself else [node for node in nodes if node.mem_id != here]


def _of(text: str, within: LexborNode) -> list[LexborNode]:
    """Find what lexbor finds, each node once."""
    try:
        nodes = within.css(text)
    except (SelectolaxError, ValueError):  # of another version of it than the one that checked
        return []
    return list({node.mem_id: node for node in nodes}.values()) if "," in text else nodes


def _followed(steps: Steps, within: LexborNode, spend: Callable[[int], None]) -> list[LexborNode]:
    nodes = _of(steps[0][1], within)
    spend(FOUND_UNITS * len(nodes))
    for joint, compound in steps[1:]:
        before = {node.mem_id for node in nodes}
        if not before:
            return []
        candidates = _of(compound, within)
        spend(FOUND_UNITS * 2 * len(candidates))
        match joint:
            case ">":
                nodes = [node for node in candidates if _id(node.parent) in before]
            case "+":
                nodes = [node for node in candidates if _id(_previous(node)) in before]
            case "~":
                nodes = _past(candidates, before, _previous, spend)
            case _:
                nodes = _inside(candidates, before, within.mem_id, spend)
    return nodes


def _inside(
    candidates: Iterable[LexborNode], outer: set[int], top: int, spend: Callable[[int], None]
) -> list[LexborNode]:
    """Keep the nodes that stand inside of others; the node that is looked in may be the last."""
    return _past(candidates, outer, lambda node: node.parent if node.mem_id != top else None, spend)


def _past(
    candidates: Iterable[LexborNode],
    others: set[int],
    step: Callable[[LexborNode], LexborNode | None],
    spend: Callable[[int], None],
) -> list[LexborNode]:
    """Keep the nodes from where steps lead past others; each node on the way is looked at once."""
    known: dict[int, bool] = {}
    kept: list[LexborNode] = []
    for node in candidates:
        passed: list[int] = []
        answer = False
        there = step(node)
        while there is not None:
            here = there.mem_id
            if here in known:
                answer = known[here]
                break
            passed.append(here)
            if here in others:
                answer = True
                break
            there = step(there)
        known.update(dict.fromkeys(passed, answer))
        spend(FOUND_UNITS * len(passed))
        if answer:
            kept.append(node)
    return kept


def _previous(node: LexborNode) -> LexborNode | None:
    """Return the element before a node; text and comments are none."""
    sibling = node.prev
    while sibling is not None and not sibling.is_element_node:
        sibling = sibling.prev
    return sibling


def _id(node: LexborNode | None) -> int | None:
    return None if node is None else node.mem_id


def _is_nested(compound: str) -> bool:
    """Whether more than one combinator, or a function in a function, stands in brackets."""
    functions = [*_FUNCTION.finditer(compound)]
    for place, function in enumerate(functions):
        inner = _bracketed(compound, function.end())
        if place + 1 < len(functions) and functions[place + 1].start() < function.end() + len(
            inner
        ):
            return True
        if any(len(steps) > 2 for steps in parsed(inner.strip(" >+~")).alternatives):  # noqa: PLR2004 - one combinator
            return True
    return False


def _bracketed(text: str, start: int) -> str:
    """Return what stands in brackets, from behind the one that opens them."""
    depth = 1
    for token in _TOKEN.finditer(text, start):
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
        if depth == 0:
            return text[start : token.start()]
    return text[start:]
