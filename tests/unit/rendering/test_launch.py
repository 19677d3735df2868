"""Which browser is started, and how."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from orbweaver.rendering.launch import FENCE, arguments_of, environment_of, find_browser

if TYPE_CHECKING:
    import pytest


def test_flags_of_the_fence_are_given() -> None:
    """All of them, and none that opens what is closed."""
    words = arguments_of("/usr/bin/chromium", "/profile")
    for flags in FENCE.values():
        assert {*flags} <= {*words}
    opening = ("disable-web-security", "allow-running-insecure", "single-process", "debugging-port")
    assert not [word for word in words if any(one in word for one in opening)]
    assert "--headless=new" in words
    assert "--headless" in arguments_of("/usr/bin/chromium-headless-shell", "/profile")


def test_a_browser_has_no_environment_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither credentials nor a home."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    environment = environment_of("/profile")
    assert "secret" not in str(environment)
    assert environment["HOME"] == environment["TMPDIR"] == "/profile"


def test_the_headless_shell_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is found where nothing is."""
    found = {"chromium", "chromium-headless-shell"}
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in found else None)
    assert find_browser() == "/usr/bin/chromium-headless-shell"
    found.clear()
    assert find_browser() is None
