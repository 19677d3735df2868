"""Define limits beyond which a URL looks like a crawler trap."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """URL limits, each also a setting of the deployment (model/settings.py)."""

    path_segments_max: int = 20
    repeats_max: int = 2
    query_parameters_max: int = 20
    query_chars_max: int = 1_000
    folder_urls_max: int = 100_000
    query_urls_max: int = 10_000


DEFAULT_BOUNDS = Bounds()
