"""The options that say what to crawl and how, and the parts of a plan that they are.

Options that are not given are None or empty, so that a definition's values, or the plan's own
defaults, stand. A switch can only be turned one way: what a definition has set stays set.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbweaver.cli import option_types
from orbweaver.control.crawl_spec import SETTINGS
from orbweaver.frontier.refetch import MISSING
from orbweaver.parsing.pii_redaction import KINDS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from orbweaver.model.crawl_settings import Setting

DEFINITION = Path("crawl.toml")
# What is estimated of a crawl whose definition does not limit its pages.
PAGES_ASSUMED = 10_000
# The order of a help; a setting that is not named here comes last.
_ORDER = (
    *("sitemap_urls", "sitemaps", "canonical_only", "noindex_skipped", "name", "scope"),
    *("depth_max", "pages_max", "host_pages_max", "bytes_max", "nanodollars_max"),
    *("duration_max_s", "delay_ms", "concurrency", "include", "exclude", "bodies", "texts"),
    *("redacted", "strip_parameters", "keep_parameters", "window_s", "obey_robots"),
    *("user_agents", "headers", "cookies", "proxied", "express"),
)
_TYPES: Mapping[str, Callable[[str], Any]] = {
    "number": option_types.count,
    "milliseconds": option_types.duration_ms,
    "seconds": option_types.duration_s,
    "bytes": option_types.size_bytes,
    "nanodollars": option_types.nanodollars,
    "headers": option_types.header,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A setting as an option, which takes nothing where it has no `metavar`."""

    setting: Setting
    name: str
    metavar: str
    help: str
    words: Mapping[str, Any]

    @classmethod
    def of(cls, setting: Setting) -> _Option:
        named, _, text = setting.option.partition("  ")
        name, _, metavar = named.partition(" ")
        words = setting.words
        if setting.kind == "pii_kinds":
            words = {kind: kind for kind in KINDS}
        elif setting.kind == "switch" and metavar:
            words = {"yes": True, "no": False}
        metavar = metavar or "|".join(words)
        return cls(setting=setting, name=name, metavar=metavar, help=text, words=words)

    def add(self, add: Callable[..., Any], default: str | None = None) -> None:
        """Add it to a command."""
        more: dict[str, Any] = {"help": self.help}
        if self.setting.kind == "switch" and not self.metavar:
            add(self.name, action="store_true", **more)
            return
        if isinstance(self.setting.default, tuple):
            more |= {"action": "append", "default": []}
        else:
            more["default"] = default
        reads = option_types.one_of(tuple(self.words)) if self.words else None
        kind = self.setting.kind
        add(self.name, type=reads or _TYPES.get(kind), metavar=self.metavar or None, **more)

    def part(self, arguments: argparse.Namespace) -> Any:
        """Return what was given of a plan; None for nothing."""
        value = getattr(arguments, self.name.lstrip("-").replace("-", "_"), None)
        match value:
            case None | False | []:
                return None
            case True:
                return not self.setting.default
            case list() if self.words:
                return tuple(word for word in self.words if word in value)
            case list():
                return tuple(value)
            case _:
                return self.words[value] if self.words else value


_BY_NAME = {
    one.name: _Option.of(one)
    for one in sorted(
        (one for one in SETTINGS if one.option),
        key=lambda one: _ORDER.index(one.name) if one.name in _ORDER else len(_ORDER),
    )
}
# What a part of a plan is called on the command line.
OPTIONS = {"seeds": "URL", "id": "--id", "idempotency_key": "--idempotency-key"} | {
    part: option.name for part, option in _BY_NAME.items()
}


def given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parts of a plan that were given as options, of those that a command takes."""
    parts = {"seeds": tuple(getattr(arguments, "seeds", ())), "id": getattr(arguments, "id", None)}
    parts |= {part: option.part(arguments) for part, option in _BY_NAME.items()}
    return {part: value for part, value in parts.items() if value is not None and value != ()}


def add_plan(add: Callable[..., Any]) -> None:
    """Add the options of a crawl that is to be started."""
    add("seeds", nargs="*", metavar="URL", help="where to begin; - reads a list from the input")
    config = "what to crawl, as a file says it; other options come before what it says"
    add("--config", type=Path, metavar="FILE", help=config)
    for part, option in _BY_NAME.items():
        option.add(add)
        if part == "window_s":
            add("--refetch", type=option_types.one_of([MISSING]), metavar=MISSING, help=_REFETCH)
    most = "exit with 1 if more URLs failed (default: never)"
    add("--fail-above", type=option_types.threshold, metavar="N|N%", help=most)


_REFETCH = "ask again for pages that earlier runs have without --text or --bodies, and no others"


def add_changeable(add: Callable[..., Any]) -> None:
    """Add the options that may also change while a crawl runs (`control/edits.py`)."""
    for option in _BY_NAME.values():
        if option.setting.editable:
            option.add(add)


def add_scope(add: Callable[..., Any], default: str | None = None) -> None:
    """Add the option that says which links belong."""
    _BY_NAME["scope"].add(add, default)


def add_parameters(add: Callable[..., Any]) -> None:
    """Add the options that say which parameters are taken out of URLs."""
    _BY_NAME["strip_parameters"].add(add)
    _BY_NAME["keep_parameters"].add(add)


def add_changing(add: Callable[..., argparse.ArgumentParser], *parents: Any) -> None:
    """Add the commands about a crawl's work: edit, retry."""
    edit = add("edit", "change limits, pace, patterns or rules of a crawl that runs", *parents)
    edit.add_argument("which", metavar="ID", help="an id or a name")
    config = "what is to hold from now on; what cannot change has to be as it is"
    edit.add_argument("--config", type=Path, metavar="FILE", help=config)
    add_changeable(edit.add_argument_group("what is to change").add_argument)
    retry = add("retry", "ask again for what failed in a crawl, and for that alone", *parents)
    retry.add_argument("which", metavar="ID", help="an id, or a name: its newest run")
    reason = "what failed for this reason; may be repeated"
    retry.add_argument("--reason", action="append", default=[], metavar="REASON", help=reason)
    retry.add_argument("--host", metavar="HOST", help="what failed on this host")
    retry.add_argument("--wait", action="store_true", help="show its progress until it ends")


def add_asking(add: Callable[..., argparse.ArgumentParser], *parents: Any) -> None:
    """Add the commands that ask why: hosts, report, cost."""
    hosts = add("hosts", "show how a crawl does at its hosts: counts, pace, blocks", *parents)
    hosts.add_argument("which", nargs="?", metavar="ID", help="an id or a name; default: newest")
    host = "this one, too: a name, or a URL's beginning; may be repeated"
    hosts.add_argument("--host", action="append", default=[], metavar="HOST", help=host)
    report = add("report", "say what a crawl left out and why, with examples", *parents)
    report.add_argument("which", nargs="?", metavar="ID", help="an id or a name; default: newest")
    cost = add("cost", "show what a crawl has used of AWS, and what that costs", *parents)
    cost.add_argument("which", metavar="ID", help="an id or a name")


def add_definition(add: Callable[..., argparse.ArgumentParser], lines: Any) -> None:
    """Add the commands about definitions: init, check, estimate."""
    init = add("init", "write the definition of a crawl to begin with")
    what = f"where to; what is there stays ({DEFINITION})"
    init.add_argument("file", nargs="?", type=Path, default=DEFINITION, metavar="FILE", help=what)
    check = add("check", "say what the definition of a crawl would do, or what is wrong", lines)
    what = f"TOML; JSON if it ends in .json ({DEFINITION})"
    check.add_argument("file", nargs="?", type=Path, default=DEFINITION, metavar="FILE", help=what)
    functions = "a module with functions of your own (cdk.json says which is deployed)"
    check.add_argument("--extractor", type=Path, metavar="FILE", help=functions)
    what = "say what a crawl would use of AWS, and what that would cost, before it begins"
    _add_assumptions(add("estimate", what, lines).add_argument)


def _add_assumptions(add: Callable[..., Any]) -> None:
    file = f"what to crawl ({DEFINITION})"
    add("file", nargs="?", type=Path, default=DEFINITION, metavar="FILE", help=file)
    limit = f"so many pages; default: the definition's limit, or {PAGES_ASSUMED:,}"
    add("--pages", type=option_types.count, metavar="N", help=limit)
    add(
        "--hosts",
        type=option_types.count,
        metavar="N",
        help="on so many hosts; default: the seeds'",
    )
    add("--links", type=option_types.count, default=50, metavar="N", help="on a page (50)")
    size = "of a page, as it comes over the wire (30kB)"
    add("--body-bytes", type=option_types.size_bytes, default=30_000, metavar="SIZE", help=size)
    answer = "how long a host takes to answer (200ms)"
    add("--answer", type=option_types.duration_ms, default=200, metavar="TIME", help=answer)
    memory = "what the worker has (this folder's cdk.json, or 1024)"
    add("--memory", type=option_types.count, metavar="MB", help=memory)
    workers = "how many there may be at once (this folder's cdk.json, or 50)"
    add("--workers", type=option_types.count, metavar="N", help=workers)
    batch = "messages that a worker takes at once (this folder's cdk.json, or 10)"
    add("--batch-size", type=option_types.count, metavar="N", help=batch)
