"""Describe how canonicalisation changes a reference (a URL as written)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from orbweaver.model.request_url import is_post
from orbweaver.model.url import (
    SPACES,
    TRACKING_PARAMETERS,
    canonicalize,
    host_of,
    hostname_of,
    is_tracking,
    resolved,
)

_REFERENCE = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?:[/\\]{2}(?P<authority>[^/\\?#]*))?"
    r"(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.DOTALL,
)
_BREAKS = re.compile(r"[\t\n\r]")
_DOTS = re.compile(r"(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)", re.IGNORECASE)
_PORT = re.compile(r":([0-9]*)$")
_PATH_PARAMETER = re.compile(r";([^;/=?]*)=")


def changes(
    reference: str, base: str | None = None, *, tracking: frozenset[str] = TRACKING_PARAMETERS
) -> tuple[str, ...]:
    """List the changes from a URL as written on the page `base` to its canonical form.

    `tracking` are the parameters to remove. Raises ValueError for an invalid URL.
    """
    whole = canonicalize(reference, base, tracking=frozenset())
    stripped = reference.strip(SPACES)
    text = _BREAKS.sub("", stripped)
    parts = _REFERENCE.fullmatch(text)
    if parts is None:
        return ()
    said = []
    if stripped != reference:
        said.append("spaces and control characters around it dropped")
    if text != stripped:
        said.append("tabs and line breaks within it dropped")
    said += _about_host(parts, whole, base)
    said += _about_path(parts, whole)
    said += [f"parameter {name} taken out" for name in _tracked(whole, tracking)]
    if parts["fragment"] is not None and not is_post(reference):
        said.append("fragment dropped")
    return tuple(said)


def _about_host(parts: re.Match[str], whole: str, base: str | None) -> Iterator[str]:
    scheme, authority = parts["scheme"], parts["authority"]
    if base is not None and (scheme is None or authority is None):
        yield f"resolved against {canonicalize(base)}"
    if scheme and scheme != scheme.lower():
        yield "scheme in lower case"
    if authority is None:
        return
    _, at_sign, rest = authority.rpartition("@")
    if at_sign:
        yield "user name and password dropped"
    port = _PORT.search(rest)
    typed, host = rest[: port.start()] if port else rest, hostname_of(whole)
    if typed != host:
        yield _about_name(typed, host)
    if port and not _PORT.search(host_of(whole)):
        yield f"port {port[1]} dropped: it is the scheme's own" if port[1] else "empty port dropped"


def _about_name(typed: str, host: str) -> str:
    if typed.lower() == host:
        return "host in lower case"
    if host.startswith("[") or host.rpartition(".")[2].isdigit():
        return f"host read as the address {host}"
    return f"host by the rules of IDNA: {host}"


def _about_path(parts: re.Match[str], whole: str) -> Iterator[str]:
    path, query = parts["path"], parts["query"] or ""
    if "\\" in path:
        yield "backslashes read as slashes"
    if _DOTS.search(path):
        yield "dot segments resolved"
    if parts["authority"] and not path:
        yield "empty path written as /"
    kept = whole[len(host_of(whole)) :]
    odd = {char for char in path + query if not char.isalnum() or not char.isascii()}
    if odd - set(kept) - set("\\.%"):
        yield "characters escaped"


def _tracked(whole: str, tracking: frozenset[str]) -> dict[str, None]:
    stem, _, query = whole.partition("?")
    names = _PATH_PARAMETER.findall(stem[len(host_of(stem)) :])
    names += [parameter.partition("=")[0] for parameter in query.split("&")]
    return dict.fromkeys(name for name in names if name and is_tracking(name, tracking))


def suggest_url(reference: str) -> str | None:
    """Guess the URL that a user meant by a seed with a missing or mistyped scheme."""
    reference = reference.strip()
    scheme, sign, rest = reference.partition("://")
    if sign:
        near = difflib.get_close_matches(scheme.lower(), ("https", "http"), n=1, cutoff=0.7)
        return resolved(f"{near[0]}://{rest}") if near else None
    host = re.split(r"[/?#]", reference, maxsplit=1)[0]
    if re.match(r"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$", host):
        return resolved(f"http://{reference}")
    if re.search(r"\w\.\w", host) and "@" not in host:
        return resolved(f"https://{reference}")
    return None
