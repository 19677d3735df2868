"""The commands `init` and `check`, and plans of crawls from a definition and options.

An option replaces the whole value of the definition, even if it is a list. The path in `seeds_file`
is relative to the folder of the definition. Errors name the key (`limits.pages`) in a file, or the
option (`--max-pages`) on the command line.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from orbweaver.cli import text
from orbweaver.cli.command import answer, command, file, option
from orbweaver.cli.commands import custom
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import DEFINITION, OPTIONS
from orbweaver.cli.crawl_template import STARTER
from orbweaver.cli.exit_codes import OK, UsageError
from orbweaver.cli.seed_files import SeedListError, seeds_in
from orbweaver.cli.trust_files import check_files, with_absolute_files
from orbweaver.control import definition
from orbweaver.control.crawl_spec import SEEDS_FILE, CrawlSpec, Overlap
from orbweaver.control.definition import DefinitionProblem
from orbweaver.control.definition_keys import PATHS
from orbweaver.control.definition_lines import document_in as toml_in
from orbweaver.control.definition_lines import line_of, lines_of_keys
from orbweaver.control.schedule import recurrence_in, when_typed, window_warning
from orbweaver.control.spec_checks import crawl_of, problems_of, unused_logins
from orbweaver.control.webhook import shown
from orbweaver.diagnostics.rule_texts import (
    never_requested_reason,
    paging_words,
    rule_words,
    stored_parts_text,
)
from orbweaver.extraction.extract import rules_about
from orbweaver.model.address_policy import THIS_MACHINE, parse_allowed
from orbweaver.model.amounts import dollars_text, size_text
from orbweaver.model.auth import absolute
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import RenderMode, Scope
from orbweaver.model.host_access import access_words
from orbweaver.model.item_rules import ItemRule, ValueKind, ValueSource, columns_of
from orbweaver.model.named_origins import non_public_origin_of, origins_of
from orbweaver.model.render_rules import renders
from orbweaver.model.request_url import canonical_seed
from orbweaver.model.user_agent import OPEN_HEADERS
from orbweaver.politeness.host_schedule import spacing_ms

Problems: TypeAlias = tuple[DefinitionProblem, ...]
FILE_BYTES_MAX = 16 * 1024 * 1024
SHOWN_MAX = 5
HOUR_MS = 3_600_000


def plan_from(file: Path, parts: Mapping[str, Any], around: CliContext) -> CrawlSpec:
    """Read a definition, and replace `parts` of its plan. Raises UsageError with all problems."""
    base, problems = _read(file, around)
    plan = replace(base, **parts)
    # Problems with values of the file are ignored if options replace these values.
    replaced = {PATHS[part] for part in parts if part in PATHS}
    if "seeds" in replaced:
        replaced.add(SEEDS_FILE)
    problems = tuple(one for one in problems if not _is_about(one, replaced))
    _refuse(file, (*problems, *_unfit(plan, parts, problems)), around)
    return plan


def plan_in(file: Path, around: CliContext) -> CrawlSpec:
    """Read the plan of a definition. Raises UsageError with all problems."""
    plan, problems = _read(file, around)
    now_ms = around.clock.now_ms()
    _refuse(file, (*problems, *definition.check(plan, problems, now_ms)), around)
    check_files(plan)
    return plan


def _unfit(
    plan: CrawlSpec, parts: Mapping[str, Any], known: Problems
) -> Iterator[DefinitionProblem]:
    """Yield the problems of a plan.

    A problem in `parts`, which options set, names the option. Others name the key.
    """
    paths = {PATHS.get(part, part) for part in parts}
    yield from (one for one in definition.check(plan, known) if not _is_about(one, paths))
    for error in problems_of(plan):
        if error.field in parts:
            named = OPTIONS.get(error.field, error.field)
            yield DefinitionProblem(path=named, text=str(error))


def _is_about(problem: DefinitionProblem, keys: Collection[str]) -> bool:
    """Whether a problem is about the value of one of these keys, or of a part of it."""
    return any(problem.path == key or problem.path.startswith(f"{key}.") for key in keys)


# --- files --------------------------------------------------------------------------------------


def _read(file: Path, around: CliContext) -> tuple[CrawlSpec, Problems]:
    """Read a definition and its seeds. Raises UsageError if it cannot be decoded."""
    document, lines, missing = document_in(file, around)
    plan, problems = definition.read(document, lines)
    folder = (around.folder / file).parent
    if plan.auth:
        plan = replace(plan, auth=absolute(plan.auth, f"{folder.resolve()}/"))
    return with_absolute_files(plan, folder), (*problems, *missing)


def document_in(file: Path, around: CliContext) -> tuple[object, str, Problems]:
    """Decode a definition, and read its `seeds_file`.

    Returns the document, the lines of the seeds file, and problems with that file.
    """
    path = around.folder / file
    if not path.exists():
        raise UsageError(f"there is no {file}: `orbweaver init {file}` creates one")
    document = _decoded(file, _text(path, file))
    lines = ""
    name = definition.seeds_file_of(document)
    if name is not None:
        try:
            lines = "\n".join(seeds_in(name, path.parent, around))
        except SeedListError as error:
            return (
                document,
                lines,
                tuple(DefinitionProblem(SEEDS_FILE, one) for one in error.problems),
            )
        except UsageError as error:
            return document, lines, (DefinitionProblem(path=SEEDS_FILE, text=str(error)),)
    return document, lines, ()


def _text(path: Path, name: object) -> str:
    shown = text.clean(str(name))
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise UsageError(
                f"{shown} has more than {text.size(FILE_BYTES_MAX)}: give a smaller one"
            )
        return data.decode("utf-8-sig")
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        why = f"is not UTF-8 text (byte {error.start}): save it as such"
    except ValueError:
        why = "is not a file name"
    raise UsageError(f"{shown} {why}")


def _decoded(file: Path, content: str) -> object:
    if file.suffix.lower() in (".yaml", ".yml"):
        raise UsageError(f"{file}: YAML is not supported: write the definition as TOML or JSON")
    try:
        return json.loads(content) if _is_json(file) else toml_in(content)
    except RecursionError as error:
        raise UsageError(f"{file} is nested too deeply") from error
    except ValueError as error:
        kind = "JSON" if _is_json(file) else "TOML"
        raise UsageError(f"{file} is not {kind}: {text.cut(str(error), 200)}") from error


def _refuse(file: Path, problems: Problems, around: CliContext) -> None:
    """Raise UsageError with all problems, if any. Problems in TOML are in the order of lines."""
    if not problems:
        return
    lines = {} if _is_json(file) else lines_of_keys(_text(around.folder / file, file))
    placed = [(line_of(problem.path, lines), problem) for problem in problems]
    placed.sort(key=lambda one: (one[0] is None, one[0] or 0))
    said = (str(one) if line is None else f"line {line}: {one}" for line, one in placed)
    raise unfit(str(file), said)


def unfit(title: str, problems: Iterable[str]) -> UsageError:
    """Build an error of several problems, one per line."""
    lines = [f"  {text.clean(problem)}" for problem in problems]
    return UsageError("\n".join([f"{title}: {text.plural(len(lines), 'problem')}", *lines]))


def _is_json(file: Path) -> bool:
    return file.suffix.lower() == ".json"


# --- commands -----------------------------------------------------------------------------------


def init(arguments: Namespace, around: CliContext) -> int:
    file: Path = arguments.file
    try:
        with (around.folder / file).open("x", encoding="utf-8") as out:
            out.write(STARTER)
    except FileExistsError as error:
        raise UsageError(f"{file} already exists: give another name") from error
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
    around.write(f"created {file}: edit its seeds, then run `orbweaver check {file}`")
    return OK


def check(arguments: Namespace, around: CliContext) -> int | Coroutine[Any, Any, int]:
    """Print the actions of a crawl by a definition. Raises UsageError with all problems."""
    file: Path = arguments.file
    plan = plan_in(file, around)
    crawl = crawl_of(plan, around.clock.now_ms())
    if arguments.login:
        from orbweaver.cli.login_check import try_logins

        return try_logins(arguments, around, crawl)
    custom.check_known(arguments.extractor, around, crawl.items)
    said = [(label, text.clean(words)) for label, words in explained(crawl, plan)]
    document = definition.document_of(replace(plan, headers=(), host_headers=(), webhook=None))
    told = [{"about": label, "words": words} for label, words in said]
    body = {"name": crawl.name, "does": told, "definition": document}
    lines = (f"{file} is valid; no request was sent", "")
    answer(arguments, around, body, *lines, *text.table(text.labelled(said)))
    return OK


# --- words --------------------------------------------------------------------------------------


def explained(crawl: Crawl, plan: CrawlSpec) -> Iterator[tuple[str, str]]:
    """Describe the actions of a crawl, as pairs of a label and a sentence."""
    yield "name", f"{crawl.name}: runs of this name share which URLs they have seen"
    own, never = _inward(crawl)
    yield from _begins(crawl, plan, own)
    yield "follows", f"{_SCOPES[crawl.scope]}, up to {text.plural(crawl.depth_max, 'link')} deep"
    if crawl.include:
        yield "follows", f"only URLs that match one of {_some(crawl.include)}"
    if crawl.exclude:
        yield "follows", f"no URL that matches one of {_some(crawl.exclude)}"
    for place, rule in enumerate(crawl.rules):
        yield "rules", f"[{place}] URLs that match {text.cut(rule.match, 200)}: {rule_words(rule)}"
    yield from _renders(crawl)
    yield from item_rules(crawl)
    yield from _manners(crawl)
    yield from _logs_in(crawl)
    skipped = f"URLs that a run of this name saw within {text.span(crawl.window_s)}"
    yield "skips", skipped if crawl.window_s else "nothing: every URL is requested again, once"
    yield "ends", f"when nothing is left, or after {text.span(crawl.duration_max_s)}"
    most = "exactly" if plan.pages_max else "by default"
    yield "ends", f"at {text.plural(crawl.pages_max, 'URL')} at most ({most})"
    yield from _budgets(crawl)
    yield from (("keeps", words) for words in stored_parts_text(crawl))
    renders_none = "" if renders(crawl) else "renders pages, or "
    yield "never", f"{renders_none}extracts links from files other than HTML and sitemaps"
    yield (
        "never",
        "requests addresses that are not public, except servers of this machine in the seeds",
    )
    if never:
        yield "never", f"requests {_some(never)}"
    if crawl.noindex_skipped:
        yield "never", "records pages with noindex"
    if crawl.canonical_only:
        yield "never", "records pages that name another URL as canonical"
    yield from _afterwards(crawl, plan)


def _renders(crawl: Crawl) -> Iterator[tuple[str, str]]:
    for place, rule in enumerate(crawl.render_rules):
        yield "renders", f"[{place}] {rule.mode} for URLs that match {text.cut(rule.match, 200)}"
    if renders(crawl):
        whose = {
            RenderMode.NEVER: "no other page",
            RenderMode.AUTO: "pages that are empty without scripts, on one machine with a Chromium",
            RenderMode.ALWAYS: "every page, on one machine with a Chromium",
        }
        yield "renders", whose[crawl.render]


def _begins(crawl: Crawl, plan: CrawlSpec, own: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield "begins", f"at {_some(crawl.seeds)}" if crawl.seeds else "at sitemaps only"
    if own:
        yield "begins", f"on this machine only at {_some(own)}: a stack on AWS refuses that"
    # Two spellings of the same URL count as a duplicate.
    named = Counter(canonical_seed(seed, tracking=crawl.removed_parameters) for seed in plan.seeds)
    if twice := tuple(seed for seed, times in named.items() if times > 1):
        yield "begins", f"once at each seed; given more than once: {_some(twice)}"
    yield from api_words(crawl)
    if crawl.sitemap_urls:
        yield "begins", f"with the URLs in {_some(crawl.sitemap_urls)}"
    if crawl.sitemaps:
        yield "begins", "with the sitemaps in robots.txt of the seeds' hosts"


def api_words(crawl: Crawl) -> Iterator[tuple[str, str]]:
    for api in crawl.apis:
        pages = f"up to {text.plural(api.pages_max, 'page')}"
        yield "api", f"{text.cut(api.url, 200).removesuffix(':')}: {paging_words(api)}, {pages}"
        if api.links:
            yield "api", f"follows the links at {api.links}"
        if not rules_about(crawl.items, api.url, json=True):
            yield "warning", f'no item rule with source = "json" matches {api.url}: no items'


def _inward(crawl: Crawl) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the seeds that only a crawl on this machine requests, and seeds never requested."""
    origins, here = origins_of(crawl), parse_allowed(THIS_MACHINE)
    own, never = [], []
    for seed in (*crawl.seeds, *crawl.sitemap_urls):
        inward = non_public_origin_of(seed) is not None
        if (why := never_requested_reason(seed, here, origins)) is not None:
            never.append(f"{seed} ({why}{', unless a stack allows it' if inward else ''})")
        elif inward:
            own.append(seed)
    return tuple(own), tuple(never)


def _afterwards(crawl: Crawl, plan: CrawlSpec) -> Iterator[tuple[str, str]]:
    if (recurrence := recurrence_in(plan)) is not None:
        when = when_typed(definition.document_of(plan)) or recurrence.expression
        yield "recurs", f"{when}, after `orbweaver schedule put`"
        if recurrence.timezone is not None:
            yield "recurs", f"in the time zone {recurrence.timezone}"
        how = "not" if plan.overlap is Overlap.SKIP else "even"
        yield "recurs", f"{how} while an earlier run of its name has not ended"
        if (warning := window_warning(plan, crawl.started_at_ms)) is not None:
            yield "warning", warning
    if crawl.webhook is not None:
        yield "notifies", f"{shown(crawl.webhook)} when it has ended"
        if crawl.webhook.startswith("http:"):
            yield "notifies", "over http: only a stack on this machine accepts the crawl"


def item_rules(crawl: Crawl) -> Iterator[tuple[str, str]]:
    for rule in crawl.items:
        fields = ", ".join(
            f"{field.name}{'' if field.type is ValueKind.STRING else f' ({field.type})'}"
            f"{' (list)' if field.many else ''}{'!' if field.required else ''}"
            for field in rule.fields
        )
        where = f"URLs that match {text.cut(rule.match, 200)}"
        yield "items", f"{rule.name}: {where}, {_taken(rule)}: {text.cut(fields, 400)}"
    if crawl.items:
        tables = ", ".join(f"items/{crawl.name}/{rule.name}" for rule in crawl.items)
        number = sum(len(columns_of(rule)) for rule in crawl.items)
        yield (
            "exports",
            f"{tables}: {text.plural(number, 'column')} in total; ! marks a required field",
        )


def _taken(rule: ItemRule) -> str:
    if rule.extractor is not None:
        return f"items of the function {rule.extractor}"
    if rule.each is not None:
        return f"one per {text.cut(rule.each, 100)}"
    if rule.source in (ValueSource.JSONLD, ValueSource.MICRODATA):
        return f"one per {rule.of} in {rule.source}"
    return "one per page" if rule.source is ValueSource.CSS else f"one per page, from {rule.source}"


def _budgets(crawl: Crawl) -> Iterator[tuple[str, str]]:
    if crawl.host_pages_max is not None:
        urls = text.plural(crawl.host_pages_max, "URL")
        yield "requests", f"at most {urls} per host; other hosts continue"
    if crawl.bytes_max is not None:
        yield "ends", f"before it receives more than {size_text(crawl.bytes_max)} of bodies"
    if crawl.nanodollars_max is not None:
        price = dollars_text(crawl.nanodollars_max)
        yield "ends", f"before it costs more than ${price}, estimated from list prices"


_SCOPES = {
    Scope.HOST: "links to the host of their page",
    Scope.DOMAIN: "links to any host of their page's domain",
    Scope.PREFIX: "links below the folders of the seeds",
    Scope.ANY: "links to any host",
}


def _manners(crawl: Crawl) -> Iterator[tuple[str, str]]:
    at_once = text.plural(crawl.concurrency, "request")
    if crawl.delay_ms:
        delay = f"{crawl.delay_ms / 1000:g} s"
        yield (
            "requests",
            f"every {delay} per host, {at_once} at a time; less often if it demands that",
        )
        hourly = HOUR_MS // spacing_ms(crawl.delay_ms)
        yield "requests", f"at most {text.plural(hourly, 'page')} an hour per host"
    else:
        yield "requests", f"as fast as a host responds, {at_once} at a time: for your own sites"
    ignored = "IGNORES robots.txt: for your own sites"
    yield "requests", "what robots.txt allows" if crawl.obey_robots else ignored
    if not crawl.obey_nofollow:
        yield "requests", "IGNORES nofollow: for your own sites"
    if crawl.user_agents:
        yield "requests", f"as {_some(crawl.user_agents)}"
    if crawl.headers:
        names = [
            name if name.lower() in OPEN_HEADERS else f"{name} (the seeds' own origins only)"
            for name, _ in crawl.headers
        ]
        yield "requests", f"with the headers {', '.join(names)}"
    for origin, own in crawl.host_headers:
        names = [name for name, _ in own]
        yield "requests", f"{origin} only, with the headers {', '.join(names)}"
    if crawl.cookies:
        yield "requests", "with cookies that the site has set in this crawl"
    if not crawl.proxied:
        yield "requests", "without proxies"
    yield from _limited(crawl)
    yield from _trusted(crawl)
    if crawl.express:
        yield "requests", "before other crawls"


def _limited(crawl: Crawl) -> Iterator[tuple[str, str]]:
    if said := access_words(crawl):
        yield "requests", said
    for one in crawl.host_access:
        yield "requests", f"{one.origin} only: {access_words(one)}"


def _trusted(crawl: Crawl) -> Iterator[tuple[str, str]]:
    if crawl.ca_bundle:
        yield "requests", f"with the certificate authorities of {crawl.ca_bundle}, too"
    if crawl.client_cert:
        yield "requests", f"with the client certificate {crawl.client_cert} (the seeds' origins)"
    if crawl.insecure_hosts:
        yield "requests", f"to {_some(crawl.insecure_hosts)} WITHOUT verifying certificates"


_HOW = {
    "basic": "with user and password (Basic)",
    "bearer": "with a token (Bearer)",
    "headers": "with secret headers",
    "cookies": "with the cookies of a file",
    "login": "by its form; login and logout links are not followed",
}


def _logs_in(crawl: Crawl) -> Iterator[tuple[str, str]]:
    for one in crawl.auth:
        yield "logs in", f"at {one.origin}: {_HOW[one.kind]}"
        if one.origin.startswith("http:") and non_public_origin_of(f"{one.origin}/") is None:
            yield "warning", f"{one.origin} gets the login without encryption: give https"
    yield from (("warning", words) for words in unused_logins(crawl))


def _some(items: tuple[str, ...]) -> str:
    more = len(items) - SHOWN_MAX
    shown = ", ".join(text.cut(item, 200) for item in items[:SHOWN_MAX])
    return f"{shown} and {more:,} more" if more > 0 else shown


COMMANDS = (
    command(
        "init",
        init,
        file(f"file to create; an existing file is kept ({DEFINITION})", DEFINITION),
        parents=(),
    ),
    command(
        "check",
        check,
        file(f"definition in TOML, or in JSON if it ends in .json ({DEFINITION})", DEFINITION),
        option("--login", "try the logins of [auth], and report each step"),
        option("--extractor FILE", custom.EXTRACTOR_HELP),
    ),
)
