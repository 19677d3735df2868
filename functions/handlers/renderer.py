"""Pass SQS batches to the worker, in a function with a browser."""

from handlers.worker import handler

__all__ = ["handler"]
