"""`python -m localstack up | down | status`, the same as `orbweaver local up | down | status`."""

from __future__ import annotations

import sys

from orbweaver.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["local", *sys.argv[1:]]))
