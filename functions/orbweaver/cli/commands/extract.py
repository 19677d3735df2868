"""`extract`: apply a definition's item rules to one page, without a crawl or a stack.

A URL is requested as in a crawl: same fetcher, user agent, robots.txt and redirects. For a file,
`--url` gives the URL of the page. Custom functions come from `--extractor`, or else from the module
that cdk.json deploys. The exit code is 1 if an item is invalid or no rule matches the page.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict

from orbweaver.cli import text
from orbweaver.cli.causes import code_of
from orbweaver.cli.command import answer, command, json_option, option
from orbweaver.cli.commands.crawl import check_needs_no_login, checked
from orbweaver.cli.commands.custom import EXTRACTOR_HELP, module_of
from orbweaver.cli.commands.init_check import plan_in
from orbweaver.cli.commands.robots_url import canonical
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import DEFINITION
from orbweaver.cli.exit_codes import FAILED, NO_PAGE, OK, REFUSED, PageError, UsageError
from orbweaver.cli.ruling import ruling_of
from orbweaver.extraction.extract import ItemRule, rules_about
from orbweaver.fetching import response_verdict as answers
from orbweaver.fetching.response_verdict import judge
from orbweaver.frontier.api_paging import step_of
from orbweaver.frontier.stored_content import Keeping
from orbweaver.model.api_source import ApiSource, Paging, PagingFacts, api_at
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.host_access import timeout_of
from orbweaver.model.http_exchange import Request, Response
from orbweaver.model.item import Item
from orbweaver.model.outcome import ANSWERED
from orbweaver.model.ports import Fetcher
from orbweaver.model.request_url import is_post, sent_form
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.model.url import canonicalize, host_of, redacted
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import value_class
from orbweaver.parsing.sniffing import is_json
from orbweaver.politeness.robots_cache import RobotsUnreachable
from orbweaver.politeness.robots_txt import Robots
from orbweaver.worker.page_outcome import page_types
from orbweaver.worker.page_reading import PageReading, Read, ReadingJob, items_of, wants_json

REDIRECTS_MAX = 5
WAIT_MS = 60_000
SHOWN_CHARS_MAX = 200
ITEMS_SHOWN_MAX = 20


@value_class
class FetchedPage:
    """The body of a page, its URL and its content type."""

    url: str
    body: bytes
    content_type: str | None = None
    link: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.content_type is None else {"content-type": self.content_type}

    @property
    def is_json(self) -> bool:
        return is_json(self.headers, self.body)


async def extract(arguments: Namespace, around: CliContext) -> int:
    if arguments.config == DEFINITION and not (around.folder / DEFINITION).exists():
        raise UsageError(
            f"extract needs a definition with item rules; {DEFINITION} is missing: give --config"
            " FILE, or use `orbweaver scrape URL`, which prints a page without rules"
        )
    crawl = checked(plan_in(arguments.config, around), around)
    if not crawl.items:
        fix = "add [[items]] (docs/extraction.md)"
        raise UsageError(f"{arguments.config} has no item rules: {fix}")
    module = module_of(arguments.extractor, around, crawl.items)
    got = await _got(arguments, around, crawl)
    api = api_at(crawl.apis, got.url)
    rules = rules_about(crawl.items, got.url, json=got.is_json or api is not None)
    items, found = await _items(got, rules, crawl, module)
    rows = (asdict(item) for item in items)
    bodies = ({"url": got.url, "rule": row.pop("table"), **row} for row in rows)
    lines = [*_lines(got.url, crawl.items, rules, items), *_api_lines(got, crawl, api, found)]
    answer(arguments, around, bodies, *lines)
    return OK if rules and all(item.valid for item in items) else FAILED


async def _items(
    got: FetchedPage, rules: tuple[ItemRule, ...], crawl: Crawl, module: str
) -> tuple[tuple[Item, ...], Read]:
    """Read a page as a worker does, with the same limits on CPU and memory."""
    from orbweaver.adapters.local.clock import SystemClock
    from orbweaver.adapters.local.reader import BudgetReader

    api = api_at(crawl.apis, got.url)
    reads_json = api is not None or (got.is_json and wants_json(crawl, got.url))
    job = ReadingJob(
        url=got.url,
        at_ms=0,
        answer=Response(status=200, headers=got.headers, body=got.body),
        html=not reads_json,
        json=reads_json,
        api=api,
        tracking=crawl.removed_parameters,
        items=rules,
        keeping=Keeping(bodies=Bodies.OFF),
        follows=False,
    )
    clock = SystemClock()
    with closing(BudgetReader(clock=clock, extractor=module)) as reader:
        found = await reader.read(job, host_of(got.url), clock.now_ms() + WAIT_MS)
    return items_of(job, found), found


async def _got(arguments: Namespace, around: CliContext, crawl: Crawl) -> FetchedPage:
    what: str = arguments.page
    if "://" in what:
        if arguments.url:
            raise UsageError("--url is the address of a file: omit it, or give a file")
        url = canonical(what)
        check_needs_no_login(crawl, url, "extract")
        async with around.web() as fetcher:
            api = api_at(crawl.apis, url)
            # The address of a POST request means the API's first page.
            url = api.url if api is not None and is_post(api.url) and not is_post(url) else url
            return await _fetched(url, around, crawl, fetcher)
    path = around.folder / what
    if not path.is_file():
        raise UsageError(f"there is no file {what}; a URL begins with http:// or https://")
    if not arguments.url:
        raise UsageError(f"--url is missing: rules match URLs, so give the address of {what}")
    limit = Settings().fetching.body_bytes_max
    with path.open("rb") as file:
        return FetchedPage(url=canonical(arguments.url), body=file.read(limit))


async def _fetched(url: str, around: CliContext, crawl: Crawl, fetcher: Fetcher) -> FetchedPage:
    settings = Settings()
    named = frozenset({host_of(url)})  # the user has named it, unlike the target of a redirect
    for _ in range(REDIRECTS_MAX):
        await _allowed(url, around, crawl, fetcher, named)
        identity = identity_of(crawl, host_of(url), settings.fetching.user_agent)
        api = api_at(crawl.apis, url)
        target = Target(url=url, depth=0, api=None if api is None else api.url)
        total_s, idle_s = timeout_of(crawl, host_of(url), settings.fetching.fetch_total_s)
        address, body, headers = sent_form(url, identity.headers)
        request = Request(
            url=address,
            user_agent=identity.agent,
            headers=headers,
            body=body,
            direct=not crawl.proxied,
            trust=identity.trust,
            accept=page_types(crawl, target),
            body_bytes_max=settings.fetching.body_bytes_max,
            total_s=total_s,
            idle_s=idle_s,
            named=named,
        )
        response = await fetcher.fetch(request)
        verdict = judge(
            response,
            attempt=1,
            now_ms=around.clock.now_ms(),
            any_type=api is not None,
            json=wants_json(crawl, url),
        )
        match verdict:
            case answers.Read(body=body):
                received = response.headers if isinstance(response, Response) else {}
                return FetchedPage(
                    url=url,
                    body=body,
                    content_type=received.get("content-type"),
                    link=received.get("link", ""),
                )
            case answers.Redirect(location=location):
                url = canonicalize(location, url, tracking=crawl.removed_parameters)
                around.note(f"redirected to {redacted(url)}")
            case _:
                said = verdict.error or ""
                why = f"{verdict.reason}: {said}" if said else str(verdict.reason)
                said = f"{redacted(url)} cannot be read: {text.clean(why)}"
                raise PageError(said, code_of(verdict.reason))
    raise PageError(f"{redacted(url)} redirects more than {REDIRECTS_MAX} times", NO_PAGE)


async def _allowed(
    url: str, around: CliContext, crawl: Crawl, fetcher: Fetcher, named: frozenset[str]
) -> None:
    """Raise UsageError if robots.txt forbids a crawl to request a URL, or cannot be read."""
    if not crawl.obey_robots:
        return
    settings = Settings()
    ruling, _ = await ruling_of(host_of(url), crawl, fetcher, around.clock, settings, named)
    token = identity_of(crawl, host_of(url), settings.fetching.user_agent).token
    fix = "save the page and give the file, or set politeness.robots for your own site"
    if isinstance(ruling, RobotsUnreachable):
        said = f"robots.txt of {redacted(url)} cannot be read: {ruling.detail}: {fix}"
        raise PageError(said, code_of(ruling.reason or ANSWERED))
    if isinstance(ruling, Robots) and not ruling.decide(token, url).allowed:
        raise PageError(f"robots.txt forbids {redacted(url)}: {fix}", REFUSED)


def _lines(
    url: str, all_rules: Sequence[ItemRule], rules: Sequence[ItemRule], items: Sequence[Item]
) -> list[str]:
    if not rules:
        patterns = ", ".join(f"{rule.name} ({text.cut(rule.match, 60)})" for rule in all_rules)
        return [f"no rule matches {url}: the rules are {patterns}"]
    lines = [url]
    for rule in rules:
        found = [item for item in items if item.table == rule.name]
        invalid = sum(not item.valid for item in found)
        lines += ["", f"{rule.name}: {text.plural(len(found), 'item')}, {invalid:,} invalid"]
        for item in found[:ITEMS_SHOWN_MAX]:
            rows = [("!", problem) for problem in item.problems]
            rows += [(name, _word(value)) for name, value in item.fields.items()]
            lines += [f"  [{item.place}]", *text.table(rows, indent=4)]
        if len(found) > ITEMS_SHOWN_MAX:
            lines.append(f"  and {len(found) - ITEMS_SHOWN_MAX:,} more: --json shows all")
    return lines


def _api_lines(got: FetchedPage, crawl: Crawl, api: ApiSource | None, found: Read) -> Iterator[str]:
    """Show the links of a page of an API, and the next page."""
    if api is None or not isinstance(found, PageReading):
        return
    yield ""
    if found.unfit is not None:
        yield f"this page of the API cannot be read: {found.unfit}"
        return
    if api.links:
        yield text.plural(0 if found.page is None else len(found.page.links), "link")
    if found.paging is not None and api.paging is not None:
        target = Target(url=got.url, depth=0, api=api.url, page=1)
        headers = {**got.headers, "link": got.link}
        step = step_of(crawl, api, target, found.paging, headers)
        refused = next((why for why, _, _ in step.found.refused), None)
        following = next((one.url for one in step.found.admitted), None)
        said = step.problem or (None if refused is None else refused.means)
        yield f"next page: {following or said or _why_last(api.paging, found.paging)}"


def _why_last(paging: Paging, facts: PagingFacts) -> str:
    if paging.path and facts.value is None:
        return f"none, because {paging.path} finds nothing or null"
    if paging.more and not facts.more:
        return f"none, because {paging.more} is not true"
    return "none, this is the last one"


def _word(value: object) -> str:
    word = "-" if value is None else json.dumps(value, ensure_ascii=False)
    return text.cut(word, SHOWN_CHARS_MAX)


_CONFIG = f"definition with the [[items]] to try ({DEFINITION})"
COMMANDS = (
    command(
        "extract",
        extract,
        option("page URL|FILE", "URL of a page, or a saved file"),
        option("--config FILE", _CONFIG, default=DEFINITION),
        option("--url URL", "address of the file"),
        option("--extractor FILE", EXTRACTOR_HELP),
        parents=(json_option,),
    ),
)
