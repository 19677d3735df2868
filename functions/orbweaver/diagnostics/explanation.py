"""Explains from stored facts why a URL was or was not crawled.

The statements follow the history of a URL. They describe its dead letter, URL changes, crawl,
deciding rules, linking page and claiming pack (batch of URLs). Then follow its position in a queue,
host, outcome, and next request.
"""

from __future__ import annotations

from collections.abc import Iterator

from orbweaver.budget.budget_rules import reasons_of
from orbweaver.diagnostics.host_status import why_blocked
from orbweaver.diagnostics.refusal_report import NEEDED
from orbweaver.diagnostics.rule_texts import (
    moment,
    paging_words,
    rules_words,
    scope_rule,
    span,
    trap_rule,
    urls,
)
from orbweaver.diagnostics.url_changes import changes
from orbweaver.diagnostics.url_status import Facts, UrlStatus, refusal_of, robots_of, url_status_of
from orbweaver.frontier.admission import in_scope
from orbweaver.frontier.claims import StoredClaim
from orbweaver.frontier.crawler_traps import trap_reason
from orbweaver.frontier.resumption import requested_again
from orbweaver.model.api_source import api_at
from orbweaver.model.auth import auth_for
from orbweaver.model.backoff import ATTEMPTS_MAX, attempts_of
from orbweaver.model.crawl import DAY_S, Crawl, State, Stop
from orbweaver.model.crawl_rules import depth_limit
from orbweaver.model.cuts import describe_cuts
from orbweaver.model.host_access import retries_of
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.render_rules import MEANS, OF_KIND, RenderWhy, learned_kind
from orbweaver.model.render_rules import deciding as deciding_rendering
from orbweaver.model.request_url import canonical_seed
from orbweaver.model.target import TargetKind
from orbweaver.model.url import host_of
from orbweaver.model.url_kind import kind_text
from orbweaver.model.url_rules import combined_rule, deciding
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import Host

WAITING = frozenset(
    {UrlStatus.WAITING, UrlStatus.WAITING_FOR_HOST, UrlStatus.RETRYING, UrlStatus.PARKED}
)
# If a crawl ends for one of these reasons, claimed URLs can be left without a request.
CUT_SHORT = frozenset({Stop.CANCELLED, Stop.DURATION, Stop.BYTES, Stop.DOLLARS})
_WITHDRAWN = frozenset({Refusal.NOFOLLOW, Refusal.SEED_NOFOLLOW})


@value_class
class Statement:
    """One line of an explanation: the subject of a fact, and its text."""

    about: str
    words: str


@value_class
class Explanation:
    """A sentence on what happened to a URL, and the facts behind it in order of time."""

    url_status: UrlStatus
    verdict: str
    refusal: str | None = None
    statements: tuple[Statement, ...] = ()


def explain(facts: Facts) -> Explanation:
    try:
        url = canonical_seed(facts.reference, tracking=facts.crawl.removed_parameters)
    except ValueError as error:
        verdict = f"it would be refused as {Refusal.INVALID}: {error}"
        said = (Statement(about="crawl", words=_crawl(facts)),)
        return Explanation(
            url_status=UrlStatus.MALFORMED,
            verdict=verdict,
            refusal=Refusal.INVALID,
            statements=said,
        )
    url_status, refused = url_status_of(facts, url), refusal_of(facts, url)
    if url_status is UrlStatus.UNSEEN and refused is not None:
        url_status = UrlStatus.REFUSED
    statements = tuple(
        Statement(about=about, words=words) for about, words in _statements(facts, url, url_status)
    )
    return Explanation(
        url_status=url_status,
        verdict=_verdict(facts, url, url_status, refused),
        refusal=refused[0] if refused and url_status is UrlStatus.REFUSED else None,
        statements=statements,
    )


# --- the verdict --------------------------------------------------------------------------------


def _verdict(facts: Facts, url: str, url_status: UrlStatus, refused: tuple[str, str] | None) -> str:
    record, run, journey = facts.record, facts.run, facts.journey
    if (
        url_status is UrlStatus.ENDED
        and record is None
        and journey is not None
        and journey.end is not None
    ):
        end = journey.end
        return f"{end.outcome}: {end.reason} ({end.reason.means}); {_not_recorded(facts, url)}"
    if url_status is UrlStatus.ENDED and record is not None:
        other = f", by the run {record.crawl}" if record.crawl != facts.crawl.id else ""
        return f"{record.outcome}: {record.reason} ({record.reason.means}){other}"
    if url_status is UrlStatus.DEAD_LETTER and facts.letter is not None:
        letter, host = facts.letter, host_of(url).partition("://")[2]
        command = f"`orbweaver dlq redrive --host {host}` sends it back"
        return f"dead letter ({letter.letter.reason or letter.cause}): {command}"
    if url_status is UrlStatus.UNASKED:
        return f"not requested: {_unasked(facts, url)}"
    if url_status is UrlStatus.REFUSED and refused is not None:
        return f"not crawled: refused as {refused[0]}: {refused[1]}"
    words = {
        UrlStatus.LAPSED: ("queued once; its record is no longer kept"),
        UrlStatus.PARKED: f"waiting: {run.id} is paused; `orbweaver resume {run.id}` continues it",
        UrlStatus.WAITING_FOR_HOST: "queued: it waits for its host's turn",
        UrlStatus.RETRYING: "waiting for a retry: the last request failed",
        UrlStatus.WAITING: "queued, or being requested now",
    }
    return words.get(url_status) or _unseen(facts, url)


def _unseen(facts: Facts, url: str) -> str:
    crawl = facts.crawl
    if url in crawl.references:
        return "a seed that is not queued yet, or the run ended first"
    if facts.late and crawl.live:
        return f"waiting: other kinds of URL come first{_kind(facts)}"
    if facts.late:
        barren = crawl.stop is Stop.NOTHING_NEW
        why = "ended as nothing new was to come" if barren else "reached its limit"
        return f"not requested: it waited when {crawl.id} {why}{_kind(facts)}{_remedy(crawl)}"
    if (withdrawn := _withdrawn(facts)) is not None:
        return withdrawn
    link = "links to it without nofollow" if crawl.obey_nofollow else "links to it"
    if crawl.live:
        return f"not found yet; it is crawled if a page within the scope {link}"
    return (
        f"not found, and {crawl.id} has ended; a new run crawls it if a page within the scope"
        f" {link}{_remedy(crawl)}"
    )


def _remedy(crawl: Crawl) -> str:
    """Return what requests the URLs that the end of a crawl left out, or ""."""
    if crawl.stop is Stop.MAX_PAGES:
        return f"; the same command with a higher --max-pages than {crawl.pages_max:,} continues it"
    if crawl.stop is Stop.NOTHING_NEW:
        return "; the same command without --stop-when-nothing-new continues it"
    return ""


def _kind(facts: Facts) -> str:
    """Describe how many URLs of the same kind were requested, and how many of them were useful."""
    if facts.kind is None:
        return ": of its kind none is known to have been asked for"
    asked, fruitful = facts.kind
    return f": of {urls(asked)} of its kind, {fruitful:,} brought something new"


def _withdrawn(facts: Facts) -> str | None:
    """Explain that links to the URL are or might be marked nofollow. None: no sign of that."""
    named = f" ({' or '.join(facts.withdrawing)})" if facts.withdrawing else ""
    if not _WITHDRAWN.isdisjoint(facts.refused):
        page = (
            f"a first page{named}" if named and Refusal.SEED_NOFOLLOW in facts.refused else "a page"
        )
        return f"not crawled: {page} links to it with nofollow"
    if facts.seed_nofollow:
        return (
            f"never seen; a first page{named} asks not to follow its links, and may have one to it:"
            " --ignore-nofollow follows them, on a site of your own"
        )
    return None


def _not_recorded(facts: Facts, url: str) -> str:
    """Name the rule because of which a URL has no record, or note a change of rules."""
    place = deciding(facts.run.rules, url).get("record")
    if place is None or facts.run.rules[place].record is not False:
        return "no record was kept of it, by a rule of that time"
    return f"rules[{place}] keeps no record of it"


def _unasked(facts: Facts, url: str) -> str:
    run = facts.run
    if facts.orphaned and facts.claim is not None:
        return f"{facts.claim.crawl}, whose URL it is, is not stored any more"
    if run.stop in CUT_SHORT:
        return f"{Reason(run.stop).means} (skipped: {run.stop}, which leaves no record)"
    if reasons := reasons_of(run):
        told = " or ".join(f"{reason.means} (skipped: {reason})" for reason in reasons)
        return f"{told}, which leaves no record"
    if facts.claim is not None and facts.now_ms - facts.claim.at_ms > facts.retention_s * 1000:
        return f"or its record is gone, which is kept for {span(facts.retention_s)}"
    if combined_rule(run.rules, url).record is False:
        return f"or its journal is gone, for {_not_recorded(facts, url)}"
    return f"{run.id} is {run.state}, and has no record of it"


# --- the statements -----------------------------------------------------------------------------


def _statements(facts: Facts, url: str, url_status: UrlStatus) -> Iterator[tuple[str, str]]:
    yield from _dead_letter(facts)
    yield "url", url
    for change in changes(facts.reference, tracking=facts.crawl.removed_parameters):
        yield "changed", change
    yield "crawl", _crawl(facts)
    yield "scope", _scope(facts, url, url_status)
    for place, words in rules_words(facts.crawl.rules, url) if _is_page(facts, url) else ():
        yield "rule", f"rules[{place}], where {facts.crawl.rules[place].match} is found: {words}"
    trapped = trap_reason(url, facts.bounds)
    looks = f"looks like one: {trap_rule(trapped, facts.bounds)}" if trapped else "none"
    yield "trap", f"{looks} (a seed may)" if trapped and url in facts.crawl.references else looks
    if facts.crawl.apis and (api := api_at(facts.crawl.apis, url)) is not None:
        yield "api", f"a page of {api.url}: {paging_words(api)}"
    yield "robots", robots_of(facts, url)[1]
    yield from _asked(facts, url)
    yield from _origin(facts, url)
    if facts.claim is not None:
        yield from _claim(facts, url, facts.claim)
    if url_status in WAITING:
        yield from _waiting(facts, url_status)
    if facts.host is not None:
        yield from _host(facts.host, facts.now_ms)
    if facts.record is not None:
        yield from _record(facts.record)
        yield from _rendering(facts, facts.record)
    if facts.claim is not None and url_status not in WAITING:
        yield "again", _again(facts, url, facts.claim, url_status)


def _asked(facts: Facts, url: str) -> Iterator[tuple[str, str]]:
    names = [name for name, _ in identity_of(facts.crawl, host_of(url), facts.agent).headers]
    if names:
        yield "asked", f"with the headers {', '.join(names)}"
    if (auth := auth_for(facts.crawl.auth, url)) is not None:
        yield "asked", f"with the login at {auth.origin} ({auth.kind})"
    if facts.crawl.cookies:
        yield "asked", "with the cookies that its site has set in the crawl"


def _dead_letter(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.letter is not None:
        case = facts.letter
        since = f"{case.letter.id}, {case.kind}, since {moment(case.last_seen_ms)}"
        yield "dead letter", f"{since}: `orbweaver dlq show {case.letter.id}` shows it"
    if facts.letters_note is not None:
        yield "dead letters", facts.letters_note


def _crawl(facts: Facts) -> str:
    crawl = facts.crawl
    stop = "" if crawl.stop in (None, Stop.FINISHED) else f", {crawl.stop}"
    return f"{crawl.id} ({crawl.state}{stop}): {facts.chosen}"


def _scope(facts: Facts, url: str, url_status: UrlStatus) -> str:
    crawl, referrer = facts.crawl, _referrer(facts)
    if url in crawl.references and not facts.depth:
        return "it is a seed"
    if referrer is not None:
        said = scope_rule(crawl, url, referrer)
        taken = url_status not in (UrlStatus.REFUSED, UrlStatus.UNSEEN)
        widened = taken and not in_scope(crawl, url, referrer)
        return f"{said}; a redirect of a seed widens it" if widened else said
    begun = crawl.anchors or crawl.references
    near = next((seed for seed in begun if in_scope(crawl, url, seed)), None)
    page = near or next(iter(begun), None)
    if page is None:
        return f"scope {crawl.scope}: it depends on the page that links to it"
    return scope_rule(crawl, url, page)


def _referrer(facts: Facts) -> str | None:
    if facts.record is not None:
        return facts.record.referrer
    journey = facts.journey
    return journey.target.referrer if journey is not None and journey.target is not None else None


def _origin(facts: Facts, url: str) -> Iterator[tuple[str, str]]:
    """Describe the first page that linked a queued URL, and the URL's depth."""
    record, journey, claim = facts.record, facts.journey, facts.claim
    target = journey.target if journey is not None else None
    if record is None and claim is None:
        yield from _links(facts)
        return
    referrer = _referrer(facts)
    if referrer is not None:
        yield "linked by", referrer
    elif facts.depth and facts.run.retry_of is not None:
        # The run requests pages of earlier runs as seeds, at their depths.
        earlier = f"`orbweaver explain URL --crawl {facts.run.retry_of}` names it"
        yield "linked by", f"a page of an earlier run: {earlier}"
    elif url in facts.crawl.references or (record or target) is not None:
        yield "linked by", "no page: it is a seed"
    else:
        yield "linked by", "unknown until it ends"
    yield "depth", f"{facts.depth} of {depth_limit(facts.run, combined_rule(facts.run.rules, url))}"


def _links(facts: Facts) -> Iterator[tuple[str, str]]:
    """Describe the known links to a URL that was never queued."""
    kept = "pages whose links are left out are not kept"
    if facts.refused:
        reasons = " and ".join(facts.refused)
        yield "linked by", f"some page: a link to it was refused as {reasons}; {kept}"
    else:
        yield "linked by", f"not known: {kept}"


def _is_page(facts: Facts, url: str) -> bool:
    target = facts.journey.target if facts.journey is not None else None
    if target is not None and target.kind is TargetKind.SITEMAP:
        return False
    return url not in facts.crawl.sitemap_urls


def _window_s(run: Crawl, url: str) -> int:
    window_s = combined_rule(run.rules, url).window_s
    return run.window_s if window_s is None else window_s


def _claim(facts: Facts, url: str, claim: StoredClaim) -> Iterator[tuple[str, str]]:
    yield "claim", f"by pack {claim.pack} of {claim.crawl}, {moment(claim.at_ms)}"
    crawl, record = facts.crawl, facts.record
    if claim.crawl == crawl.id or crawl.continuous:
        return
    window_s = _window_s(crawl, url)
    if record is not None and record.crawl == crawl.id and claim.at_ms < crawl.started_at_ms:
        yield "claim", f"{crawl.id} has requested it again"
    elif crawl.stale_before_ms(crawl.started_at_ms, window_s) <= claim.at_ms < crawl.started_at_ms:
        is_open = record is None or record.outcome in (Outcome.FAILED, Outcome.SKIPPED)
        how = f"{record.outcome} ({record.reason})" if record and is_open else "requested"
        yield "claim", f"{crawl.id} skips it: {how} within the window of {span(window_s)}"
    else:
        yield "claim", f"by another run than {crawl.id}"


def _again(facts: Facts, url: str, claim: StoredClaim, url_status: UrlStatus) -> str:
    """Describe when a new run, or a continuous crawl, requests the URL again."""
    run, expires_ms, window_s = facts.run, claim.expires_s * 1000, _window_s(facts.run, url)
    at_ms = min(claim.at_ms + window_s * 1000, expires_ms)
    if expires_ms <= facts.now_ms:
        return f"at once: the claim has lapsed, {moment(expires_ms)}"
    if not run.continuous and (said := _within_window(facts, url, url_status)) is not None:
        return said
    who = "it" if run.continuous else f"a new run of {run.name}"
    if at_ms <= facts.now_ms:
        return f"by {who}, at once: the window is {span(window_s)}"
    return f"by {who}, from {moment(at_ms)} on, or as soon as a sitemap says that it has changed"


def _within_window(facts: Facts, url: str, url_status: UrlStatus) -> str | None:
    """Describe when a new run requests a URL within the dedup window. None: no run does."""
    record = facts.record
    run = facts.crawl if record is not None and record.crawl == facts.crawl.id else facts.run
    when = "at once" if run.state is State.FINISHED else f"once {run.id} has ended"
    who = f"by a new run of {run.name} with the same seeds"
    said = f"{who}, {when}"
    if record is None:
        unasked = url_status is UrlStatus.UNASKED and run.stop in CUT_SHORT
        return f"{said}: it has not been requested" if unasked else None
    seed = url in run.references
    if requested_again(run, run, record.outcome, record.reason, is_seed=seed):
        return f"{said}: it has not been fetched"
    if record.reason is Reason.ROBOTS:
        day_later = moment(run.ended_ms(facts.now_ms) + DAY_S * 1000)
        return f"{who}, from {day_later} on, or {when} with --ignore-robots or another user agent"
    return None


def _waiting(facts: Facts, url_status: UrlStatus) -> Iterator[tuple[str, str]]:
    journey = facts.journey
    if journey is None or journey.target is None:
        yield "queue", "its pack's journal is gone, so where it waits is not known"
        return
    target = journey.target
    times = "once" if journey.deferrals == 1 else f"{journey.deferrals} times"
    # "At least", because a pack that is requeued as a whole leaves no journal.
    requeued = f", requeued at least {times}" if journey.deferrals else ""
    most = attempts_of(ATTEMPTS_MAX, retries_of(facts.crawl, target.url))
    yield "attempt", f"{target.attempt} of at most {most}{requeued}"
    if target.render:
        yield "rendering", "its scripts may have to be run: it is for the workers with a browser"
    if url_status is UrlStatus.PARKED:
        yield "queue", f"in pack {journey.pack}, which is set aside until the crawl goes on"
    elif journey.backlogged:
        yield (
            "queue",
            f"in pack {journey.pack}, which waits for its host's turn",
        )
    elif journey.due_at_ms is not None and journey.due_at_ms > facts.now_ms:
        yield "queue", f"in pack {journey.pack}, not before {moment(journey.due_at_ms)}"
    else:
        yield "queue", f"in pack {journey.pack}: queued or in progress"


def _host(host: Host, now_ms: int) -> Iterator[tuple[str, str]]:
    if host.blocked_until_ms > now_ms:
        until, why = moment(host.blocked_until_ms), why_blocked(host, now_ms)
        yield "host", f"{host.name} is blocked until {until}: {why}"
        return
    next_ms = max(host.tat_ms, host.line_ms)
    free = f"from {moment(next_ms)} on" if next_ms > now_ms else "now"
    requests = "1 request" if host.failures == 1 else f"{host.failures} requests in a row"
    failed = f"; {requests} without an answer" if host.failures else ""
    yield "host", f"{host.name} can be requested {free}{failed}"


def _record(record: PageRecord) -> Iterator[tuple[str, str]]:
    asked = "requested" if record.status is not None or record.latency_ms is not None else "decided"
    yield "ended", f"{record.outcome}: {record.reason}, {asked} {moment(record.fetched_at)}"
    yield "means", record.reason.means
    yield "attempt", f"{record.attempt}"
    if record.status is not None:
        yield "status", str(record.status)
    if record.reason is Reason.CONTENT_TYPE and record.status is None:
        yield "why", "skipped by its file name"
    if record.error is not None:
        leads = record.outcome is Outcome.REDIRECTED or record.reason is Reason.CANONICAL
        yield ("leads to" if leads else "error"), record.error
    if record.cut is not None:
        yield "cut", describe_cuts(record.cut)
    if record.rendered:
        yield "rendered", "body, text and links are those that its scripts made, in a browser"
    if record.needs_rendering:
        yield "scripts", NEEDED
    if record.body_key is not None:
        yield "body", f"{record.body_key}, {record.body_length} bytes from {record.body_offset}"
    elif record.outcome in (Outcome.FETCHED, Outcome.UNCHANGED):
        yield "body", "not kept: bodies are not stored"


def _rendering(facts: Facts, record: PageRecord) -> Iterator[tuple[str, str]]:
    """Explain why a page's scripts were run or not. The text names the rule that decides now."""
    if record.render_why not in MEANS:
        return
    why = RenderWhy(record.render_why)
    place = deciding_rendering(facts.run, record.url)
    if why in (RenderWhy.ALWAYS, RenderWhy.NEVER) and place is not None:
        rule = facts.run.render_rules[place]
        yield "scripts", f"{MEANS[why]} (render.rules[{place}], where {rule.match} is found)"
    elif why in OF_KIND:
        yield "scripts", f"{MEANS[why]}: {kind_text(learned_kind(record.url))}"
    else:
        yield "scripts", MEANS[why]
