"""Extract the items that a crawl's rules find on a page, with the problems of invalid items.

Extraction never raises, for any page and any rules: an error or omission becomes an invalid item.
If a page has fewer items than a rule requires (`least`), that also becomes an invalid item.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.extraction.convert import ConvertedValue, UnfitValue, read
from orbweaver.extraction.document import Document, JsonBody
from orbweaver.extraction.locate import Spot, located, objects_of
from orbweaver.extraction.regex import found_in
from orbweaver.extraction.work_budget import UNITS_MAX, VALUE_UNITS, TooMuchError
from orbweaver.model.cuts import Cuts, counted
from orbweaver.model.item import Item, Scalar, Value, to_row
from orbweaver.model.item_rules import (
    ITEMS_MAX,
    LIST_MAX,
    OBJECTS,
    Field,
    ItemRule,
    ValueKind,
    ValueSource,
    ValueTake,
    columns_of,
    currency_name,
)
from orbweaver.model.url import TRACKING_PARAMETERS
from orbweaver.model.url_patterns import matching_indexes

if TYPE_CHECKING:
    from orbweaver.parsing.page import Page

__all__ = [
    "Extractor",
    "Field",
    "ItemRule",
    "ValueKind",
    "ValueSource",
    "ValueTake",
    "columns_of",
    "extract",
]

# Maximum size of all items of a page as JSON. They are stored in the page's record, which is one
# DynamoDB item of at most 400 KB.
EXTRACTED_BYTES_MAX = 200_000
ERROR_CHARS_MAX = 300
# Created once, because json.dumps creates an encoder per item.
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode

# A user's function: takes a page and its URL, and returns dicts.
Extractor: TypeAlias = (
    "Callable[[Page, str], Iterable[Mapping[str, Any]] | Mapping[str, Any] | None]"
)
_NO_EXTRACTORS: Mapping[str, Extractor] = MappingProxyType({})


def extract(
    page: Page,
    url: str,
    rules: tuple[ItemRule, ...],
    *,
    tracking: frozenset[str] = TRACKING_PARAMETERS,
    custom: Mapping[str, Extractor] | None = None,
) -> tuple[Item, ...]:
    """Return all items on a page fetched from `url`. `custom` contains user functions by name."""
    matching = rules_about(rules, url, json=False)
    return items_by(matching, page, url, tracking=tracking, custom=custom)


def items_by(
    matching: tuple[ItemRule, ...],
    page: Page,
    url: str,
    *,
    tracking: frozenset[str] = TRACKING_PARAMETERS,
    custom: Mapping[str, Extractor] | None = None,
) -> tuple[Item, ...]:
    return items_and_cuts(matching, page, url, tracking=tracking, custom=custom)[0]


def items_and_cuts(
    matching: tuple[ItemRule, ...],
    page: Page,
    url: str,
    *,
    tracking: frozenset[str] = TRACKING_PARAMETERS,
    custom: Mapping[str, Extractor] | None = None,
    units_max: int = UNITS_MAX,
    body: JsonBody | None = None,
) -> tuple[tuple[Item, ...], Cuts]:
    """Return the items of a page, and numbers of omitted items and unread data.

    `custom` contains user functions by name. `body` is the data of a JSON response. Raises
    HeavyError if `units_max` is a reduced budget that the page exceeds.
    """
    if not matching:
        return (), ()
    document = Document(page, url, tracking, units_max, body)
    items = tuple(
        _items_within_size(document, matching, _NO_EXTRACTORS if custom is None else custom)
    )
    return items, counted({"items": document.items_cut, "data": document.data_cut})


def _items_within_size(
    document: Document, matching: tuple[ItemRule, ...], custom: Mapping[str, Extractor]
) -> Iterator[Item]:
    bytes_left = EXTRACTED_BYTES_MAX
    for rule in matching:
        for place, item in enumerate(_items(document, rule, custom)):
            size = len(_ENCODE(to_row(item)).encode("utf-8", "replace"))
            if size > bytes_left:
                document.items_cut += 1
                many = f"more than {EXTRACTED_BYTES_MAX:,} bytes of items are on this page"
                yield invalid(rule, place, f"{many}: the rest is left out")
                return
            bytes_left -= size
            yield item


def rules_for(rules: tuple[ItemRule, ...], url: str) -> tuple[ItemRule, ...]:
    if not rules:
        return ()
    return tuple(
        rules[place] for place in matching_indexes(tuple(rule.match for rule in rules), url)
    )


def rules_about(rules: tuple[ItemRule, ...], url: str, *, json: bool) -> tuple[ItemRule, ...]:
    """Return the rules that match a URL and read its kind of response: JSON or a page."""
    return tuple(
        rule for rule in rules_for(rules, url) if (rule.source is ValueSource.JSON) is json
    )


def _items(document: Document, rule: ItemRule, custom: Mapping[str, Extractor]) -> Iterator[Item]:
    place = 0
    spots: list[Spot] = []
    try:
        spots = _find_spots(document, rule, custom)
        for spot in spots:
            if place == ITEMS_MAX:
                document.items_cut += len(spots) - place
                text = f"more than {ITEMS_MAX:,} items are on this page: the rest is left out"
                yield invalid(rule, place, text)
                return
            yield _item(document, rule, spot, place)
            place += 1
        if place < rule.least:
            where = _rule_place(rule)
            text = f"{place} of at least {rule.least} found ({where})"
            yield invalid(rule, place, text, *_data_problems(document, rule))
    except TooMuchError as error:
        document.items_cut += max(1, len(spots) - place)
        left = f": {len(spots) - place:,} of {len(spots):,} items are left out" if spots else ""
        yield invalid(rule, place, f"{error}{left}")
    except UnfitValue as error:
        yield invalid(rule, place, str(error))


def _rule_place(rule: ItemRule) -> str:
    if rule.extractor is not None:
        return f"extractor {rule.extractor}"
    if rule.each is not None:
        return f"{rule.source} {rule.each!a}"
    return f"{rule.source}:{rule.of}"


def invalid(rule: ItemRule, place: int, *problems: str) -> Item:
    """Return an item without values that reports problems. `place` is its number on the page."""
    columns = columns_of(rule)
    fields: dict[str, Value] = {one.name: [] if one.many else None for one in columns}
    return Item(table=rule.name, place=place, fields=fields, problems=problems)


# --- items --------------------------------------------------------------------------------------


def _find_spots(document: Document, rule: ItemRule, custom: Mapping[str, Extractor]) -> list[Spot]:
    # A page has one item for each dict that a user's function returns, for each JSON-LD or
    # microdata object of a type, or for each node of `each`. Without these, a page has one item.
    if rule.extractor is not None:
        things = _call_extractor(document, rule.extractor, custom)
        return [Spot(thing=thing, source=ValueSource.CUSTOM) for thing in things]
    if rule.source is ValueSource.JSON and document.body is not None:
        values = document.values_at(rule.each or "$", document.body.data)
        return [Spot(thing=value, source=rule.source) for value in values]
    if rule.source in OBJECTS:
        objects = objects_of(document, rule.source).with_type(rule.of)
        return [Spot(thing=thing, source=rule.source) for thing in objects]
    if rule.each is not None:
        nodes = document.select(rule.each, document.root, itself=True)
        return [Spot(node=node) for node in nodes]
    return [Spot()]


def _call_extractor(
    document: Document, name: str, custom: Mapping[str, Extractor]
) -> list[Mapping[str, Any]]:
    """Call a user's function. Raises UnfitValue if the function raises or returns a wrong type."""
    function = custom.get(name)
    if function is None:
        known = f"there are {', '.join(sorted(custom))}" if custom else "none is deployed"
        raise UnfitValue(f"extractor {name}: there is no such function ({known})")
    try:
        things = _as_list(function(document.page, document.url))
    except Exception as error:  # a user's code can raise any exception
        said = f"extractor {name}: {type(error).__name__}: {error}"
        raise UnfitValue(" ".join(said.split())[:ERROR_CHARS_MAX]) from error
    odd = next((thing for thing in things if not isinstance(thing, Mapping)), None)
    if odd is not None:
        raise UnfitValue(f"extractor {name}: it gave a {type(odd).__name__} instead of a dict")
    return things


def _as_list(given: Any) -> list[Any]:
    if given is None:
        return []
    return [given] if isinstance(given, Mapping) else [*islice(given, ITEMS_MAX + 1)]


def _item(document: Document, rule: ItemRule, spot: Spot, place: int) -> Item:
    fields: dict[str, Value] = {}
    problems: list[str] = []
    anything = False
    for field in rule.fields:
        values: list[ConvertedValue] = []
        try:
            # The field gets the first value that remains after `regex`. With `list`, it gets all
            # values.
            values = [*islice(_values(document, field, spot), None if field.many else 1)]
            anything = anything or (bool(values) and field.take is not ValueTake.EXISTS)
            values = values or _defaults(field)
        except UnfitValue as error:
            problems.append(f"{field.name}: {error}")
            anything, values = True, []
        fields |= _columns(field, values)
    if not anything and not problems:
        problems.append("nothing of it was found: has the page's template changed?")
    if problems:
        problems += _data_problems(document, rule)
    return Item(table=rule.name, place=place, fields=fields, problems=tuple(problems))


def _data_problems(document: Document, rule: ItemRule) -> list[str]:
    asked = {rule.source, *(field.source for field in rule.fields)} & OBJECTS
    return [said for source in sorted(asked) for said in objects_of(document, source).problems]


# --- fields -------------------------------------------------------------------------------------


def _values(document: Document, field: Field, spot: Spot) -> Iterator[ConvertedValue]:
    """Yield the converted values of a field.

    Raises UnfitValue if one value does not fit the type, or if there are too many.
    """
    number = 0
    for raw, currency in located(document, field, spot):
        left = _clean_value(field, raw)
        if left is not None:
            document.work.spend(VALUE_UNITS, "values")
            number += 1
            if number > LIST_MAX:
                raise UnfitValue(f"more than {LIST_MAX} values")
            yield read(field, left, document.base, currency)


def _clean_value(field: Field, raw: Scalar) -> Scalar:
    """Clean a raw value and apply the field's regex. An empty result becomes None."""
    if isinstance(raw, str):
        # Lone surrogates become question marks and NUL is removed, because texts cannot contain
        # them.
        raw = _normalize_space(
            raw.encode("utf-8", "replace").decode().replace("\0", ""), field.take
        )
    if field.regex is not None and raw is not None:
        raw = found_in(field.regex, raw if isinstance(raw, str) else json.dumps(raw))
        raw = raw if raw is None or field.take is ValueTake.RAW else raw.strip()
    return None if isinstance(raw, str) and not raw.strip() else raw


def _normalize_space(text: str, take: ValueTake) -> str:
    match take:
        case ValueTake.RAW:
            return text
        case ValueTake.HTML:
            return text.strip()
        case _:
            return " ".join(text.split())


def _defaults(field: Field) -> list[ConvertedValue]:
    if field.required:
        within = "" if field.regex is None else f", regex {field.regex!a}"
        raise UnfitValue(f"missing ({field.place}{within})")
    if field.default is None:
        return []
    default: Any = field.default
    return [read(field, one) for one in (default if field.many else [default])]


def _columns(field: Field, values: list[ConvertedValue]) -> dict[str, Value]:
    """Return the values of a field by column. A price has two columns: amount and currency."""
    found: dict[str, list[Scalar]] = {field.name: [value.value for value in values]}
    if field.type is ValueKind.PRICE:
        found[currency_name(field.name)] = [value.currency for value in values]
    if field.many:
        return dict(found)
    return {name: scalars[0] if scalars else None for name, scalars in found.items()}
