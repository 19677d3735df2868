"""Makes MiniStack (1.5.33) enforce IAM once it receives a signal, not from its start (`AUTH=true`).

An emulator that enforces IAM from the start refuses the roles that the CDK command line uses to
upload assets. Each check of MiniStack reads the same switch again, and a function gets its role's
credentials when its first process starts.
"""

from __future__ import annotations

import os
import signal


def enforce(_number: int, _frame: object) -> None:
    from ministack import app

    app.AUTH = True


if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:  # Functions inherit the path.
    signal.signal(signal.SIGUSR2, enforce)
