"""Mutation tests: each mutant has one meaningful change that the seed determines."""

from __future__ import annotations

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.mutants.covering import cases, chunks, mirror
from tests.mutants.groups import GROUPS, draw, group_of, modules, shares
from tests.mutants.operators import compiles, mutations
from tests.mutants.trying import FIRST_S, REST_S_MAX, batches

ROOT = Path(__file__).parents[3]
READ = {
    "one": {"a.py": "LIMIT = 3\n\n\ndef kept(a: int) -> bool:\n    return a < LIMIT and a > 0\n"},
    "two": {"b.py": "def all_of(x):\n    x.close()\n    return f(x, twice=True) + 1\n" * 4},
}


def changed(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in mutations(text):
        found.setdefault(one.kind, set()).add(f"{one.before} -> {one.after}")
    return found


def smallest(one: ast.AST, other: ast.AST) -> ast.AST:
    """Return the smallest subtree that contains every difference of two trees."""
    found = one
    while type(one) is type(other):
        children = [list(ast.iter_child_nodes(tree)) for tree in (one, other)]
        if len(children[0]) != len(children[1]):
            break
        pairs = zip(*children, strict=True)
        unlike = [pair for pair in pairs if ast.dump(pair[0]) != ast.dump(pair[1])]
        if len(unlike) != 1:
            break
        one, other = unlike[0]
        found = one if isinstance(one, ast.expr | ast.stmt) else found
    return found


@pytest.mark.parametrize(
    ("text", "kind", "becomes"),
    [
        ("a and b", "BOOL", {"a and b -> (a or b)", "a and b -> (a)", "a and b -> (b)"}),
        ("not a", "BOOL", {"not a -> (a)"}),
        ("x = 1 if a else 2", "NEG", {"a -> (not a)"}),
        ("[x for x in y if x]", "NEG", {"x -> (not x)"}),
        ("a < b", "CMP", {"a < b -> (a <= b)"}),
        ("a <= b is c", "CMP", {"a <= b is c -> (a < b is c)", "a <= b is c -> (a <= b is not c)"}),
        ("x = 1", "CONST", {"1 -> (2)", "1 -> (0)"}),
        ("x = 5_000", "CONST", {"5_000 -> (10000)", "5_000 -> (2500)"}),
        ("x = True", "CONST", {"True -> (False)"}),
        ("x = 'key'", "STR", {"'key' -> ('')"}),
        ("x = b''", "STR", {"b'' -> (b'x')"}),
        ("x = f'{y}#z'", "STR", {"f'{y}#z' -> ('')"}),
        ("f(1, a=2, **c)", "KW", {"f(1, a=2, **c) -> (f(1, **c))"}),
        ("await f()", "DROP", {"await f() -> pass"}),
        ("x += y", "ARITH", {"x += y -> x -= y"}),
        ("é(x % 7)", "ARITH", {"x % 7 -> (x * 7)"}),
    ],
)
def test_operator_changes_code_as_named(text: str, kind: str, becomes: set[str]) -> None:
    assert changed(text)[kind] == becomes


@pytest.mark.parametrize(
    "text",
    [
        '"""What it is."""',
        "def f(a: Literal['x'] = None) -> Literal[1]:\n    '''Do it.'''",
        "x: Literal['a', 2]",
        "__all__ = ['a']",
        "class A(B['c']):\n    __slots__ = ('a',)",
        "@dataclass(frozen=True, slots=True)\nclass A:\n    pass",
        "if TYPE_CHECKING:\n    from a import b as c\n    x = 1",
        "_log.info('page.fetched', extra={'url': 1})",
        "raise ValueError(f'no {url} at all')",
        "assert a < 2, 'so it is'",
        "x = 'what a person reads'",
        "x = add(help='which', title=f'{name}')",
        "x = zip(a, b, strict=True)",
        "x = cast('str', y)",
    ],
)
def test_texts_types_and_logs_are_not_mutated(text: str) -> None:
    assert not changed(text)


def test_database_expressions_are_mutated() -> None:
    assert changed("x = 'attribute_not_exists(pk) and n < m'")["STR"]


@pytest.mark.parametrize("path", sorted((ROOT / "infra").glob("k*.py")), ids=lambda path: path.name)
def test_mutant_differs_in_one_place(path: Path) -> None:
    text = path.read_text()
    found = [one for one in mutations(text) if compiles(one.applied(text))]
    assert len(found) > 10
    for one in found:
        place = smallest(ast.parse(text), ast.parse(one.applied(text)))
        assert (ast.get_source_segment(text, place) or text) in one.before


def test_mutant_keeps_other_text() -> None:
    text = "# für alle\nx = 1  # eins\n"
    assert [one.applied(text) for one in mutations(text)] == [
        "# für alle\nx = (2)  # eins\n",
        "# für alle\nx = (0)  # eins\n",
    ]


def test_mutation_at_import_is_marked() -> None:
    text = "A = 1\ndef f(a=2):\n    return 3\nclass B:\n    c = 4\n    def d(self): return 5\n"
    assert {one.before: one.at_import for one in mutations(text)} == {
        "1": True,
        "2": True,
        "3": False,
        "4": True,
        "5": False,
    }


def test_draw_depends_on_seed_and_repeats_no_mutant() -> None:
    drawn = draw(READ, count=8, seed=1)
    assert drawn == draw(READ, count=8, seed=1)
    assert drawn != draw(READ, count=8, seed=2)
    assert len({(one.path, one.mutation) for one in drawn}) == 8
    assert all(compiles(one.mutation.applied(READ["two"]["b.py"])) for one in drawn[-5:])


def test_only_limits_modules_by_pattern() -> None:
    assert {one.path for one in draw(READ, count=4, seed=1, only=["a*"])} == {"a.py"}
    with pytest.raises(SystemExit, match="no module"):
        draw(READ, count=4, seed=1, only=["c.py"])


def test_shares_are_proportional_to_lines() -> None:
    assert shares({"a": 100, "b": 100, "c": 1}, 5) == {"a": 3, "b": 2, "c": 0}


def test_every_group_has_modules_and_tests() -> None:
    names = [path for texts in modules(ROOT).values() for path in texts]
    assert "infra/keys.py" in names
    for group, patterns in GROUPS.items():
        for pattern in patterns:
            found = [name for name in names if fnmatch(name, pattern) and group_of(name) == group]
            assert found, f"{group}: {pattern}"
    assert {mirror(name) for name in names} <= {chunk.folder for chunk in chunks(ROOT)}


def test_batches_start_short_and_are_limited() -> None:
    seconds = {"slow": FIRST_S + 1, "quick": 1.0, "other": FIRST_S, "last": REST_S_MAX}
    assert list(batches(["slow", "quick"], seconds)) == [["slow"], ["quick"]]
    assert list(batches(["quick", "other", "last"], seconds)) == [["quick"], ["other"]]
    assert not list(batches([], seconds))


def test_simulation_is_run_with_some_seeds_only() -> None:
    assert cases(["tests/unit/test_a.py"]) == ["tests/unit/test_a.py"]
    assert len(cases(["tests/simulation/test_simulation.py"])) == 4
