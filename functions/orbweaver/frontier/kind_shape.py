"""Under which shapes the URLs of an ordered crawl are counted, and what they may share.

A kind is the shape of a URL (model/url_kind.py) down to the second folder, and the names of its
parameters with values that are words. What is known of kinds that are like it in something is
looked for under wider shapes.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from orbweaver.frontier.met import text_hash
from orbweaver.model.url_kind import (
    AGAIN,
    ANY,
    DEEPER,
    Shape,
    behind_id,
    in_two_folders,
    shape_of,
    values_of,
    varies,
)


# More than a page has links, so that each step after the first finds the shapes of all of them.
@lru_cache(maxsize=8_192)
def coarse(url: str) -> Shape:
    """Return the shape of a URL down to its second folder; most are looked at a few times."""
    return in_two_folders(shape_of(url))


@lru_cache(maxsize=8_192)
def parts_of(url: str) -> list[tuple[int, int]]:
    """List what a URL may share with another: a digest of each, by the place of its mark.

    Its path, which may be asked for with other parameters; what stands behind an id in it, as the
    same file at another revision does; and each value, as that may name what the page is about.
    """
    path, question, _ = url.partition("?")
    shape = coarse(url)
    found = [(len(shape), text_hash(path))]
    behind = behind_id(path)
    if behind is not None:
        found.append((len(shape), text_hash(behind)))
    if question:
        found += [
            (at, text_hash("\0".join((*shape[:at], value, *shape[at + 1 :]))))
            for at, value in values_of(url, shape)
            if value
        ]
    return found


def everywhere(shape: Shape) -> Shape:
    """Leave the folders of a kind open, and whether its paths were asked for before."""
    values = shape[8:-1] if shape[-1] == AGAIN else shape[8:]
    plain = (one.removesuffix(AGAIN) for one in values)
    return (shape[0], DEEPER, "", "", "", "", *shape[6:8], *plain)


def alike(shape: Shape) -> Shape:
    """Leave numbers and namespaces of a kind open, and what files it is about.

    What a program does to one of them is like what it does to others. Files of a site's first
    folder alone, without parameters, are told apart.
    """
    of_files = () if shape[2] or shape[7] else shape[4:6]
    return (*shape[:3], *of_files, _opened(shape[6]), shape[7], *map(_opened, shape[8:]))


def _opened(token: str) -> str:
    bare = token.removesuffix(AGAIN)
    return ANY + token[len(bare) :] if bare != ANY and varies(bare) else token


def within(shape: Shape) -> Shape:
    """Leave all open but the folders of a kind."""
    return (*shape[:3], DEEPER, "", "", "", "")


def kind_key(shape: Shape) -> str:
    """Name a kind by a digest, which tells nothing of its URLs."""
    text = "\0".join(shape).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=6).hexdigest()


def with_again(tokens: set[str]) -> set[str]:
    """Add to tokens of a place what each is where its value was met before."""
    return tokens | {token + AGAIN for token in tokens if varies(token)}
