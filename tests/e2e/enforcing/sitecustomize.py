"""Makes MiniStack (1.5.33) enforce IAM from a signal on; its `AUTH=true` holds from its start.

An emulator that enforces IAM from the start refuses the roles that the CDK command line uses to
upload assets. Each of its checks reads the one switch anew, and a function gets its role's
credentials when its first process starts.
"""

from __future__ import annotations

import os
import signal


def enforce(_number: int, _frame: object) -> None:
    """Enable enforcement."""
    from ministack import app

    app.AUTH = True


if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:  # functions inherit the path
    signal.signal(signal.SIGUSR2, enforce)
