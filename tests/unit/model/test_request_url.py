"""POST requests as URLs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.model.request_url import (
    BodyKind,
    PostBody,
    canonical_seed,
    form_body,
    is_canonical_seed,
    is_post,
    json_body,
    parse_form,
    request_url,
    seed_of_line,
    sent_form,
    split_request,
)
from orbweaver.model.url import canonicalize, host_of, is_canonical

URL = "https://example.com/api?a=1"
POST = f"{URL}#POST-json:{{%22q%22:1}}"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_body_is_read_as_written(data: dict[str, Any]) -> None:
    try:
        url = request_url(URL, json_body(data))
    except ValueError:
        return
    address, post = split_request(url)
    assert address == URL
    assert post is not None
    assert json.loads(post.text) == json.loads(json.dumps(data).encode("utf-8", "replace"))
    assert canonical_seed(url, tracking=frozenset()) == url
    assert is_canonical_seed(url)
    assert url.isascii()
    assert not {" ", '"', "?", "/"} & set(url.partition("#")[2])


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9), min_size=1, max_size=3))
def test_form_is_read_as_written(form: dict[str, str]) -> None:
    assert dict(parse_form(form_body(form).text)) == form


def test_links_of_pages_never_become_post() -> None:
    assert canonicalize(POST) == URL
    assert canonicalize("#POST-json:{}", URL) == URL
    assert not is_canonical(POST)


@pytest.mark.parametrize(
    ("reference", "canonical"),
    [
        ("HTTPS://Example.com/api?a=1&utm_source=b#POST-json:{%22q%22:1}", POST),
        (f'{URL}#POST-json:{{"q":1}}', POST),
        (f"{URL}#POST-xml:a", URL),
        (f"{URL}#POST-json", URL),
        (f"{URL}#top", URL),
    ],
)
def test_reference_of_person_keeps_body(reference: str, canonical: str) -> None:
    assert canonical_seed(reference) == canonical
    assert is_canonical_seed(canonical)
    assert not is_canonical_seed(f"{canonical}#") or canonical == URL


def test_parts_are_sent_apart() -> None:
    own = (("Accept-Language", "de"), ("content-type", "text/plain"))
    address, body, headers = sent_form(POST, own)
    assert (address, body) == (URL, b'{"q":1}')
    assert headers == (("Accept-Language", "de"), ("Content-Type", "application/json"))
    assert sent_form(URL, own) == (URL, None, own)
    assert host_of(POST) == "https://example.com"


def test_long_body_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 2,048 characters"):
        request_url(URL, PostBody(BodyKind.FORM, "a" * 2_049))


@pytest.mark.parametrize(
    ("line", "seed"),
    [
        (URL, URL),
        (f'{{"url": "{URL}"}}', URL),
        (f'{{"url": "{URL}", "method": "POST", "json": {{"q": 1}}}}', POST),
        (
            f'{{"url": "{URL}", "form": {{"q": "a b", "n": 1}}}}',
            f"{URL}#POST-form:q%3Da%2Bb%26n%3D1",
        ),
        (f'{{"url": "{URL}", "method": "POST"}}', f"{URL}#POST-form:"),
        ('{"url": 5}', '{"url": 5}'),
        (f'{{"url": "{URL}", "josn": {{}}}}', f'{{"url": "{URL}", "josn": {{}}}}'),
        ('{"url"', '{"url"'),
    ],
)
def test_line_of_seed_list(line: str, seed: str) -> None:
    assert seed_of_line(line) == seed
    assert is_post(seed) is ("#POST" in seed)
