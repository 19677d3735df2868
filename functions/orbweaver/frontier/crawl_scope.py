"""Check that the URL of a message belongs to its crawl, because a message alone is no proof.

Messages on the seed queue can only add seeds. URLs of packs (messages with up to 25 URLs) are
checked again when a pack is processed. In doubt, a URL is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

from orbweaver.frontier.admission import (
    admit_pattern,
    admit_seed,
    apply_rule,
    in_scope,
    is_on_hosts,
    prefixes,
)
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_rules import depth_limits
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.request_url import is_canonical_seed
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of, hostname_of, site_of
from orbweaver.model.url_rules import combined_rule

# Endings of archives, packages and disk images, which are never pages. Images, films, PDFs and
# documents are not included, because wikis and galleries have pages about files with such URLs.
# Sources: the registry of media types (IANA), and Python's `mimetypes`.
_ARCHIVES = "7z bz2 cab gz lz lz4 lzma rar tar tbz tbz2 tgz txz xz zip zst"
_PACKAGES = "apk deb ipa jar msi nupkg rpm war whl xpi"
_IMAGES = "dmg iso ova qcow2 vmdk"
ENDINGS = frozenset(f"{_ARCHIVES} {_PACKAGES} {_IMAGES}".split())
_ENDING_CHARS_MAX = max(map(len, ENDINGS))
# Endings before an archive's ending that show a page (`page.html.gz`): some servers send it
# decoded.
_PAGES = frozenset({"htm", "html", "shtml", "xht", "xhtml"})
_SCRIPT_ENDINGS = "asp aspx cgi dll exe fcgi jsp lua php pl py rb"
# Folders below which repository browsers and wikis show files (`/repo/tree/set.zip`).
_SHOWING_WORDS = (
    "+ annotate attachment attachments blame blob browse browser commit commits details diff edit"
    " entry file finfo history item log show src tree view viewvc wiki"
)
_SCRIPTS = frozenset(_SCRIPT_ENDINGS.split())
_SHOWING = frozenset(_SHOWING_WORDS.split())


def admit_dropped(crawl: Crawl, url: str) -> Target | Refusal:
    """Decide on a URL from the seed queue: return its target, or the reason for the refusal."""
    # The crawl `default` accepts any URL. A named crawl accepts URLs within the scope of its own
    # seeds, if its patterns allow them. Such a URL never widens the scope.
    if crawl.continuous or url in crawl.seeds:
        return admit_seed(crawl, url, planned=False)
    if not is_in_seed_scope(crawl, url):
        return Refusal.SCOPE
    left_out = admit_pattern(crawl, url)
    target = Target(url=url, depth=0, bound=True)
    return left_out or apply_rule(target, combined_rule(crawl.rules, url))


def is_in_seed_scope(crawl: Crawl, url: str) -> bool:
    """Return True if a URL is within the scope of the crawl's own seeds."""
    match crawl.scope:
        case Scope.ANY:
            return True
        case Scope.HOST:
            return host_of(url) in _hosts(crawl.scope_urls)
        case Scope.DOMAIN:
            return site_of(hostname_of(url)) in _sites(crawl.scope_urls)
        case Scope.PREFIX:
            return url.startswith(prefixes(crawl.scope_urls) + crawl.roots)
        case _:
            assert_never(crawl.scope)


def is_of_one_host(crawl: Crawl) -> bool:
    """Return True if all links are on one host, apart from redirects and seeds added later."""
    return crawl.scope in (Scope.HOST, Scope.PREFIX) and len(_hosts(crawl.scope_urls)) == 1


@lru_cache(maxsize=16)
def _hosts(seeds: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(host_of, seeds))


@lru_cache(maxsize=16)
def _sites(seeds: tuple[str, ...]) -> frozenset[str]:
    return frozenset(site_of(hostname_of(seed)) for seed in seeds)


def admit_claimed(crawl: Crawl, target: Target) -> Reason | None:
    """Return why a claimed URL of a pack must not be requested, or None if it is allowed."""
    if not is_canonical_seed(target.url):
        return Reason.INVALID
    if target.depth > depth_limits(crawl)[1]:
        return Reason.DEPTH
    belongs = crawl.scope is Scope.ANY or _is_linked(crawl, target)
    if not (belongs or is_in_seed_scope(crawl, target.url)):
        return Reason.SCOPE
    page = target.kind is not TargetKind.SITEMAP and target.depth > 0
    return admit_name(crawl, target.url) if page else None


def admit_name(crawl: Crawl, url: str) -> Reason | None:
    """Return a reason if the file name in a URL shows that it is no page, else None."""
    # Crawls that store files of all types accept every name.
    wanted = crawl.bodies is Bodies.ALL or not names_file(url)
    return None if wanted else Reason.CONTENT_TYPE


def names_file(url: str) -> bool:
    """Return True if the path of a canonical URL ends in a file name that is never a page."""
    stem, _, ending = url.rpartition(".")
    if len(ending) > _ENDING_CHARS_MAX or ending.lower() not in ENDINGS or "?" in stem:
        return False
    folders = stem.lower().split("/")[3:]
    if not folders:  # the name is a host's
        return False
    name = folders.pop()
    # Wikis have pages like `/wiki/File:Set.zip`.
    if ":" in name or "%3a" in name or name.rpartition(".")[2] in _PAGES:
        return False
    return not any(
        folder in _SHOWING or folder.rpartition(".")[2] in _SCRIPTS for folder in folders
    )


def _is_linked(crawl: Crawl, target: Target) -> bool:
    """Return True if a person listed a URL, or the scope of its referrer includes it."""
    # The pack's information on where a URL was found is trusted, because only the stack's own
    # functions send packs. Seeds and sitemaps that a person listed may have any address.
    if target.bound:
        return False
    if target.kind is TargetKind.SITEMAP or target.depth == 0 or target.referrer is None:
        return True
    if in_scope(crawl, target.url, target.referrer, target.root):
        return True
    return target.site is not None and is_on_hosts(crawl, target.url, frozenset({target.site}))
