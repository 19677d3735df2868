"""The guide to webhooks: what it has receivers run verifies what is posted, and nothing else."""

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
    """Run the snippet as it stands in the guide."""
    (snippet,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(snippet, "webhooks.md", "exec"), found)  # noqa: S102 - the guide's own words
    return found["is_genuine"]


def test_what_is_posted_is_genuine(is_genuine: Any) -> None:
    """As it was sent, a moment ago."""
    assert is_genuine(KEY, dict(headers_of(KEY, int(time.time()), BODY)), BODY)


@pytest.mark.parametrize(
    ("key", "ago_s", "body"),
    [(KEY[::-1], 0, BODY), (KEY, 0, BODY + b" "), (KEY, 301, BODY), (KEY, -301, BODY)],
)
def test_what_is_not_is_found_out(is_genuine: Any, key: str, ago_s: int, body: bytes) -> None:
    """Signed by another key, changed on its way, or sent again later."""
    sent = dict(headers_of(key, int(time.time()) - ago_s, BODY))
    assert not is_genuine(KEY, sent, body)


def test_a_time_that_was_changed_is_found_out(is_genuine: Any) -> None:
    """It is signed as well."""
    sent = dict(headers_of(KEY, int(time.time()) - 301, BODY))
    sent["X-Orbweaver-Timestamp"] = str(int(time.time()))
    assert not is_genuine(KEY, sent, BODY)
