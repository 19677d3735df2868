"""Redact personal data: e-mail addresses and phone numbers become `[email]` and `[phone]`.

Redacting a text twice changes nothing more. A text without matches is returned unchanged. RE2 finds
candidates in linear time, and each candidate is then checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from html import unescape
from itertools import pairwise
from typing import Any

from orbweaver.model.url_patterns import automaton

EMAIL, PHONE = "email", "phone"
KINDS = (EMAIL, PHONE)
# Limit of RE2's memory per pattern.
MEMORY_BYTES = 16 * 1024 * 1024
# Maximum number of candidates of each pattern per text. Checking one takes 3 to 10 us. The text
# after the last one is removed.
JUDGED_MAX = 30_000
LEFT_OUT = b"[the rest is left out: too many addresses and numbers]"

# --- addresses ----------------------------------------------------------------------------------

_ESCAPE = (
    rb"&#(?:[0-9]{1,7}|[xX][0-9A-Fa-f]{1,6});?|&(?:period|lowbar|plus|hyphen|dash|shy|zwnj|zwj);"
    rb"|%(?:25){0,3}[0-9A-Fa-f]{2}|\\(?:u00|x)[0-9A-Fa-f]{2}"
)
_AT = (
    rb"(?:@|\x{ff20}|&#0{0,5}64;?|&#[xX]0{0,4}40;?|&commat;|%(?:25){0,3}40|\\(?:u00|x)40"
    rb"|%EF%BC%A0|&#65312;)"
)
_AT_SIGN = re.compile(_AT.replace(rb"\x{ff20}", rb"\xef\xbc\xa0"))
_DOT = (
    rb"(?:\.|\x{3002}|&#0{0,5}46;?|&#[xX]0{0,4}2[eE];?|&period;|%(?:25){0,3}2[eE]"
    rb"|\\(?:u00|x)2[eE])"
)
# An e-mail address is letters, digits and `._+-~!$*^|`, an at sign, and a domain with a dot and a
# top level of two letters or more. HTML, percent and JavaScript escapes are recognized, so
# `mailto:` references are redacted as well. Not redacted: obfuscated addresses ("jo at example dot
# org"), quoted ones ("jo b"@…), addresses split by tags, versions (`react@18.2.0`).

# Scripts without spaces between words. In them, the text directly before an address is not a part
# of it.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_SPACED_LETTER = rf"[^\P{{L}}{_UNSPACED}]".encode()
_MARKS = (b"@", b"\xef\xbc\xa0", b"64", b"40", b"commat", b"%EF%BC%A0", b"65312")
# Suffixes that are no top-level domain. Images for dense screens are called `name@2x.png`.
_IMAGES = (b".png", b".jpg", b".jpeg", b".gif", b".webp", b".avif", b".svg", b".bmp", b".ico")


def _address(letter: bytes) -> bytes:
    label = rb"(?:" + letter + rb"|[\p{N}\p{M}_-]|" + _ESCAPE + rb")"
    local = rb"(?:" + letter + rb"|[\p{N}\p{M}._+~!$*^|-]|" + _ESCAPE + rb")"
    top = rb"(?:xn--[0-9A-Za-z-]{2,}|(?:" + letter + rb"|" + _ESCAPE + rb"){2,})"
    return local + rb"+" + _AT + label + rb"+(?:" + _DOT + label + rb"+)*" + _DOT + top


# The first pattern does not match letters of `_UNSPACED`, so the second pattern finds addresses
# with such letters.
_ADDRESSES = (_address(_SPACED_LETTER), _address(rb"\p{L}"))


def _email(found: Any) -> bytes:
    address: bytes = found.group()
    image = address.lower().endswith(_IMAGES) and len(_AT_SIGN.findall(address)) == 1
    return address if image else b"[email]"


# --- phone numbers ------------------------------------------------------------------------------

# A phone number is a run of digits, with single spaces, dots, hyphens, slashes or parentheses
# between them, and no letter, digit or `-_/=%` next to it.
_DIGIT = rb"(?:[0-9]|&#0{0,5}(?:4[89]|5[0-7]);|&#[xX]0{0,4}3[0-9];)"
_PLUS = rb"(?:\+|\x{ff0b}|&#0{0,5}43;|&#[xX]0{0,4}2[bB];|&plus;|%2[bB])"
_SPACE = (
    rb"(?:[ \x{a0}\x{2009}\x{202f}]|&nbsp;|&thinsp;|&#(?:160|8201|8239|x[aA]0|x202[fF]);|%20"
    rb"|%C2%A0)"
)
_DASH = rb"(?:[-\x{2010}-\x{2013}]|&[nm]dash;|&#(?:8208|8209|8210|8211|x201[0-3]);)"
_BETWEEN = b"(?:" + _SPACE + b"?(?:[()]{1,2}|" + _DASH + b")" + _SPACE + b"?|[./]|" + _SPACE + b")"
_RUN = b"(?:" + _PLUS + _SPACE + rb"?)?\(?" + _DIGIT + b"(?:" + _BETWEEN + b"?" + _DIGIT + b"){5,}"
_LABEL = (
    rb"(?i:telephone|telefone?|t\x{e9}l\x{e9}phone|tel\x{e9}fono|telefono|t\x{e9}l|tel|tlf|phone"
    rb"|fax|mobile|mobil|m\x{f3}vil|handy|cell|hotline|whatsapp)[.:]{1,2}"
)
_NUMBER = rb"(^|[^\p{L}\p{N}])(" + _LABEL + _SPACE + rb"?)?(" + _RUN + b")"
# Uses Python's `re` with possessive quantifiers, because RE2 takes 0.5 us a byte to locate groups.
_REFERENCE = re.compile(
    rb"\b((?:tel|callto|sms|fax):(?://)?|wa\.me/)"
    rb"((?:[-+0-9A-Za-z().*#%;=_/~]|(?:[ ]|\xc2\xa0)[-+(0-9]|&#?[0-9A-Za-z]{1,8};){3,80}+)",
    re.IGNORECASE,
)
_REFERENCE_MARKS = (b"tel:", b"callto:", b"sms:", b"fax:", b"wa.me/")
# Characters next to a run of digits that is no phone number. A "]" can be the end of a redaction,
# which must not be redacted again.
_BEFORE, _AFTER = frozenset(b"].-_/=%@#~$&+*\\"), frozenset(b"-_=%@#~$*")
_CLOCK = frozenset({b"]"} | {b"%d" % digit for digit in range(10)})

_GROUP = re.compile(r"[0-9]+")
_DAY, _MONTH = "(?:0?[1-9]|[12][0-9]|3[01])", "(?:0?[1-9]|1[0-2])"
_DATE = re.compile(
    rf"[0-9]{{4}}[-./][0-9]{{2}}[-./][0-9]{{2}}"
    rf"|(?:{_DAY}([-./]){_MONTH}\1|{_MONTH}([-./]){_DAY}\2)(?:[0-9]{{4}}|[0-9]{{2}})(?![-./]?[0-9])"
)
_AREA = re.compile(r"\((?!(?:19|20)[0-9]{2}\))[0-9]{2,5}\)")
_AMERICAN = re.compile(
    r"(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[-.])[2-9][0-9]{2}[-.][0-9]{4}"
)
_CHINESE = re.compile(r"1[3-9][0-9]([ -])[0-9]{4}\1[0-9]{4}")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014", "-"))
DIGITS_MIN, DIGITS_MAX = 8, 15
NATIONAL_MIN, NATIONAL_MAX = 9, 13
SAID_MIN, REFERENCE_MIN = 6, 3
TWO, PAIRS = 2, 5


def _is_phone(run: str, *, said: bool) -> bool:
    """Return True if a run of digits is a phone number. `said`: a label ("Tel.") precedes it.

    Phone numbers are: international (`+` or `00` and 8 to 15 digits), labelled (6 to 15 digits),
    with an area code in parentheses that is not a year (8 to 13 digits), North American (3-3-4),
    Chinese (3-4-4), or national with a 0. Prices, years, IP addresses, versions, ISBNs and ISSNs
    have other groups. Numbers without `+`, 0 or a label (`912 345 678`) are ambiguous and not
    redacted.
    """
    groups = _GROUP.findall(run)
    digits = "".join(groups)
    count = len(digits)
    if run.startswith("+"):
        return DIGITS_MIN <= count <= DIGITS_MAX and digits[0] != "0"
    if said:
        return SAID_MIN <= count <= DIGITS_MAX
    if _DATE.match(run):
        return False
    if run.startswith("00"):
        long_enough = DIGITS_MIN + 2 <= count <= DIGITS_MAX + 2
        return long_enough and len(groups) > 1 and digits[2] != "0"
    if _AREA.match(run) and DIGITS_MIN <= count <= NATIONAL_MAX:
        return True
    return bool(_AMERICAN.fullmatch(run) or _CHINESE.fullmatch(run)) or _is_national(run, groups)


def _is_national(run: str, groups: list[str]) -> bool:
    """Whether digits begin with a single 0, and their groups are usual for phone numbers."""
    lengths = [len(group) for group in groups]
    if groups[0][0] != "0" or groups[0][:2] == "00" or len(groups) == 1:
        return False
    # ISBNs and EANs begin with a group that is only a 0.
    if lengths[0] == 1 or not NATIONAL_MIN <= sum(lengths) <= NATIONAL_MAX:
        return False
    # Five digits, a hyphen and four digits are a postal code.
    if len(groups) == TWO:
        return "." not in run and not (lengths == [5, 4] and "-" in run)
    # Pairs of digits are French numbers, unless each pair is one more than the previous pair.
    if set(lengths) == {TWO}:
        steps = {int(two) - int(one) for one, two in pairwise(groups)}
        return len(groups) == PAIRS and steps != {1}
    # This excludes rows of small numbers, and IP addresses with leading zeros.
    return max(lengths) > TWO and lengths != [3, 3, 3, 3]


def _normalized(run: bytes) -> str:
    text = _PERCENT.sub(lambda found: chr(int(found[1], 16)), run.decode("utf-8", "replace"))
    return " ".join(unescape(text).replace("\uff0b", "+").translate(_DASHES).split())


def _phone(found: Any) -> bytes:
    """Replace a run of digits if it is a separate phone number, and not part of a time of day."""
    html, (start, end) = found.string, found.span(3)
    before, after = html[start - 1 : start] if start else b"", html[end : end + 1]
    whole, run = found.group(), found.group(3)
    if run[:1] == b"(" and b")" not in run:  # the parenthesis surrounds the whole run
        run = run[1:]
    said = found.group(2) is not None
    plus = not run[:1].isdigit() and run[:1] != b"("
    if before and before[0] in _BEFORE and not said and not (plus and before in b"=/"):
        return bytes(whole)
    clock = before == b":" and not plus and html[start - 2 : start - 1] in _CLOCK
    if clock or (after and (after[0] in _AFTER or after.isalnum())):
        return bytes(whole)
    phone = _is_phone(_normalized(run), said=said)
    return bytes(whole[: len(whole) - len(run)]) + b"[phone]" if phone else bytes(whole)


def _reference(found: Any) -> bytes:
    """Replace the number in a `tel:`, `sms:` or `wa.me/` reference if it has enough digits."""
    held: bytes = found.group(2)
    digits = sum(byte in b"0123456789" for byte in held)
    return found.group(1) + b"[phone]" if digits >= REFERENCE_MIN else bytes(found.group())


# --- both ---------------------------------------------------------------------------------------


def redact(text: str, kinds: Collection[str]) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    done = redact_bytes(raw, kinds)
    return text if done == raw else done.decode("utf-8", "surrogatepass")


def redact_bytes(html: bytes, kinds: Collection[str]) -> bytes:
    """Redact a page or text in UTF-8. `kinds`: `email`, `phone`.

    Tags and quotes are not changed.
    """
    if EMAIL in kinds and any(mark in html for mark in _MARKS):
        for pattern in _ADDRESSES:
            html = _replaced(_compiled(pattern), _email, html)
    if PHONE in kinds:
        plain = html.lower()
        if any(mark in plain for mark in _REFERENCE_MARKS):
            html = _replaced(_REFERENCE, _reference, html)
        html = _replaced(_compiled(_NUMBER), _phone, html)
    return html


def _replaced(pattern: Any, replace: Callable[[Any], bytes], html: bytes) -> bytes:
    """Replace the matches of a pattern. The text after `JUDGED_MAX` matches is removed."""
    pieces: list[bytes] = []
    end = 0
    for place, found in enumerate(pattern.finditer(html)):
        if place == JUDGED_MAX:
            return b"".join([*pieces, LEFT_OUT])
        start, behind = found.span()
        pieces += html[end:start], replace(found)
        end = behind
    return b"".join([*pieces, html[end:]]) if pieces else html


@lru_cache(maxsize=8)
def _compiled(pattern: bytes) -> Any:
    return automaton(pattern, MEMORY_BYTES)
