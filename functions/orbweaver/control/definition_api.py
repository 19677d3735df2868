"""Parse, write and validate the key `api` of a definition: APIs that are crawled page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from orbweaver.control.definition_values import (
    CODECS,
    Codec,
    Key,
    Problems,
    UnfitSetting,
    UnfitWithin,
    list_of,
    missing_in,
    parts_of,
    schema_of_keys,
    word_of,
)
from orbweaver.model.api_source import PAGES_MAX, ApiSource, Paging, PagingBy
from orbweaver.model.item_rules import ItemRule, ValueSource
from orbweaver.model.request_url import (
    BodyKind,
    PostBody,
    form_body,
    json_body,
    parse_form,
    request_url,
    split_request,
)
from orbweaver.model.url_patterns import matches

APIS_MAX = 20
PARAMETER_CHARS_MAX = 100
EXAMPLE = """a table like { url = "https://example.org/api", paging = { by = "link" } }"""
PAGING_KEYS = (
    Key(
        "by",
        "by",
        word_of({str(by): by for by in PagingBy}),
        needed='give "cursor", "page", "offset", "next" or "link"',
    ),
    Key("path", "path", CODECS["text"]),
    Key("parameter", "parameter", CODECS["text"]),
    Key("start", "start", CODECS["number"]),
    Key("step", "step", CODECS["number"]),
    Key("total", "total", CODECS["text"]),
    Key("more", "more", CODECS["text"]),
)


def _paging(value: object) -> Paging:
    if not isinstance(value, Mapping):
        raise UnfitSetting('give a table like { by = "link" }')
    problems: Problems = []
    parts = parts_of(value, PAGING_KEYS, "", problems, "paging")
    problems += missing_in(value, PAGING_KEYS, "")
    if problems:
        raise UnfitWithin(None, problems)  # other checks need the kind of paging
    return replace(Paging(), **parts)


def _written(keys: tuple[Key, ...], value: Any) -> dict[str, Any]:
    defaults = {one.name: one.default for one in fields(value)}
    return {
        key.path: key.codec.write(getattr(value, key.part))
        for key in keys
        if key.needed is not None or getattr(value, key.part) != defaults[key.part]
    }


PAGING = Codec(
    read=_paging,
    schema=schema_of_keys(PAGING_KEYS),
    write=lambda paging: _written(PAGING_KEYS, paging),
)


def _object(value: object) -> PostBody:
    if not isinstance(value, Mapping):
        raise UnfitSetting('give a table, like { query = "books" }')
    try:
        return json_body(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnfitSetting("it holds a date, or something else that is not JSON") from error


def _form(value: object) -> PostBody:
    known = isinstance(value, Mapping) and all(
        isinstance(one, str | int) and not isinstance(one, bool) for one in value.values()
    )
    if not isinstance(value, Mapping) or not known:
        raise UnfitSetting('give a table of names and texts, like { query = "books" }')
    return form_body(dict(value))


_OBJECT = {"type": "object"}
METHODS = {"GET": "GET", "POST": "POST"}
API_KEYS = (
    Key("url", "url", CODECS["text"], needed="give the URL of the API's first page"),
    Key("method", "method", word_of(METHODS)),
    Key("json", "json", Codec(read=_object, schema=_OBJECT)),
    Key("form", "form", Codec(read=_form, schema=_OBJECT)),
    Key("links", "links", CODECS["text"]),
    Key("pages", "pages_max", CODECS["number"]),
    Key("paging", "paging", PAGING),
)


def _api(value: Mapping[str, Any], path: str, problems: Problems) -> ApiSource:
    problems += missing_in(value, API_KEYS, path)
    parts = parts_of(value, API_KEYS, path, problems, "an API")
    method, given = parts.pop("method", None), [key for key in ("json", "form") if key in parts]
    bodies = [parts.pop(key) for key in given]
    if len(given) > 1:
        problems.append((f"{path}.form", "a request has one body: leave json or form out"))
    elif given and method == "GET":
        problems.append((f"{path}.{given[0]}", 'a GET has no body: give method = "POST"'))
    elif given or method == "POST":
        try:
            parts["url"] = request_url(parts.get("url", ""), *(bodies or [form_body({})]))
        except ValueError as error:
            problems.append((f"{path}.{given[0]}", str(error)))
    return replace(ApiSource(url=""), **parts)


def _api_written(api: ApiSource) -> dict[str, Any]:
    written = _written(tuple(key for key in API_KEYS if hasattr(api, key.part)), api)
    address, post = split_request(api.url)
    if post is None:
        return written
    body: dict[str, Any] = {"method": "POST"}
    if post.kind is BodyKind.JSON:
        body["json"] = json.loads(post.text)
    elif post.text:
        body["form"] = dict(parse_form(post.text))
    return {**written, "url": address, **body}


API = list_of(
    "api",
    EXAMPLE,
    APIS_MAX,
    schema_of_keys(API_KEYS),
    ApiSource(url=""),
    _api,
    _api_written,
)


# --- validation ---------------------------------------------------------------------------------


def problems_of(
    apis: tuple[ApiSource, ...], items: tuple[ItemRule, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the problems of APIs, except of their URLs: the path of the key, and a message."""
    for place, api in enumerate(apis):
        path = f"api[{place}]"
        if any(api.url == other.url for other in apis[:place]):
            yield f"{path}.url", "another API has the same URL: give each its own"
        if api.links and (error := _problem_of_path(api.links)):
            yield f"{path}.links", error
        if not 1 <= api.pages_max <= PAGES_MAX:
            yield f"{path}.pages", f"{api.pages_max} does not fit: give 1 to {PAGES_MAX:,}"
        if api.paging is not None:
            found = _problems_of_paging(api.paging)
            yield from ((f"{path}.paging{at}", words) for at, words in found)
            if not _has_end(api, api.paging, items):
                fix = "give total, more or links, or an item rule for JSON that matches the URL"
                yield f"{path}.paging", f"nothing shows which page is the last one: {fix}"


# Keys that each kind of paging needs, and keys that it may have.
_NEEDED = {
    PagingBy.CURSOR: ("path", "parameter"),
    PagingBy.PAGE: ("parameter",),
    PagingBy.OFFSET: ("parameter", "step"),
    PagingBy.NEXT: ("path",),
    PagingBy.LINK: (),
}
_COUNTED = frozenset({PagingBy.PAGE, PagingBy.OFFSET})
_FIXES = {
    "path": 'give a JSONPath, like "$.next"',
    "parameter": "give the name of the parameter in the URL",
    "step": "give the number of elements of a page",
}


def _problems_of_paging(paging: Paging) -> Iterator[tuple[str, str]]:
    needed = _NEEDED[paging.by]
    counted = ("start", "step", "total") if paging.by in _COUNTED else ()
    for key in ("path", "parameter", "start", "step", "total"):
        is_given = getattr(paging, key) not in ("", None)
        if not is_given and key in needed:
            yield f".{key}", f"there is none: {_FIXES[key]}"
        elif is_given and key not in (*needed, *counted):
            yield f".{key}", f'paging by "{paging.by}" has none: leave it out'
    for key in ("path", "total", "more"):
        if (path := getattr(paging, key)) and (error := _problem_of_path(path)):
            yield f".{key}", error
    if len(paging.parameter) > PARAMETER_CHARS_MAX or not paging.parameter.isprintable():
        yield ".parameter", f"give 1 to {PARAMETER_CHARS_MAX} printable characters"
    for key, low in (("start", 0), ("step", 1)):
        number = getattr(paging, key)
        if number is not None and not low <= number <= PAGES_MAX:
            yield f".{key}", f"{number} does not fit: give {low} to {PAGES_MAX:,}"


def _has_end(api: ApiSource, paging: Paging, items: tuple[ItemRule, ...]) -> bool:
    if paging.by not in _COUNTED or paging.total or paging.more or api.links:
        return True
    rules = (rule for rule in items if rule.source is ValueSource.JSON and rule.each is not None)
    return any(_matches(rule.match, api.url) for rule in rules)


def _matches(pattern: str, url: str) -> bool:
    try:
        return matches((pattern,), url)
    except ValueError:
        return True  # the problem of the rule is reported elsewhere


def _problem_of_path(path: str) -> str | None:
    # The library is slow to import, and most definitions have no path.
    from orbweaver.extraction.json_path import problem_of

    return problem_of(path)
