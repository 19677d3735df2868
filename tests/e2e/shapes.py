"""Crawls of random shape: sites, crawl settings and expected results.

One number seeds all of them. A site is a table of nodes that gives both its answers and the
expectation. `walk` follows the table by a few lines of its own rules and shares no code with the
product. Depth is limited only where each page has one path. Where a budget or a user ends a crawl,
only invariants are expected, not the exact pages.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random
from typing import TypeAlias

from tests.sites import graph
from tests.sites.server import Answer

# A page of a site: index of the shape's host, and path.
Place: TypeAlias = tuple[int, str]

CRAWLS = 50
PRIVATE, SITEMAP = "/private/", "/sitemap.xml"
XML = (("Content-Type", "application/xml"),)
# A site that a user steers while it is still being crawled: its chain is far longer than time
# allows.
LONG_PAGES, LONG_DELAY_MS = 300, 100
# A site that is steered and then finished: the crawl lasts longer than a pause needs to take
# effect.
MIDDLING_PAGES = 90


class Steering(StrEnum):
    """Action taken on a crawl while it runs."""

    NONE = "none"
    CANCEL = "cancel"
    PAUSE = "pause"  # Then resumed.
    ABANDON = "abandon"  # Paused, then cancelled.
    EXPIRE = "expire"  # Its duration ends.


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Node of a site: a page with links, a redirect, another status, or another type."""

    links: tuple[Place, ...] = ()
    to: str | None = None
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    # Answer time. The crawl finishes other nodes meanwhile.
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sites and their crawl; `pages_max` and `depth_max` are None if unlimited."""

    name: str
    nodes: Mapping[Place, Node]
    hosts: int = 1
    seeds: tuple[Place, ...] = ((0, "/"),)
    # Entries of the first host's sitemap. None: no sitemap.
    listed: tuple[Place, ...] | None = None
    any_host: bool = False
    pages_max: int | None = None
    depth_max: int | None = None
    delay_ms: int = 0
    concurrency: int = 4
    express: bool = False
    steering: Steering = Steering.NONE
    # Number of requests to wait for before a user steers it, and length of the pause.
    steered_after: int = 1
    paused_s: float = 0.0
    # Seeds of a second run of the name, started at the same time.
    rival: tuple[Place, ...] | None = None
    # True to run it again within its window.
    again: bool = False

    @property
    def crawls(self) -> int:
        return 1 + (self.rival is not None) + self.again


@dataclass(slots=True, kw_only=True)
class Walked:
    """Expected result without a budget: outcome per place, and requested hosts."""

    outcomes: dict[Place, str] = field(default_factory=dict)
    asked: set[Place] = field(default_factory=set)

    def counts(self) -> Counter[str]:
        return Counter(self.outcomes.values())


def walk(shape: Shape, seeds: Sequence[Place]) -> Walked:
    walked = Walked()
    todo: deque[tuple[Place, int]] = deque((seed, 0) for seed in seeds)
    if shape.listed is not None:
        todo.append(((0, SITEMAP), 0))
        todo.extend((place, 1) for place in shape.listed)
    while todo:
        place, depth = todo.popleft()
        if place in walked.outcomes:
            continue
        host, path = place
        if path.startswith(PRIVATE):
            walked.outcomes[place] = "skipped"
            continue
        walked.asked.add(place)
        node = Node() if path == SITEMAP else shape.nodes.get(place, Node(status=404))
        if node.to is not None:
            walked.outcomes[place] = "redirected"
            todo.appendleft(((host, node.to), depth))
        elif node.status != 200:
            walked.outcomes[place] = "failed"
        elif not node.kind.startswith("text/html"):
            walked.outcomes[place] = "skipped"
        else:
            walked.outcomes[place] = "fetched"
            if depth != shape.depth_max:
                wanted = (link for link in node.links if shape.any_host or link[0] == host)
                todo.extend((link, depth + 1) for link in wanted)
    return walked


def scripts(shape: Shape, host: int, urls: Sequence[str]) -> dict[str, graph.Script]:
    """Return the answers of one host; `urls` are the shape's hosts."""
    rules = f"User-agent: *\nDisallow: {PRIVATE}\n"
    made: dict[str, graph.Script] = {}
    if host == 0 and shape.listed is not None:
        rules += f"Sitemap: {urls[0]}{SITEMAP}\n"
        items = "".join(f"<url><loc>{urls[at]}{path}</loc></url>" for at, path in shape.listed)
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        body = f'<?xml version="1.0"?><urlset xmlns="{space}">{items}</urlset>'
        made[SITEMAP] = replace(graph.page(""), headers=XML, body=body.encode())
    made["/robots.txt"] = graph.robots(rules)
    for (at, path), node in shape.nodes.items():
        if at == host:
            made[path] = _answer(path, node, urls)
    return made


def _answer(path: str, node: Node, urls: Sequence[str]) -> Answer:
    if node.to is not None:
        return graph.redirect(node.to)
    links = [f"{urls[host]}{to}" for host, to in node.links]
    headers = (("Content-Type", node.kind),)
    return graph.page(
        f"At {path}", links, status=node.status, headers=headers, delay_s=node.delay_s
    )


def shapes(random: Random) -> list[Shape]:
    steered = [Steering.CANCEL] * 4 + [Steering.PAUSE] * 4 + [Steering.ABANDON] * 2
    made = [_steered(random, steering) for steering in steered + [Steering.EXPIRE] * 3]
    made += [_shape(random) for _ in range(4)]
    made += [replace(_shape(random), again=True, pages_max=None) for _ in range(3)]
    made += [_rivals(random) for _ in range(4)]
    while sum(shape.crawls for shape in made) < CRAWLS:
        made.append(_shape(random))
    made = [replace(shape, nodes=_slowed(random, shape)) for shape in made]
    random.shuffle(made)
    # Start the longest first.
    made.sort(key=lambda shape: shape.steering is Steering.NONE)
    return [replace(shape, name=f"shape-{n}-{shape.name}") for n, shape in enumerate(made)]


def _shape(random: Random) -> Shape:
    make = random.choice((_web, _web, _web, _tree, _tree, _cycle, _hops, _bare, _bare, _mapped))
    shape = make(random)
    pages = len(walk(shape, shape.seeds).outcomes)
    if random.random() < 0.3:
        some = (1, max(1, pages // 2), max(1, pages - 1), pages, pages + 1)
        shape = replace(shape, pages_max=random.choice(some))
    return replace(shape, concurrency=random.choice((1, 4, 16)), express=random.random() < 0.2)


def _web(random: Random) -> Shape:
    """Build hosts with many links between them, some to non-pages."""
    hosts = random.choice((1, 1, 2, 3))
    places = [(host, path) for host in range(hosts) for path in _paths(random.randint(1, 12))]
    others: dict[Place, Node] = {}
    for host in range(hosts):
        others |= {
            (host, "/gone"): Node(status=random.choice((404, 410, 403))),
            (host, "/file"): Node(kind="application/pdf"),
            (host, "/moved"): Node(to=random.choice(("/", "/p1", "/moved-again", "/nowhere"))),
            (host, "/moved-again"): Node(to="/gone"),
            (host, f"{PRIVATE}a"): Node(),
        }
    known = [*places, *others, (0, "/nowhere")]
    nodes = {place: Node(links=_some(random, known)) for place in places}
    seeds = tuple((host, "/") for host in range(random.randint(1, hosts)))
    return Shape(
        name="web",
        nodes={**nodes, **others},
        hosts=hosts,
        seeds=seeds,
        any_host=random.random() < 0.3,
    )


def _tree(random: Random) -> Shape:
    """Build a tree with one path to each page, and sometimes a maximum depth."""
    width, size = random.choice((1, 2, 3, 9)), random.randint(2, 25)
    paths = _paths(size)
    nodes = {
        (0, path): Node(links=tuple((0, to) for to in paths[n * width + 1 : (n + 1) * width + 1]))
        for n, path in enumerate(paths)
    }
    depth_max = random.choice((None, 0, 1, 2, 4))
    return Shape(name="tree", nodes=nodes, depth_max=depth_max)


def _cycle(random: Random) -> Shape:
    paths = _paths(random.randint(2, 9))
    nodes = {
        (0, path): Node(links=((0, paths[(n + 1) % len(paths)]), (0, path)))
        for n, path in enumerate(paths)
    }
    return Shape(name="cycle", nodes=nodes)


def _hops(random: Random) -> Shape:
    """Build redirect chains to a page, to nothing, or in a loop."""
    length = random.randint(1, 8)
    ends = (f"/hop{length}", "/nowhere", "/hop0", "/")
    nodes = {(0, f"/hop{n}"): Node(to=f"/hop{n + 1}") for n in range(length)}
    nodes[0, f"/hop{length - 1}"] = Node(to=random.choice(ends))
    nodes |= {(0, f"/hop{length}"): Node(), (0, "/"): Node(links=((0, "/hop0"),))}
    return Shape(name="hops", nodes=nodes)


def _bare(random: Random) -> Shape:
    """Build a single page, an empty site, or a forbidden one."""
    nodes = random.choice(({(0, "/"): Node()}, {}))
    seed = random.choice(((0, "/"), (0, "/"), (0, f"{PRIVATE}a")))
    return Shape(name="bare", nodes=nodes, seeds=(seed,))


def _mapped(random: Random) -> Shape:
    """Build pages without links that a sitemap lists, with some invalid entries."""
    paths = [f"/p{n}" for n in range(random.randint(0, 12))]
    nodes = {(0, path): Node() for path in ["/", *paths]}
    listed = tuple((0, path) for path in [*paths, "/nowhere", f"{PRIVATE}a"])
    return Shape(name="mapped", nodes=nodes, listed=listed)


def _rivals(random: Random) -> Shape:
    """Build two concurrent runs of one name; a URL claimed by one is not the other's."""
    paths = _paths(random.randint(2, 20))
    nodes = {(0, path): Node(links=tuple((0, to) for to in paths)) for path in paths}
    other = random.choice(((0, "/"), (0, "/p1")))
    return Shape(name="rivals", nodes=nodes, rival=(other,))


def _steered(random: Random, steering: Steering) -> Shape:
    """Build a slow site: a chain, or one with leaves at every link."""
    pages = MIDDLING_PAGES if steering is Steering.PAUSE else LONG_PAGES
    fan = random.choice((0, 2))
    nodes: dict[Place, Node] = {}
    for n in range(pages // (fan + 1)):
        leaves = tuple((0, f"/leaf{n}-{leaf}") for leaf in range(fan))
        nodes |= {leaf: Node() for leaf in leaves}
        nodes[0, f"/p{n}" if n else "/"] = Node(links=((0, f"/p{n + 1}"), *leaves))
    return Shape(
        name=steering,
        nodes=nodes,
        depth_max=pages,
        delay_ms=LONG_DELAY_MS,
        steering=steering,
        steered_after=random.randint(1, 12),
        paused_s=random.choice((0.0, 1.0, 4.0)),
    )


def _slowed(random: Random, shape: Shape) -> dict[Place, Node]:
    """Slow some pages down, for sites without a delay."""
    slow_s = (0.0, 0.0, 0.0, 0.0, 0.2, 0.8) if shape.delay_ms == 0 else (0.0,)
    nodes = shape.nodes.items()
    return {place: replace(node, delay_s=random.choice(slow_s)) for place, node in nodes}


def _paths(size: int) -> list[str]:
    return ["/", *(f"/p{n}" for n in range(1, size))]


def _some(random: Random, places: Sequence[Place]) -> tuple[Place, ...]:
    return tuple(random.choice(places) for _ in range(random.choice((1, 2, 4, 8))))
