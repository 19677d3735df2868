"""The verification snippet of the webhook guide."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from orbweaver.control.webhook import headers_of

GUIDE = (Path(__file__).parents[3] / "docs/webhooks.md").read_text()
KEY = "0123456789abcdef0123456789abcdef"
BODY = b'{"event":"CrawlCompleted","id":"shop-1"}'


@pytest.fixture
def is_genuine() -> Any:
    (snippet,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(snippet, "webhooks.md", "exec"), found)  # noqa: S102 - the guide's own words
    return found["is_genuine"]


def test_posted_webhook_is_genuine(is_genuine: Any) -> None:
    assert is_genuine(KEY, dict(headers_of(KEY, int(time.time()), BODY)), BODY)


@pytest.mark.parametrize(
    ("key", "ago_s", "body"),
    [(KEY[::-1], 0, BODY), (KEY, 0, BODY + b" "), (KEY, 301, BODY), (KEY, -301, BODY)],
)
def test_forged_or_repeated_webhook_is_not_genuine(
    is_genuine: Any, key: str, ago_s: int, body: bytes
) -> None:
    sent = dict(headers_of(key, int(time.time()) - ago_s, BODY))
    assert not is_genuine(KEY, sent, body)


def test_changed_timestamp_is_not_genuine(is_genuine: Any) -> None:
    sent = dict(headers_of(KEY, int(time.time()) - 301, BODY))
    sent["X-Orbweaver-Timestamp"] = str(int(time.time()))
    assert not is_genuine(KEY, sent, BODY)
