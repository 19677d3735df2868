"""Find the raw values of a field on a page, with their currencies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from orbweaver.extraction.convert import UnfitValue, shown
from orbweaver.extraction.document import Document
from orbweaver.extraction.json_ld import JsonLdObjects, property_of
from orbweaver.model.item import Scalar
from orbweaver.model.item_rules import Field, ValueKind, ValueSource, ValueTake
from orbweaver.model.value import value_class
from orbweaver.parsing.html_scan import text_of

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

CURRENCY_KEY = "priceCurrency"
_NUMERIC = frozenset({ValueKind.PRICE, ValueKind.NUMBER, ValueKind.INTEGER})
# Two digits with only tags and spaces between them.
_SEPARATED = re.compile(r"\d(?:\s*+</?[a-zA-Z][^<>]*+>)++\s*+\d")
_HUNDREDTHS = re.compile(r"(\d)\s*+<sup(?:\s[^<>]*+)?>\s*+(\d\d)\s*+</sup>(?!\d)", re.IGNORECASE)


@value_class
class Spot:
    """Where to look for one item: a node, or an object of JSON-LD, microdata or an extractor.

    In a JSON response, `thing` is any value. Without node and thing, the whole page is searched.
    """

    node: LexborNode | None = None
    thing: Any = None
    source: ValueSource = ValueSource.CSS


def located(document: Document, field: Field, spot: Spot) -> Iterator[tuple[Scalar, str | None]]:
    """Yield the raw values of a field, each with its currency if known. Raises UnfitValue."""
    match field.source:
        case ValueSource.CSS:
            yield from ((value, None) for value in _node_values(document, field, spot))
        case ValueSource.JSONLD | ValueSource.MICRODATA:
            yield from _object_values(document, field, spot)
        case ValueSource.OPENGRAPH:
            name = property_of(field.where)
            beside = document.metas.get(name.removesuffix("amount") + "currency", [None])[0]
            yield from ((value, beside) for value in document.metas.get(name, ()))
        case ValueSource.META:
            yield from ((value, None) for value in document.metas.get(field.where.lower(), ()))
        case ValueSource.JSON:
            yield from ((value, None) for value in _json_values(document, field, spot))
        case ValueSource.CUSTOM:
            yield from ((value, None) for value in _extractor_values(field, spot))


def _node_values(document: Document, field: Field, spot: Spot) -> Iterator[Scalar]:
    within = document.root if spot.node is None else spot.node
    nodes = [within]
    if field.where:
        nodes = document.select(field.where, within, itself=spot.node is None)
    if field.take is ValueTake.EXISTS:
        yield bool(nodes)
        return
    for node in nodes:
        if field.attribute is not None:
            value = node.attributes.get(field.attribute.lower())
            if value is not None:
                yield value
        elif field.take is ValueTake.TEXT and field.type in _NUMERIC:
            yield _number_text(document, field, node)
        else:
            yield _node_content(document, field.take, node)


def _number_text(document: Document, field: Field, node: LexborNode) -> str:
    """Return the text of a node with a number.

    Raises UnfitValue if two digits of the number are separated only by tags.
    """
    html, text = node.html or "", document.text(node)
    if not _SEPARATED.search(html):
        return text
    if field.type is ValueKind.PRICE:
        # Two superscript digits after a price are its hundredths: `$19<sup>99</sup>`.
        html = _HUNDREDTHS.sub(r"\1.\2", html)
        if not _SEPARATED.search(html):
            return text_of(html.encode("utf-8", "replace"))
    raise UnfitValue(f"not a {field.type}: {shown(text)} (elements separate its digits)")


def _node_content(document: Document, take: ValueTake, node: LexborNode) -> str:
    match take:
        case ValueTake.HTML:
            return document.html(node)
        case ValueTake.RAW:
            return document.raw(node)
        case _:
            return document.text(node)


def _object_values(
    document: Document, field: Field, spot: Spot
) -> Iterator[tuple[Scalar, str | None]]:
    objects = objects_of(document, field.source)
    for one, path in _path_starts(objects, field, spot):
        for value, holder in objects.values(path, one, url=field.type is ValueKind.URL):
            yield value, _currency(holder) if field.type is ValueKind.PRICE else None


def objects_of(document: Document, source: ValueSource) -> JsonLdObjects:
    return document.microdata if source is ValueSource.MICRODATA else document.json_ld


def _path_starts(objects: JsonLdObjects, field: Field, spot: Spot) -> Iterator[tuple[Any, str]]:
    """Yield the objects where a field's path starts, each with the path.

    `Product:offers.price` starts at the objects of that type. Another path starts at the item's
    object, or at all top-level objects if the item is no object.
    """
    kind, colon, path = field.where.partition(":")
    if colon and kind[:1].isupper():
        yield from ((one, path) for one in objects.with_type(kind))
    elif spot.thing is not None and spot.source is field.source:
        yield spot.thing, field.where
    else:
        for root in objects.roots:
            for one in root if isinstance(root, list) else [root]:
                yield one, field.where
                graph = one.get("@graph") if isinstance(one, Mapping) else None
                yield from ((node, field.where) for node in _as_list(graph))


def _as_list(one: Any) -> Iterable[Any]:
    return one if isinstance(one, list) else [] if one is None else [one]


def _currency(holder: Any) -> str | None:
    said = holder.get(CURRENCY_KEY) if isinstance(holder, Mapping) else None
    first = next(iter(_as_list(said)), None)
    return first if isinstance(first, str) else None


def _json_values(document: Document, field: Field, spot: Spot) -> Iterator[Scalar]:
    for one in document.values_at(field.where or "$", spot.thing):
        if field.take is ValueTake.RAW:
            yield json.dumps(one, ensure_ascii=False, separators=(",", ":"))
            continue
        for value in one if isinstance(one, list) else (one,):
            if isinstance(value, dict | list):
                kind = "an object" if isinstance(value, dict) else "a list in a list"
                fix = 'lead the path to its values, or give take = "raw" for all of it as JSON'
                raise UnfitValue(f"{field.where} finds {kind}: {fix}")
            if value is not None:
                yield value


def _extractor_values(field: Field, spot: Spot) -> Iterator[Scalar]:
    given = None if spot.thing is None else spot.thing.get(field.where)
    for one in given if isinstance(given, list | tuple) else [given]:
        match one:
            case None:
                continue
            case str() | int() | float():
                yield one
            case Decimal():
                yield str(one)
            case date():  # also matches datetime
                yield one.isoformat()
            case _:
                kind = type(one).__name__
                raise UnfitValue(f"the extractor gave a {kind}: {shown(_safe_repr(one))}")


def _safe_repr(one: object) -> str:
    try:
        return repr(one)
    except Exception as error:  # noqa: BLE001 - a user's code can raise anything
        return type(error).__name__
