"""Cookies that a browser exported are narrowed to the host of the login."""

from __future__ import annotations

import json

import pytest

from orbweaver.fetching.cookies import Cookie, header_of
from orbweaver.fetching.cookies_file import CookiesFileError, joined_jar, read_cookies

ORIGIN = "https://wiki.example.org"
NOW_MS = 1_000_000_000_000
NETSCAPE = """# Netscape HTTP Cookie File

#HttpOnly_wiki.example.org\tFALSE\t/\tTRUE\t1900000000\tsid\ts3cr3t
.example.org\tTRUE\t/a\tFALSE\t0\twide\tw
example.org\tFALSE\t/\tFALSE\t0\tparent\tno
other.org\tFALSE\t/\tFALSE\t0\tforeign\tno
wiki.example.org\tFALSE\t/\tFALSE\t999\told\tno
"""
ROWS: list[dict[str, object]] = [
    {"name": "sid", "value": "s3cr3t", "domain": "wiki.example.org", "secure": True}
    | {"expirationDate": 1_900_000_000.5, "path": "/", "hostOnly": True},
    {"name": "wide", "value": "w", "domain": ".example.org", "path": "/a", "expires": -1},
    {"name": "parent", "value": "no", "domain": "example.org", "hostOnly": True},
    {"name": "foreign", "value": "no", "domain": "other.org"},
    {"name": "old", "value": "no", "domain": "wiki.example.org", "expiry": 999},
]


@pytest.mark.parametrize(
    "text", [NETSCAPE, "\ufeff" + NETSCAPE, json.dumps(ROWS), json.dumps({"cookies": ROWS})]
)
def test_cookies_of_the_host_are_read_from_both_formats(text: str) -> None:
    found = read_cookies(text, ORIGIN, NOW_MS)
    assert [one.name for one in found.cookies] == ["sid", "wide"]
    assert (found.expired, found.others) == (1, 2)
    assert all(one.host_only and one.secure for one in found.cookies)
    assert {one.domain for one in found.cookies} == {"wiki.example.org"}
    assert header_of(found.cookies, f"{ORIGIN}/a", NOW_MS) == "wide=w; sid=s3cr3t"
    for elsewhere in ("https://www.example.org/a", "http://wiki.example.org/a"):
        assert header_of(found.cookies, elsewhere, NOW_MS) is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("s3cr3t", "line 1 is not a cookie"),
        ("a\tb\tc\td\ts3cr3t\tf\tg", "line 1 is not a cookie"),
        ("{s3cr3t", "not a JSON list"),
        ('{"a": "s3cr3t"}', "not a JSON list"),
        ('[{"name": "s3cr3t"}]', "cookie 1 has no name, value or domain"),
        ("[5]", "cookie 1 has no name"),
        ("\n" * 10_001 + "x", "line 1 is not a cookie"),
        ("#\n" * 10_001, "it has more than 10,000 lines"),
    ],
)
def test_other_texts_are_refused_without_their_content(text: str, error: str) -> None:
    with pytest.raises(CookiesFileError, match=error) as caught:
        read_cookies(text, ORIGIN, NOW_MS)
    assert "s3cr3t" not in str(caught.value)


def test_unfit_cookies_are_dropped() -> None:
    secure = [{**ROWS[0], "domain": "h.org"}]
    assert read_cookies(json.dumps(secure), "http://h.org", NOW_MS).others == 1
    rows = [
        {"name": name, "value": value, "domain": "h.org"}
        for name, value in (("", "x"), ("a", "x;y"), ("b", "x\ny"), ("c", "v" * 5_000), ("d", "x"))
    ]
    found = read_cookies(json.dumps(rows), "http://h.org", NOW_MS)
    assert ([one.name for one in found.cookies], found.others) == (["d"], 4)


def test_cookies_of_a_file_replace_others_of_the_jar() -> None:
    old = tuple(Cookie(name=f"n{one}", value="old", domain="h.org") for one in range(50))
    new = (Cookie(name="n7", value="new", domain="h.org"),)
    jar = joined_jar(old, new)
    assert len(jar) == 50
    assert [one.value for one in jar if one.name == "n7"] == ["new"]
