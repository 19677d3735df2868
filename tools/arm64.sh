#!/usr/bin/env bash
# Imports the functions of a default deployment (arm64, Python 3.13) under emulation: each handler, and each
# native module of its asset. Requires apt and root, for qemu-user and Debian's arm64 Python in a folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

place=$PWD/.local/interpreters/arm64
missing=()
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
command -v debootstrap >/dev/null || missing+=(debootstrap)
if ((${#missing[@]})); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
fi
if [[ ! -x $place/debian/usr/bin/python3.13 ]]; then
  rm -rf "$place/debian" && mkdir -p "$place"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)
  debootstrap --foreign --arch=arm64 --variant=minbase --include=python3 trixie "$place/debian" "$mirror" \
    >"$place/debootstrap.log"
  # Only the interpreter is run, so the packages need no set-up.
  for package in "$place"/debian/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$place/debian"; done
fi

make -s setup
rm -rf "$place/out"
CDK_OUTDIR=$place/out .venv/bin/python app.py 2>"$place/synth.log" || { tail -n 5 "$place/synth.log" >&2; exit 1; }
.venv/bin/python - "$place" <<'PY'
import json, subprocess, sys, zipfile
from pathlib import Path

place = Path(sys.argv[1])
template = json.loads((place / "out" / "Orbweaver.template.json").read_text())
functions = {
    name: it["Properties"] for name, it in template["Resources"].items()
    if it["Type"] == "AWS::Lambda::Function" and str(it["Properties"]["Handler"]).startswith("handlers.")
}
assert functions, "the template has no functions"
TRY = """
import importlib, platform, sys
from pathlib import Path
handler, asset = sys.argv[1:]
module, _, name = handler.rpartition(".")
assert callable(getattr(importlib.import_module(module), name))
native = []
for file in sorted(Path(asset).rglob("*.so")):
    package = ".".join([*file.relative_to(asset).parent.parts, file.name.partition(".")[0]])
    importlib.import_module(package)
    native.append(package)
print(f"{handler}: {platform.machine()}, Python {platform.python_version()}, {len(native)} native modules, "
      f"{len(sys.modules)} modules")
"""
for name, it in functions.items():
    assert it["Architectures"] == ["arm64"] and it["Runtime"] == "python3.13", (name, it["Runtime"])
    archive = next((place / "out").glob(f"asset.{it['Code']['S3Key'].removesuffix('.zip')}*"), None)
    assert archive, f"{name} has no asset here"
    folder = archive.with_suffix(".d")
    if not folder.is_dir():
        zipfile.ZipFile(archive).extractall(folder)
    variables = {key: said if isinstance(said, str) else "x" for key, said in it["Environment"]["Variables"].items()}
    variables |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "AWS_REGION": "eu-west-1",
                  "AWS_DEFAULT_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    command = ["qemu-aarch64", "-L", place / "debian", place / "debian/usr/bin/python3.13", "-S", "-c", TRY]
    subprocess.run([*command, it["Handler"], folder], env={"PATH": "/usr/bin:/bin", **variables}, check=True)
PY
