"""Dockerfile and compose.yaml: files exist, commands parse, and services have no rights."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from orbweaver.cli.arguments import parse

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = [name for name, service in SERVICES.items() if service["image"] == "orbweaver"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_image_context_has_each_file_of_the_wheel() -> None:
    kept = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert all((ROOT / name).exists() for name in kept)
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    target = wheel["targets"]["wheel"]
    needed = {Path(path).parts[0] for path in [*target["packages"], *target["force-include"]]}
    assert {*needed, "pyproject.toml", "README.md"} <= kept


def test_last_user_of_each_image_is_not_root() -> None:
    stage = re.compile(r"^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", re.MULTILINE | re.DOTALL)
    stages = dict(stage.findall(DOCKERFILE))
    for target in ("plain", "chromium"):
        assert re.findall(r"^USER (\S+)$", stages[target], re.MULTILINE)[-1] == "10001:10001"
    assert list(stages)[-1] == "plain"


@pytest.mark.parametrize("name", OWN)
def test_command_of_service_parses(name: str) -> None:
    assert parse(SERVICES[name]["command"]).command == SERVICES[name]["command"][0]


@pytest.mark.parametrize("name", SERVICES)
def test_service_has_no_rights_and_only_local_ports(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert service.get("read_only") is True or name == "grafana"
    for volume in service["volumes"]:
        source, _, rest = volume.partition(":")
        if source.startswith("./"):
            assert (ROOT / source).is_file()
            assert rest.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]


def test_scraped_target_is_a_service() -> None:
    settings = yaml.safe_load((ROOT / "docs/grafana/provisioning/prometheus.yml").read_text())
    (job,) = settings["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    name = target.partition(":")[0]
    assert target in SERVICES[name]["command"]
    assert SERVICES[name]["hostname"] == name
    source = yaml.safe_load((ROOT / "docs/grafana/provisioning/datasource.yml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
