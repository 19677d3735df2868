"""Split long work into slices, so that its caller can run other tasks between them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

T = TypeVar("T")
Given = ParamSpec("Given")
Result = TypeVar("Result")

# URLs per slice. Most steps take 10 to 40 us per URL. A page or a part of a sitemap can have
# thousands of links, and a function on AWS has a fifth of a core.
SLICE_URLS = 250
# Packs (batches of up to 25 URLs) per slice, which hold as many URLs.
SLICE_PACKS = 10


def sliced(items: Sequence[T], size: int = SLICE_URLS) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def unpaused(work: Callable[Given, Generator[None, None, Result]]) -> Callable[Given, Result]:
    """Return a function that runs all slices of `work` without pauses."""

    @wraps(work)
    def call(*args: Given.args, **options: Given.kwargs) -> Result:
        slices = work(*args, **options)
        while True:
            try:
                next(slices)
            except StopIteration as end:
                result: Result = end.value
                return result

    return call
