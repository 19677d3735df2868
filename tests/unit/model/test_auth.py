"""Logins of a definition: references to secrets, origins, and links that end a session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.model import crawl_codec
from orbweaver.model.auth import (
    Login,
    OriginAuth,
    PageCheck,
    absolute,
    auth_for,
    leaves_session,
    login_of_page,
    names_place_over_http,
    problem_at_place,
)
from orbweaver.model.auth_checks import problems_of_auth, with_origins
from orbweaver.model.user_agent import IdentityError
from tests.unit.stage import CRAWL

ORIGIN, PROVIDER = "https://example.org", "https://sso.example.net"
LOGIN = Login(
    url=f"{ORIGIN}/login",
    inputs=(("user", "me"), ("password", "env:P")),
    check=PageCheck(text="Hello"),
)


def auth(**parts: Any) -> tuple[OriginAuth, ...]:
    return (OriginAuth(origin=ORIGIN, **parts),)


@pytest.mark.parametrize(
    "parts",
    [
        {"basic": ("me", "env:P")},
        {"basic": ("env:U", "file:/run/p")},
        {"bearer": "secret:a/b"},
        {"headers": (("X-Key", "ssm:/a"),)},
        {"cookies": "file:cookies.txt"},
        {"login": replace(LOGIN, origins=(PROVIDER,))},
    ],
)
def test_login_with_references_is_valid_and_survives_storage(parts: dict[str, Any]) -> None:
    assert list(problems_of_auth(auth(**parts))) == []
    crawl = replace(CRAWL, auth=auth(**parts))
    assert crawl_codec.from_fields(crawl_codec.to_fields(crawl)) == crawl


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({}, "give one of basic, bearer, header, cookies or login, not none"),
        ({"bearer": "env:T", "cookies": "file:c"}, "not bearer and cookies"),
        ({"bearer": "s3cr3t"}, "bearer: give a reference to the secret: env:NAME"),
        ({"bearer": "env:"}, "bearer: give a reference"),
        ({"bearer": "env:" + "s3cr3t" * 200}, "bearer: give a reference"),
        ({"cookies": "s3cr3t"}, "cookies: give a reference"),
        ({"basic": ("me", "s3cr3t")}, "basic.password: give a reference"),
        ({"basic": ("", "env:P")}, "basic.user: there is none"),
        ({"headers": (("X-Key", "s3cr3t"),)}, "header.X-Key: give a reference"),
        ({"headers": (("Host", "env:H"),)}, "the header Host cannot be given"),
        ({"login": replace(LOGIN, url="")}, "login.url: there is none"),
        ({"login": replace(LOGIN, inputs=())}, "login.fields: there is none"),
        ({"login": replace(LOGIN, inputs=(("pwd", "s3cr3t"),))}, "login.fields.'pwd': give a ref"),
        ({"login": replace(LOGIN, inputs=(("a", "x" * 1_001),))}, "login.fields.'a': it is too"),
        ({"login": replace(LOGIN, inputs=(("a", "x"),) * 31)}, "login.fields: 31 are too many"),
        ({"login": replace(LOGIN, check=PageCheck())}, "login.check: there is none"),
        ({"login": replace(LOGIN, check=PageCheck(url="/me"))}, "login.check: there is none"),
        ({"login": replace(LOGIN, logout="(")}, "login.logout: '(' is not a regular expression"),
        ({"login": replace(LOGIN, lost=PageCheck(url="("))}, "login.lost.url: '(' is not"),
        (
            {"login": replace(LOGIN, origins=("https://o.example/in",))},
            "'https://o.example/in' is no",
        ),
        ({"login": replace(LOGIN, url="ftp://x/")}, "a URL of the login cannot be requested"),
        (
            {"login": replace(LOGIN, check=PageCheck(url="https://o.example/", text="a"))},
            "login.check.url is on another origin",
        ),
    ],
)
def test_unfit_login_has_a_problem_without_its_value(parts: dict[str, Any], error: str) -> None:
    problems = "\n".join(f"{path[1:]}: {text}" for path, text in problems_of_auth(auth(**parts)))
    assert error in problems
    assert "s3cr3t" not in problems


def test_origins_are_canonical_and_unique() -> None:
    given = (OriginAuth(origin="EXAMPLE.org", login=replace(LOGIN, url="/in")),)
    (made,) = with_origins(given, ())
    assert (made.origin, made.login and made.login.url) == (ORIGIN, f"{ORIGIN}/in")
    (plain,) = with_origins(given, ("http://example.org/a",))
    assert plain.origin == "http://example.org"
    with pytest.raises(IdentityError, match="given twice"):
        with_origins((*given, OriginAuth(origin=ORIGIN)), ())
    assert list(problems_of_auth(auth(bearer="env:T") * 51)) == [
        ("", "51 origins are too many: give up to 50")
    ]


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        (f"{ORIGIN}/a", True),
        ("http://example.org/a", False),
        ("https://example.org:8443/a", False),
        ("https://example.org.evil.example/a", False),
    ],
)
def test_login_belongs_to_its_origin_only(url: str, is_own: bool) -> None:
    assert (auth_for(auth(bearer="env:T"), url) is not None) is is_own


@pytest.mark.parametrize(
    ("path", "leaves"),
    [
        ("/logout", True),
        ("/user/log-out/?x=1", True),
        ("/Sign_Out.php", True),
        ("/signoff", True),
        ("/abmelden", True),
        ("/index.php?title=Special:UserLogout&returnto=Main", True),
        ("/index.php?title=Special%3AUserLogout", True),
        ("/do?action=logout", True),
        ("/login", True),
        ("/login?next=/a", True),
        ("/blogouting", False),
        ("/catalogout", False),
        ("/login/help", False),
        ("/signposts", False),
    ],
)
def test_logout_links_are_detected(path: str, leaves: bool) -> None:
    assert leaves_session(auth(login=LOGIN), f"{ORIGIN}{path}") is leaves
    provider = replace(LOGIN, url=f"{PROVIDER}/login", origins=(PROVIDER,))
    assert leaves_session(auth(login=provider), f"{PROVIDER}{path}") is leaves
    assert not leaves_session(auth(bearer="env:T"), f"{ORIGIN}{path}")
    assert not leaves_session(auth(login=LOGIN), f"https://other.example{path}")


@pytest.mark.parametrize(
    ("path", "is_page"),
    [
        ("/index.php?title=Special:Login", True),
        ("/index.php?returnto=A&title=Special%3ALogin", True),
        ("/index.php?title=Article", False),
        ("/index.php?title=Article&next=/", False),
        ("/index.php", False),
    ],
)
def test_login_page_can_be_named_by_its_query(path: str, is_page: bool) -> None:
    login = replace(LOGIN, url=f"{ORIGIN}/index.php?title=Special:Login&next=/")
    assert login.is_page(f"{ORIGIN}{path}") is is_page


def test_logins_by_cookies_leave_sessions_by_logout_links_only() -> None:
    own = auth(cookies="file:c")
    assert leaves_session(own, f"{ORIGIN}/logout")
    assert not leaves_session(own, f"{ORIGIN}/login")


@pytest.mark.parametrize(
    ("login", "body", "may_ask"),
    [
        (LOGIN, b"<input type=PASSWORD>", True),
        (LOGIN, b"<p>page", False),
        (replace(LOGIN, lost=PageCheck(text="Log in")), b"<p>page", True),
        (None, b"<input type=password>", False),
    ],
)
def test_pages_without_password_field_are_not_examined(
    login: Login | None, body: bytes, may_ask: bool
) -> None:
    own = auth(login=login) if login else auth(bearer="env:T")
    assert (login_of_page(own, f"{ORIGIN}/a", body) is not None) is may_ask


@pytest.mark.parametrize(
    ("reference", "stack", "error"),
    [
        ("env:T", None, None),
        ("secret:a", None, None),
        ("ssm:a", None, "ssm: is read by a stack on AWS only"),
        ("secret:Mine/logins/a", "Mine", None),
        ("ssm:/Mine/logins/a", "Mine", None),
        ("env:T", "Mine", "env: is on this machine, where a stack on AWS cannot read it"),
        ("file:t", "Mine", "file: is on this machine"),
        ("secret:/Mine/logins/a", "Mine", "give secret:Mine/logins/NAME"),
        ("ssm:Mine/logins/a", "Mine", "give ssm:/Mine/logins/NAME"),
        ("secret:Mine/logins/", "Mine", "cannot read 'secret:Mine/logins/'"),
        ("secret:Other/logins/a", "Mine", "store it below Mine/logins/"),
    ],
)
def test_reference_must_be_readable_where_the_crawl_runs(
    reference: str, stack: str | None, error: str | None
) -> None:
    why = problem_at_place(auth(bearer=reference), stack)
    assert why is None if error is None else error in (why or "")


def test_request_over_http_names_no_file_or_variable() -> None:
    assert names_place_over_http(auth(basic=("me", "secret:a"))) is None
    assert names_place_over_http(auth(basic=("env:U", "secret:a"))) == "env:"


def test_paths_of_files_become_absolute() -> None:
    inputs = (("user", "me"), ("password", "file:p"))
    login = replace(LOGIN, inputs=inputs)
    (made,) = absolute(auth(login=login), "/home/me/")
    assert made.login is not None
    assert dict(made.login.inputs) == {"user": "me", "password": "file:/home/me/p"}
    (made,) = absolute(auth(basic=("me", "file:/run/p")), "/home/me/")
    assert made.basic == ("me", "file:/run/p")
    assert absolute(auth(bearer="file:t"), "/x/")[0].bearer == "file:/x/t"
    assert absolute(auth(cookies="env:C"), "/x/")[0].cookies == "env:C"
