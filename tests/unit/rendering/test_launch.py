"""The browser that is started, and its options."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from orbweaver.rendering.launch import FENCE, arguments_of, environment_of, find_browser

if TYPE_CHECKING:
    import pytest


def test_arguments_contain_all_fence_flags() -> None:
    words = arguments_of("/usr/bin/chromium", "/profile")
    for flags in FENCE.values():
        assert {*flags} <= {*words}
    opening = ("disable-web-security", "allow-running-insecure", "single-process", "debugging-port")
    assert not [word for word in words if any(one in word for one in opening)]
    assert "--headless=new" in words
    assert "--headless" in arguments_of("/usr/bin/chromium-headless-shell", "/profile")


def test_browser_environment_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    environment = environment_of("/profile")
    assert "secret" not in str(environment)
    assert environment["HOME"] == environment["TMPDIR"] == "/profile"


def test_find_browser_prefers_headless_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"chromium", "chromium-headless-shell"}
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in found else None)
    assert find_browser() == "/usr/bin/chromium-headless-shell"
    found.clear()
    assert find_browser() is None
