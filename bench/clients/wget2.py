"""wget2 with as many threads as the others have requests at once. It keeps all pages as files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.clients.said import arguments, said

# Exit codes with a complete crawl: success, and an error status of a page.
COMPLETE = (0, 8)


def main() -> None:
    asked = arguments()
    program = shutil.which("wget2") or "wget2"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "--quiet", "--recursive", "--level=inf"]
        words += [f"--max-threads={asked.at_once}"]
        words += [f"--ca-certificate={os.environ['SSL_CERT_FILE']}", f"--directory-prefix={folder}"]
        code = subprocess.run([*words, asked.url], check=False).returncode
        if code not in COMPLETE:
            sys.exit(code)
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        got = {"pages": len(files), "bytes": sum(file.stat().st_size for file in files)}
    said(got, {"wget2": version.stdout.split()[2]})


if __name__ == "__main__":
    main()
