"""Texts for the changes that canonicalization makes to a URL."""

from __future__ import annotations

import pytest

from orbweaver.diagnostics.url_changes import changes

BASE = "https://example.com/a/b"


@pytest.mark.parametrize(
    ("reference", "base", "said"),
    [
        ("https://example.com/", None, ()),
        ("https://example.com/a?b=%C3%A9", None, ()),
        ("HTTP://example.com/", None, ("scheme in lower case",)),
        ("http://EXAMPLE.com/", None, ("host in lower case",)),
        ("http://bücher.example/", None, ("host by the rules of IDNA: xn--bcher-kva.example",)),
        ("http://0x7f.1/", None, ("host read as the address 127.0.0.1",)),
        ("http://[::FFFF:1.2.3.4]/", None, ("host read as the address [::ffff:102:304]",)),
        ("http://example.com:80/", None, ("port 80 dropped: it is the scheme's own",)),
        ("http://example.com:/", None, ("empty port dropped",)),
        ("http://example.com:8080/", None, ()),
        ("http://u:p@example.com/", None, ("user name and password dropped",)),
        ("http://example.com", None, ("empty path written as /",)),
        ("http://example.com/a/../b", None, ("dot segments resolved",)),
        ("http://example.com/%2e", None, ("dot segments resolved",)),
        ("http://example.com\\a", None, ("backslashes read as slashes",)),
        ("http://example.com/a b", None, ("characters escaped",)),
        ("http://example.com/?é", None, ("characters escaped",)),
        ("http://example.com/#x", None, ("fragment dropped",)),
        (" http://example.com/\n", None, ("spaces and control characters around it dropped",)),
        ("http://exam\tple.com/", None, ("tabs and line breaks within it dropped",)),
        (
            "http://example.com/x;jsessionid=1?utm_id=2&a=3&gclid=4",
            None,
            (
                "parameter jsessionid taken out",
                "parameter utm_id taken out",
                "parameter gclid taken out",
            ),
        ),
        ("c", BASE, (f"resolved against {BASE}",)),
        ("https:c", BASE, (f"resolved against {BASE}",)),
        ("//example.com/c", BASE, (f"resolved against {BASE}",)),
        ("http://example.com/c", BASE, ()),
    ],
)
def test_each_change_has_its_sentence(
    reference: str, base: str | None, said: tuple[str, ...]
) -> None:
    assert changes(reference, base) == said


def test_tracking_parameters_of_crawl_are_used() -> None:
    url = "https://example.com/?ref=1&utm_id=2"
    assert changes(url, tracking=frozenset({"ref"})) == ("parameter ref taken out",)


def test_invalid_reference_raises() -> None:
    with pytest.raises(ValueError, match="not an absolute URL"):
        changes("x")
