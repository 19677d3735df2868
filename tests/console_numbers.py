"""Expected numbers on the console's screens, as values of command output.

`SCREENS` has a line for each place with numbers: a selector and its text. In the text,
`{path|form}` is a value of a command's JSON. A path may be a sum or a difference (`claimed-done`)
or two values (`done/claimed|share`). `*` matches omitted text. Cells of a row are separated by ` |
`. Other text of the page must have no digit, except in the places of `LEFT_OUT`, each with its
reason.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from orbweaver.control.progress.spending import price
from orbweaver.model import amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.browser import Tab

MILLION = 1_000_000
TENTH, HUNDRED, THOUSAND = 10, 100, 1_000
SECOND_MS, MINUTE_MS = 1_000, 60_000
UNKNOWN = "\N{EN DASH}"


def count(value: Any) -> str:
    """Format a number of things; a dash is unknown."""
    return UNKNOWN if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def rounded(value: float, places: int) -> str:
    """Format with this many digits; halves are rounded up, as in a browser."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"


def share(part: float, whole: float) -> str:
    percent = HUNDRED * part / whole if whole else 0
    if not percent:
        return "0 %"
    if percent < 1 / TENTH:
        return "< 0.1 %"
    return f"{rounded(percent, int(percent < TENTH))} %"


def rate(value: float) -> str:
    """Format a rate with significant digits."""
    return rounded(value, 0 if value >= HUNDRED else 1 if value >= TENTH else 2)


def size(value: float) -> str:
    units = ["B", "kB", "MB", "GB", "TB"]
    while value >= THOUSAND and len(units) > 1:
        value /= THOUSAND
        units.pop(0)
    return f"{rounded(value, int(units[0] != 'B' and value < HUNDRED))} {units[0]}"


def moment(value: float | str) -> str:
    """Format a time in the local zone; day and zone are omitted for today."""
    if isinstance(value, str):
        at = datetime.fromisoformat(value).astimezone()
    else:
        at = datetime.fromtimestamp(value / SECOND_MS, tz=UTC).astimezone()
    today = at.date() == datetime.now(tz=UTC).astimezone().date()
    if today:
        return f"{at:%H:%M:%S}"
    east = at.utcoffset() or timedelta()
    sign = "\N{MINUS SIGN}" if east < timedelta() else "+"
    minutes = abs(east) // timedelta(minutes=1)
    zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}" if east else ""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC{zone}"


def amount(value: Any, row: Mapping[str, Any]) -> str:
    """Format an amount of a limit, in the unit of that limit."""
    forms: Mapping[str, Callable[[Any], str]]
    forms = {"bytes": size, "dollars": dollars, "duration": duration}
    return forms.get(row["name"], count)(value)


def duration(seconds: float) -> str:
    """Write a duration in its two largest units."""
    left, parts = max(0, int(Decimal(seconds).quantize(Decimal(1), ROUND_HALF_UP))), []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        number, left = divmod(left, length)
        parts.append((number, unit))
    first = next((place for place, (number, _) in enumerate(parts) if number), len(parts))
    told = [f"{number} {unit}" for number, unit in parts[first : first + 2] if number]
    return " ".join(told) or "0 s"


def dollars(value: float | None) -> str:
    return price(value or 0.0)


def span(value: int) -> str:
    """Format milliseconds below one minute in a suitable unit."""
    if value >= MINUTE_MS:
        return duration(value / SECOND_MS)
    return (
        f"{value} ms" if value < SECOND_MS else f"{value / SECOND_MS:.1f}".removesuffix(".0") + " s"
    )


FORMS: Mapping[str, Callable[..., str]] = {
    "count": count,
    "share": share,
    "rate": rate,
    "size": size,
    "duration": duration,
    "moment": moment,
    "dollars": dollars,
    "amount": amount,
    "millions": lambda spent, pages: (
        f"{dollars(MILLION * (spent or 0) / pages)} per million pages" if pages else "no page yet"
    ),
    "ms": lambda value: UNKNOWN if value is None else span(value),
    "delay": lambda value: span(value) if value else "none",
    "words": lambda value: str(value or "").replace("_", " "),
    "site": lambda value: value.replace("https://", ""),
    "items": lambda value: f" {amounts.plural(value, 'item')}" if value else "",
    "crawls": lambda value: amounts.plural(value, "crawl"),
    "more": lambda value: f" ▸ {amounts.plural(value - 1, 'more run')}" if value > 1 else "",
    "stop": lambda value: f": {value.replace('_', ' ')}" if value else "",
    "links": lambda value: amounts.plural(value, "link"),
    "records": lambda value: amounts.plural(value, "record"),
    "requests": lambda value: amounts.plural(value, "request"),
    "checks": lambda value: amounts.plural(value, "check"),
    "letters": lambda value: amounts.plural(value, "letter"),
    "warning": lambda value: f" \N{WARNING SIGN} {value}" if value else "",
    "about": lambda value: ("about " if value else "") + amounts.plural(value, "message"),
    "messages": lambda value: amounts.plural(value, "message"),
    "rows": lambda value: amounts.plural(value, "row"),
    "pages": lambda value: amounts.plural(value, "page"),
    "sections": lambda value: amounts.plural(value, "smaller section"),
    "urls": lambda value: amounts.plural(value, "URL"),
}
WITH_ITS_ROW = frozenset({"amount"})


@dataclass(frozen=True, slots=True)
class Shown:
    """Texts of a selector's elements in order; with `each`, for the members of a list."""

    at: str
    texts: tuple[str, ...]
    each: str = ""


def shown(at: str, *texts: str, each: str = "") -> Shown:
    return Shown(at, texts, each)


SCREENS: Mapping[str, tuple[Shown, ...]] = {
    # `orbweaver status --json` of the newest run of each name.
    "runs": (
        shown(".filters [role=status]", "{total|crawls}"),
        shown(
            "table.runs tbody tr",
            "{name}{runs|more} | *{state}{stop|stop} | {outcomes.fetched+outcomes.unchanged}"
            " | {done} / {claimed} | {pages_per_s|rate}"
            " | {outcomes.failed} {outcomes.failed/done|share} | {spent_dollars|dollars}"
            " | *{last}",
            each="runs_of",
        ),
    ),
    # `orbweaver status --json`, of a paused or ended run.
    "run": (
        shown(
            ".figures > div",
            "Found {claimed} {claimed-done} left",
            "Done {done} {done/claimed|share}",
            "Pages {outcomes.fetched+outcomes.unchanged} {bytes|size}",
            "Failed {outcomes.failed} {outcomes.failed/done|share}",
            "Pages per second {pages_per_s|rate} {rate.mean|rate} URLs",
            "Cost {spent_dollars|dollars} {spent_dollars/outcomes.fetched|millions}",
            "Running time {elapsed_s|duration}{items|items}",
        ),
        shown("p.left", "Time left: {left_text}", each="left"),
        shown(
            "section[aria-labelledby=outcomes] tbody tr",
            "{name|words} | {count} | {count/of|share}",
            each="outcome_rows",
        ),
        shown(".budgets li", "{name} {used|amount} of {limit|amount}", each="budgets"),
        shown(
            "section[aria-labelledby=hosts] tbody tr",
            "{host|site} | {claimed} | {done} | {queued} | {failed} | {delay_ms|delay} | *",
            each="hosts",
        ),
        shown(
            "section[aria-labelledby=left-out] tbody tr", "{text|words} | {count}", each="left_out"
        ),
        shown("figure > p", "{claimed} URLs found, {done} done.*"),
        # The table behind the chart's button.
        shown(
            "figure tbody tr:last-child",
            "* | {claimed} | {done} | {outcomes.fetched+outcomes.unchanged} | {outcomes.failed}",
        ),
    ),
    # `orbweaver report --json`
    "report": (
        shown(
            ".figures > div",
            "Requests {requests} {records|records}*",
            "Kinds of URL {named} *",
            "Low yield {saves_requests} {saves_requests/requests|share} of requests",
            "Cost {usd|dollars} estimate, on AWS",
        ),
        shown(
            "table.kinds tbody tr",
            "* | {requests} | {noindex} | {failed} | {titles} | {bodies}"
            " | {told_texts} | {led_to} | {usd|dollars}",
            each="kinds",
        ),
        shown(
            "section[aria-labelledby=suggested] p",
            "Excluding them saves {saves_requests|requests} and {saves_usd|dollars}.*",
            each="advice",
        ),
        shown(
            "section[aria-labelledby=suggested] tbody tr",
            "{exclude} | {saves_requests} | {saves_usd|dollars}",
            each="excluded",
        ),
        shown("section[aria-labelledby=waiting] p", "{waiting|links} of kinds*", each="waiting"),
        shown("section[aria-labelledby=waiting] tbody tr", "{kind}* | {links}", each="spared"),
    ),
    # `orbweaver hosts --json` of each run started there
    "host": (
        shown(
            ".figures > div",
            "Now open *",
            "Delay {delay_ms|delay} *",
            "No answer {failures} *",
            "429 and 503 0 none recently",
        ),
        shown(
            "section[aria-labelledby=crawls] tbody tr",
            "{crawl} | * | {claimed} | {done} | {failed} | {queued} | {delay_ms|delay} | {robots}",
            each="views",
        ),
    ),
    # `orbweaver pages --json`
    "data": (
        shown(
            "tbody tr",
            "{url} | {told} | {ended|words} | {told_status} | {depth} | {told_bytes}"
            " | {latency_ms|ms} | {fetched_at|moment}",
            each="pages",
        ),
        shown(".filters [role=status]", "{number|rows}, all shown"),
    ),
    # `orbweaver explain --json`
    "explain": (
        shown("p.verdict", "{told_verdict}"),
        shown(".line li", "{told_about}{told_words}", each="told"),
        shown("section[aria-labelledby=record] .heading .muted", "{record.fetched_at|moment}"),
        shown("section[aria-labelledby=record] dd", "{value}", each="cells"),
        shown("#backlinks", "{told_backlinks}"),
        shown(
            "section[aria-labelledby=backlinks] tbody tr",
            "{url} | {kind} | {told_text}",
            each="linking",
        ),
    ),
    # `orbweaver audit --format json`
    "audit": (
        shown(".figures > div", "{label} {count}{below}", each="figures"),
        shown("table.found tbody tr", "{check} {severity} * | {told_counts}", each="found"),
        shown(
            "section[aria-labelledby=unjudged] tbody tr",
            "{reason|words} {means} | {urls} | *",
            each="unjudged",
        ),
        shown("#not-run", "{not_run|checks} did not run"),
        shown("details.clean > summary", "{clean|checks} found nothing"),
    ),
    # `orbweaver estimate --json`
    "new": (
        shown(
            "section[aria-labelledby=toml] p[role=status]",
            "{name}: 1 seed. Estimate: {pages|pages} cost {usd|dollars} on AWS and take"
            " at least {least_s|duration}.",
        ),
    ),
    # `orbweaver dlq list --json`
    "letters": (
        shown("h1 ~ .muted", "{letters|letters}"),
        shown("section.panel > .heading > span", "{letters|letters}", each="causes"),
        shown("section.panel dl > dd:nth-of-type(1)", "{told_since}", each="causes"),
        shown("section.panel dl > dd:nth-of-type(2)", "{told_kinds|words}", each="causes"),
    ),
    # `orbweaver schedule list --json`
    "schedules": (
        shown(
            "tbody tr",
            "{name} | {when} {timezone}{warning|warning} | {first|moment} in * then {later} | *",
            each="schedules",
        ),
    ),
    # `orbweaver status --json`: its queues, and all runs by start day
    "stack": (
        shown(
            ".figures > div",
            "Waiting {queue.waiting|about}",
            "In progress {queue.in_work|about}",
            "Delayed {queue.delayed|about}",
            "Dead letters {queue.dead|messages}*",
        ),
        shown(
            "section[aria-labelledby=spending] tbody tr",
            "{day} | {runs} | {pages} | {usd|dollars} | *",
            each="days",
        ),
    ),
    # `orbweaver pages --json`, summed by section
    "map": (
        shown("h1 ~ .muted", "{urls|urls}"),
        shown(
            "tbody tr",
            "{name} | {urls} | {failed} | {latency_ms|ms} | {depth} | {bytes|size}",
            each="sections",
        ),
        shown(".areas li", "{name} {urls} · {failed/urls|share} failed", each="areas"),
        shown(".scale", "less than 5 % failed from 5 % from 20 % from 50 % from 80 %"),
        shown("p.muted", "{count|sections} not listed, with {urls|urls}.", each="more"),
    ),
    # `orbweaver pages --json` of two runs
    "changes": (shown(".figures > div", "{name|words} {count} *", each="differences"),),
    # `orbweaver query --format json`
    "query": (
        shown("p[role=status]", "{number|rows} *"),
        shown("[aria-label=Rows] tbody tr", "{cells}", each="rows"),
    ),
}

# Other places with digits, by screen, with the reason. The screen "" means all screens.
LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "": {
        "h1, .crumb, a[href^='#/run/'], .url, code": "names and addresses: runs, hosts, patterns",
        "input, textarea, select": "what is typed or chosen",
        ".actions": "names of buttons",
    },
    "run": {
        "p.hidden": "for screen readers, every ten seconds at most: the same words and values",
        "h1 ~ .muted": "when it began, by the clock of the machine that looks",
        "figure .muted": "when the console looked first, by that clock",
        "svg": "drawn of the numbers that its table has, which is compared",
        "figure tbody": "earlier looks of this console; the last one is compared",
        "section[aria-labelledby=latest]": "single records: tests/unit/console compares them",
        "section[aria-labelledby=settings]": "what the run was told: no command prints it",
    },
    "host": {
        ".source": "robots.txt, word by word",
        "section[aria-labelledby=robots] .muted": "when it was read, by the clock",
    },
    "letters": {"dl.settings": "an example, and how many letters name a host: no command counts"},
    "query": {
        "figure.panel": "drawn of the rows below it, which are compared",
        "section[aria-labelledby=tables]": "rows and bytes of files: their manifests have them",
        "#how": "the bounds of a query, which are words",
    },
    "audit": {
        "section[aria-labelledby=not-run] dl": "names of checks and options",
        "details.clean ul": "sentences of checks",
    },
    "stack": {"h1 ~ .muted": "the name of the store or stack"},
    "changes": {
        "h1 ~ .muted": "when both runs began, by the clock",
        "[aria-label=Pages]": "pages that differ: their addresses and titles",
    },
}
FIND = """
((wanted, leftOut) => {
  const main = document.querySelector('main');
  const flat = (text) => text.replace(/\\s+/g, ' ').trim();
  const told = (one) => (one.tagName === 'TR'
    ? [...one.cells].map((cell) => flat(cell.innerText)).join(' | ') : flat(one.innerText));
  const seen = [...wanted.map((at) => [...main.querySelectorAll(at)])];
  const known = new Set(seen.flat());
  const isKnown = (node) => {
    for (let one = node.parentElement; one && one !== main; one = one.parentElement)
      if (known.has(one) || leftOut.some((at) => one.matches(at))) return true;
    return false;
  };
  const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  const rest = [];
  while (walk.nextNode())
    if (/\\d/.test(walk.currentNode.data) && !isKnown(walk.currentNode))
      rest.push(flat(walk.currentNode.parentElement.innerText));
  return [seen.map((some) => some.map(told)), rest];
})"""


async def differences(tab: Tab, screen: str, said: Mapping[str, Any]) -> list[str]:
    lines = SCREENS[screen]
    selectors = json.dumps([line.at for line in lines])
    left_out = json.dumps([*LEFT_OUT[""], *LEFT_OUT.get(screen, {})])
    found, rest = await tab.run(f"{FIND}({selectors}, {left_out})")
    wrong = [f"{screen}: {text!r} is in no list" for text in rest]
    for line, texts in zip(lines, found, strict=True):
        members = value_of(line.each, said) if line.each else [said]
        wanted = [written(text, {**said, **one}) for one in members for text in line.texts]
        if len(wanted) != len(texts):
            wrong.append(f"{screen} {line.at}: {len(texts)} instead of {len(wanted)}: {texts}")
        for text, pattern in zip(texts, wanted, strict=False):
            if not re.fullmatch(pattern, text):
                wrong.append(f"{screen} {line.at}: {text!r} instead of {pattern!r}")
    return wrong


def written(text: str, row: Mapping[str, Any]) -> str:
    made = ""
    for part in re.split(r"(\{[^}]+\}|\*)", text):
        if part == "*":
            made += ".*"
        elif part.startswith("{"):
            made += re.escape(_told(part[1:-1], row))
        else:
            made += re.escape(part)
    return re.sub(r"(\\ )+$", "", made)


def _told(asked: str, row: Mapping[str, Any]) -> str:
    path, _, form = asked.partition("|")
    values = [value_of(one, row) for one in path.split("/")]
    if form in WITH_ITS_ROW:
        values.append(row)
    return FORMS[form or "count"](*values)


def value_of(path: str, row: Mapping[str, Any]) -> Any:
    """Return the value of a path, also of a sum or difference."""
    if "+" in path:
        return sum(value_of(one, row) for one in path.split("+"))
    if "-" in path:
        first, second = path.split("-")
        return value_of(first, row) - value_of(second, row)
    value: Any = row
    for key in path.split("."):
        value = value[key]
    return value
