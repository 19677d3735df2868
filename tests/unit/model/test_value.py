"""Values are equal, hashed, replaced and pickled by their fields, like frozen dataclasses."""

from __future__ import annotations

import pickle
from dataclasses import asdict, field, replace

import pytest

from orbweaver.model.value import positional_value_class, value_class


@value_class
class Point:
    """A value of this test."""

    x: int
    names: tuple[str, ...] = field(default=(), compare=False)
    parts: list[int] = field(default_factory=list, compare=False)


@value_class
class Place(Point):
    """A point with a height, and its own text."""

    height: int = 0

    def __repr__(self) -> str:
        return f"{self.x} at {self.height}"


@positional_value_class
class Pair:
    """A value with positional parameters."""

    first: int
    second: int = 2


def test_equal_values_have_equal_hashes() -> None:
    """Fields that do not compare do not count either."""
    assert {Point(x=1), Point(x=1, names=("a",))} == {Point(x=1)}
    assert Point(x=1) != Point(x=2)


def test_value_is_replaced_listed_and_pickled_by_its_fields() -> None:
    """The functions of `dataclasses` work, and so do child processes."""
    point = Point(x=1, names=("a",))
    assert asdict(replace(point, x=2)) == {"x": 2, "names": ("a",), "parts": []}
    assert pickle.loads(pickle.dumps(point)).names == ("a",)  # noqa: S301 - our own value


def test_value_takes_only_names_of_its_fields() -> None:
    """An unknown attribute is refused at run time too, because values have slots."""
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Point(x=1).y = 2  # type: ignore[attr-defined]


def test_defaults_positions_and_own_methods_are_kept() -> None:
    """Methods that the class or its base defines are not generated."""
    place = Place(x=1, height=3)
    assert (repr(place), place.parts, place == Place(x=1, height=4)) == ("1 at 3", [], False)
    assert (repr(Pair(1)), Pair(1)) == ("Pair(first=1, second=2)", Pair(1, 2))
    assert replace(Place(x=1), height=2) != Place(x=1)
