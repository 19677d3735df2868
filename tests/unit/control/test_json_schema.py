"""Types as JSON: what a schema says and what is read are the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import jsonschema_rs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orbweaver.control.definition import DefinitionError
from orbweaver.control.json_reader import document_of, read, read_texts
from orbweaver.control.json_schema import Fits, schema_of, schema_of_fields


class Colour(StrEnum):
    """A word."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Inner:
    """What lies within."""

    name: Annotated[str, Fits(says="a name", low=1, high=5, pattern="[a-z]+")]


Name = Annotated[str, Fits(low=2, example="ab")]


@dataclass(frozen=True, kw_only=True)
class Outer:
    """All that there is."""

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
    """What comes back."""

    counts: Mapping[str, int]
    inner: Inner | None = None


def whole(kind: type, *, answer: bool = False) -> dict[str, Any]:
    """Make a schema that stands by itself."""
    parts: dict[str, Any] = {}
    return {**schema_of(kind, parts, answer=answer), "components": {"schemas": parts}}


def test_a_class_is_described() -> None:
    """Fields, their types, what fits and what they are for; no other fields."""
    parts: dict[str, Any] = {}
    assert schema_of(Outer, parts, answer=False) == {"$ref": "#/components/schemas/Outer"}
    outer = parts["Outer"]
    assert outer["required"] == ["number"]
    assert outer["additionalProperties"] is False
    assert outer["description"] == "All that there is."
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


def test_an_answer_has_every_field() -> None:
    """In an answer nothing is left out, and more may come some day."""
    parts: dict[str, Any] = {}
    schema_of(Answer, parts, answer=True)
    assert parts["Answer"]["required"] == ["counts", "inner"]
    assert "additionalProperties" not in parts["Answer"]
    assert parts["Answer"]["properties"]["counts"] == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }


def test_fields_may_be_spelled_otherwise() -> None:
    """A class in place, with another spelling of a field."""
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
def test_what_is_described_is_what_is_read(document: Any) -> None:
    """A document is read if and only if it fits its schema."""
    described = jsonschema_rs.is_valid(whole(Outer), document)
    try:
        read(Outer, document)
        problems = 0
    except DefinitionError as error:
        problems = len(error.problems)
    # What is checked elsewhere is taken as it is.
    checked_here = not isinstance(document, dict) or isinstance(document.get("counts", {}), dict)
    assert (problems == 0) == described or not checked_here


def test_values_are_read() -> None:
    """Objects become classes, lists tuples, words members."""
    document = {"number": 3, "colour": "red", "names": ["ab"], "inner": {"name": "x"}, "on": True}
    assert read(Outer, document) == Outer(
        number=3, colour=Colour.RED, names=("ab",), inner=Inner(name="x"), on=True
    )


def test_every_problem_is_named() -> None:
    """All that does not fit is found, with its place, what was given and the fix."""
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


def test_secrets_are_not_repeated() -> None:
    """What stood before an @ or behind a ? is not shown."""
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
def test_parameters_are_texts(texts: dict[str, list[str]], found: Outer | str) -> None:
    """A text is read as what it spells, and as nothing else."""
    if isinstance(found, Outer):
        assert read_texts(Outer, texts) == found
        return
    with pytest.raises(DefinitionError) as caught:
        read_texts(Outer, texts)
    assert str(caught.value) == found


@example(text='""')
@given(text=st.text(max_size=40) | st.text('{}[]",:0123456789.eE+-nulltrefas \\ud', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever is sent as JSON, nothing else is raised; and what is read can be written."""
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
def test_documents_that_mean_nothing(text: str, said: str) -> None:
    """Keys that stand twice, numbers that are none, half characters and depth without end."""
    with pytest.raises(DefinitionError) as caught:
        document_of(text)
    assert str(caught.value) == said


def test_nesting_that_is_allowed() -> None:
    """As deep as documents may be."""
    assert document_of("[" * 20 + "]" * 20)
    assert document_of('"\\ud83d\\ude00"') == "😀"
