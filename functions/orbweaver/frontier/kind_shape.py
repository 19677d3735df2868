"""Compute the shapes of URLs, by which an ordered crawl groups its results.

A *shape* is a tuple of tokens that similar URLs share, such as `/wiki/*?action=edit`
(model/url_kind.py). A *kind* is a shape down to the second folder, with parameter names and with
values that are words.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from orbweaver.frontier.seen_content import text_hash
from orbweaver.model.url_kind import (
    AGAIN,
    ANY,
    DEEPER,
    Shape,
    in_two_folders,
    shape_of,
    values_of,
    varies,
    with_open_id,
)


# More than the links of a page, so that later steps find all its shapes in the cache.
@lru_cache(maxsize=8_192)
def coarse_shape(url: str) -> Shape:
    """Return the shape of a URL down to its second folder."""
    return in_two_folders(shape_of(url))


@lru_cache(maxsize=8_192)
def parts_of(url: str) -> list[tuple[int, int]]:
    """List the parts of a URL that other URLs can have too: position in the shape, and digest.

    The parts are the URL without parameters, the path behind an id, and each variable value. A part
    that another URL has is marked at this position.
    """
    path, question, _ = url.partition("?")
    shape = coarse_shape(url)
    found = [(len(shape), text_hash(path))]
    behind = with_open_id(path)
    if behind is not None:
        found.append((len(shape), text_hash(behind)))
    if question:
        found += [
            (at, text_hash("\0".join((*shape[:at], value, *shape[at + 1 :]))))
            for at, value in values_of(url, shape)
            if value
        ]
    return found


def generalise_folders(shape: Shape) -> Shape:
    """Return a more general shape: with any folders, without marks of repeated values."""
    values = shape[8:-1] if shape[-1] == AGAIN else shape[8:]
    plain = (one.removesuffix(AGAIN) for one in values)
    return (shape[0], DEEPER, "", "", "", "", *shape[6:8], *plain)


def generalise_numbers(shape: Shape) -> Shape:
    """Return a more general shape: with any number, namespace and file type."""
    # A site's program treats such kinds in the same way. Files directly in the first folder,
    # without parameters, are counted separately.
    of_files = () if shape[2] or shape[7] else shape[4:6]
    return (*shape[:3], *of_files, _opened(shape[6]), shape[7], *map(_opened, shape[8:]))


def _opened(token: str) -> str:
    bare = token.removesuffix(AGAIN)
    return ANY + token[len(bare) :] if bare != ANY and varies(bare) else token


def generalise_parts(shape: Shape) -> Shape:
    """Return a more general shape: the same folders, with any name and parameters."""
    return (*shape[:3], DEEPER, "", "", "", "")


def kind_key(shape: Shape) -> str:
    """Return a digest of a kind, from which its URLs cannot be read."""
    text = "\0".join(shape).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=6).hexdigest()


def with_repeat_marks(tokens: set[str]) -> set[str]:
    """Return `tokens`, and also each variable token with the mark of a repeated value."""
    return tokens | {token + AGAIN for token in tokens if varies(token)}
