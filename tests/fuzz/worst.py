"""A search for the most expensive page: combined and repeated fragments are measured.

Each page is read in its own process like in a worker: links, text, main text, items. Expensive
pages are changed a little and tried again; the most expensive ones are shown by stage. Sizes
differ, because large pages are read differently.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from orbweaver.extraction.extract import extract
from orbweaver.parsing.main_text import main_text
from orbweaver.parsing.page import parse
from tests.fuzz.targets import ITEM_RULES, TARGETS, URL

MB = 2**20
SIZES = (MB // 8, MB // 2, 2 * MB, 5 * MB)
CPU_S_MAX = 15
KINDS_KEPT, KINDS_SHOWN = 24, 8
# Limits of a page in total: the scale on which seconds and megabytes are compared.
PAGE_S_MAX, PAGE_MB_MAX = 1.0, 200.0
FRAGMENTS = tuple(
    dict.fromkeys(
        fragment
        for name in ("page", "items", "canonicalize", "json-ld", "selector", "redaction")
        for fragment in TARGETS[name].fragments
    )
)
STARTS = (
    *(b"", b"<table>", b"<a href='", b"<base href='", b"<svg>", b"<main>", b"<select>", b"<p x='"),
    *(b'<script type="application/ld+json">', b'<script type="application/ld+json">"', b"<pre>"),
    b'<script type="application/ld+json">{"@type":"Product","offers":[',
)
STAGES: dict[str, Callable[[bytes], object]] = {
    "links": lambda html: parse(html, URL, None),
    "text": lambda html: parse(html, URL, None).text,
    "main text": main_text,
    "items": lambda html: extract(parse(html, URL, None), URL, ITEM_RULES),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A page of a size: a start, and repeated fragments."""

    start: bytes
    fragments: tuple[bytes, ...]
    size: int

    def page(self) -> bytes:
        turn = b"".join(self.fragments)
        return self.start + turn * (self.size // len(turn))

    def changed(self, chance: random.Random) -> Kind:
        fragments = list(self.fragments)
        place = chance.randrange(len(fragments))
        match chance.randrange(5):
            case 0:
                return replace(self, start=chance.choice(STARTS))
            case 1:
                return replace(self, size=chance.choice(SIZES))
            case 2 if len(fragments) > 1:
                del fragments[place]
            case 3:
                fragments[place] = chance.choice(FRAGMENTS)
            case _:
                fragments.insert(place, chance.choice(FRAGMENTS))
        return replace(self, fragments=tuple(fragments[:6]))


def measured(html: bytes, stages: tuple[str, ...] = tuple(STAGES)) -> tuple[float, float]:
    """Return CPU seconds and megabytes to read a page in all stages."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
        before_s, before_kb = time.process_time(), _resident_kb()
        for stage in stages:
            try:
                STAGES[stage](html)
            except Exception as error:  # noqa: BLE001 - the fuzzers look for those
                print(f"{stage}: {error!r}"[:200], file=sys.stderr)
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
        said = [time.process_time() - before_s, grown_kb / 1024]
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    took_s, grown_mb = json.loads(told) if told else (float(CPU_S_MAX), 0.0)
    return took_s, grown_mb


def _resident_kb() -> int:
    """Return the current memory of the process; its peak may be from before."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - no file
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def search(seconds: int, seed: int = 1) -> None:
    chance = random.Random(seed)
    end_s = time.monotonic() + seconds
    kinds = [
        Kind(start, (fragment,), size)
        for start in STARTS
        for fragment in FRAGMENTS
        for size in SIZES[1::2]
    ]
    chance.shuffle(kinds)
    scores: dict[Kind, float] = {}
    tried = 0
    while time.monotonic() < end_s:
        if kinds and (tried < len(FRAGMENTS) or chance.random() < 0.5):
            kind = kinds.pop()
        else:
            kind = chance.choice(list(scores)).changed(chance)
        if kind in scores:
            continue
        tried += 1
        took_s, grown_mb = measured(kind.page())
        scores[kind] = max(took_s / PAGE_S_MAX, grown_mb / PAGE_MB_MAX)
        if len(scores) > KINDS_KEPT:
            del scores[min(scores, key=lambda one: scores[one])]
    print(f"{tried} pages tried; the worst of them:")
    for kind in sorted(scores, key=lambda one: -scores[one])[:KINDS_SHOWN]:
        html = kind.page()
        print(f"{kind.start!r} {kind.fragments!r}, {kind.size / MB:.3g} MB")
        for stage in STAGES:
            took_s, grown_mb = measured(html, (stage,))
            per_mb_s = took_s / (len(html) / MB)
            told = f"{took_s:7.2f} s ({per_mb_s:.2f} s/MB) {grown_mb:7.0f} MB"
            print(f"    {stage:10} {told}", flush=True)
