"""Words for item rules: what `check` says of them, and how many items a crawl has found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orbweaver.cli import text
from orbweaver.model.crawl import Crawl
from orbweaver.model.item_rules import ItemRule, ValueKind, ValueSource, columns_of


def rules(crawl: Crawl) -> Iterator[tuple[str, str]]:
    """Say what is taken from pages, a line a rule."""
    for rule in crawl.items:
        fields = ", ".join(
            f"{field.name}{'' if field.type is ValueKind.STRING else f' ({field.type})'}"
            f"{' of many' if field.many else ''}{'!' if field.required else ''}"
            for field in rule.fields
        )
        where = f"where {text.cut(rule.match, 200)} is found"
        yield "items", f"{rule.name}: {where}, {_what(rule)}: {text.cut(fields, 400)}"
    if crawl.items:
        tables = ", ".join(f"items/{crawl.name}/{rule.name}" for rule in crawl.items)
        number = sum(len(columns_of(rule)) for rule in crawl.items)
        yield "exports", f"{tables}: {text.plural(number, 'column')} in all; ! is required"


def _what(rule: ItemRule) -> str:
    if rule.extractor is not None:
        return f"what the function {rule.extractor} yields"
    if rule.each is not None:
        return f"one for each {text.cut(rule.each, 100)}"
    if rule.source in (ValueSource.JSONLD, ValueSource.MICRODATA):
        return f"one for each {rule.of} in {rule.source}"
    return "one a page" if rule.source is ValueSource.CSS else f"one a page, of {rule.source}"


def found(total: Mapping[str, int]) -> str | None:
    """Say how many items there are, and which share of them is invalid; None for none."""
    number, invalid = total.get("items", 0), total.get("items_invalid", 0)
    if not number:
        return None
    share = "" if not invalid else f" ({100 * invalid / number:.1f} %)"
    return f"{text.plural(number, 'item')}, {invalid:,} invalid{share}"
