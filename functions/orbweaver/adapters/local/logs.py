"""Write log events of this machine's processes to the standard error, as text or JSON.

A line of text has the time (UTC), the level, the event and its fields: `12:00:00 WARNING
proxy.quarantined strikes=1`. A line of JSON has the members that it has on AWS.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

LEVELS, FORMATS = ("debug", "info", "warning", "error"), ("text", "json")
# Variables for the worker processes of a command.
LEVEL, FORMAT = "ORBWEAVER_LOG_LEVEL", "ORBWEAVER_LOG_FORMAT"

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class TextFormatter(logging.Formatter):
    """Formats an event with its fields as one line, which cannot control a terminal."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of logging
        fields = {key: value for key, value in vars(record).items() if key not in _OWN}
        shown = (f" {key}={json.dumps(value, default=str)}" for key, value in fields.items())
        return super().formatMessage(record) + "".join(shown)


@contextmanager
def logging_to_stderr(environment: Mapping[str, str]) -> Iterator[None]:
    """Write events of Orbweaver to the standard error, configured by variables in `environment`.

    Default: warnings and errors, as text.
    """
    handler = logging.StreamHandler(sys.stderr)
    if environment.get(FORMAT) == "json":
        from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

        handler.setFormatter(LambdaPowertoolsFormatter())
    else:
        handler.setFormatter(TextFormatter())
    logger = logging.getLogger("orbweaver")
    before = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(environment.get(LEVEL, "warning").upper())
    try:
        yield
    finally:
        logger.handlers, logger.level, logger.propagate = before
