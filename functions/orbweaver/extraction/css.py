"""Run CSS selectors in time linear in the page.

lexbor tries all ways to satisfy several combinators: `.none div div p` takes 5 s on 2,000
paragraphs within 100 `div`. So a selector is split at its combinators, and lexbor finds the nodes
of one compound (`a.next[href]`) at a time. Source: https://www.w3.org/TR/selectors-4/.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from orbweaver.extraction.work_budget import BYTES_A_UNIT, FOUND_UNITS, STEPS_A_UNIT
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

SELECTOR_CHARS_MAX = 500
COMPOUNDS_MAX = 20

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')|(?P<escape>\\.)
    |(?P<open>[(\[])|(?P<close>[)\]])|(?P<comma>\s*,\s*)|(?P<joint>\s*[>+~]\s*|\s+)|(?P<rest>.)""",
    re.VERBOSE | re.DOTALL,
)
# Compounds with more than linear cost: lexbor counts sibling positions for each node, and tries
# combinators in brackets for each node. Their steps are counted against the budget. Otherwise
# `p:nth-child(3)` takes 10 s on 270 KB. Then the process that reads the page would exceed its time
# limit, and the page would be lost instead of the items of one rule.
_STEEP = re.compile(r":nth-|-of-type|:(?:not|is|where|has)\(.*[\s>+~]", re.IGNORECASE | re.DOTALL)
# If the upper bound of the steps is below this number, the bound is used. Exact counting takes 0.3
# us per node.
_FEW_STEPS = 1_000_000
# Pseudo-elements of Scrapy (`p::text`, `a::attr(href)`) and of style sheets.
_PSEUDO = re.compile(r"::(?:attr\(\s*(?P<attribute>[\w:.-]*)\s*\)|[\w-]+(?:\([^)]*\))?)", re.ASCII)
_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")
_FUNCTION = re.compile(r":(?:not|is|where|has)\(", re.IGNORECASE)

# Compounds of a selector, each with the combinator before it: " ", ">", "+", "~". The first
# compound has " ".
Steps: TypeAlias = tuple[tuple[str, str], ...]


@value_class
class Selector:
    """A parsed selector. `alternatives` are its parts between commas."""

    alternatives: tuple[Steps, ...]
    # Number of compounds that make lexbor visit all siblings or all ancestors of a node.
    steep: int

    @property
    def compounds(self) -> int:
        return sum(map(len, self.alternatives))


def problem_of(text: str) -> str | None:
    """Return the reason why a text is not a valid selector, or None."""
    shown = ascii(text[:100])
    if not 1 <= len(text.strip()) <= SELECTOR_CHARS_MAX:
        return f"{shown} has {len(text):,} characters: give 1 to {SELECTOR_CHARS_MAX}"
    selector = parsed(text)
    if selector.compounds > COMPOUNDS_MAX:
        return f"{shown} has {selector.compounds} parts: give at most {COMPOUNDS_MAX}"
    if (pseudo := _PSEUDO.search(_STRING.sub("", text))) is not None:
        return f"{shown} has a pseudo-element, which is not needed: {_rule_syntax(text, pseudo)}"
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


def _rule_syntax(text: str, pseudo: re.Match[str]) -> str:
    rest = text.replace(pseudo[0], "").strip()
    css = f"css = {rest[:60]!a}" if rest else "no css, which is the item itself"
    if pseudo["attribute"]:
        return f'for an attribute give {css} and attribute = "{pseudo["attribute"]}"'
    return f"text is taken by default; give {css}"


@lru_cache(maxsize=512)
def parsed(text: str) -> Selector:
    """Split a selector at commas and combinators. Does not validate it."""
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
    """Size of a node, which determines the cost of a selector in it.

    It has the numbers of tags and characters, and of steps between siblings and to ancestors.
    """

    def __init__(self, *, tags: int, chars: int, root: LexborNode) -> None:
        self.tags = tags
        self.chars = chars
        self._root = root
        self._steps: int | None = None
        # The extent of the whole tree, if this is a part of it. It never refers to itself, because
        # a cycle would keep the tree in memory.
        self._whole: Extent | None = None

    def part(self, tags: int, chars: int) -> Extent:
        part = Extent(tags=tags, chars=chars, root=self._root)
        part._whole = self
        return part

    @property
    def steps(self) -> int:
        """Upper bound of the steps if a selector visits all siblings and ancestors of each node."""
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
    """Return the units of work that lexbor takes for a selector in a node of this size."""
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
    """Return the nodes within a node that match a selector, each once, in document order.

    `itself`: the node can also match. `spend` is called with units of work beyond `weight_of`, and
    may raise.
    """
    selector = parsed(text)
    if selector.compounds == 1:
        nodes = _select(text, within)
        spend(FOUND_UNITS * len(nodes))
    elif len(selector.alternatives) == 1:
        nodes = _run_steps(selector.alternatives[0], within, spend)
    else:
        wanted = {
            node.mem_id
            for steps in selector.alternatives
            for node in _run_steps(steps, within, spend)
        }
        last = {steps[-1][1] for steps in selector.alternatives}
        # This search gives the document order. For a single node, lexbor returns the matches of the
        # alternatives one after the other.
        nodes = [node for node in _select(",".join(sorted(last)), within) if node.mem_id in wanted]
        spend(FOUND_UNITS * len(nodes))
    here = within.mem_id
    return nodes if itself else [node for node in nodes if node.mem_id != here]


def _select(text: str, within: LexborNode) -> list[LexborNode]:
    """Run a selector in lexbor. Return each node once."""
    try:
        nodes = within.css(text)
    except (SelectolaxError, ValueError):  # another version of lexbor accepted the selector
        return []
    return list({node.mem_id: node for node in nodes}.values()) if "," in text else nodes


def _run_steps(steps: Steps, within: LexborNode, spend: Callable[[int], None]) -> list[LexborNode]:
    # Each step keeps the nodes of its compound that have the right position relative to the nodes
    # of the previous step. The part before a combinator may match `within`, but no node outside of
    # `within`.
    nodes = _select(steps[0][1], within)
    spend(FOUND_UNITS * len(nodes))
    for joint, compound in steps[1:]:
        before = {node.mem_id for node in nodes}
        if not before:
            return []
        candidates = _select(compound, within)
        spend(FOUND_UNITS * 2 * len(candidates))
        match joint:
            case ">":
                nodes = [node for node in candidates if _id(node.parent) in before]
            case "+":
                nodes = [node for node in candidates if _id(_previous(node)) in before]
            case "~":
                nodes = _keep_reaching(candidates, before, _previous, spend)
            case _:
                nodes = _keep_descendants(candidates, before, within.mem_id, spend)
    return nodes


def _keep_descendants(
    candidates: Iterable[LexborNode], outer: set[int], top: int, spend: Callable[[int], None]
) -> list[LexborNode]:
    return _keep_reaching(
        candidates, outer, lambda node: node.parent if node.mem_id != top else None, spend
    )


def _keep_reaching(
    candidates: Iterable[LexborNode],
    others: set[int],
    step: Callable[[LexborNode], LexborNode | None],
    spend: Callable[[int], None],
) -> list[LexborNode]:
    """Keep the candidates from which repeated calls of `step` reach one of `others`.

    Each node is visited once.
    """
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
    """Return the previous element, skipping text and comments."""
    sibling = node.prev
    while sibling is not None and not sibling.is_element_node:
        sibling = sibling.prev
    return sibling


def _id(node: LexborNode | None) -> int | None:
    return None if node is None else node.mem_id


def _is_nested(compound: str) -> bool:
    """Return True if brackets contain more than one combinator, or a nested function."""
    functions = [*_FUNCTION.finditer(compound)]
    for place, function in enumerate(functions):
        inner = _bracket_content(compound, function.end())
        if place + 1 < len(functions) and functions[place + 1].start() < function.end() + len(
            inner
        ):
            return True
        if any(len(steps) > 2 for steps in parsed(inner.strip(" >+~")).alternatives):  # noqa: PLR2004 - one combinator
            return True
    return False


def _bracket_content(text: str, start: int) -> str:
    depth = 1
    for token in _TOKEN.finditer(text, start):
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
        if depth == 0:
            return text[start : token.start()]
    return text[start:]
