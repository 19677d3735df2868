"""SQS batches to the renderer: the worker's handler, in a function that has a browser."""

from handlers.worker import handler

__all__ = ["handler"]
