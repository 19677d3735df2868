"""Repair the head of a response before aiohttp parses it.

The parser rejects heads that a client is allowed to accept (RFC 9112, sections 5.1 and 6.3). They
have repeated equal Content-Length values, both Content-Length and chunked coding, or spaces before
a colon. Lines with these two headers are held back until the head ends. The first line passes
through unchanged, so that the parser rejects a bad head at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LINE_BYTES_MAX = 1_024
_LENGTH, _CODING = b"content-length", b"transfer-encoding"
_HELD = re.compile(rb"(content-length|transfer-encoding):(.*)", re.IGNORECASE | re.DOTALL)
_SPACED = re.compile(rb"([^\s:]++)[ \t]++:")
_ANY_SPACED = re.compile(rb"\n" + _SPACED.pattern)
_NUMBER = re.compile(rb"[0-9]{1,18}")
# Matches the end of a head after its first line. Blank lines before that line do not match.
_END = re.compile(rb"[^\r\n]\r?\n\r?\n")
_SPACES = b" \t\r\n"


class HeadFraming:
    """Repairs the heads of one response, interim and final.

    `doubtful`: do not reuse the connection.
    """

    __slots__ = ("_begun", "_held", "_line", "_start", "doubtful")

    def __init__(self) -> None:
        self.doubtful = False
        self._begun = False  # a line that is not blank has arrived
        self._start = True  # the next byte starts a line
        self._line = b""  # the start of a line that may be held back
        self._held: list[bytes] = []

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Consume bytes.

        Return the bytes for the parser, up to the end of a head, and the bytes after it.
        """
        if self._start and not (self._begun or self._line or self._held):
            # The parser gets later bytes separately, so an error in them does not lose the head.
            end = _END.search(data)
            if end is not None:
                head = data[: end.end()]
                if not _is_odd(head):
                    return head, data[end.end() :]
        return self._by_lines(data)

    def rest(self) -> bytes:
        """Return the bytes that are still held back, because the connection has ended."""
        rest = b"".join(self._held) + self._line
        self._held, self._line = [], b""
        return rest

    def _by_lines(self, data: bytes) -> tuple[bytes, bytes]:
        given: list[bytes] = []
        data, self._line = self._line + data, b""
        at = 0
        if not self._begun:  # there may be very many blank lines before a head
            at = len(data) - len(data.lstrip(b"\r\n"))
            given.append(data[:at])
        while at < len(data):
            end = data.find(b"\n", at) + 1
            line = data[at : end or len(data)]
            at += len(line)
            if not end and self._start and _may_be_held(line, header=self._begun):
                self._line = line
                break
            if self._start and end and not line.strip(b"\r\n"):
                given += [*self._merge_held(), line]
                self._begun = False
                return b"".join(given), data[at:]
            self._take(self._without_spaces(line), given)
            self._start = bool(end)
        return b"".join(given), b""

    def _without_spaces(self, line: bytes) -> bytes:
        found = _SPACED.match(line) if self._start and self._begun else None
        if found is None:
            return line
        self.doubtful = self.doubtful or found[1].lower() in {_LENGTH, _CODING}
        return found[1] + line[found.end() - 1 :]

    def _take(self, line: bytes, given: list[bytes]) -> None:
        folded = self._start and line[:1] in {b" ", b"\t"} and bool(self._held)
        if self._start and self._begun and (folded or _HELD.match(line)):
            if len(line) <= LINE_BYTES_MAX and line.endswith(b"\n"):
                self._held.append(line)
                return
            given.append(self.rest())
        self._begun = True
        given.append(line)

    def _merge_held(self) -> Iterator[bytes]:
        """Yield the lines that were held back, with one Content-Length at most."""
        held, self._held = self._held, []
        lengths: list[bytes] = []
        codings: list[bytes] = []
        for line in held:
            found = _HELD.match(line)
            if found is None:  # a folded line cannot be simplified
                yield from held
                return
            (lengths if found[1].lower() == _LENGTH else codings).append(found[2])
        chunked = any(b"chunked" in coding.lower() for coding in codings)
        values = {value.strip(_SPACES) for value in b",".join(lengths).split(b",")}
        if lengths and chunked:  # chunked wins. It may be an attempt at request smuggling.
            self.doubtful = True
        elif lengths and len(values) == 1 and _NUMBER.fullmatch(value := values.pop()):
            yield b"Content-Length: %s\r\n" % value
        else:  # different lengths: the parser rejects the head
            yield from held
            return
        yield from (line for line in held if line[: len(_CODING)].lower() == _CODING)


def _is_odd(head: bytes) -> bool:
    """Whether a head might have spaces before a colon, or two statements of its length."""
    if _ANY_SPACED.search(head):
        return True
    lower = head.lower()
    lengths = lower.count(_LENGTH)
    if lengths == 0:
        return False
    if lengths > 1 or _CODING in lower:
        return True
    at = lower.find(_LENGTH)
    return b"," in lower[at : lower.find(b"\n", at)]


def _may_be_held(line: bytes, *, header: bool) -> bool:
    """Whether the beginning of a line must be held back until the line is complete.

    `header`: the line is not the first one of the head.
    """
    if line == b"\r":
        return True  # perhaps the end of the head
    if len(line) > LINE_BYTES_MAX:
        return False
    if header and b":" not in line:
        return line[:1] not in {b" ", b"\t"}
    name = line[: len(_CODING)].lower()
    return _LENGTH.startswith(name[: len(_LENGTH)]) or _CODING.startswith(name)
