"""JSON schemas of types accept the same documents as the reader."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import jsonschema_rs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orbweaver.control.definition import DefinitionError
from orbweaver.control.json_reader import (
    Fits,
    document_of,
    read,
    read_texts,
    schema_of,
    schema_of_fields,
)


class Colour(StrEnum):
    """An enumeration."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A nested class."""

    name: Annotated[str, Fits(says="a name", low=1, high=5, pattern="[a-z]+")]


Name = Annotated[str, Fits(low=2, example="ab")]


@dataclass(frozen=True, kw_only=True)
class Outer:
    """A class with every kind of field."""

    number: Annotated[int, Fits(says="how many", low=0, high=9)]
    colour: Colour | None = None
    names: Annotated[tuple[Name, ...], Fits(high=2)] = ()
    inner: Inner | None = None
    on: bool = False
    rate: float = 1.0
    maybe: Name | None = None
    counts: Annotated[Mapping[str, Any], Fits(schema={"type": "object"})] = field(
        default_factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A class of answers."""

    counts: Mapping[str, int]
    inner: Inner | None = None


def whole(kind: type, *, answer: bool = False) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    return {**schema_of(kind, parts, answer=answer), "components": {"schemas": parts}}


def test_schema_of_class_describes_its_fields() -> None:
    parts: dict[str, Any] = {}
    assert schema_of(Outer, parts, answer=False) == {"$ref": "#/components/schemas/Outer"}
    outer = parts["Outer"]
    assert outer["required"] == ["number"]
    assert outer["additionalProperties"] is False
    assert outer["description"] == "A class with every kind of field."
    properties = outer["properties"]
    assert properties["number"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 9,
        "description": "how many",
    }
    assert properties["colour"] == {"type": ["string", "null"], "enum": ["red", "blue", None]}
    assert properties["names"]["maxItems"] == 2
    assert properties["names"]["items"] == {"type": "string", "minLength": 2, "examples": ["ab"]}
    assert properties["inner"] == {
        "anyOf": [{"$ref": "#/components/schemas/Inner"}, {"type": "null"}]
    }
    assert properties["maybe"]["type"] == ["string", "null"]
    assert parts["Inner"]["properties"]["name"]["pattern"] == "^(?:[a-z]+)$"


def test_schema_of_answer_requires_every_field() -> None:
    parts: dict[str, Any] = {}
    schema_of(Answer, parts, answer=True)
    assert parts["Answer"]["required"] == ["counts", "inner"]
    assert "additionalProperties" not in parts["Answer"]
    assert parts["Answer"]["properties"]["counts"] == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }


def test_schema_of_fields_uses_given_spelling() -> None:
    schema = schema_of_fields(Inner, name={"type": "string", "format": "date"})
    assert schema["properties"] == {"name": {"type": "string", "format": "date"}}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 11) | st.text("abc", max_size=6) | st.just(0.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("name"), inner),
    max_leaves=4,
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("number", "colour", "names", "inner", "on", "maybe", "counts"), VALUES),
        "other": VALUES,
    },
)
GOOD = st.fixed_dictionaries(
    {"number": st.integers(-1, 10)},
    optional={
        "colour": st.sampled_from(["red", "blue", "green", None]),
        "names": st.lists(st.text("ab", min_size=1, max_size=3), max_size=3),
        "inner": st.fixed_dictionaries({"name": st.text("aB", max_size=6)}) | st.none(),
        "on": st.booleans(),
        "maybe": st.none() | st.text("a", max_size=3),
    },
)


@given(document=DOCUMENTS | GOOD | VALUES)
def test_schema_and_reader_accept_same_documents(document: Any) -> None:
    described = jsonschema_rs.is_valid(whole(Outer), document)
    try:
        read(Outer, document)
        problems = 0
    except DefinitionError as error:
        problems = len(error.problems)
    # other code checks these values
    checked_here = not isinstance(document, dict) or isinstance(document.get("counts", {}), dict)
    assert (problems == 0) == described or not checked_here


def test_reader_makes_classes_tuples_and_members() -> None:
    document = {"number": 3, "colour": "red", "names": ["ab"], "inner": {"name": "x"}, "on": True}
    assert read(Outer, document) == Outer(
        number=3, colour=Colour.RED, names=("ab",), inner=Inner(name="x"), on=True
    )


def test_reader_reports_every_problem_with_place_and_fix() -> None:
    document = {
        "number": "3",
        "colour": "green",
        "names": ["a", 5, "cc"],
        "inner": {"nam": 1},
        "on": 0,
        "numbr": 1,
    }
    with pytest.raises(DefinitionError) as caught:
        read(Outer, document)
    assert [str(problem) for problem in caught.value.problems] == [
        "number: '3' does not fit: give a whole number",
        "colour: 'green' does not fit: give red or blue",
        "names: give at most 2 items",
        "names[0]: give at least 2 characters",
        "names[1]: 5 does not fit: give a text",
        "inner.nam: there is no such field: did you mean name?",
        "inner.name: it is missing",
        "on: 0 does not fit: give true or false",
        "numbr: there is no such field: did you mean number?",
    ]


def test_problems_hide_secrets_of_urls() -> None:
    with pytest.raises(DefinitionError) as caught:
        read(Outer, {"number": "https://me:secret@example.com/?key=secret"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({"number": ["7"], "colour": ["blue"]}, Outer(number=7, colour=Colour.BLUE)),
        ({"number": ["7"], "on": ["true"]}, Outer(number=7, on=True)),
        ({"number": ["x"]}, "number: 'x' does not fit: give a whole number"),
        ({"number": ["1", "2"]}, "number: it is given twice: give it once"),
        ({"number": ["1"], "on": ["yes"]}, "on: 'yes' does not fit: give true or false"),
        ({"number": ["\uff11"]}, "number: '\\uff11' does not fit: give a whole number"),
        ({"number": []}, "number: it is missing"),
    ],
)
def test_parameters_are_read_from_text(texts: dict[str, list[str]], found: Outer | str) -> None:
    if isinstance(found, Outer):
        assert read_texts(Outer, texts) == found
        return
    with pytest.raises(DefinitionError) as caught:
        read_texts(Outer, texts)
    assert str(caught.value) == found


@example(text='""')
@given(text=st.text(max_size=40) | st.text('{}[]",:0123456789.eE+-nulltrefas \\ud', max_size=40))
def test_any_json_is_refused_or_written_back(text: str) -> None:
    try:
        document = document_of(text)
    except DefinitionError:
        return
    assert isinstance(str(document).encode(), bytes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "a: this key occurs twice"),
        ('{"a": {"b": 1, "b": 1}}', "b: this key occurs twice"),
        ("{" + '"k": 1, ' * 99_999 + '"k": 1}', "k: this key occurs twice"),
        ("[1e999, Infinity]", "Infinity is no number of JSON"),
        ('["\\udc00"]', "it holds half a character (a lone surrogate)"),
        ('{"\\udc00": 1}', "it holds half a character (a lone surrogate)"),
        ("[" * 21 + "]" * 21, "it is nested deeper than 20 levels"),
        ("[" * 200_000, "the body is no valid JSON"),
        ("1" * 10_000, "the body is no valid JSON"),
        ("", "the body is no valid JSON"),
    ],
)
def test_ambiguous_documents_are_refused(text: str, said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        document_of(text)
    assert str(caught.value) == said


def test_document_of_greatest_depth_is_read() -> None:
    assert document_of("[" * 20 + "]" * 20)
    assert document_of('"\\ud83d\\ude00"') == "😀"
