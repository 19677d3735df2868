"""Login forms are filled in as by a browser, and pages are checked for the proof of a login."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from orbweaver.fetching.login_form import (
    PAGE_BYTES_MAX,
    LoginFormError,
    asks_for_login,
    failed_check,
    filled_form,
    is_login_page,
    page_of,
)
from orbweaver.model.auth import Login, PageCheck
from orbweaver.model.http_exchange import Response
from tests.unit.stage import answer

URL = "https://example.com/login?next=/a"
LOGIN = Login(url=URL, inputs=(("user", "me"), ("pass", "env:P")))
VALUES = {"env:P": "s3cr3t & more"}
FIELDS = (
    "<input name=user value=old><input type=password name=pass>"
    '<input type=hidden name=t value="1&2">'
    "<input name=off disabled><input type=checkbox name=keep checked><input type=checkbox name=no>"
    "<input type=radio name=r value=1><input type=radio name=r value=2 checked>"
    "<select name=lang><option value=en>E<option value=de selected>D</select>"
    "<textarea name=note>hi</textarea><button name=go value=in>In</button><button name=x>X</button>"
    "<input type=file name=f><input name=''>"
)


def page(body: str) -> Response:
    return Response(status=200, headers={"content-type": "text/html"}, body=body.encode())


def filled(form: str, login: Login = LOGIN) -> dict[str, object]:
    made = filled_form(page_of(page(form), URL), login, VALUES)
    return {
        "url": made.url,
        "pairs": parse_qsl(made.body.decode(), keep_blank_values=True),
        "hidden": made.hidden,
        "headers": dict(made.headers),
    }


def test_form_is_sent_with_hidden_fields_and_its_first_button() -> None:
    made = filled(f"<form method=POST action='in?x=1'>{FIELDS}</form><form method=post></form>")
    assert made == {
        "url": "https://example.com/in?x=1",
        "pairs": [
            ("user", "me"),
            ("pass", VALUES["env:P"]),
            ("t", "1&2"),
            ("keep", "on"),
            ("r", "2"),
            ("lang", "de"),
            ("note", "hi"),
            ("go", "in"),
        ],
        "hidden": ("t",),
        "headers": {
            "Content-Type": "application/x-www-form-urlencoded",
            "Referer": URL,
            "Origin": "https://example.com",
        },
    }


@pytest.mark.parametrize(
    ("attributes", "url"),
    [
        ("", URL),
        ('action=""', URL),
        ("action=/x", "https://example.com/x"),
        ("action=//o.example/x", "https://o.example/x"),
    ],
)
def test_action_is_relative_to_the_page(attributes: str, url: str) -> None:
    assert filled(f"<form method=post {attributes}>{FIELDS}</form>")["url"] == url


def test_multipart_form_has_one_part_for_each_field() -> None:
    form = "<form method=post enctype=multipart/form-data><input name=user><input name=pass></form>"
    login = Login(url=URL, form="form", inputs=LOGIN.inputs)
    made = filled_form(page_of(page(form), URL), login, VALUES)
    boundary = dict(made.headers)["Content-Type"].partition("multipart/form-data; boundary=")[2]
    lines = made.body.decode().split("\r\n")
    assert lines[:4] == [f"--{boundary}", 'Content-Disposition: form-data; name="user"', "", "me"]
    assert lines[-2:] == [f"--{boundary}--", ""]
    assert VALUES["env:P"] not in repr(made)


@pytest.mark.parametrize(
    ("form", "change", "error"),
    [
        ("<p>no form</p>", {}, "matches nothing on the page"),
        (FIELDS, {}, "is not in a form on the page"),
        (f"<form>{FIELDS}</form>", {}, "the form is sent by GET"),
        (f"<form method=get>{FIELDS}</form>", {}, "the form is sent by GET"),
        (f"<form method=post action=mailto:a@b.c>{FIELDS}</form>", {}, "is not a web URL"),
        (f"<form method=post>{FIELDS}</form>", {"name": "x"}, "has no field 'name': it has f"),
        (f"<form method=post>{FIELDS}</form>", {"pass": "typed"}, "'pass' is a password: give"),
    ],
)
def test_unusable_form_has_a_reason_without_values(
    form: str, change: dict[str, str], error: str
) -> None:
    form = form.replace("<input type=file name=f>", "<input name=f>")
    login = Login(url=URL, inputs=tuple(change.items()) or LOGIN.inputs)
    with pytest.raises(LoginFormError, match=error) as caught:
        filled_form(page_of(page(form), URL), login, VALUES)
    assert "typed" not in str(caught.value)


def test_too_large_page_is_refused() -> None:
    with pytest.raises(LoginFormError, match="more than 524,288 bytes"):
        page_of(page("x" * (PAGE_BYTES_MAX + 1)), URL)


@pytest.mark.parametrize(
    ("check", "status", "error"),
    [
        (PageCheck(selector="b.in"), 200, None),
        (PageCheck(selector="b.in", text="Hello me", cookie="sid", status=200), 200, None),
        (PageCheck(selector="i"), 200, "nothing on the page matches 'i'"),
        (PageCheck(text="Bye"), 200, "the page does not contain the text 'Bye'"),
        (PageCheck(cookie="other"), 200, "there is no cookie 'other'"),
        (PageCheck(status=200), 403, "the page has status 403, not 200"),
        (PageCheck(cookie="sid"), 404, "the page has status 404"),
    ],
)
def test_failed_check_names_its_condition(check: PageCheck, status: int, error: str | None) -> None:
    document = page_of(page("<b class=in>Hello\n me</b>"), URL)
    assert failed_check(check, status, document, frozenset({"sid"})) == error


def test_response_without_page_fails_conditions_on_pages() -> None:
    assert failed_check(PageCheck(text="a"), 200, None, frozenset()) == "the response is not a page"


@pytest.mark.parametrize(
    ("lost", "body", "is_lost"),
    [
        (PageCheck(selector="#in"), "<form id=in>", True),
        (PageCheck(selector="#in"), "<p>page", False),
        (PageCheck(selector="#in", text="Log in"), "<p>Log in", True),
        (PageCheck(url="/in"), "<form id=in>", False),
        (PageCheck(without="a.out"), "<p>page", True),
        (PageCheck(without="a.out"), "<a class=out>out</a>", False),
    ],
)
def test_login_page_is_detected(lost: PageCheck, body: str, is_lost: bool) -> None:
    assert is_login_page(lost, page_of(page(body), URL)) is is_lost


@pytest.mark.parametrize(
    ("lost", "response", "asks"),
    [
        (None, answer(401), True),
        (None, answer(403), False),
        (None, answer(302, location="/login?next=/b"), True),
        (None, answer(302, location="/other"), False),
        (None, answer(302, location="http://"), False),
        (None, answer(200), False),
        (PageCheck(url="^https://sso"), answer(302, location="https://sso.example/x"), True),
        (PageCheck(url="^https://sso"), answer(302, location="/login"), False),
    ],
)
def test_demand_for_login_is_detected(
    lost: PageCheck | None, response: Response, asks: bool
) -> None:
    login = Login(url=URL, lost=lost)
    assert asks_for_login(login, "https://example.com/b", response) is asks
