"""Has MiniStack (1.5.33) enforce IAM from a signal on: its `AUTH=true` holds from its start.

An emulator that enforces IAM from the start refuses the roles by which the CDK command line
uploads assets. Every check of it reads the one switch anew, and a function gets its role's
credentials when its first process starts.
"""

from __future__ import annotations

import os
import signal


def enforce(_number: int, _frame: object) -> None:
    """Turn the switch."""
    from ministack import app

    app.AUTH = True


if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:  # functions inherit the path
    signal.signal(signal.SIGUSR2, enforce)
