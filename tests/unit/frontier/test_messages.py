"""Bodies of queue messages, valid or invalid."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from orbweaver.frontier.messages import (
    REFERENCE_CHARS_MAX,
    SEEDS_REFERENCES_MAX,
    Close,
    Loose,
    Malformed,
    Message,
    MessageSource,
    Pack,
    SeedsMessage,
    child_id,
    decode,
    encode,
    seeds_of,
)
from orbweaver.model.target import PACK_TARGETS_MAX, Prior, Target, TargetKind
from tests.corpora import corpus

URL = "https://example.com/"
ROW = [URL, 0, 1, 0, -1]
PACK_BODY = {"v": 1, "pack": "p", "crawl": "c", "at": 5, "urls": [ROW], "from": [], "failures": 0}
SEEDS_BODY = {"v": 1, "seeds": "s", "crawl": "c", "at": 5, "urls": [URL], "planned": True}
PACK = Pack(
    id="p",
    crawl="c",
    at_ms=5,
    targets=(
        Target(url=URL + "a", depth=1, referrer=URL),
        Target(url=URL + "b", depth=2, attempt=3, hops=4, referrer=URL),
        Target(url=URL + "c", depth=0, referrer=URL + "d"),
        Target(url=URL, depth=0),
        Target(url=URL + "e", depth=1, prior=Prior(crawl="c-1", at_ms=3)),
        Target(url=URL + "f", depth=1, root=URL),
        Target(url=URL + "h", depth=1, local="http://127.0.0.1:8000"),
        Target(
            url=URL + "g", depth=0, kind=TargetKind.SITEMAP, site=URL, first=7, modified_at_ms=0
        ),
    ),
    failures=2,
)
# Python parses these numbers, but no field accepts them.
TAKEN_AS_NUMBERS = {f"n_number_{name}.json" for name in ("NaN", "infinity", "minus_infinity")}
SEEDS = SeedsMessage(id="s", crawl="c", at_ms=5, references=(URL, " x"), planned=True)


@pytest.mark.parametrize(
    ("body", "crawl", "references"),
    [
        (URL, "default", (URL,)),
        (f"  {URL}\n", "default", (URL,)),
        ("example.com/no scheme", "default", ("example.com/no scheme",)),
        (json.dumps(URL), "default", (URL,)),
        (json.dumps({"url": URL}), "default", (URL,)),
        (json.dumps({"urls": [URL, "b"]}), "default", (URL, "b")),
        (json.dumps({"urls": [URL], "crawl": "news"}), "news", (URL,)),
    ],
)
def test_bare_url_or_object_is_loose(body: str, crawl: str, references: tuple[str, ...]) -> None:
    assert decode(body) == Loose(crawl=crawl, references=references)


@pytest.mark.parametrize("message", [PACK, SEEDS, Loose(crawl="c", references=(URL, "b"))])
def test_encoded_message_is_decoded(message: Pack | SeedsMessage | Loose) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ('""', "empty"),
        ("x" * (REFERENCE_CHARS_MAX + 1), "longer than 8192"),
        ("{", "neither a URL nor valid JSON"),
        ("[" * 100_000, "neither a URL nor valid JSON"),
        ('{"v":' + "[" * 100_000, "neither a URL nor valid JSON"),
        ('{"v":1,"at":' + "9" * 5_000 + "}", "neither a URL nor valid JSON"),
        ("[]", "a URL or a JSON object"),
        ("{}", "either url or urls"),
        ('{"url":"a","urls":["b"]}', "either url or urls"),
        ('{"url":"a","depth":1}', "unknown field 'depth'"),
        ('{"url":7}', "a URL must be a string"),
        ('{"urls":"a"}', "urls must be a list of 1 to 10000 "),
        ('{"urls":[]}', "urls must be a list of 1 to 10000 "),
        ('{"url":"a","crawl":""}', "crawl must be"),
        ('{"url":"a","crawl":7}', "crawl must be"),
        ('{"v":0}', "version 0 is not 1"),
        ('{"v":2.5}', "version 2.5 is not 1"),
        ('{"v":1e400}', "version inf is not 1"),
        ('{"v":"' + "9" * 50 + '"}', "version 99999999999999999999 is not 1"),
        ('{"v":1}', "neither pack, seeds nor close"),
    ],
)
def test_malformed_body_has_reason(body: str, reason: str) -> None:
    """Not JSON, another schema or version, deep nesting, or huge numbers (case 8)."""
    message = decode(body)
    assert isinstance(message, Malformed)
    assert reason in message.reason


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("pack", "", "pack must be"),
        ("pack", "x" * 65, "pack must be a string of 1 to 64"),
        ("pack", "\ud800", "pack must be"),
        ("pack", "line\nbreak", "pack must be"),
        ("crawl", None, "crawl must be"),
        ("crawl", "é", "crawl must be"),
        ("crawl", "site-1#count#0", "crawl must be"),
        ("at", -1, "at must be an integer"),
        ("at", True, "at must be an integer"),
        ("at", 2**53, "at must be an integer"),
        ("at", 1.5, "at must be an integer"),
        ("failures", "1", "failures must be an integer"),
        ("from", {}, "from must be a list"),
        ("urls", {}, "a pack holds 1 to 25 urls"),
        ("urls", [], "a pack holds 1 to 25 urls"),
        ("urls", [ROW] * (PACK_TARGETS_MAX + 1), "a pack holds 1 to 25 urls"),
        ("urls", [URL], "a pack's url row is"),
        ("urls", [[URL, 0, 1, 0]], "a pack's url row is"),
        ("urls", [[7, 0, 1, 0, -1]], "a pack's url row is"),
        ("urls", [[URL, -1, 1, 0, -1]], "a pack's url row is"),
        ("urls", [[URL, 0, 1, 0, -2]], "a pack's url row is"),
        ("urls", [[URL, 0, 1, 0, 0]], "a pack's url row is"),
        ("urls", [[*ROW, 5]], "a pack's url row may end with one object"),
        ("urls", [[*ROW, {}, {}]], "a pack's url row may end with one object"),
        ("urls", [[*ROW, {"prior": ["c"]}]], "prior is [crawl, at]"),
        ("urls", [[*ROW, {"root": 3}]], "root is a URL"),
        ("urls", [[*ROW, {"site": []}]], "site is a URL"),
        ("urls", [[*ROW, {"kind": "feed"}]], "'feed' is not a valid TargetKind"),
        ("urls", [[*ROW, {"first": -1}]], "first is a number from 0"),
        ("urls", [[*ROW, {"modified": True}]], "modified is a number from 0"),
    ],
)
def test_malformed_pack_names_field(field: str, value: object, reason: str) -> None:
    """Every field of a pack is checked (case 8)."""
    message = decode(json.dumps({**PACK_BODY, field: value}))
    assert isinstance(message, Malformed)
    assert reason in message.reason


@pytest.mark.parametrize(
    ("field", "value"),
    [("seeds", 1), ("crawl", []), ("at", None), ("urls", [1]), ("urls", ["a"] * 101)],
)
def test_malformed_seeds_are_detected(field: str, value: object) -> None:
    """Every field of seeds is checked (case 8)."""
    assert isinstance(decode(json.dumps({**SEEDS_BODY, field: value})), Malformed)


def test_messages_of_older_and_newer_releases_are_decoded() -> None:
    """New fields may be missing; unknown fields are ignored (case 26)."""
    old = {key: value for key, value in PACK_BODY.items() if key not in ("failures", "from")}
    pack = Pack(id="p", crawl="c", at_ms=5, targets=(Target(url=URL, depth=0),))
    assert decode(json.dumps(old)) == pack
    assert decode(json.dumps({**PACK_BODY, "later": {"x": 1}})) == pack
    seeds = {key: value for key, value in SEEDS_BODY.items() if key != "planned"}
    assert decode(json.dumps(seeds)) == SeedsMessage(id="s", crawl="c", at_ms=5, references=(URL,))
    assert decode(json.dumps({**SEEDS_BODY, "planned": "yes"})) == decode(json.dumps(seeds))


@pytest.mark.parametrize("odd", ["\x00\x1f\x7f", "\ud800", "\U0001f577", "\ufffe", "é\u2028"])
def test_bodies_are_printable_ascii(odd: str) -> None:
    """SQS accepts every body, and any URL survives the encoding (case 14)."""
    seeds = replace(SEEDS, references=(URL + odd,))
    body = encode(seeds)
    assert body.isascii()
    assert body.isprintable() or "\x7f" in body
    assert decode(body) == seeds


@pytest.mark.parametrize("length", [REFERENCE_CHARS_MAX + 1, 1_000_000])
@pytest.mark.parametrize("shape", ["{}", '"{}"', '{{"url":"{}"}}', '{{"urls":["a","{}"]}}'])
def test_too_long_reference_is_malformed(length: int, shape: str) -> None:
    """A URL of 1 MB never becomes a key or another message (case 15)."""
    assert isinstance(decode(shape.format("x" * length)), Malformed)


@pytest.mark.parametrize("shape", ["{}", '"{}"', '{{"url":"{}"}}', '{{"urls":["{}"]}}'])
def test_reference_of_maximum_length_is_accepted(shape: str) -> None:
    reference = "x" * REFERENCE_CHARS_MAX
    assert decode(shape.format(reference)) == Loose(crawl="default", references=(reference,))


def test_referrer_is_encoded_once() -> None:
    assert encode(PACK).count(f'"{URL}d"') == 1
    assert json.loads(encode(PACK))["from"] == [URL, URL + "d"]


def test_seeds_are_split_into_messages_with_stable_ids() -> None:
    references = [f"{URL}{place}" for place in range(2 * SEEDS_REFERENCES_MAX + 1)]
    cut = seeds_of("origin", "c", references, at_ms=5, planned=True)
    assert [len(message.references) for message in cut] == [100, 100, 1]
    assert [url for message in cut for url in message.references] == references
    assert [message.id for message in cut] == [child_id("origin", place) for place in range(3)]
    assert cut == seeds_of("origin", "c", references, at_ms=5, planned=True)
    assert seeds_of("origin", "c", [], at_ms=5, planned=False) == ()


def test_child_ids_depend_on_parent_and_place() -> None:
    ids = {child_id(parent, place) for parent in ("a", "b") for place in (0, 1, "x")}
    assert len(ids) == 6
    assert child_id("a", 0) == child_id("a", "0")
    assert all(len(name) == 32 for name in ids)


def test_json_corpus_is_classified_without_errors() -> None:
    """The corpus has valid, invalid and ambiguous JSON (case 8)."""
    bodies = sorted(corpus("json").glob("*.json"))
    kinds = Counter(path.name[:2] for path in bodies)
    assert kinds["y_"] >= 95
    assert kinds["n_"] >= 188
    for path in bodies:
        for encoding in ("utf-8", "utf-16", "latin-1"):
            decode(path.read_bytes().decode(encoding, "replace"))
        body = path.read_text(errors="replace").strip()
        message = decode(body)
        if path.name.startswith("y_"):
            assert not is_no_json(message), path.name
        elif path.name.startswith("n_") and body.startswith(("{", "[", '"')):
            assert is_no_json(message) is (path.name not in TAKEN_AS_NUMBERS), path.name
            assert isinstance(message, Malformed), path.name


def is_no_json(message: Message) -> bool:
    """Return True if a message was refused because of its JSON syntax."""
    return isinstance(message, Malformed) and "nor valid JSON" in message.reason


@pytest.mark.parametrize(
    "body",
    [
        encode(Pack(id="p", crawl="c", at_ms=1, targets=(Target(url="https://a.test/", depth=0),))),
        encode(
            SeedsMessage(id="s", crawl="c", at_ms=1, references=("https://a.test/",), planned=True)
        ),
        encode(Close(crawl="c", at_ms=1)),
    ],
    ids=["pack", "seeds", "close"],
)
def test_seed_queue_accepts_only_loose_references(body: str) -> None:
    assert not isinstance(decode(body), Malformed)
    assert isinstance(decode(body, MessageSource.SEEDS), Malformed)


@pytest.mark.parametrize(
    "body", ["https://a.test/", '{"url": "x"}', '{"urls": ["x"], "crawl": "c"}']
)
def test_loose_references_are_equal_from_both_queues(body: str) -> None:
    """Messages on the pack queue must survive an update of the stack."""
    assert decode(body) == decode(body, MessageSource.SEEDS)
    assert isinstance(decode(body), Loose)


@pytest.mark.parametrize(
    ("reference", "count", "messages"),
    [
        ("https://a.test/", 10_000, 100),
        ("é" * 8_000, 60, 5),
        ("\U0001f578" * 8_000, 30, 5),
        ("x" * 8_000, 100, 2),
        ("\x01" * 8_000, 100, 8),
    ],
)
def test_seed_messages_fit_sqs_size_limit(reference: str, count: int, messages: int) -> None:
    seeds = seeds_of("m", "c", [reference] * count, at_ms=1, planned=False)
    assert len(seeds) == messages
    assert sum(len(one.references) for one in seeds) == count
    assert max(len(encode(one)) for one in seeds) < 1024 * 1024
    assert len({one.id for one in seeds}) == messages
