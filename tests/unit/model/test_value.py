"""Values are equal, hashed, replaced and pickled by their fields, like frozen dataclasses."""

from __future__ import annotations

import pickle
from dataclasses import asdict, field, replace

import pytest

from orbweaver.model.value import value


@value
class Point:
    """A value of this test."""

    x: int
    names: tuple[str, ...] = field(default=(), compare=False)


def test_equal_values_have_equal_hashes() -> None:
    """Fields that do not compare do not count either."""
    assert {Point(x=1), Point(x=1, names=("a",))} == {Point(x=1)}
    assert Point(x=1) != Point(x=2)


def test_value_is_replaced_listed_and_pickled_by_its_fields() -> None:
    """The functions of `dataclasses` work, and so do child processes."""
    point = Point(x=1, names=("a",))
    assert asdict(replace(point, x=2)) == {"x": 2, "names": ("a",)}
    assert pickle.loads(pickle.dumps(point)).names == ("a",)  # noqa: S301 - our own value


def test_value_takes_only_names_of_its_fields() -> None:
    """An unknown attribute is refused at run time too, because values have slots."""
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Point(x=1).y = 2  # type: ignore[attr-defined]
