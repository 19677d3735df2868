"""Determine the status of a URL in a crawl, and the rule that would refuse the URL.

The first of these applies: not a URL, ended (has a record), dead letter, claimed (queued by a run),
never claimed. A rule might refuse a URL that was never claimed. A claimed URL has an expired claim,
or was not requested before its run ended. Otherwise it is parked with a paused run, is retried,
waits for its host, or is queued.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from orbweaver.diagnostics.rule_texts import moment, never_requested_reason, scope_rule, trap_rule
from orbweaver.frontier.admission import admit_pattern, in_scope
from orbweaver.frontier.claims import StoredClaim
from orbweaver.frontier.crawl_scope import admit_name
from orbweaver.frontier.crawler_traps import is_reordered_index, trap_reason
from orbweaver.frontier.dead_letters import Case
from orbweaver.frontier.journal import Unrecorded
from orbweaver.model.address_policy import PUBLIC_ONLY, Allowed
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.crawl_rules import depth_limit
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.named_origins import origins_of
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.request_url import resolved_seed
from orbweaver.model.target import Target
from orbweaver.model.url import DEFAULT_BOUNDS, Bounds, host_of
from orbweaver.model.url_patterns import first_match
from orbweaver.model.url_rules import combined_rule, deciding
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import Host, RobotsEntry
from orbweaver.politeness.robots_txt import parse


class UrlStatus(StrEnum):
    """Status of a URL in a crawl, as the command `explain` reports it."""

    MALFORMED = "malformed"
    ENDED = "ended"
    DEAD_LETTER = "dead_letter"
    WAITING = "waiting"
    RETRYING = "retrying"
    WAITING_FOR_HOST = "waiting_for_host"
    PARKED = "parked"
    UNASKED = "unasked"
    LAPSED = "lapsed"
    REFUSED = "refused"
    UNSEEN = "unseen"


@value_class
class Journey:
    """Progress of a claimed (queued) URL, from the journals of its packs. `pack` is the last.

    `target` is the URL's entry in that pack (batch of URLs), None if the journal with it is
    deleted. `gone` means that the pack is done and no later pack has the URL. If the URL has no
    record either, it ended without a request.
    """

    pack: str
    target: Target | None = None
    deferrals: int = 0
    due_at_ms: int | None = None
    gone: bool = False
    # True if the pack was found among the host's first waiting packs. Further packs are not
    # searched.
    backlogged: bool = False
    # The outcome of a URL, if a rule keeps no record of it.
    end: Unrecorded | None = None


@value_class
class Facts:
    """Stored facts on a URL and a crawl. `owner` is the run that has claimed (queued) the URL."""

    reference: str
    crawl: Crawl
    chosen: str
    now_ms: int
    agent: str
    retention_s: int
    bounds: Bounds = DEFAULT_BOUNDS
    allowed: Allowed = PUBLIC_ONLY
    claim: StoredClaim | None = None
    owner: Crawl | None = None
    journey: Journey | None = None
    record: PageRecord | None = None
    host: Host | None = None
    robots: RobotsEntry | None = None
    # Reasons why links to the URL were refused, if the URL is among the stored examples.
    refused: tuple[str, ...] = ()
    # True if a seed's page has links marked nofollow. `withdrawing` are the pages that might have
    # them.
    seed_nofollow: bool = False
    # True if the URL is a late link (requested last) that was found among the packs read. `kind`
    # counts similar URLs: requested ones, and useful ones.
    late: bool = False
    kind: tuple[int, int] | None = None
    withdrawing: tuple[str, ...] = ()
    # The URL's dead letter, and a note if not all dead letters could be read.
    letter: Case | None = None
    letters_note: str | None = None

    @property
    def run(self) -> Crawl:
        """The run that claimed the URL, or else the run that was asked about."""
        return self.owner or self.crawl

    @property
    def depth(self) -> int:
        """The number of links from a seed. 0 if the URL is not queued."""
        target = None if self.journey is None else self.journey.target
        found = self.record or target or self.claim
        return 0 if found is None else found.depth

    @property
    def orphaned(self) -> bool:
        """True if another run claimed the URL and that run is not stored any more."""
        others = self.claim is not None and self.claim.crawl != self.crawl.id
        return others and self.owner is None


def choose(crawls: Sequence[Crawl], reference: str) -> tuple[Crawl, str] | None:
    """Return the newest crawl with a URL in scope, or else the newest that accepts all hosts.

    `crawls` are newest first. The text gives the reason for the choice. None: no crawl fits.
    """
    for crawl in crawls:
        seeds = crawl.anchors or crawl.references
        url = resolved_seed(reference, tracking=crawl.removed_parameters)
        if url is not None and crawl.scope is not Scope.ANY and belongs(crawl, url, seeds):
            return crawl, "the newest run with this URL in scope"
    anywhere = (crawl for crawl in crawls if crawl.scope is Scope.ANY)
    found = next(anywhere, None)
    return None if found is None else (found, "the newest that takes every host")


def url_status_of(facts: Facts, url: str) -> UrlStatus:
    """Return the status of a URL. A URL never claimed is `UNSEEN`, even if a rule refuses it."""
    claim, journey = facts.claim, facts.journey
    unrecorded = journey is not None and journey.end is not None
    if unrecorded or (facts.record is not None and facts.record.url == url):
        return UrlStatus.ENDED
    if facts.letter is not None or claim is None:
        return UrlStatus.UNSEEN if facts.letter is None else UrlStatus.DEAD_LETTER
    if claim.expires_s * 1000 <= facts.now_ms:
        return UrlStatus.LAPSED
    if facts.orphaned or not facts.run.live or (journey is not None and journey.gone):
        return UrlStatus.UNASKED
    if facts.run.state is State.PAUSED:
        return UrlStatus.PARKED
    attempt = journey.target.attempt if journey is not None and journey.target is not None else 1
    behind = journey is not None and journey.backlogged
    waiting = UrlStatus.WAITING_FOR_HOST if behind else UrlStatus.WAITING
    return UrlStatus.RETRYING if attempt > 1 else waiting


# --- rules --------------------------------------------------------------------------------------


def refusal_of(facts: Facts, url: str) -> tuple[str, str] | None:
    """Return the name and description of the first rule that refuses a URL. None: no rule does."""
    found = _left_out(facts, url)
    if found is not None:
        return found
    seed = url in facts.crawl.references
    if not seed and (reason := admit_name(facts.crawl, url)) is not None:
        return reason, f"its name says that it is no page ({url.rpartition('/')[2]})"
    allowed, words = robots_of(facts, url)
    if not allowed:
        return Reason.ROBOTS, words
    journey = facts.journey
    local = journey.target.local if journey is not None and journey.target is not None else None
    named = origins_of(facts.crawl) | ({local} if local is not None else set())
    closed = never_requested_reason(url, facts.allowed, named)
    return None if closed is None else (Reason.ADDRESS, closed)


def _left_out(facts: Facts, url: str) -> tuple[Refusal, str] | None:
    """Return the first rule that keeps a URL out of the queue, as a seed or as a seed's link."""
    crawl = facts.crawl
    seed = url in crawl.references
    said = combined_rule(crawl.rules, url)
    if not seed and depth_limit(crawl, said) < 1:
        if said.depth_max is None:
            return Refusal.DEPTH, f"{crawl.id} follows no links (--max-depth 0)"
        place = deciding(crawl.rules, url)["depth_max"]
        return Refusal.DEPTH, f"rules[{place}] lets none in but seeds (depth 0)"
    begun = crawl.anchors or crawl.references
    if not seed and begun and not belongs(crawl, url, begun):
        return Refusal.SCOPE, scope_rule(crawl, url, begun[0])
    left_out = admit_pattern(crawl, url, seed=seed)
    if left_out is Refusal.EXCLUDE:
        return left_out, f"--exclude {first_match(crawl.exclude, url)} is found in it"
    if left_out is None and not seed:
        left_out = trap_reason(url, facts.bounds) or (
            Refusal.INDEX_ORDER if is_reordered_index(url, url) else None
        )
    if left_out is None:
        return None
    return left_out, trap_rule(left_out, facts.bounds) or left_out.means


def robots_of(facts: Facts, url: str) -> tuple[bool, str]:
    """Return whether the stored robots.txt allows a URL, and the deciding line."""
    if not facts.crawl.obey_robots:
        return True, "ignored (--ignore-robots)"
    entry = facts.robots
    if entry is None:
        return True, f"no copy of {host_of(url)}/robots.txt is stored; --fetch requests it now"
    since = f", as of {moment(entry.fetched_at_ms)}"
    if entry.verdict == "allow":
        return True, f"there is none, so everything is allowed{since}"
    if entry.verdict == "unreachable":
        return False, f"unreachable, so nothing is allowed: {entry.detail or 'no answer'}{since}"
    agent = identity_of(facts.crawl, host_of(url), facts.agent).token
    decided = parse(entry.body or b"").decide(agent, url)
    if decided.why is None:
        return True, f"no rule matches{since}"
    group = f" (User-agent: {decided.group})" if decided.group else ""
    return decided.allowed, f"{decided.why}{group}{since}"


def belongs(crawl: Crawl, url: str, pages: Iterable[str]) -> bool:
    return any(in_scope(crawl, url, page) for page in pages)
