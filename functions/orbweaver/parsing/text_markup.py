"""Rewrite elements of a page whose text would change its meaning in Markdown or plain text."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from selectolax.lexbor import LexborNode


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Characters that mark a position in the text. They are Unicode noncharacters, which do not occur in
# texts. Marks: definition (main_text.py), list separator, backslash, formula, number of a list
# item. `unmarked` replaces them in the output of the library (html-to-markdown).
DEFINED, _APART, _BACKSLASH, _FORMULA, _NUMBER = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4"
# Mark before an index (`x_i`), which becomes "_". An escape must not come between the base and the
# index.
_LOWERED = "\ufdd5"
MARKS = re.compile("[\ufdd0-\ufdd5]")
MARK_BYTES = re.compile(rb"\xef\xb7[\x90-\x95]")

_TEX = re.compile(r"math/(?:tex|latex|asciimath)\b", re.IGNORECASE)
_DISPLAY = re.compile(r"mode\s*=\s*display", re.IGNORECASE)
# Class of the preview that MathJax shows before its script.
_SHOWN = re.compile(r"\bMathJax")
_FORMULA_IMAGES = ", ".join(
    f"img.{name}[alt]"
    for name in (
        *("math", "tex", "latex", "mwe-math-fallback-image-inline"),
        "mwe-math-fallback-image-display",
    )
)
# Superscript texts that are no exponent: 1st, M. Mme, trade marks.
_RAISED = _words("st nd rd th er re ère ème eme nde me lle mme tm sm")
_SIMPLE = re.compile(r"[-+\u2212]?\w+(?:[.,]\d+)?")
_BASE_END = re.compile(r"[\w)\]}]\Z")
_NUMBER_MARK = re.compile(f"{_NUMBER}(-?[0-9]+){_NUMBER}")
_NUMBER_MAX = 999_999_999
_WHOLE = re.compile(r"\s*([-+]?[0-9]{1,9})")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
# Text for each MathML element, by tag and number of parts. {0} is the first part. Numbers after the
# last part mean parts in parentheses: with two parts, {2} is the first part in parentheses.
_MATH = {
    ("msup", 2): "{0}^{3}",
    ("mover", 2): "{0}^{3}",
    ("msub", 2): "{0}_{3}",
    ("munder", 2): "{0}_{3}",
    ("msubsup", 3): "{0}_{4}^{5}",
    ("munderover", 3): "{0}_{4}^{5}",
    ("mfrac", 2): "{2}/{3}",
}
_LAZY = ("data-src", "data-original", "data-lazy-src")

# A class that contains the name of a code's language after a prefix.
_PREFIXED = re.compile(
    r"(?:\A|\s)(?:highlight-(?:source-|text-)?|language-|lang[-:]|src-|brush:\s*)"
    r"([a-z0-9+#.-]{1,30})"
)
_MARKING = frozenset({"sourcecode", "hljs", "prettyprint", "highlight", "code"})
_NO_LANGUAGE = _words(
    "default none text plain plaintext notranslate nohighlight no-highlight auto linenums copyable"
    " numberlines literate prettyprinted code highlight sourcecode hljs prettyprint wrapper block"
    " box container"
)
_KNOWN = _words(
    "bash c c# c++ clojure cmake cpp csharp css cxx dart diff dockerfile elixir erlang fortran"
    " fsharp go golang graphql groovy haskell html ini java"
    " javascript js json jsx julia kotlin latex lisp"
    " lua makefile markdown matlab nginx nix ocaml perl php powershell prolog protobuf py python"
    " python3 r rb rs ruby rust scala scheme scss sh shell sql swift tcl toml ts tsx typescript vb"
    " vim xml yaml yml zig"
)
# In a class of elements around code, these mean a human language (`lang-en`).
_HUMAN_LANGUAGES = _words("de en es fr it ja ko nl pl pt ru zh")
_CODE_PARENTS = _words("div figure td tr tbody table span")
_OUTER_MAX = 4

_VERBATIM = "|".join(
    rf"<{name}(?=[\s>])(?:[^<]++|<(?!/{name}>))*+" for name in ("pre", "code", "kbd", "samp", "tt")
)
_VERBATIM_TAGS = ("<pre", "<code", "<kbd", "<samp", "<tt")
_LOOKBACK_CHARS = 300
# Text without characters that need an escape, followed by a character that Markdown would read as
# markup.
_ESCAPED = re.compile(
    rf"""((?: [^<&_*`~\]{_FORMULA}]++
        | <(?![pckst])[^>]*+>?+ | {_VERBATIM} | <[^>]*+>?+
        | {_FORMULA}[^{_FORMULA}]*+{_FORMULA}?+
        | &(?!lt;[A-Za-z/!?]|amp;\#?[A-Za-z0-9]{{1,31}};)
        | (?<=[^\W_])_(?=[^\W_]|\() | (?<=\s)\*(?=\s) | ~(?!~)(?<!~~) | \](?![(\[:])
        )*+) ([&_*`~\]]|\Z)""",
    re.VERBOSE | re.DOTALL,
)
# Tests whether there is any such character. The character class comes first, which is fast.
_ESCAPE = re.compile(
    r"""[&_*`~\]](?: (?<=&)(?:lt;[A-Za-z/!?]|amp;\#?[A-Za-z0-9]{1,31};)
        | (?<=_)(?: (?<![^\W_]_) | (?![^\W_(]) ) | (?<=[*`]) | (?<=~)~ | (?<=\])[(\[:] )""",
    re.VERBOSE,
)


def rewrite_formulas(root: LexborNode, low: bytes) -> None:
    """Replace formulas by TeX between `$`, before scripts are removed.

    `low` is the page in lower case. The TeX is taken from a MathJax script, from a TeX annotation
    or alternative text of MathML, or from KaTeX, MediaWiki or an image. MathML without TeX is
    written in one line.
    """
    if b"math/" in low:
        for script in root.css("script[type*='math/' i]"):
            _rewrite_script(script)
    if b"<math" in low:
        for math in reversed(root.css("math")):
            _replace_formula(math, _tex_of(math) or _linear_math(math), math.attributes)
    if b"<img" in low and any(name in low for name in (b"math", b"latex", b'"tex', b"=tex")):
        for image in root.css(_FORMULA_IMAGES):
            if alt := image.attributes.get("alt"):
                image.replace_with(_formula(alt, display=False))


def rewrite(root: LexborNode, low: bytes) -> None:
    """Rewrite all elements that the conversion would misread. `low` is the page in lower case."""
    present = {node.tag for node in root.css(_LOOKED_FOR)}
    for tags, rewritten in _REWRITTEN:
        if not present.isdisjoint(tags):
            rewritten(root)
    if b"data:image" in low:
        _rewrite_images(root)


def escaped(source: str) -> str:
    """Put a mark before each character of serialized HTML that Markdown would read as markup."""
    if all(_is_verbatim(source, found.start()) for found in _ESCAPE.finditer(source)):
        return source
    return _ESCAPED.sub(rf"\1{_BACKSLASH}\2", source).rstrip(_BACKSLASH)


def _is_verbatim(source: str, at: int) -> bool:
    least = max(0, at - _LOOKBACK_CHARS)
    tag = source.rfind("<", least, at)
    if tag < 0:
        return False
    return source.find(">", tag, at) < 0 or source.startswith(_VERBATIM_TAGS, tag)


def with_numbers(source: str) -> str:
    """In serialized HTML, start a new list wherever the item numbers are not consecutive."""
    if _NUMBER not in source:
        return source
    return _NUMBER_MARK.sub(rf'</ol><p>{_APART}</p><ol start="\1">', source)


def unmarked(text: str, *, markdown: bool) -> str:
    if _APART in text:
        text = text.replace(_APART, "<!-- -->") if markdown else _joined_lists(text)
    return text.replace(_BACKSLASH, "\\").replace(_FORMULA, "").replace(_LOWERED, "_")


def _joined_lists(text: str) -> str:
    return text.replace(f"\n\n{_APART}\n\n", "\n").replace(_APART, "")


def _formula(tex: str, *, display: bool) -> str:
    """Return a formula between marks, so that it is not escaped or read as markup.

    `display`: it is a paragraph of its own.
    """
    sign = "$$" if display else "$"
    words = " ".join(MARKS.sub("", tex).split())
    words = (
        words.removeprefix(r"{\displaystyle ").removesuffix("}")
        if (words.startswith(r"{\displaystyle "))
        else words
    )
    return f"{_FORMULA}{sign}{words.strip()}{sign}{_FORMULA}".replace("\\", _BACKSLASH)


def _rewrite_script(script: LexborNode) -> None:
    kind = script.attributes.get("type") or ""
    source = script.text().strip().removeprefix("% <![CDATA[").removesuffix("%]]>").strip()
    if _TEX.match(kind) is None:
        if "mml" not in kind.lower():
            return
        from selectolax.lexbor import LexborHTMLParser

        math = LexborHTMLParser(source).css_first("math")
        source = "" if math is None else _tex_of(math) or _linear_math(math)
    before = script.prev
    while before is not None and _is_preview(before):
        shown, before = before, before.prev
        shown.decompose()
    if source:
        script.replace_with(_formula(source, display=bool(_DISPLAY.search(kind))))


def _is_preview(node: LexborNode) -> bool:
    if not node.is_element_node:
        return False
    return _SHOWN.search(node.attributes.get("class") or "") is not None


def _tex_of(math: LexborNode) -> str:
    for note in math.css("annotation"):
        if "tex" in (note.attributes.get("encoding") or "").lower():
            return note.text().strip()
    return (math.attributes.get("alttext") or "").strip()


def _replace_formula(math: LexborNode, tex: str, attributes: dict[str, str | None]) -> None:
    display = attributes.get("display") == "block"
    words = math.text().strip()
    node = math
    for _ in range(3):
        outer = node.parent
        if outer is None or outer.tag not in {"span", "mjx-assistive-mml", "mjx-container"}:
            break
        name = outer.attributes.get("class") or ""
        # The outer elements of KaTeX and MathJax contain a second, visual copy of the formula.
        if outer.text().strip() != words and "katex" not in name and outer.tag[:4] != "mjx-":
            break
        display = display or "katex-display" in name or "display" in outer.attributes
        node = outer
    node.replace_with(_formula(tex, display=display))


def _linear_math(node: LexborNode) -> str:
    """Return MathML in one line: `x^2`, `a_i`, `(a)/(b)`, `√(x)`."""
    parts = [
        _linear_math(child) if child.is_element_node else (child.text_content or "").strip()
        for child in node.iter(include_text=True)
    ]
    tag = (node.tag or "").rpartition(":")[2]
    pattern = _MATH.get((tag, len(parts)))
    if pattern is not None:
        return pattern.format(*parts, *map(_parenthesized, parts))
    if tag == "msqrt":
        return f"√({''.join(parts)})"
    return "" if tag.startswith("annotation") else "".join(parts)


def _parenthesized(part: str) -> str:
    return part if _SIMPLE.fullmatch(part) else f"({part})"


def _words_of(svg: LexborNode) -> str:
    words = " ".join(" ".join(node.text().split()) for node in svg.css("text"))
    if words:
        return words
    # The title of a drawing counts only if the drawing is the only text of its parent element.
    title, outer = svg.css_first("title"), svg.parent
    if title is None or outer is None or outer.text().strip() != svg.text().strip():
        return ""
    return " ".join(title.text().split())


# In `<ruby>`, each reading follows its base text in parentheses.
def _rewrite_ruby(root: LexborNode) -> None:
    for mark in root.css("rp"):
        mark.decompose()
    for ruby in root.css("ruby"):
        bases, readings = ruby.css("rb"), ruby.css("rt")
        # Some pages write all base texts before all readings.
        apart = len(bases) == len(readings) > 1
        for at, reading in enumerate(readings):
            said = reading.text().strip()
            if not apart:
                reading.replace_with(f"({said})" if said else "")
            else:
                bases[at].insert_after(f"({said})" if said else "")
                reading.decompose()
    root.unwrap_tags(["ruby", "rb", "rtc", "rbc"])


def _mark_raised(node: LexborNode) -> None:
    """Mark exponents (`10^6`) and indices (`x_i`), and put footnote numbers into brackets."""
    said = node.text().strip()
    before = _neighbour(node, back=True)
    if not any(map(str.isalnum, said)) or before[-1:].isspace() or not before:
        return
    links = "".join(link.text() for link in node.css("a")).strip()
    outer = node.parent
    if links == said or (outer is not None and outer.tag == "a" and outer.text().strip() == said):
        if said[0].isalnum():
            node.insert_before("[")
            node.insert_after("]")
        return
    if node.tag == "sup" and (said.lower() in _RAISED or said[0] in "[("):
        return
    if _BASE_END.search(before) is None:
        return
    after = _neighbour(node, back=False)[:1]
    runs_on = (said[-1].isdigit() and after.isdigit()) or (said[-1].isalpha() and after.isalpha())
    sign = "^" if node.tag == "sup" else _LOWERED
    if _SIMPLE.fullmatch(said) and not runs_on:
        node.insert_before(sign)
    else:
        node.insert_before(f"{sign}(")
        node.insert_after(")")


def _neighbour(node: LexborNode, *, back: bool) -> str:
    """Return the text directly before (`back`) or after an element.

    Inline elements around the element are ignored.
    """
    at: LexborNode | None = node
    for _ in range(3):
        beside = at and (at.prev if back else at.next)
        if beside is not None:
            return (beside.text_content or "") if beside.is_text_node else beside.text()
        at = at and at.parent
        if at is None or at.tag not in {"a", "b", "i", "em", "strong", "span", "var"}:
            return ""
    return ""


# Items of a list keep the numbers that `value`, `start` or `reversed` give them.
def _rewrite_lists(root: LexborNode) -> None:
    lists = {node.mem_id: node for node in root.css("ol[reversed]")}
    for item in root.css("ol > li[value]"):
        if item.parent is not None:
            lists[item.parent.mem_id] = item.parent
    for one in lists.values():
        items = [item for item in one.iter() if item.tag == "li"]
        if not items:
            continue
        expected: int | None = None
        for item, number in zip(items, _numbers(one, items), strict=True):
            if expected is None:
                one.attrs["start"] = str(number)
            elif number != expected:
                item.insert_before(f"{_NUMBER}{number}{_NUMBER}")
            expected = number + 1


def _numbers(one: LexborNode, items: list[LexborNode]) -> Iterator[int]:
    """Yield the number of each item of a list (HTML Standard, 4.4.5 and 4.4.8)."""
    backwards = "reversed" in one.attributes
    start = _integer(one.attributes.get("start"))
    number = start if start is not None else (len(items) if backwards else 1)
    for item in items:
        value = _integer(item.attributes.get("value"))
        number = number if value is None else value
        yield min(number, _NUMBER_MAX)
        number += -1 if backwards else 1


def _integer(text: str | None) -> int | None:
    found = _WHOLE.match(text or "")
    return None if found is None else int(found[1])


def _unwrap_bold(root: LexborNode) -> None:
    for heading in root.css(", ".join(_HEADINGS)):
        outer = heading.parent
        if outer is not None and outer.tag in {"b", "strong", "em", "i", "u", "mark"}:
            outer.unwrap()


def _rewrite_images(root: LexborNode) -> None:
    for image in root.css("img[src^='data:']"):
        for name in _LAZY:
            if later := image.attributes.get(name):
                image.attrs["src"] = later
                break


def _rewrite_drawings(root: LexborNode) -> None:
    for svg in reversed(root.css("svg")):
        svg.replace_with(_words_of(svg))


def _rewrite_raised(root: LexborNode) -> None:
    for node in root.css("sup, sub"):
        _mark_raised(node)


# A `summary` that contains headings or paragraphs keeps them.
def _rewrite_summaries(root: LexborNode) -> None:
    for node in reversed(root.css("summary")):
        if node.css_first(", ".join((*_HEADINGS, "p", "div", "ul"))) is not None:
            node.unwrap()


def _rewrite_code(root: LexborNode) -> None:
    for node in reversed(root.css("pre")):
        _flatten(node)


def _flatten(pre: LexborNode) -> None:
    """Keep only the characters and the language of a `pre`, because fenced code has no markup."""
    language = _language(pre)
    only = pre.child
    if only is None or only.next is not None or not only.is_text_node:
        for node in pre.css("br"):
            node.replace_with("\n")
        for node in pre.css("div, p, li, tr, h1, h2, h3, h4, h5, h6"):
            if not node.text().endswith("\n"):
                node.insert_after("\n")
        text = pre.text()
        # A line break at the beginning is doubled, because a parser removes the first.
        pre.inner_html = escape(f"\n{text}" if text.startswith("\n") else text, quote=False)
    if "class" in pre.attributes or language:
        pre.attrs["class"] = f"language-{language}" if language else ""


def _language(pre: LexborNode) -> str:
    code = pre.css_first("code")
    if (name := (pre.attributes.get("lang") or "").lower()) in _KNOWN:
        return name
    for node in (pre, code):
        if node is not None and (name := _language_in_class(node.attributes, bare=True)):
            return name
    outer = pre.parent
    for _ in range(_OUTER_MAX):
        if outer is None or outer.tag not in _CODE_PARENTS:
            break
        name = _language_in_class(outer.attributes, bare=False)
        if name and name not in _HUMAN_LANGUAGES:
            return name
        outer = outer.parent
    return ""


def _language_in_class(attributes: dict[str, str | None], *, bare: bool) -> str:
    """Return the language of code that attributes name. `bare`: the class may be only the name."""
    said = (attributes.get("class") or "").lower()
    for name in ("data-lang", "data-language", "data-code-language"):
        said = (
            f"language-{(attributes.get(name) or '').lower()} {said}"
            if name in attributes
            else said
        )
    if not said:
        return ""
    for found in _PREFIXED.finditer(said):
        if found[1] not in _NO_LANGUAGE:
            return found[1]
    words = said.split()
    if words[0] in _MARKING or bare:
        marks = not _MARKING.isdisjoint(words)
        for word in words:
            if word in _KNOWN and (bare or marks):
                return word
    return ""


# The order matters: `pre` keeps the text that the other steps wrote.
_REWRITTEN: tuple[tuple[tuple[str, ...], Callable[[LexborNode], None]], ...] = (
    (("svg",), _rewrite_drawings),
    (("ruby",), _rewrite_ruby),
    (("sup", "sub"), _rewrite_raised),
    (("ol",), _rewrite_lists),
    (("summary",), _rewrite_summaries),
    (_HEADINGS, _unwrap_bold),
    (("pre",), _rewrite_code),
)
_LOOKED_FOR = ", ".join(tag for tags, _ in _REWRITTEN for tag in tags)
