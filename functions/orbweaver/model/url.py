"""Canonicalize URLs, and find the site of a host. All references become URLs in this module.

Parsing and joining follow the WHATWG URL Standard (https://url.spec.whatwg.org), by ada-url. Logs
and messages must use `redacted`, because a canonical URL keeps secrets in its query. The site of a
host is its registrable domain by the public suffix list.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from ada_url import join_url

from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


@value_class
class Bounds:
    """URL limits, each also a setting of the deployment (model/settings.py)."""

    path_segments_max: int = 20
    repeats_max: int = 2
    query_parameters_max: int = 20
    query_chars_max: int = 1_000
    folder_urls_max: int = 100_000
    query_urls_max: int = 10_000


DEFAULT_BOUNDS = Bounds()


# Limit of browsers and sitemaps.
URL_CHARS_MAX = 2_083
HOST_CHARS_MAX = 253
# A reference may be far longer than its URL (dots, spaces, tracking). This limits the work on it
# and on a base. The length is checked first, because all other work is linear in it.
REFERENCE_CHARS_MAX = 65_536

# Parameters to remove, also from paths (`/a;jsessionid=1`), in lower case. A crawl can use another
# list. `*` at the end of a name matches any ending. Session ids are on the list if their names are
# unambiguous (`PHPSESSID`, not `sid`). Those of ASP.NET (`/(S(…))/`) are not removed, because their
# servers redirect any URL without one.
_TRACKING = """
    utm_* gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid srsltid _ga _gl
    fbclid igsh igshid msclkid yclid ysclid _openstat twclid ttclid li_fat_id epik
    mc_cid mc_eid _hsenc _hsmi __hssc __hstc __hsfp hsctatracking mkt_tok vero_id
    oly_anon_id oly_enc_id rb_clickid wickedid irclickid
    phpsessid jsessionid aspsessionid* cfid cftoken oscsid zenid
"""
TRACKING_PARAMETERS = frozenset(_TRACKING.split())

# Characters that the standard strips from both ends of a reference: C0 controls and the space.
SPACES = "".join(map(chr, range(0x21)))

_SCHEMES = ("http://", "https://")
# Forms that the parser would not change: no escapes, no dot segments (checked separately), a host
# that is not a number and has no Punycode (also separately).
_PATH_CHARS = r"-A-Za-z0-9_.~!$&()*+,;=@/"
_QUERY = rf"(?:\?[{_PATH_CHARS}:?%]*)?"
_PLAIN_PATH = re.compile(rf"(?:/(?!/)[{_PATH_CHARS}:]*|[A-Za-z0-9_][{_PATH_CHARS}]*){_QUERY}")
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_HOST = rf"(?:(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*|{_BYTE}(?:\.{_BYTE}){{3}})"
_PORT = r"(?::(?!(?:80|443)/)(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}))?"
_PLAIN_URL = re.compile(rf"https?://{_HOST}{_PORT}/[{_PATH_CHARS}:]*{_QUERY}")
# The plainest form: no query, no parameters, no possible user name.
_PLAINEST_PATH = re.compile(r"/?[A-Za-z0-9_][-A-Za-z0-9_.~!$&()*+,=/]*")
_UPWARDS = re.compile(r"(?:\.\./)*+")
_PATH_PARAMETER = re.compile(r";([^;/=]*)=[^;/]*")
_EMAIL_OR_USER = re.compile(r"^(https?:[/\\]*)?.*@", re.DOTALL | re.IGNORECASE)
_QUERY_OR_FRAGMENT = re.compile(r"([?#]).*", re.DOTALL)
# With this base only absolute references can be joined.
_NO_BASE = "about:blank"
_NO_PARAMETERS: frozenset[str] = frozenset()


def canonicalize(
    reference: str,
    base: str | None = None,
    *,
    tracking: frozenset[str] = TRACKING_PARAMETERS,
) -> str:
    """Return the canonical URL of a reference relative to `base`. Raises ValueError if it has none.

    It is http or https, pure ASCII, at most 2,083 characters long, with a host of at most 253. It
    has no fragment, user name, password or tracking parameters. The remaining query keeps its bytes
    and order.
    """
    plainest = _plainest(reference, base) if base else None
    return _parsed(reference, base, tracking) if plainest is None else plainest


def resolver(base: str | None, *, tracking: frozenset[str]) -> Callable[[str], str]:
    """Return `canonicalize` for many references with the same base."""
    try:
        origin, folder = _parts(base) if base else ("", "")
    except ValueError:
        folder = ""

    def resolve(reference: str) -> str:
        # Most links are plain paths, so this does the work of `_plainest` in half of the time.
        if folder and _PLAINEST_PATH.fullmatch(reference) and "/." not in reference:
            url = (origin if reference[0] == "/" else folder) + reference
            if len(url) <= URL_CHARS_MAX:
                return url
        return canonicalize(reference, base, tracking=tracking)

    return resolve


def resolved(
    reference: str,
    base: str | None = None,
    *,
    tracking: frozenset[str] = TRACKING_PARAMETERS,
) -> str | None:
    """Do the same as `canonicalize`, but return None instead of raising an error."""
    try:
        return canonicalize(reference, base, tracking=tracking)
    except ValueError:
        return None


def joined_url(reference: str, base: str | None = None) -> str | None:
    """Return the URL of a reference by the URL Standard alone, without its fragment, or None."""
    text = reference.partition("#")[0]
    if max(len(text), len(base or "")) > REFERENCE_CHARS_MAX:
        return None
    try:
        return _join(text, base or _NO_BASE).partition("#")[0]
    except ValueError:
        return None


def _parsed(reference: str, base: str | None, tracking: frozenset[str]) -> str:
    text, hash_sign, _ = reference.partition("#")
    if len(text) > REFERENCE_CHARS_MAX:
        text = text.strip(SPACES)
        if len(text) > REFERENCE_CHARS_MAX:
            raise ValueError("the reference is too long")
    if hash_sign and text[-1:] in SPACES:
        text += hash_sign  # spaces before a fragment are part of the URL, at the end they are not
    url = _plain(text, base) or _join(text, base or _NO_BASE).removesuffix("#")
    if not url.startswith(_SCHEMES):
        raise ValueError("not an http or https URL")
    path_at = url.index("/", 8)
    if "@" in url:
        host_at = url.rfind("@", 0, path_at) + 1
        if host_at:
            url = url[: url.index("/") + 2] + url[host_at:]
            path_at = url.index("/", 8)
    if "?" in url or ";" in url:
        url = _untracked(url, path_at, tracking)
    if len(url) > URL_CHARS_MAX:
        raise ValueError(f"the URL is longer than {URL_CHARS_MAX} characters")
    if path_at > HOST_CHARS_MAX:
        _check_host(url[:path_at])
    return url


def is_canonical(url: str) -> bool:
    """Whether a text is a canonical URL, for any list of tracking parameters. Never raises."""
    # Most URLs have a plain form, which one regular expression recognizes in 0.5 us.
    short = len(url) <= HOST_CHARS_MAX and "/." not in url and "xn--" not in url
    if short and _PLAIN_URL.fullmatch(url):
        return True
    return len(url) <= URL_CHARS_MAX and resolved(url, tracking=_NO_PARAMETERS) == url


def is_base(url: str) -> bool:
    """Whether relative references can be joined with a URL: http or https, canonical or not."""
    try:
        return bool(_parts(url)[0])
    except ValueError:
        return False


def _check_host(origin: str) -> None:
    if len(_hostname(origin)) > HOST_CHARS_MAX:
        raise ValueError(f"the host is longer than {HOST_CHARS_MAX} characters")


@lru_cache(maxsize=1024)
def host_of(url: str) -> str:
    """Return a canonical URL's origin, `https://example.com:8443`. Delays apply per origin."""
    path_at = url.find("/", 8)
    return url if path_at < 0 else url[:path_at]


def hostname_of(url: str) -> str:
    """Return a canonical URL's host without its port. An IPv6 address keeps its brackets."""
    return _hostname(host_of(url))


def _hostname(origin: str) -> str:
    host = origin.partition("://")[2]
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def redacted(reference: str, chars_max: int = 200) -> str:
    """Shorten a reference for logs: no user, password, email or query value."""
    # Everything before the last `@` is removed, because the end of a malformed password is unknown.
    # Of a query or fragment, only its sign (`?`, `#`) is kept.
    shown = _EMAIL_OR_USER.sub(r"\1…@", reference) if "@" in reference else reference
    return _QUERY_OR_FRAGMENT.sub(r"\1…", shown)[:chars_max]


def url_hash(url: str) -> str:
    """Return a 128-bit hash of a URL for keys, as 32 hexadecimal digits."""
    return blake2b(url.encode(), digest_size=16).hexdigest()


# Most links need no parser: a link in plain form is canonical when appended to its base's origin or
# folder, at a quarter of the cost. The plainest form needs no checks.
def _plainest(text: str, base: str) -> str | None:
    """Return the URL of a path that needs no parser and no checks, or None."""
    start, folder = _parts(base)
    if len(text) > URL_CHARS_MAX or not folder:
        return None
    if not text.startswith("/"):
        origin, start = start, folder
        if text.startswith("../"):
            text, start = _resolve_parents(text, folder, origin)
    if "/." in text or not _PLAINEST_PATH.fullmatch(text):
        return None
    return start + text if len(start) + len(text) <= URL_CHARS_MAX else None


def _resolve_parents(text: str, folder: str, origin: str) -> tuple[str, str]:
    """Return a reference without its leading `../`, and the folder to which these lead."""
    found = _UPWARDS.match(text)
    end = found.end() if found else 0
    above = folder.rsplit("/", end // 3 + 1)[0]
    return text[end:], (above if len(above) > len(origin) else origin) + "/"


def _plain(text: str, base: str | None) -> str | None:
    if "/." in text:
        return None
    if base:
        origin, folder = _parts(base)  # raises for an invalid base
        if _PLAIN_PATH.fullmatch(text):
            return (origin if text[0] == "/" else folder) + text
    return text if _PLAIN_URL.fullmatch(text) and "xn--" not in text else None


def _parts(base: str) -> tuple[str, str]:
    if len(base) <= URL_CHARS_MAX:
        return _known_parts(base)
    if len(base) > REFERENCE_CHARS_MAX:
        raise ValueError("the base is too long")
    return _split_base(base)


def _split_base(base: str) -> tuple[str, str]:
    url = _plain(base, None) or _join("#", base).removesuffix("#")
    if not url.startswith(_SCHEMES):
        return "", ""
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, _, path = rest.partition("/")
    origin = f"{scheme}://{host.rpartition('@')[2]}"
    if len(origin) > HOST_CHARS_MAX:
        _check_host(origin)
    return origin, f"{origin}/{path[: path.rfind('/') + 1]}"


# Only bases up to the length of a URL, so that the cache's memory is limited.
_known_parts = lru_cache(maxsize=256)(_split_base)


# `join_url` is ada-url's fastest public call: 2.7 us per link, against 4.5 for `URL(..).href`.
def _join(text: str, base: str) -> str:
    try:
        return join_url(base, text)
    except ValueError:
        # A lone surrogate has no bytes. Browsers read it as U+FFFD.
        scalar = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if scalar == text:
            problem = "not an absolute URL" if base == _NO_BASE else "not a valid URL"
            raise ValueError(problem) from None
    return _join(scalar, base)


def is_tracking(name: str, tracking: frozenset[str] = TRACKING_PARAMETERS) -> bool:
    names, prefixes = _split(tracking)
    return name.lower() in names or name.lower().startswith(prefixes)


def _untracked(url: str, path_at: int, tracking: frozenset[str]) -> str:
    if ";" in url:
        url = _without_path_parameters(url, path_at, tracking)
    path, mark, query = url.partition("?")
    if not mark:
        return url
    names, prefixes = _split(tracking)
    parameters = query.split("&")
    kept = [
        parameter
        for parameter in parameters
        if (name := parameter.partition("=")[0].lower()) not in names
        and not name.startswith(prefixes)
    ]
    if len(kept) == len(parameters):
        return url
    rest = "&".join(kept)
    return f"{path}?{rest}" if rest else path


def _without_path_parameters(url: str, path_at: int, tracking: frozenset[str]) -> str:
    path, mark, query = url[path_at:].partition("?")
    left = _PATH_PARAMETER.sub(lambda it: "" if is_tracking(it[1], tracking) else it[0], path)
    if left == path:
        return url
    # `/a/..;jsessionid=1` leaves a dot segment that must be resolved.
    return _join(f"{url[:path_at]}{left}{mark}{query}", _NO_BASE)


@lru_cache(maxsize=64)
def _split(tracking: frozenset[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    names = {name.lower() for name in tracking}
    prefixes = {name for name in names if name.endswith("*")}
    return frozenset(names - prefixes), tuple(prefix[:-1] for prefix in sorted(prefixes))


@lru_cache(maxsize=4_096)
def site_of(hostname: str) -> str:
    """Return the registrable domain of a canonical URL's host.

    A host that is an address, a public suffix (`com`, `github.io`) or a single label is its own
    site.
    """
    name = hostname.removesuffix(".")
    # In canonical URLs a host whose last label is a number is an IPv4 address.
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return name
    return _suffixes().privatesuffix(name) or name


def is_suffix(hostname: str) -> bool:
    """Whether a name is a public suffix or a single label, not a site."""
    name = hostname.removesuffix(".")
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return False
    return _suffixes().privatesuffix(name) is None


def same_site(url: str, other: str) -> bool:
    """Whether two canonical URLs belong to the same site. Scheme and port may differ."""
    one, two = hostname_of(url), hostname_of(other)
    return one == two or site_of(one) == site_of(two)


# The publicsuffixlist package has the list (https://publicsuffix.org/list/) with its private
# section: `a.github.io` and `b.github.io` are two sites. Loading it takes 0.1 s per container, only
# for crawls that need it.
@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()
