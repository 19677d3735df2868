"""Limits of URLs, beyond which they are taken for those of a trap."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far URLs may go; the settings of the same names."""

    path_segments_max: int = 20
    repeats_max: int = 2
    query_parameters_max: int = 20
    query_chars_max: int = 1_000
    folder_urls_max: int = 100_000
    query_urls_max: int = 10_000


DEFAULT_BOUNDS = Bounds()
