"""Commands that send requests themselves reach only the local server that the user typed."""

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
    """Ensure that no emulator runs on this machine."""
    monkeypatch.setattr(ThisMachine, "ports", lambda _: frozenset())


def test_robots_command_reaches_only_typed_server(capsys: pytest.CaptureFixture[str]) -> None:
    with graph.serve_in_background({}) as canary, graph.serve_in_background({}) as site:
        site.scripts["/robots.txt"] = graph.redirect(f"{canary.url}/robots.txt")
        assert main.main(["robots", f"{site.url}/x"]) == 0
        assert site.log.paths() == ["/robots.txt"]
        assert canary.log.paths() == []
    assert "no seed names 127.0.0.1:" in capsys.readouterr().out


@pytest.mark.parametrize("robots", ["true", "false"])
def test_extract_command_reaches_only_typed_server(
    robots: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = {"/fine": graph.page("Fine")}
    with graph.serve_in_background({}) as canary, graph.serve_in_background(pages) as site:
        definition = tmp_path / "crawl.toml"
        definition.write_text(DEFINITION.format(url=canary.url, robots=robots))
        site.scripts["/away"] = graph.redirect(f"{canary.url}/away")
        config = ["--config", str(definition)]
        assert main.main(["extract", f"{site.url}/fine", *config]) == 0
        assert main.main(["extract", f"{site.url}/away", *config]) == 4
        assert "/away" in site.log.paths()
        assert canary.log.paths() == []
    assert "no seed names 127.0.0.1:" in capsys.readouterr().err


def test_typed_emulator_port_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with graph.serve_in_background({}) as site:
        port = int(site.url.rpartition(":")[2])
        monkeypatch.setattr(ThisMachine, "ports", lambda _: frozenset({port}))
        assert main.main(["robots", f"{site.url}/x"]) == 0
        assert site.log.paths() == []
    assert "the stack's own" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:1/", "connection refused"),  # tcpmux: a closed port
        ("http://no-such-name.invalid/", "the name no-such-name.invalid "),
        ("http://10.1.2.3/", "10.1.2.3 is private"),
    ],
)
def test_unreachable_start_is_reported_at_once(
    url: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ThisMachine, "local", lambda _: None)
    monkeypatch.setattr(ThisMachine, "running_stack", None)  # This would start an emulator.
    assert main.main(["crawl", url, "--fail-above", "100%"]) == 4
    said = capsys.readouterr()
    assert said.err.startswith(f"{url} cannot be reached: {why}")
    assert said.err.endswith("nothing was crawled\n")
    assert list(tmp_path.iterdir()) == []
