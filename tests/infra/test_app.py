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
    """Run the app as the CDK command line does, without credentials."""
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


@pytest.mark.long
@pytest.mark.timeout(300)
def test_cdk_ls_without_credentials_or_venv_synthesizes_the_stack(tmp_path: Path) -> None:
    chosen = node.folder()
    assert chosen is not None
    places = f"{chosen}{os.pathsep}{os.defpath}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    unreachable = {"AWS_EC2_METADATA_DISABLED": "true", "PATH": places}
    options = ("--output", tmp_path, "-c", "stack_name=Mine", "-c", "log_retention_d=5")
    done = subprocess.run(
        [ROOT / "node_modules" / ".bin" / "cdk", "ls", *options],
        cwd=ROOT,
        env={**kept, **unreachable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Mine"]
    assert "deprecated" not in done.stderr
    assert "code asset: " in done.stderr
    assert "code asset for files: " in done.stderr
    template = json.loads((tmp_path / "Mine.template.json").read_text())
    assert "CrawlQueueUrl" in template["Outputs"]
    assert template["Metadata"]["Orbweaver"]["Context"] == {"log_retention_d": "5"}
    assert template["Description"] == deployed.DESCRIPTION
    names = [zipfile.ZipFile(path).namelist() for path in sorted(tmp_path.glob("asset.*.zip"))]
    code = [each for each in names if {"handlers/worker.py", "aiohttp/client.py"} <= set(each)]
    assert len(code) == len(code_of(template))


def code_of(template: dict[str, Any]) -> set[str]:
    return {
        resource["Properties"]["Code"]["S3Key"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function" and "S3Key" in resource["Properties"]["Code"]
    }


def test_invalid_key_is_one_line_error(tmp_path: Path) -> None:
    done = run({"allow_addresses": "127.0.0.1/32"}, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("context key allow_addresses=127.0.0.1/32 is invalid: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
