"""Forged message bodies of a sender with write access to the seed queue only.

Some imitate packs, ends of crawls, planned seeds of a running crawl, or ids and keys of other
tables. Others are no valid message, or honest seeds. Each body lists the URLs that may be claimed
because of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from orbweaver.frontier.messages import Close, Pack, SeedsMessage, child_id, encode
from orbweaver.model.target import Target

CRAWLS: tuple[Any, ...] = (
    "nobody",
    "",
    "default#count#0",
    "..",
    "é",
    "x" * 129,
    " ",
    "default ",
    5,
    None,
    [],
)
VERSIONS: tuple[Any, ...] = (0, 1, 2, 1.0, True, "1", None, [], -1, 10**30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forged:
    """A body, and the URLs that may be claimed, by crawl."""

    body: str
    seeds: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A running crawl: its id, its allowed and forbidden hosts, and the ids of its packs."""

    crawl: str
    inside: str
    outside: str
    packs: tuple[str, ...]


class Forger:
    """Makes bodies for one victim; the same seed makes the same bodies."""

    def __init__(self, seed: int, victim: Victim) -> None:
        self._random = Random(seed)
        self._victim = victim
        self._count = 0

    def bodies(self, count: int) -> Iterator[Forged]:
        kinds: tuple[Callable[[], Forged], ...] = (
            self._pack,
            self._close,
            self._planned,
            self._versioned,
            self._mixed,
            self._wrapped,
            self._broken,
            self._foreign,
            self._named,
            self._many,
            self._honest,
        )
        for _ in range(count):
            self._count += 1
            yield self._random.choice(kinds)()

    def _url(self) -> str:
        victim, n = self._victim, self._count
        return self._random.choice(
            (
                f"{victim.outside}/f{n}",
                f"{victim.inside}/f{n}",
                f"{victim.inside}/../f{n}",
                f"{victim.inside}/a b{n}",
                f"{victim.inside}/é{n}",
                f"javascript:{n}",
                f"{victim.inside}/\ud800{n}",
                f"http://169.254.169.254/{n}",
                "/" * 3_000,
            )
        )

    def _id(self) -> str:
        victim = self._victim
        known = self._random.choice(victim.packs)
        return self._random.choice(
            (known, child_id(known, self._random.randrange(4)), f"{known}#x", "f" * 32)
        )

    def _pack_of_victim(self) -> dict[str, Any]:
        random = self._random
        targets = tuple(
            Target(
                url=self._url(),
                depth=random.choice((0, 1, 30)),
                attempt=random.choice((1, 4)),
                referrer=random.choice((None, self._victim.inside + "/")),
                express=random.random() < 0.2,
            )
            for _ in range(random.randint(1, 25))
        )
        at_ms, failures = random.choice((0, 2**52)), random.choice((0, 1, 99))
        pack = Pack(
            id=self._id(),
            crawl=random.choice((self._victim.crawl, "default")),
            at_ms=at_ms,
            targets=targets,
            failures=failures,
        )
        return dict(json.loads(encode(pack)))

    def _pack(self) -> Forged:
        return Forged(body=self._spelled(self._pack_of_victim()))

    def _close(self) -> Forged:
        return Forged(
            body=encode(Close(crawl=self._victim.crawl, at_ms=self._random.choice((0, 1))))
        )

    def _planned(self) -> Forged:
        seeds = SeedsMessage(
            id=self._id(),
            crawl=self._victim.crawl,
            at_ms=0,
            references=(self._url(),),
            planned=self._random.random() < 0.8,
        )
        return Forged(body=encode(seeds))

    def _versioned(self) -> Forged:
        raw = self._pack_of_victim() | {"v": self._random.choice(VERSIONS)}
        return Forged(body=self._spelled(raw))

    def _mixed(self) -> Forged:
        """Return seeds and a pack in one body: as one object, or by a duplicate key."""
        raw = self._pack_of_victim()
        if self._random.random() < 0.5:
            return Forged(body=self._spelled(raw | {"url": self._url()}))
        return Forged(body=f'{{"url":"{self._victim.outside}/twice",{self._spelled(raw)[1:]}')

    def _wrapped(self) -> Forged:
        body = self._spelled(self._pack_of_victim())
        spellings = (
            json.dumps(body),
            f"[{body}]",
            f"\ufeff{body}",
            f" \n{body}",
            json.dumps({"url": body}),
            json.dumps({"urls": [json.loads(body)]}),
            json.dumps({"crawl": json.loads(body), "url": self._url()}),
            body.upper(),
            body[:-1],
        )
        return Forged(body=self._random.choice(spellings))

    def _broken(self) -> Forged:
        bodies = (
            "[" * 5_000,
            '{"url":' * 5_000,
            "{",
            "null",
            "5",
            '{"urls": 5}',
            '{"urls": []}',
            '{"url": null}',
            '{"urls": [5]}',
            '{"url": "a", "urls": ["b"]}',
            '{"v": 1}',
            '{"urls": {"0": "http://x.test/"}}',
            '{"url": NaN}',
            '"\\ud800"',
            "\u202e",
            "x" * 9_000,
        )
        return Forged(body=self._random.choice(bodies))

    def _foreign(self) -> Forged:
        body = {"url": self._url(), "crawl": self._random.choice(CRAWLS)}
        return Forged(body=json.dumps(body))

    def _named(self) -> Forged:
        """Return seeds for the victim: some in its scope, and some that would widen it."""
        victim, n = self._victim, self._count
        inside, left_out = f"{victim.inside}/s{n}", f"{victim.inside}/private/{n}"
        leading = f"{victim.inside}/lead/{n}"
        listed = [inside, f"{victim.outside}/s{n}", left_out, leading, "mailto:x"]
        self._random.shuffle(listed)
        claimed = tuple((victim.crawl, url) for url in (inside, leading))
        return Forged(body=json.dumps({"urls": listed, "crawl": victim.crawl}), seeds=claimed)

    def _many(self) -> Forged:
        """Return more references than a message may have."""
        return Forged(body=json.dumps({"urls": ["http://x.test/"] * 10_001}))

    def _honest(self) -> Forged:
        url = f"{self._victim.outside}/d{self._count}"
        body = self._random.choice((url, json.dumps(url), json.dumps({"url": url})))
        return Forged(body=body, seeds=(("default", url),))

    def _spelled(self, raw: dict[str, Any]) -> str:
        if self._random.random() < 0.3:
            keys = list(raw)
            self._random.shuffle(keys)
            raw = {key: raw[key] for key in keys}
        return json.dumps(raw, ensure_ascii=self._random.random() < 0.9 or _has_surrogates(raw))


def _has_surrogates(raw: dict[str, Any]) -> bool:
    return "\\ud8" in json.dumps(raw)
