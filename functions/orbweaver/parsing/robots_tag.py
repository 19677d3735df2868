"""Parse X-Robots-Tag, the robots directives of an HTTP response."""

from __future__ import annotations

import re

# Directives with a value after a colon. A word before a colon that is not in this list is an
# agent's name.
_VALUED = ("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after")
# Addressees of directives: all crawlers, and this product.
EVERYBODY, PRODUCT = "robots", "orbweaver"
SEPARATORS = re.compile("[,;]")


def wishes_of(
    robots_tag: str, addressees: frozenset[str] = frozenset({EVERYBODY, PRODUCT})
) -> set[str]:
    """Return the directives of an X-Robots-Tag header for these addressees, in lower case."""
    wishes: set[str] = set()
    addressee = EVERYBODY
    for part in SEPARATORS.split(robots_tag.lower()):
        name, colon, directive = part.partition(":")
        if colon and is_agent(name):
            addressee = name.strip()  # also the addressee of the directives that follow
        if addressee in addressees or addressee == "*":
            wishes.add((directive if colon else name).strip())
    return wishes


def is_agent(name: str) -> bool:
    """Whether the word before a colon in X-Robots-Tag is an agent's name, not a directive."""
    # The date of `unavailable_after` contains colons and possibly a comma, but it also contains
    # spaces. An agent's name has none.
    name = name.strip().lower()
    return name not in _VALUED and not any(char in name for char in " ,\t")
