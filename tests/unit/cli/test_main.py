"""The console script with real streams and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from orbweaver.cli import main

NOBODY = "http://127.0.0.1:1/"  # tcpmux: no server listens there


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_console_script_runs_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["url", "HTTP://EXAMPLE.com"]) == 0
    assert capsys.readouterr().out.startswith("http://example.com/\n")


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), ([], 2), (["url", "x"], 2)])
def test_exit_code_of_version_is_0_and_of_no_command_2(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(words) == code
    assert bool(capsys.readouterr().err) == bool(code)


def test_robots_uses_guarded_web(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["robots", NOBODY]) == 0
    assert "unreachable, so nothing is allowed" in capsys.readouterr().out


def test_sigterm_unwinds_like_ctrl_c() -> None:
    main.main(["url", NOBODY])
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_closed_output_ends_quietly_like_sigpipe(unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    more = {"PYTHONUNBUFFERED": unbuffered}
    script = "import sys; from orbweaver.cli.main import main; sys.exit(main(['url', 'http://a/']))"
    with os.fdopen(writer, "w") as out:
        ended = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more},
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, b"")


BACKGROUND = """
import asyncio, os, signal, sys
from orbweaver.cli import main

async def work():
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(0)
    print("ignored", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()

def run(*_):
    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        return 130

main.run = run
sys.exit(main.main([]))
"""


def test_background_command_of_script_unwinds_on_sigterm() -> None:
    """Shells start such commands with SIGINT ignored."""
    ended = subprocess.run(
        ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", BACKGROUND],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "ignored\n", "")
