"""What commands reach of this machine that ask the web themselves: what a person typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.cli import main
from orbweaver.cli.local_machine import ThisMachine
from tests.sites import graph

DEFINITION = """
seeds = ["{url}/"]
[politeness]
robots = {robots}
[[items]]
name = "page"
match = ".*"
[items.fields.title]
css = "title"
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no emulator run on this machine."""
    monkeypatch.setattr(ThisMachine, "ports", lambda _: frozenset())


def test_robots_reaches_what_was_typed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """A robots.txt that leads to another port is not followed there."""
    with graph.serve_in_background({}) as canary, graph.serve_in_background({}) as site:
        site.scripts["/robots.txt"] = graph.redirect(f"{canary.url}/robots.txt")
        assert main.main(["robots", f"{site.url}/x"]) == 0
        assert site.log.paths() == ["/robots.txt"]
        assert canary.log.paths() == []
    assert "no seed names 127.0.0.1:" in capsys.readouterr().out


@pytest.mark.parametrize("robots", ["true", "false"])
def test_extract_reaches_what_was_typed_alone(
    robots: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page that leads to another port is not followed there, nor is its robots.txt asked for."""
    pages = {"/fine": graph.page("Fine")}
    with graph.serve_in_background({}) as canary, graph.serve_in_background(pages) as site:
        definition = tmp_path / "crawl.toml"
        definition.write_text(DEFINITION.format(url=canary.url, robots=robots))
        site.scripts["/away"] = graph.redirect(f"{canary.url}/away")
        config = ["--config", str(definition)]
        assert main.main(["extract", f"{site.url}/fine", *config]) == 0
        assert main.main(["extract", f"{site.url}/away", *config]) == 2
        assert "/away" in site.log.paths()
        assert canary.log.paths() == []
    assert "no seed names 127.0.0.1:" in capsys.readouterr().err


def test_an_emulator_is_not_asked_though_it_is_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its port is closed to the commands, too."""
    with graph.serve_in_background({}) as site:
        port = int(site.url.rpartition(":")[2])
        monkeypatch.setattr(ThisMachine, "ports", lambda _: frozenset({port}))
        assert main.main(["robots", f"{site.url}/x"]) == 0
        assert site.log.paths() == []
    assert "the stack's own" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:1/", "connection refused"),  # tcpmux: nothing listens there
        ("http://no-such-name.invalid/", "the name no-such-name.invalid "),
        ("http://10.1.2.3/", "10.1.2.3 is private"),
    ],
)
def test_a_start_that_cannot_be_reached_is_said_at_once(
    url: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In words, with exit code 1 whatever --fail-above says, and without an emulator."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ThisMachine, "local", lambda _: None)
    monkeypatch.setattr(ThisMachine, "standing", None)  # which would start one
    assert main.main(["crawl", url, "--fail-above", "100%"]) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"{url} cannot be reached: {why}")
    assert said.err.endswith("nothing was crawled\n")
    assert list(tmp_path.iterdir()) == []
