"""Parse robots.txt: which URLs an agent may request, and how fast (RFC 9309).

Where the RFC is ambiguous, verdicts equal Google's matcher (google/robotstxt). Intended differences
are marked in the code. The longest matching pattern wins, and Allow wins a tie.
"""

from __future__ import annotations

import codecs
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from orbweaver.model.value import value_class
from orbweaver.politeness.robots_escapes import ReadRules
from orbweaver.politeness.robots_rules import UNDECIDED, Line, RobotsRule

# A meaningful line: its number, kind and value.
_Line: TypeAlias = tuple[int, int, bytes]
# For each agent: the groups that name it, each with the agent's index among the group's agents.
_Named: TypeAlias = dict[str, list[tuple[int, int]]]

BODY_BYTES_MAX = 500 * 1024
# Eight times the longest URL of old browsers. Longer lines are cut (Google's bound).
LINE_BYTES_MAX = 8 * 2_083 - 1
SITEMAPS_MAX = 1_000
TEXT_CHARS_MAX = 300  # of a displayed rule
INDEXED_MAX = 4  # agents, because crawls may have different agents

ANY_AGENT = "*"
ROBOTS_PATH = "/robots.txt"

# Lower-case beginnings of keys, with misspellings that Google's matcher or crawler-commons accepts.
_USER_AGENT, _ALLOW, _DISALLOW, _DELAY, _SITEMAP = range(5)
_KEYS = {
    _USER_AGENT: "user-agent useragent useg-agent ser-agent users-agent user-agnet",
    _ALLOW: "allow",
    _DISALLOW: "disallow dissallow dissalow disalow diasllow disallaw "
    "desallow dssalow dsallow diallow disllow",
    _DELAY: "crawl-delay clawl-delay craw-delay crawl-deley",
    _SITEMAP: "sitemap site-map",
}
_PREFIXES = {
    **{prefix.encode(): kind for kind, prefixes in _KEYS.items() for prefix in prefixes.split()},
    b"user agent": _USER_AGENT,
    b"crawl delay": _DELAY,
}
_KEY = re.compile(
    b"|".join(map(re.escape, sorted(_PREFIXES, key=len, reverse=True))), re.IGNORECASE
)

_SPACES = b" \t\r\n\f\v"
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_URL_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_URL_PATH = re.compile(r"[/?;]")
_TOKEN = re.compile(r"[A-Za-z_-]*")
_NAME = re.compile(r"[A-Za-z0-9_.-]*")
_PRODUCT_END = re.compile(r"[/(;,]")
_SECONDS = re.compile(rb"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")


@dataclass(slots=True)
class _Group:
    """A group: its rules, and its delays in seconds with the number of agents before each."""

    agents: int = 0
    rules: list[Line] = field(default_factory=list)
    delays: list[tuple[int, float]] = field(default_factory=list)


@value_class
class RobotsVerdict:
    """Verdict on a URL, with the `line` of the deciding rule and the agent's `group`, if any.

    `decided` is False if the URL is forbidden only because too many rules with wildcards concern
    it.
    """

    allowed: bool
    group: str | None
    line: int | None = None
    rule: str | None = None
    decided: bool = True

    @property
    def why(self) -> str | None:
        """The deciding rule in words, or None if no rule matches."""
        return self.rule if self.line is None else f"line {self.line}: {self.rule}"


@value_class
class Robots:
    """A parsed robots.txt. Agents are given as product tokens or whole User-Agent headers."""

    sitemaps: tuple[str, ...] = ()
    # Number of sitemaps beyond the limit.
    sitemaps_cut: int = 0
    _groups: tuple[_Group, ...] = field(default=(), repr=False)
    _named: _Named = field(default_factory=dict, repr=False)
    _indexed: dict[str, ReadRules] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def allows(self, user_agent: str, url: str) -> bool:
        """Return True if the rules allow an agent to request a canonical URL."""
        rule = self.rule_for(user_agent, url)
        return rule is None or rule.allow

    def decide(self, user_agent: str, url: str) -> RobotsVerdict:
        rule = self.rule_for(user_agent, url)
        group = self._group_name(user_agent)
        if rule is None:
            return RobotsVerdict(allowed=True, group=group)
        if rule is UNDECIDED:
            return RobotsVerdict(allowed=False, group=group, rule=rule.pattern, decided=False)
        text = f"{'Allow' if rule.allow else 'Disallow'}: {rule.pattern[:TEXT_CHARS_MAX]}"
        return RobotsVerdict(allowed=rule.allow, group=group, line=rule.number, rule=text)

    def rule_for(self, user_agent: str, url: str) -> RobotsRule | None:
        """Return the rule that decides on a canonical URL, or None if no rule matches."""
        # robots.txt itself is always allowed (RFC 9309, 2.2.2). Google's matcher has no such
        # exception.
        path = _path_of(url)
        return None if path == ROBOTS_PATH else self.rules_of(user_agent).deciding(path)

    def crawl_delay(self, user_agent: str) -> float | None:
        """Return the delay for an agent in seconds, the longest if there are several."""
        return self.rules_of(user_agent).delay_s

    def rules_of(self, user_agent: str) -> ReadRules:
        """Return the rules for an agent, which are indexed at first use."""
        if user_agent not in self._indexed:
            if len(self._indexed) >= INDEXED_MAX:
                self._indexed.clear()
            self._indexed[user_agent] = self._index(user_agent)
        return self._indexed[user_agent]

    def _index(self, user_agent: str) -> ReadRules:
        named = self._named.get(self._group_name(user_agent) or "", ())
        groups = [(self._groups[group], place) for group, place in named]
        delays = (
            delay_s for group, place in groups for agents, delay_s in group.delays if place < agents
        )
        lines = (line for group, _ in groups for line in group.rules)
        return ReadRules(lines, max(delays, default=None))

    def _group_name(self, user_agent: str) -> str | None:
        # `*` counts only if no group names the agent.
        product = _PRODUCT_END.split(user_agent, maxsplit=1)[0].strip().lower()
        return next((name for name in (product, ANY_AGENT) if self._named.get(name)), None)


def parse(body: bytes) -> Robots:
    """Parse any bytes as a robots.txt. Only the first 500 KiB count."""
    lines = list(_lines(_text(body)))
    said = (value.decode("utf-8", "replace") for _, kind, value in lines if kind == _SITEMAP)
    sitemaps = tuple(dict.fromkeys(filter(None, said)))
    groups, named = _grouped(lines)
    return Robots(
        sitemaps=sitemaps[:SITEMAPS_MAX],
        sitemaps_cut=max(0, len(sitemaps) - SITEMAPS_MAX),
        _groups=groups,
        _named=named,
    )


def _grouped(lines: Iterable[_Line]) -> tuple[tuple[_Group, ...], _Named]:
    groups: list[_Group] = []
    named: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    # All groups that name an agent count as one. Sitemap and Crawl-delay lines end no group.
    ruled = True  # the next User-agent line starts a group
    for number, kind, value in lines:
        if kind == _USER_AGENT:
            if ruled:
                groups.append(_Group())
                ruled = False
            for agent in _agents(value.decode("utf-8", "replace")):
                # An agent is listed once per group. Otherwise the rules of a group that repeats its
                # agent would be matched repeatedly.
                if not named[agent] or named[agent][-1][0] != len(groups) - 1:
                    named[agent].append((len(groups) - 1, groups[-1].agents))
            groups[-1].agents += 1
        elif groups and kind == _DELAY:
            groups[-1].delays += [(groups[-1].agents, delay_s) for delay_s in _delays(value)]
        elif groups and kind in {_ALLOW, _DISALLOW}:
            ruled = True
            groups[-1].rules += _rules(value, number, allow=kind == _ALLOW)
    return tuple(groups), dict(named)


def whole_lines(body: bytes) -> bytes:
    """Cut an incomplete body after its last complete line, and to at most `BODY_BYTES_MAX`."""
    # Half a rule is a different rule: `Allow: /` instead of `Allow: /public/` would allow
    # everything.
    ends = (body.rfind(end, 0, BODY_BYTES_MAX + 1) for end in (b"\n", b"\r"))
    return body[: max(*ends, 0)]


def _text(body: bytes) -> bytes:
    """Cut a long body after its last complete line, and remove byte order marks."""
    if len(body) > BODY_BYTES_MAX:
        body = whole_lines(body)
    # Google's matcher does not decode UTF-16.
    codec = _UTF16.get(body[:2])
    if codec:
        return body[2:].decode(codec, "replace").encode()
    # Google's matcher also skips a partial mark.
    marks = (codecs.BOM_UTF8[:size] for size in (3, 2, 1))
    mark = next(filter(body.startswith, marks), b"")
    return body[len(mark) :]


def _lines(text: bytes) -> Iterator[_Line]:
    # Misspelt keys, a missing colon and any line ending are accepted. Other lines are ignored.
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw:
            continue
        line = raw[:LINE_BYTES_MAX].partition(b"#")[0].partition(b"\0")[0].strip(_SPACES)
        key, colon, value = line.partition(b":")
        if not colon:
            words = line.split()
            if len(words) != 2:  # noqa: PLR2004 - "disallow /x": the colon forgotten
                continue
            key, value = words
        if (known := _KEY.match(key)) is not None:
            yield number, _PREFIXES[known[0].lower()], value.strip(_SPACES)
        elif key.lower() in {b"http", b"https"} and b"sitemap" in value.lower():
            yield number, _SITEMAP, line


def _agents(value: str) -> set[str]:
    """Return the names that a User-agent line can mean, in lower case."""
    if value[:1] == ANY_AGENT and not value[1:2].strip():
        return {ANY_AGENT}
    # A name with a digit (`bot2`) is also read as a whole, unlike in Google's matcher, because a
    # site that names an agent means it.
    names = (_TOKEN.match(value), _NAME.match(value))
    return {name[0].lower() for name in names if name and name[0]}


def _delays(value: bytes) -> list[float]:
    seconds = float(value) if _SECONDS.fullmatch(value) else math.inf
    return [seconds] if math.isfinite(seconds) else []


def _rules(value: bytes, number: int, *, allow: bool) -> list[Line]:
    """Return the rules of a line: none if it is empty, two for an allowed index page, else one."""
    if not value:
        return []
    # Bytes outside ASCII are escaped, and escapes are upper-cased.
    pattern = _ESCAPE.sub(_escaped, value).decode("ascii")
    rules = [(pattern, allow, number)]
    folder, slash, name = pattern.rpartition("/")
    # `Allow: /x/index.html` allows `/x/` too.
    if allow and slash and name.startswith("index.htm"):
        rules.append((f"{folder}/$", allow, number))
    return rules


def _escaped(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return found.upper() if len(found) > 1 else b"%%%02X" % found[0]


def _path_of(url: str) -> str:
    """Return path and query of a URL of any form, as Google's matcher does."""
    start = 2 if url.startswith("//") else 0
    path_at = _URL_PATH.search(url, start)
    scheme = url.find("://", start)
    if path_at and 0 <= scheme < path_at.start():
        path_at = _URL_PATH.search(url, scheme + 3)
    fragment = url.find("#", start)
    if path_at is None or 0 <= fragment < path_at.start():
        return "/"
    path = url[path_at.start() : fragment if fragment >= 0 else len(url)]
    if "%" in path:  # Google's matcher does not change the URL (RFC 9309, 2.2.2)
        path = _URL_ESCAPE.sub(lambda escape: escape[0].upper(), path)
    return path if path.startswith("/") else f"/{path}"
