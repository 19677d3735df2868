"""A site of about a thousand pages for tests of `audit`, as exported tables, and faults for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self, TypeAlias

from orbweaver.cli.audit.judgement import JUDGED, LIMITS
from orbweaver.model.columns import ORIGIN, PAGES, TEXTS, Column, Table, Type
from orbweaver.model.outcome import Reason
from orbweaver.parsing.link_rows import SPELLING_CHARS_MAX
from tests.unit.cli.exports import NOON_MS, Rows

OURS = frozenset(Reason) - JUDGED
HOST = "https://shop.example"
PRODUCTS, FOLDERS = 900, 30
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LINKS = Table(
    name="links",
    columns=(
        *ORIGIN[:2],
        *map(_column := lambda name: Column(name=name), ("target_url", "spelling", "kind")),
        *map(_column, ("rel", "lang", "text")),
        Column(name="position", type=Type.INTEGER),
        *map(_column, ("fragment", "decision")),
        ORIGIN[2],
    ),
)
Found: TypeAlias = "tuple[str, str | None]"


def at(path: str) -> str:
    return path if path.startswith("http") else f"{HOST}{path}"


def words(number: int) -> str:
    """Return a text of more than 200 characters. The letters differ for each number."""
    letters = "".join(LETTERS[byte % 26] for byte in sha256(str(number).encode()).digest())
    return f"About {letters}. " * 7


@dataclass
class Site:
    """Rows of the tables of one run."""

    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    links: list[dict[str, Any]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    number: int = 0

    def page(self, path: str, *, listed: bool = True, linked: bool = True, **more: Any) -> Self:
        """Add a page without faults, in the sitemap and with a link from the first page."""
        self.number += 1
        url = at(path)
        row = {
            "url": url,
            "outcome": "fetched",
            "reason": "ok",
            "fetched_at": NOON_MS + self.number,
            "depth": 1,
            "referrer": at("/"),
            "status": 200,
            "content_type": "text/html",
            "charset": "utf-8",
            "bytes": 5000,
            "latency_ms": 50,
            "title": f"Title {self.number}",
            "description": f"Description {self.number}",
            "language": "en",
            "h1": 1,
            "canonical": url,
            "sha256": sha256(url.encode()).hexdigest(),
        } | more
        self.pages[url] = row
        if row["outcome"] == "fetched" and row["charset"]:
            self.texts[url] = words(self.number)
        if linked:
            self.link("/", path)
        if listed:
            self.link("/sitemap.xml", path, "sitemap")
        return self

    def bare(self, path: str, reason: str, **more: Any) -> Self:
        """Add a URL without content. By default it has no link and is not in the sitemap."""
        nothing = dict.fromkeys(("title", "description", "language", "canonical", "sha256"))
        found = Reason(reason)
        given: dict[str, Any] = {"listed": False, "linked": False, "status": None, **nothing}
        given |= {"charset": None, "outcome": str(found.outcome), "reason": reason}
        return self.page(path, **given | more)

    def broken(self, path: str) -> Self:
        return self.bare(path, "http_client_error", status=404, error="HTTP 404")

    def redirect(self, path: str, to: str, status: int = 302, **more: Any) -> Self:
        return self.bare(path, "redirect", status=status, error=at(to), **more)

    def link(self, page: str, to: str, kind: str = "a", **more: Any) -> Self:
        decision = "followed" if kind in ("a", "sitemap", "redirect") else "not_followed"
        row = {"url": at(page), "target_url": at(to), "kind": kind, "text": "more"}
        further = {"position": len(self.links), "decision": decision, "fetched_at": NOON_MS}
        self.links.append(row | further | more)
        return self

    def product(self, number: int) -> dict[str, Any]:
        return self.pages[at(f"/p/{number}")]

    @property
    def rows(self) -> Rows:
        texts = [
            {"url": url, "text": said, "fetched_at": NOON_MS} for url, said in self.texts.items()
        ]
        return [(PAGES, [*self.pages.values()]), (LINKS, self.links), (TEXTS, texts)]


def clean_site() -> Site:
    """Make a site without faults. Some of its URLs cannot be judged."""
    site = Site()
    site.page("/", linked=False, depth=0, referrer=None)
    site.bare("/sitemap.xml", "sitemap", status=200)
    for folder in range(FOLDERS):
        site.page(f"/c/{folder}")
    for number in range(PRODUCTS):
        site.page(f"/p/{number}", linked=False, depth=2)
        site.link(f"/c/{number % FOLDERS}", f"/p/{number}")
        site.link(f"/p/{number}", "/", fragment="top")
        site.link(f"/p/{number}", f"/i/{number}.png", "img", text="")
        site.link(f"/p/{number}", "/", target_url="mailto:us@shop.example", decision="invalid")
        site.link(f"/p/{number}", "https://other.example/", decision="out_of_scope")
    for number in range(0, 100, 2):
        for one, other in ((number, number + 1), (number + 1, number), (number, number)):
            site.link(f"/p/{one}", f"/p/{other}", "hreflang", lang="de" if other % 2 else "en-GB")
    too_long = f"https://other.example/{LETTERS * 100}"[:SPELLING_CHARS_MAX]
    site.link("/", too_long, decision="too_long")
    site.bare("/file.pdf", "content_type", status=200, linked=True)
    for place, reason in enumerate(sorted(OURS - LIMITS - {Reason.ROBOTS})):
        path = f"/ours/{reason}"
        site.bare(path, reason, linked=True, listed=True, error="HTTP 403")
        site.pages[at(path)] |= {"canonical": None, "outcome": "failed"}
        site.page(f"/copy/{reason}", listed=False, linked=False, canonical=at(path))
        site.link(f"/p/{200 + place}", path, "hreflang", lang="fr")
        site.link(f"/p/{200 + place}", path, "script")
        site.redirect(f"/to/{reason}", path)
    site.page("/app", needs_rendering=True, title=None, description=None, language=None)
    return site


# --- faults -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A fault: its check, what makes it, and the rows that the check reports."""

    check: str
    make: Callable[[Site], object]
    rows: tuple[Found, ...]


def fault(check: str, make: Callable[[Site], object], url: str, target: str | None = None) -> Fault:
    return Fault(check, make, ((at(url), None if target is None else at(target)),))


def several(check: str, make: Callable[[Site], object], *urls: str) -> Fault:
    return Fault(check, make, tuple((at(url), None) for url in urls))


def changed(number: int, **more: Any) -> Callable[[Site], object]:
    return lambda site: site.product(number).update(more)


def shown(check: str, number: int, **more: Any) -> Fault:
    """A fault of fields of one page."""
    return fault(check, changed(number, **more), f"/p/{number}")


def ended(check: str, path: str, reason: str, **more: Any) -> Fault:
    return fault(check, lambda site: site.bare(path, reason, **more), path)


def linked(check: str, number: int, to: str, kind: str = "a", **more: Any) -> Fault:
    """A fault of one link of a page."""
    return fault(
        check, lambda site: site.link(f"/p/{number}", to, kind, **more), f"/p/{number}", to
    )


def used(check: str, number: int, path: str, kind: str, lang: str | None = None) -> Fault:
    """A page that uses a URL that does not exist."""
    return fault(
        check,
        lambda site: site.broken(path).link(f"/p/{number}", path, kind, lang=lang),
        f"/p/{number}",
        path,
    )


def named(check: str, path: str, make: Callable[[Site], object]) -> Fault:
    """A page with the canonical URL `path`, which `make` adds."""
    url = f"/of/{check}"
    more: dict[str, Any] = {"listed": False, "linked": False, "canonical": at(path)}
    return fault(check, lambda site: (make(site), site.page(url, **more)), url, path)


def listed(check: str, path: str, make: Callable[[Site], object]) -> Fault:
    """A URL of the sitemap, which `make` adds."""
    return fault(check, make, "/sitemap.xml", path)


def _orphan(path: str) -> Fault:
    make = lambda site: site.page(path, linked=False)  # noqa: E731
    return fault("orphan-page", make, path)


def _loop(site: Site) -> None:
    for one, other in (("/loop/a", "/loop/b"), ("/loop/b", "/loop/c"), ("/loop/c", "/loop/a")):
        site.redirect(one, other)


def _chain(site: Site) -> None:
    site.redirect("/chain/a", "/chain/b")
    site.redirect("/chain/b", "/chain/c")
    site.redirect("/chain/c", "/p/1")


def _same(site: Site, fields: tuple[str, ...], *numbers: int) -> None:
    for number in numbers:
        site.product(number).update({one: site.product(numbers[0])[one] for one in fields})


def _parameter(site: Site, path: str) -> None:
    base, _, _ = path.partition("?")
    same = {"sha256": site.pages[at(base)]["sha256"], "canonical": None}
    site.page(path, **same, title=site.pages[at(base)]["title"])
    site.pages[at(path)]["description"] = site.pages[at(base)]["description"]
    site.texts[at(path)] = site.texts[at(base)]


def _conflict(site: Site) -> None:
    for number in (105, 106):
        site.link("/p/104", f"/p/{number}", "hreflang", lang="fr")
        site.link(f"/p/{number}", "/p/104", "hreflang", lang="en")


def _near(site: Site) -> None:
    site.texts[at("/p/400")] = site.texts[at("/p/401")].upper() + " 7!"


def faults() -> list[Fault]:
    moved = ("/moved", "/p/7")
    return [
        used("broken-link", 110, "/gone/1", "a"),
        used("broken-link", 111, "/gone/2", "area"),
        *(used("broken-link", 158, f"/gone/{kind}", kind) for kind in ("next", "refresh")),
        ended("server-error", "/fails/1", "http_server_error", status=500, error="HTTP 500"),
        ended("server-error", "/fails/2", "http_server_error", linked=True, error="HTTP 503"),
        ended("certificate-error", "/tls", "tls", error="expired"),
        ended("invalid-response", "/odd", "protocol", error="bad chunk"),
        ended("invalid-redirect", "/nowhere", "redirect_invalid", status=302, error="mailto:x"),
        shown("soft-404", 112, reason="soft_404"),
        fault(
            "broken-redirect",
            lambda site: site.broken("/gone/3").redirect("/to-gone", "/gone/3"),
            "/to-gone",
            "/gone/3",
        ),
        several("redirect-loop", _loop, "/loop/a"),
        several(
            "redirect-loop", lambda site: site.bare("/self", "redirect_limit", error="it"), "/self"
        ),
        fault("redirect-chain", _chain, "/chain/a", "/p/1"),
        fault(
            "refresh-redirect",
            lambda site: site.bare("/refresh", "refresh", status=200, error=at("/p/2")),
            "/refresh",
            "/p/2",
        ),
        fault(
            "link-to-redirect",
            lambda site: site.redirect(*moved, 301).link("/p/113", "/moved"),
            "/p/113",
            "/moved",
        ),
        fault(
            "link-to-duplicate",
            lambda site: site.page("/copy", linked=False, listed=False, canonical=at("/p/3")).link(
                "/p/114", "/copy"
            ),
            "/p/114",
            "/copy",
        ),
        linked("insecure-link", 115, "http://old.example/", decision="out_of_scope"),
        linked("mixed-content", 116, "http://cdn.example/a.js", "script"),
        linked("mixed-content", 117, "http://shop.example/a.png", "img", text="A"),
        used("broken-image", 118, "/gone.png", "img"),
        used("broken-script", 119, "/gone.js", "script"),
        used("broken-stylesheet", 120, "/gone.css", "stylesheet"),
        linked("missing-alt", 121, "/i/b.png", "img", text=None),
        linked("invalid-link", 122, "https://[", decision="invalid"),
        linked("invalid-link", 155, "http:///p/155", decision="invalid"),
        linked("unusual-spelling", 123, "/p/4", spelling=at("/p/4?utm_source=x")),
        linked("internal-nofollow", 124, "/p/5", rel="external nofollow", decision="nofollow"),
        fault(
            "robots-linked",
            lambda site: site.bare("/private", "robots").link("/p/125", "/private"),
            "/private",
        ),
        _orphan("/orphan/1"),
        _orphan("/orphan/2"),
        fault("sitemap-missing", lambda site: site.page("/new", listed=False), "/new"),
        listed(
            "sitemap-broken",
            "/gone/4",
            lambda site: site.bare("/gone/4", "http_client_error", status=410, listed=True),
        ),
        listed("sitemap-redirect", "/old", lambda site: site.redirect("/old", "/p/6", listed=True)),
        listed("sitemap-noindex", "/hidden", lambda site: site.page("/hidden", reason="noindex")),
        listed(
            "sitemap-canonical",
            "/twin",
            lambda site: site.page("/twin", linked=False, canonical=at("/p/8")),
        ),
        listed("sitemap-robots", "/no", lambda site: site.bare("/no", "robots", listed=True)),
        ended("sitemap-invalid", "/map.xml", "sitemap_invalid", status=200, error="no sitemap"),
        named("canonical-broken", "/gone/5", lambda site: site.broken("/gone/5")),
        named("canonical-redirect", "/go", lambda site: site.redirect("/go", "/p/9")),
        named(
            "canonical-chain",
            "/half",
            lambda site: site.page("/half", listed=False, linked=False, canonical=at("/p/10")),
        ),
        named(
            "canonical-noindex",
            "/secret",
            lambda site: site.page("/secret", listed=False, reason="noindex"),
        ),
        named("canonical-host", "https://www.shop.example/p/130", lambda _: None),
        named("canonical-insecure", "http://shop.example/p/131", lambda _: None),
        shown("canonical-invalid", 132, canonical=None, cut="canonical=1"),
        linked("hreflang-return", 133, "/p/134", "hreflang", lang="de"),
        used("hreflang-broken", 135, "/gone/6", "hreflang", lang="fr"),
        linked("hreflang-language", 136, "/p/136", "hreflang", lang="english"),
        fault("hreflang-conflict", _conflict, "/p/104", "/p/105"),
        shown("missing-title", 137, title=None),
        shown("missing-description", 138, description=None),
        several(
            "duplicate-title", lambda site: _same(site, ("title",), 139, 140), "/p/139", "/p/140"
        ),
        several(
            "duplicate-description",
            lambda site: _same(site, ("description",), 141, 142, 143),
            *("/p/141", "/p/142", "/p/143"),
        ),
        shown("missing-h1", 156, h1=0),
        shown("several-h1", 157, h1=3),
        shown("long-title", 144, title="long " * 20),
        shown("long-description", 145, description="long " * 50),
        shown("missing-language", 146, language=None),
        shown("other-charset", 147, charset="windows-1252"),
        several("thin-page", lambda site: site.texts.update({at("/p/148"): "Soon."}), "/p/148"),
        several("near-duplicate", _near, "/p/400", "/p/401"),
        several(
            "duplicate-page",
            lambda site: _same(site, ("sha256", "title", "description"), 149, 150),
            *("/p/149", "/p/150"),
        ),
        fault(
            "parameter-duplicate",
            lambda site: _parameter(site, "/p/151?sort=up"),
            *("/p/151?sort=up", "/p/151"),
        ),
        shown("slow-page", 152, latency_ms=4_000),
        shown("heavy-page", 153, bytes=2_000_000),
        shown("deep-page", 154, depth=9),
        fault(
            "redirect-map", lambda site: site.redirect("/map/old", "/p/11"), "/map/old", "/map/new"
        ),
    ]


def new_faults() -> list[Fault]:
    """Faults that only the second run has."""
    return [
        used("broken-link", 500, "/lost/1", "a"),
        shown("missing-title", 501, title=None),
        linked("mixed-content", 502, "http://cdn.example/b.css", "stylesheet"),
        _orphan("/orphan/3"),
        shown("slow-page", 503, latency_ms=9_000),
    ]


def site_with(made: Iterable[Fault]) -> Site:
    site = clean_site()
    for one in made:
        one.make(site)
    return site


def expected(made: Iterable[Fault]) -> set[tuple[str, str, str | None]]:
    return {(one.check, url, target) for one in made for url, target in one.rows}
