"""Fill in a login form, and check pages for the proof of a login or for a lost session.

A form is submitted as a browser does it: with its hidden fields and its first button. Its values
are secrets, and no message contains them. Source: HTML Standard, "Constructing the entry list".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from hashlib import blake2b
from typing import TYPE_CHECKING

from ada_url import URLSearchParams

from orbweaver.extraction.document import Document
from orbweaver.extraction.work_budget import TooMuchError
from orbweaver.fetching.response_verdict import CLIENT_ERROR_MIN, REDIRECTS
from orbweaver.model.auth import Login, PageCheck, is_reference
from orbweaver.model.http_exchange import Headers, Response, location_of
from orbweaver.model.url import host_of, resolved
from orbweaver.model.value import value_class
from orbweaver.parsing.page import Page, parse

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

UNAUTHORIZED = 401
PAGE_BYTES_MAX = 512 * 1024
INPUTS_MAX = 500
_URLENCODED, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
# Kinds of inputs that a browser does not send, or sends only if they are checked or clicked.
_UNSENT = frozenset({"reset", "button", "file"})
_BUTTONS = frozenset({"submit", "image"})
_CHECKED = frozenset({"checkbox", "radio"})


class LoginFormError(Exception):
    """A page has no usable login form. The message has the reason and the fix, and no value."""


@value_class
class FilledForm:
    """A form to send. `hidden` are the names of the fields that the page filled in."""

    url: str
    body: bytes = field(repr=False)
    headers: Headers
    hidden: tuple[str, ...]


def page_of(response: Response, url: str) -> Document:
    """Parse a page of a login. Raises LoginFormError if it is too large."""
    # The page is parsed in this process, because its site is trusted with a password.
    body = response.body or b""
    if len(body) > PAGE_BYTES_MAX:
        raise LoginFormError(f"the page has more than {PAGE_BYTES_MAX:,} bytes")
    page = parse(body, url, response.headers.get("content-type"))
    return Document(page, url, frozenset())


def filled_form(document: Document, login: Login, values: Mapping[str, str]) -> FilledForm:
    """Return the login form of a page with the login's fields. Raises LoginFormError.

    `values` has the secret of each reference.
    """
    form = _form_in(document, login.form)
    attributes = form.attributes
    if (attributes.get("method") or "get").strip().lower() != "post":
        raise LoginFormError(
            "the form is sent by GET, which puts passwords into URLs: it needs POST"
        )
    action = (attributes.get("action") or "").strip()
    url: str | None = document.url
    if action:
        url = resolved(action, document.base.url, tracking=frozenset())
    if url is None:
        raise LoginFormError("the form's action is not a web URL")
    inputs = list(_inputs(form))
    names = {name for name, _, _ in inputs}
    for name, value in login.inputs:
        if name not in names:
            has = ", ".join(sorted(filter(None, names))) or "none"
            raise LoginFormError(f"the form has no field {name[:60]!a}: it has {has[:300]}")
        if any(kind == "password" and one == name for one, kind, _ in inputs) and not (
            is_reference(value)
        ):
            raise LoginFormError(f"the field {name[:60]!a} is a password: give a reference to it")
    own = {name: values.get(value, value) for name, value in login.inputs}
    kept = [(name, kind, value) for name, kind, value in inputs if value is not None]
    pairs = [(name, own.get(name, value)) for name, _, value in kept]
    pairs += [(name, value) for name, value in own.items() if name not in dict(pairs)]
    hidden = tuple(name for name, kind, _ in kept if kind == "hidden" and name not in own)
    if (attributes.get("enctype") or "").strip().lower() == _MULTIPART:
        boundary = blake2b(repr(pairs).encode(), digest_size=16).hexdigest()
        body, kind = _multipart(pairs, boundary), f"{_MULTIPART}; boundary={boundary}"
    else:
        parameters = URLSearchParams("")
        for name, value in pairs:
            parameters.append(name, value)
        body, kind = str(parameters).encode(), _URLENCODED
    # Frameworks with protection against forged requests compare these headers.
    sent = (("Content-Type", kind), ("Referer", document.url), ("Origin", host_of(document.url)))
    return FilledForm(url=url, body=body, headers=sent, hidden=hidden)


def _form_in(document: Document, selector: str) -> LexborNode:
    try:
        found = document.select(selector, document.root, itself=False)
    except TooMuchError as error:
        raise LoginFormError("the page is too complex to find its form") from error
    node: LexborNode | None = found[0] if found else None
    while node is not None and node.tag != "form":
        node = node.parent
    if node is None:
        what = "is not in a form" if found else "matches nothing"
        raise LoginFormError(f"form = {selector[:100]!a} {what} on the page: give its selector")
    return node


def _inputs(form: LexborNode) -> Iterator[tuple[str, str, str | None]]:
    """Yield name, kind and value of each field. The value is None if the field is unchecked."""
    clicked = False
    for node in form.css("input, button, select, textarea")[:INPUTS_MAX]:
        attributes = node.attributes
        name = attributes.get("name") or ""
        default = {"input": "text", "button": "submit"}.get(node.tag or "", node.tag or "")
        kind = (attributes.get("type") or default).lower() if node.tag != "select" else "select"
        value: str | None = attributes.get("value") or ""
        if not name or "disabled" in attributes or kind in _UNSENT:
            continue
        if kind in _BUTTONS:
            value, clicked = (None if clicked else value), True
        elif kind in _CHECKED and "checked" not in attributes:
            value = None
        elif kind in _CHECKED:
            value = attributes.get("value") or "on"
        elif kind == "select":
            option = node.css_first("option[selected]") or node.css_first("option")
            given = None if option is None else option.attributes.get("value", option.text())
            value = given or ""
        elif kind == "textarea":
            value = node.text()
        yield name, kind, value


def _multipart(pairs: list[tuple[str, str]], boundary: str) -> bytes:
    lines: list[str] = []
    for name, value in pairs:
        quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        lines += [f"--{boundary}", f'Content-Disposition: form-data; name="{quoted}"', "", value]
    return "\r\n".join([*lines, f"--{boundary}--", ""]).encode()


# --- checks -------------------------------------------------------------------------------------


def failed_check(
    check: PageCheck, status: int, document: Document | None, cookies: frozenset[str]
) -> str | None:
    """Return why a response does not prove a login, or None if it does."""
    if status != check.status if check.status is not None else status >= CLIENT_ERROR_MIN:
        wanted = f", not {check.status}" if check.status is not None else ""
        return f"the page has status {status}{wanted}"
    if check.cookie is not None and check.cookie not in cookies:
        return f"there is no cookie {check.cookie[:60]!a}"
    if check.selector is None and check.text is None:
        return None
    if document is None:
        return "the response is not a page"
    return _missing(check, document)


def _missing(check: PageCheck, document: Document) -> str | None:
    if check.selector is not None and not document.select(
        check.selector, document.root, itself=False
    ):
        return f"nothing on the page matches {check.selector[:100]!a}"
    if check.text is not None and check.text not in document.text(document.root):
        return f"the page does not contain the text {check.text[:100]!a}"
    return None


def is_login_page(lost: PageCheck, document: Document) -> bool:
    """Return True if a page matches one of the conditions of a lost session."""
    alone = (PageCheck(selector=lost.selector), PageCheck(text=lost.text))
    try:
        if any(_missing(one, document) is None for one in alone if one != PageCheck()):
            return True
        kept = PageCheck(selector=lost.without)
        return kept != PageCheck() and _missing(kept, document) is not None
    except TooMuchError:
        return False


def is_page_lost(page: Page, url: str, lost: PageCheck, units_max: int) -> bool:
    return is_login_page(lost, Document(page, url, frozenset(), units_max))


def asks_for_login(login: Login, url: str, response: Response) -> bool:
    """Return True if a response demands a login: by its status, or by a redirect."""
    if response.status in (UNAUTHORIZED, login.lost_page.status):
        return True
    location = location_of(response) if response.status in REDIRECTS else None
    target = resolved(location, url, tracking=frozenset()) if location else None
    return target is not None and login.is_target(target)
