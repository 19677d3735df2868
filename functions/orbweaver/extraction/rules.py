"""Validate extraction rules: items, their fields, and the problems of their definition.

lexbor checks selectors when a crawl is defined, so a page never fails because of an invalid
selector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from orbweaver.extraction.convert import problem_of_format
from orbweaver.extraction.css import problem_of as problem_of_selector
from orbweaver.extraction.currencies import CODES
from orbweaver.extraction.regex import problem_of as problem_of_regex
from orbweaver.model.columns import ORIGIN
from orbweaver.model.item_rules import (
    ITEMS_MAX,
    MANY,
    OBJECTS,
    VALUE_CHARS_MAX,
    Field,
    ItemRule,
    ValueKind,
    ValueSource,
    ValueTake,
    columns_of,
)
from orbweaver.model.url_patterns import problem_of_match, problems_together

RULES_MAX = 20
FIELDS_MAX = 50
VALUES_MAX = 100
# Limits for all rules of a crawl together. The definition of a crawl is one item of at most 400 KB.
FIELDS_TOGETHER_MAX = 400
CHARS_MAX = 40_000
PATH_CHARS_MAX = 200

RULE_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
FIELD_NAME = re.compile(r"[a-z_][a-z0-9_]{0,59}")
FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")
# Columns that every table of items has, including the partition column.
TAKEN = frozenset({column.name for column in ORIGIN} | {"dt"})


# --- validation ---------------------------------------------------------------------------------


def problems_of(rules: tuple[ItemRule, ...]) -> Iterator[tuple[str, str]]:
    """Yield all problems of a crawl's item rules: the path of the invalid key, and a message."""
    if len(rules) > RULES_MAX:
        yield "items", f"{len(rules):,} rules are too many: give at most {RULES_MAX}"
        return
    fields = [one for rule in rules for one in rule.fields]
    if len(fields) > FIELDS_TOGETHER_MAX:
        fix = f"together at most {FIELDS_TOGETHER_MAX}"
        yield "items", f"{len(fields):,} fields are too many: {fix}"
        return
    chars = sum(map(_chars, fields))
    if chars > CHARS_MAX:
        fix = f"together at most {CHARS_MAX:,}"
        yield "items", f"{chars:,} characters in fields are too many: {fix}"
        return
    whole = True
    for place, rule in enumerate(rules):
        path = f"items[{place}]"
        unfit = problem_of_match(rule.match)
        whole = whole and unfit is None
        if unfit is not None:
            yield f"{path}.match", unfit
        if any(rule.name == other.name for other in rules[:place]):
            yield f"{path}.name", f"{rule.name!r} is another one's name: give each its own"
        yield from ((f"{path}{at}", words) for at, words in _problems_of_rule(rule))
    for error in problems_together(tuple(rule.match for rule in rules)) if whole else ():
        yield "items", str(error)


def _chars(one: Field) -> int:
    known = (one.where, one.attribute, one.regex, one.values, one.default, one.format)
    return sum(len(repr(value)) for value in known if value)


def _problems_of_rule(rule: ItemRule) -> Iterator[tuple[str, str]]:
    if not RULE_NAME.fullmatch(rule.name):
        fits = "a letter, then up to 39 of a-z, 0-9 and underscore"
        yield ".name", f"{rule.name[:60]!r} does not fit, a table is called so: give {fits}"
    if rule.each is not None and (error := _problem_of_each(rule)):
        yield ".each", error
    if rule.each is not None and rule.source not in (ValueSource.CSS, ValueSource.JSON):
        yield ".each", "source and extractor say what the items are: give one of them"
    if rule.extractor is not None and not FUNCTION_NAME.fullmatch(rule.extractor):
        yield ".extractor", f"{rule.extractor[:60]!r} is no name of a function: give one of yours"
    if rule.source in OBJECTS and not rule.of:
        yield ".source", f'of which type? Give one, like "{rule.source}:Product"'
    if rule.source is ValueSource.JSON and rule.of:
        yield ".source", '"json" has no types: give "json", and each for the path to the items'
    if not 0 <= rule.least <= ITEMS_MAX:
        yield ".least", f"{rule.least} does not fit: give 0 to {ITEMS_MAX:,}"
    elif rule.least != 1 and rule.each is None and rule.source not in MANY:
        yield ".least", "the rule finds one item a page: give each, or leave it out"
    yield from _problems_of_fields(rule)


def _problem_of_each(rule: ItemRule) -> str | None:
    each = rule.each or ""
    return problem_of_path(each) if rule.source is ValueSource.JSON else problem_of_selector(each)


def problem_of_path(path: str) -> str | None:
    # The library is slow to import, and most definitions have no path.
    from orbweaver.extraction.json_path import problem_of

    return problem_of(path)


def _problems_of_fields(rule: ItemRule) -> Iterator[tuple[str, str]]:
    if not rule.fields:
        yield ".fields", 'there are none: give some, like title = "h1" in [items.fields]'
    elif len(rule.fields) > FIELDS_MAX:
        yield ".fields", f"{len(rule.fields)} are too many: give at most {FIELDS_MAX}"
    names = [column.name for column in columns_of(rule)]
    for one in rule.fields:
        path = f".fields.{one.name}"
        if not FIELD_NAME.fullmatch(one.name):
            fits = "a letter, then up to 59 of a-z, 0-9 and underscore"
            yield ".fields", f"{one.name[:60]!r} does not fit, a column is called so: give {fits}"
            continue
        if one.name in TAKEN:
            yield path, "every table has a column of this name: give the field another one"
        elif names.count(one.name) > 1:
            yield path, "the price's currency is called so: give the field another name"
        yield from ((f"{path}{at}", words) for at, words in _problems_of_field(one, rule))


def _problems_of_field(one: Field, rule: ItemRule) -> Iterator[tuple[str, str]]:
    if (one.source is ValueSource.JSON) is not (rule.source is ValueSource.JSON):
        fix = "give the field a place that its rule can read"
        yield "", f'a rule with source = "json" reads only JSON, and no other rule does: {fix}'
        return
    yield from _problems_of_place(one, rule)
    takes = {ValueTake.TEXT} | ({ValueTake.RAW} if one.source is ValueSource.JSON else set())
    if one.source is not ValueSource.CSS and (one.attribute or one.take not in takes):
        yield "", "attribute and take are about nodes: give css, or leave them out"
    elif one.attribute is not None and one.take is not ValueTake.TEXT:
        yield "", "attribute and take say the same thing: give one of them"
    if one.take is ValueTake.EXISTS and one.type is not ValueKind.BOOLEAN:
        yield ".take", 'whether something exists is true or false: give type = "boolean"'
    if one.regex is not None and (error := problem_of_regex(one.regex)):
        yield ".regex", error
    yield from _problems_of_type(one)


def _problems_of_place(one: Field, rule: ItemRule) -> Iterator[tuple[str, str]]:
    if one.source is ValueSource.CSS:
        if one.where and (error := problem_of_selector(one.where)):
            yield ".css", error
        elif not one.where and rule.each is None:
            yield "", 'where is it? Give css, jsonld, microdata, og or meta, like css = "h1"'
    elif one.source is ValueSource.JSON:
        if error := problem_of_path(one.where):
            yield ".json", error
    elif not one.where or len(one.where) > PATH_CHARS_MAX or not one.where.isprintable():
        fix = f"give 1 to {PATH_CHARS_MAX} printable characters"
        yield f".{one.source}", f"{one.where[:60]!r} does not fit: {fix}"


# Keys that apply only to certain types of fields.
_ONLY = (
    ("format", (ValueKind.DATE, ValueKind.DATETIME), "dates"),
    ("currency", (ValueKind.PRICE,), "prices"),
    ("decimal", (ValueKind.PRICE, ValueKind.NUMBER, ValueKind.INTEGER), "numbers and prices"),
    ("cut", (ValueKind.STRING,), "strings"),
)


def _problems_of_type(one: Field) -> Iterator[tuple[str, str]]:
    for key, kinds, words in _ONLY:
        if getattr(one, key) is not None and one.type not in kinds:
            yield f".{key}", f"it is about {words}, and this is of type {one.type}: leave it out"
            return
    if one.format is not None and (error := problem_of_format(one.format)):
        yield ".format", error
    if one.currency is not None and one.currency not in CODES:
        yield ".currency", f'{one.currency[:60]!r} is no ISO 4217 code: give one like "EUR"'
    if one.decimal not in (None, ".", ","):
        yield ".decimal", f'{one.decimal!r} does not fit: give "." or ","'
    if one.cut is not None and not 1 <= one.cut <= VALUE_CHARS_MAX:
        yield ".cut", f"{one.cut} does not fit: give 1 to {VALUE_CHARS_MAX:,}"
    if len(one.values) > VALUES_MAX:
        yield ".values", f"{len(one.values)} are too many: give at most {VALUES_MAX}"
    yield from _problems_of_default(one)


def _problems_of_default(one: Field) -> Iterator[tuple[str, str]]:
    from orbweaver.extraction.convert import UnfitValue, read

    if one.default is None:
        return
    listed = None if isinstance(one.default, str | int | float) else one.default
    if one.required:
        yield ".default", "what is required has none: leave one of the two out"
    elif (listed is not None) != one.many:
        yield ".default", "give a list for a list, and else one value"
    else:
        given: Any = [one.default] if listed is None else listed
        try:
            for value in given:
                read(one, value)
        except UnfitValue as error:
            yield ".default", f"{error}: give a value of the type"
