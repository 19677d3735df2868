"""Queue bodies: round trips, and a decoder that never raises."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.envelope import CRAWL_ID_CHARS_MAX, Newer
from orbweaver.frontier.messages import (
    Loose,
    Malformed,
    MessageSource,
    Pack,
    SeedsMessage,
    decode,
    encode,
    seeds_of,
)
from orbweaver.model.target import PACK_TARGETS_MAX, Target, TargetKind

# Lone surrogates are valid in Python texts and in JSON.
ANY_TEXT = st.text(st.characters(codec=None), max_size=40)
IDS = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=64)
CRAWLS = st.text(string.ascii_lowercase + ".-", min_size=1, max_size=CRAWL_ID_CHARS_MAX)
MOMENTS = st.integers(0, 2**53 - 1)
TARGETS = st.builds(
    Target,
    url=ANY_TEXT,
    depth=st.integers(0, 1_000),
    attempt=st.integers(0, 10),
    hops=st.integers(0, 10),
    referrer=st.none() | ANY_TEXT,
    root=st.none() | ANY_TEXT,
    modified_at_ms=st.none() | MOMENTS,
    kind=st.sampled_from(TargetKind),
    site=st.none() | ANY_TEXT,
    first=st.integers(0, 50_000),
)
PACKS = st.builds(
    Pack,
    id=IDS,
    crawl=CRAWLS,
    at_ms=MOMENTS,
    targets=st.lists(TARGETS, min_size=1, max_size=PACK_TARGETS_MAX).map(tuple),
    failures=st.integers(0, 1_000),
    requeues=st.integers(0, 1_000),
)
LATE = st.builds(
    replace, PACKS, late=st.just(value=True), place=st.sampled_from(["1.000002.a", "6.x"])
)
REFERENCES = st.lists(ANY_TEXT, min_size=1, max_size=100).map(tuple)
SEEDS = st.builds(
    SeedsMessage, id=IDS, crawl=CRAWLS, at_ms=MOMENTS, references=REFERENCES, planned=st.booleans()
)
LOOSE = st.builds(Loose, crawl=CRAWLS, references=REFERENCES)
MESSAGES = PACKS | LATE | SEEDS | LOOSE

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
KEYS = st.sampled_from(["v", "pack", "seeds", "crawl", "at", "urls", "url", "from", "failures"])
JSON: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS | ANY_TEXT, inner), max_leaves=20
)
KNOWN_TYPES = Pack | SeedsMessage | Loose | Malformed | Newer
# Bodies of a later release, in any layout.
LATER = st.dictionaries(KEYS | ANY_TEXT, JSON).map(dict)


@given(MESSAGES)
def test_message_survives_encoding(message: Pack | SeedsMessage | Loose) -> None:
    assert decode(encode(message)) == message


@given(MESSAGES)
def test_body_has_characters_allowed_by_sqs(message: Pack | SeedsMessage | Loose) -> None:
    assert all(" " <= character <= "\x7f" for character in encode(message))


@given(ANY_TEXT)
def test_any_text_is_decoded(body: str) -> None:
    assert isinstance(decode(body), KNOWN_TYPES)


@pytest.mark.thorough
@given(JSON)
def test_any_json_is_decoded(value: Any) -> None:
    assert isinstance(decode(json.dumps(value)), KNOWN_TYPES)


@pytest.mark.thorough
@given(PACKS | SEEDS, KEYS, JSON)
def test_message_with_replaced_field_is_decoded(
    message: Pack | SeedsMessage, key: str, value: Any
) -> None:
    assert isinstance(decode(json.dumps({**json.loads(encode(message)), key: value})), KNOWN_TYPES)


@pytest.mark.thorough
@given(LATER, st.integers(2, 2**53 - 1))
def test_body_of_newer_version_is_newer(raw: dict[str, Any], version: int) -> None:
    body = json.dumps({**raw, "v": version})
    assert isinstance(decode(body), Newer)
    assert isinstance(decode(body, MessageSource.SEEDS), Malformed)


@given(PACKS | SEEDS, st.data())
def test_truncated_body_is_malformed(message: Pack | SeedsMessage, data: st.DataObject) -> None:
    body = encode(message)
    end = data.draw(st.integers(1, len(body) - 1))
    assert isinstance(decode(body[:end]), Malformed)


@given(st.integers(1, 2_000), st.sampled_from(["[", '{"v":', '{"urls":[', '{"v":1,"pack":[']))
def test_nesting_of_any_depth_is_decoded(depth: int, opening: str) -> None:
    closing = {"[": "]", "{": "}"}
    text = opening * depth
    text += "0" + "".join(closing[sign] for sign in reversed(text) if sign in closing)
    assert isinstance(decode(text), KNOWN_TYPES)


@given(st.lists(ANY_TEXT, max_size=350), IDS, MOMENTS, st.booleans())
def test_split_seeds_keep_references_in_order(
    references: list[str], origin: str, at_ms: int, planned: bool
) -> None:
    cut = seeds_of(origin, "c", references, at_ms=at_ms, planned=planned)
    assert [reference for message in cut for reference in message.references] == references
    assert len({message.id for message in cut}) == len(cut)
