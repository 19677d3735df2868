"""Signatures of webhooks detect any change."""

from __future__ import annotations

import hashlib
import hmac

from hypothesis import assume, given
from hypothesis import strategies as st

from orbweaver.control.webhook import WebhookError, signature_of, webhook_of

keys = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=16, max_size=80)
times = st.integers(0, 2**40)


@given(keys, times, st.binary(max_size=200))
def test_signature_is_hmac_of_time_and_body(key: str, at_s: int, body: bytes) -> None:
    expected = hmac.new(key.encode(), str(at_s).encode() + b"." + body, hashlib.sha256)
    assert signature_of(key, at_s, body) == f"v1={expected.hexdigest()}"


@given(keys, keys, times, times, st.binary(max_size=50), st.binary(max_size=50))
def test_other_key_time_or_body_changes_signature(
    key: str, other: str, at_s: int, then_s: int, body: bytes, said: bytes
) -> None:
    """A dot or digits at the start of the body cannot compensate."""
    assume((key, at_s, body) != (other, then_s, said))
    assert signature_of(key, at_s, body) != signature_of(other, then_s, said)


@given(st.text(max_size=60) | st.from_regex(r"https?:[/\\]{0,3}[a-z.@:0-9\[\]]{0,20}/?.{0,9}"))
def test_any_text_is_stable_webhook_or_error(text: str) -> None:
    try:
        url = webhook_of(text)
    except WebhookError:
        return
    assert webhook_of(url) == url
    assert url.startswith(("https://", "http://"))
    assert "@" not in url.split("/")[2]
    assert "#" not in url
