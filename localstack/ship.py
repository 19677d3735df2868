"""Templates for the wheel, made during its build: `python -m localstack.ship FOLDER`.

A template is synthesized for an emulator, without CDK's additions for its command line. A
placeholder replaces the code of each function; `prebuilt` fills it in.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.asset import FILES_ONLY
from localstack import cdk, layout, prebuilt
from localstack.stack import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Sections of a template that only CDK's command line needs.
LEFT_OUT = ("Parameters", "Rules")


def write(folder: Path) -> None:
    from orbweaver.cli.stack import LOCAL_CONTEXT

    folder.mkdir(parents=True, exist_ok=True)
    contexts = prebuilt.contexts({**CONTEXT, **LOCAL_CONTEXT})
    for place, (name, context) in enumerate(contexts.items(), 1):
        print(f"template {name} ({place} of {len(contexts)})", file=sys.stderr)
        made = {"context": context, "template": template_of(context)}
        text = json.dumps(made, indent=1, sort_keys=True)
        (folder / f"{name}.json").write_text(f"{text}\n")


def template_of(context: Mapping[str, str]) -> dict[str, Any]:
    # An endpoint enables the cache of assemblies. It receives no requests.
    environment = layout.client_environment("http://127.0.0.1:1")
    folder = cdk.synthesize(environment, context, say=lambda text: print(text, file=sys.stderr))
    template = json.loads((folder / prebuilt.TEMPLATE).read_text())
    return reduced(template, lambda key: _libraries(folder / f"asset.{key}"))


def reduced(template: dict[str, Any], libraries: Callable[[str], str]) -> dict[str, Any]:
    """Remove machine-dependent values and CDK's additions. `libraries` maps an archive's key."""
    kept = {key: value for key, value in template.items() if key not in LEFT_OUT}
    kept["Resources"] = {
        name: {key: value for key, value in resource.items() if key != "Metadata"}
        for name, resource in template["Resources"].items()
    }
    for resource in kept["Resources"].values():
        if resource["Type"] == prebuilt.FUNCTION:
            properties = dict(resource["Properties"])
            for key in ("Architectures", "Runtime"):
                del properties[key]
            properties["Code"] = {"S3Key": libraries(properties["Code"]["S3Key"])}
            resource["Properties"] = properties
    return kept


def _libraries(archive: Path) -> str:
    """Return which libraries an asset contains: `runtime` or `files`."""
    with zipfile.ZipFile(archive) as opened:
        return "files" if set(FILES_ONLY) & set(opened.namelist()) else "runtime"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
