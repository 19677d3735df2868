"""Mutations: places of a module that change, and how.

Places without meaning or for human readers are excluded: docstrings, annotations, decorators,
`__all__`, `__slots__`, `if TYPE_CHECKING`, logs, asserts, helps, and constants that are sentences.
"""

from __future__ import annotations

import ast
import re
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    Change = tuple[str, ast.expr | ast.stmt, ast.expr | ast.stmt]

_N = TypeVar("_N", bound=ast.AST)
_PAIRS: tuple[tuple[type[ast.cmpop], type[ast.cmpop]], ...] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    (ast.In, ast.NotIn),
)
_COMPARED = dict(_PAIRS) | {two: one for one, two in _PAIRS}
_RECKONED: dict[type[ast.operator], type[ast.operator]] = dict(
    [
        *((ast.Add, ast.Sub), (ast.Sub, ast.Add), (ast.Mult, ast.Div), (ast.Div, ast.Mult)),
        *((ast.FloorDiv, ast.Mult), (ast.Mod, ast.Mult), (ast.Pow, ast.Mult)),
        *((ast.LShift, ast.RShift), (ast.RShift, ast.LShift), (ast.BitAnd, ast.BitOr)),
    ]
)
_FIELDS = {"annotation", "returns", "decorator_list", "bases", "type_params"}
_NAMES = {"__all__", "__slots__", "_log"}
_CALLS = {"cast", "TypeVar", "NewType", "assert_never", "isinstance", "issubclass", "print"}
_LOGGED = re.compile(r"_?log(ger)?\.", re.IGNORECASE)
# Keywords with texts for people, or with assertions only (`zip(…, strict=True)`).
_KEYWORDS = {"help", "description", "metavar", "prog", "epilog", "title", "summary", "strict"}
_KEYWORDS |= {"example", "words"}
_SENTENCE = re.compile(r"[a-z][,.;:']? [a-z]")
_FORMULA = re.compile(r"[=#$<>()\[\]]|\b[A-Z]{3,}")
# Larger numbers are amounts, for which one more or less has no meaning.
_AMOUNT = 10


@dataclass(frozen=True, slots=True)
class Mutation:
    """A range of bytes in a text, and its replacement."""

    kind: str
    line: int
    line_last: int
    start: int
    stop: int
    before: str
    after: str
    # Line of its statement, and whether only an import runs it.
    statement: int
    at_import: bool

    def applied(self, text: str) -> str:
        whole = text.encode()
        return (whole[: self.start] + self.after.encode() + whole[self.stop :]).decode()


def compiles(text: str) -> bool:
    try:
        compile(text, "mutated", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def mutations(text: str) -> Iterator[Mutation]:
    whole = text.encode()
    starts = [0]
    for line in whole.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, statement, at_import in _nodes(ast.parse(text), statement=1, at_import=True):
        for kind, old, new in _variants(node):
            last = old.end_lineno or old.lineno
            start = starts[old.lineno - 1] + old.col_offset
            stop = starts[last - 1] + (old.end_col_offset or 0)
            after = ast.unparse(ast.fix_missing_locations(new))
            yield Mutation(
                kind=kind,
                line=old.lineno,
                line_last=last,
                start=start,
                stop=stop,
                before=whole[start:stop].decode(),
                after=f"({after})" if isinstance(new, ast.expr) else after,
                statement=statement,
                at_import=at_import,
            )


def _nodes(
    node: ast.AST, *, statement: int, at_import: bool
) -> Iterator[tuple[ast.AST, int, bool]]:
    """Return mutable nodes with the line of their statement, and whether an import runs it."""
    statement = node.lineno if isinstance(node, ast.stmt) else statement
    yield node, statement, at_import
    if isinstance(node, ast.JoinedStr):
        return  # Its parts have no position before Python 3.12.
    inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _aside(node, field, child):
                outside = at_import and not (inside and field == "body")
                yield from _nodes(child, statement=statement, at_import=outside)


def _aside(node: ast.AST, field: str, child: ast.AST) -> bool:
    match child:
        case ast.Assert() | ast.Raise() | ast.Expr(value=ast.Constant()):
            aside = True
        case ast.If(test=ast.Name(id=name)) | ast.If(test=ast.Compare(left=ast.Name(id=name))):
            aside = name in {"TYPE_CHECKING", "__name__"}
        case ast.Assign(targets=[ast.Name(id=name)]):
            aside = name in _NAMES
        case ast.Expr(value=ast.Call(func=func)) | ast.Call(func=func):
            aside = ast.unparse(func) in _CALLS or bool(_LOGGED.match(ast.unparse(func)))
        case ast.keyword(arg=name):
            aside = name in _KEYWORDS
        case ast.Constant(value=str()) | ast.JoinedStr():
            values = child.values if isinstance(child, ast.JoinedStr) else [child]
            parts = [str(one.value) if isinstance(one, ast.Constant) else "x" for one in values]
            text = "".join(parts)
            aside = bool(_SENTENCE.search(text)) and not _FORMULA.search(text)
        case _:
            aside = False
    return aside or field in _FIELDS


def _with(node: _N, **fields: object) -> _N:
    made = copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _variants(node: ast.AST) -> Iterator[Change]:
    """Return the changes of a node: sort, old text, new text."""
    match node:
        case ast.BoolOp(op=op, values=values):
            yield "BOOL", node, _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            for at in range(len(values)):
                left = values[:at] + values[at + 1 :]
                yield "BOOL", node, _with(node, values=left) if len(left) > 1 else left[0]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "BOOL", node, operand
        case ast.Compare(ops=ops):
            for at, one in enumerate(ops):
                other = _COMPARED[type(one)]()
                yield "CMP", node, _with(node, ops=[*ops[:at], other, *ops[at + 1 :]])
        case ast.BinOp(op=reckoned) | ast.AugAssign(op=reckoned) if _reckons(node, reckoned):
            yield "ARITH", node, _with(node, op=_RECKONED[type(reckoned)]())
        case ast.Constant(value=value):
            yield from _constants(node, value)
        case ast.JoinedStr():
            yield "STR", node, ast.Constant("")
        case _:
            yield from _calls(node)
            yield from _conditions(node)


def _reckons(node: ast.AST, operator: ast.operator) -> bool:
    """True if operands are numbers as far as visible: texts, lists and paths would only fail."""
    parts = [one for one in ast.walk(node) if isinstance(one, ast.Constant | ast.JoinedStr)]
    texts = any(
        isinstance(one, ast.JoinedStr) or isinstance(one.value, str | bytes) for one in parts
    )
    lists = any(isinstance(one, ast.List | ast.Tuple) for one in ast.walk(node))
    return type(operator) in _RECKONED and not texts and not lists


def _calls(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Call(keywords=keywords):
            for at, one in enumerate(keywords):
                if one.arg and one.arg not in _KEYWORDS:
                    yield "KW", node, _with(node, keywords=keywords[:at] + keywords[at + 1 :])
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield "DROP", node, ast.Pass()


def _conditions(node: ast.AST) -> Iterator[Change]:
    tests: list[ast.expr] = []
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            tests = [test]
        case ast.comprehension(ifs=ifs):
            tests = ifs
    for test in tests:  # Another change negates `not x`.
        if not isinstance(test, ast.Constant | ast.UnaryOp):
            yield "NEG", test, ast.UnaryOp(op=ast.Not(), operand=test)


def _constants(node: ast.Constant, value: object) -> Iterator[Change]:
    match value:
        case bool():
            yield "CONST", node, ast.Constant(not value)
        case int() | float():
            more = value + 1 if abs(value) < _AMOUNT else value * 2
            yield "CONST", node, ast.Constant(more)
            yield "CONST", node, ast.Constant(value - 1 if abs(value) < _AMOUNT else value // 2)
        case str() | bytes():
            filled = "x" if isinstance(value, str) else b"x"
            yield "STR", node, ast.Constant(value[:0] if value else filled)
