"""The CDK app as the command line runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from infra import node
from localstack import deployed

pytestmark = pytest.mark.infra

ROOT = Path(__file__).resolve().parents[2]


def run(context: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the app as the CDK command line does, but without any credentials."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment = {**kept, "CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_synthesis(tmp_path: Path) -> None:
    """The app makes one stack with the real code asset, and says what the asset weighs."""
    done = run({"target": "local", "stack_name": "Mine", "batch_size": "5"}, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "code asset: " in done.stderr
    assert "code asset for files: " in done.stderr
    template = json.loads((tmp_path / "Mine.template.json").read_text())
    assert "CrawlQueueUrl" in template["Outputs"]
    assert template["Metadata"]["Orbweaver"]["Context"] == {"batch_size": "5"}
    assert template["Description"] == deployed.DESCRIPTION
    names = [zipfile.ZipFile(path).namelist() for path in sorted(tmp_path.glob("asset.*.zip"))]
    assert all({"handlers/worker.py", "aiohttp/client.py"} <= set(each) for each in names)
    assert len(names) == len(code_of(template))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_cdk_lists_the_stack_without_credentials_or_venv(tmp_path: Path) -> None:
    """`npx cdk ls` in a set-up checkout: no activated environment, no account, no warning."""
    chosen = node.folder()
    assert chosen is not None
    places = f"{chosen}{os.pathsep}{os.defpath}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    unreachable = {"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path), "PATH": places}
    done = subprocess.run(
        [ROOT / "node_modules" / ".bin" / "cdk", "ls"],
        cwd=ROOT,
        env={**kept, **unreachable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Orbweaver"]
    assert "deprecated" not in done.stderr


def code_of(template: dict[str, Any]) -> set[str]:
    """Name the archives that functions of a template run."""
    return {
        resource["Properties"]["Code"]["S3Key"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
    }


def test_a_wrong_key_is_said_in_one_line(tmp_path: Path) -> None:
    """A key that does not fit ends the app with one line and no traceback."""
    done = run({"allow_addresses": "127.0.0.1/32"}, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("context key allow_addresses=127.0.0.1/32 does not fit: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
