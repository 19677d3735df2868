"""Options of a crawl, and the parts of a plan that they set.

An option that is not given is None or empty, so the value of the definition or the default applies.
Omitting a switch does not reset a value that the definition sets.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orbweaver.cli import option_types
from orbweaver.control.crawl_spec import SETTINGS
from orbweaver.frontier.refetch import MISSING
from orbweaver.model.crawl_settings import Setting
from orbweaver.model.value import value_class
from orbweaver.parsing.pii_redaction import KINDS

DEFINITION = Path("crawl.toml")
STANDARD_INPUT = "-"
_TRUST = ("ca_bundle", "client_cert", "insecure_hosts")
# Order of the options in the help. Settings that are not listed come last.
_ORDER = (
    *("sitemap_urls", "sitemaps", "canonical_only", "noindex_skipped", "name", "scope"),
    *(
        "depth_max",
        "pages_max",
        "stop_when_nothing_new",
        "host_pages_max",
        "bytes_max",
        "nanodollars_max",
    ),
    *("duration_max_s", "delay_ms", "concurrency", "include", "exclude", "bodies"),
    *(
        "status_only",
        "texts",
        "links",
        "render",
        "redacted",
        "strip_parameters",
        "keep_parameters",
        "window_s",
        "obey_robots",
    ),
    "obey_nofollow",
    *("user_agents", "headers", "auth", "cookies", "proxied"),
    *_TRUST,
    *("timeout_ms", "retries", "referer"),
    "express",
)
_TYPES: Mapping[str, Callable[[str], Any]] = {
    "number": option_types.number,
    "milliseconds": option_types.duration_ms,
    "seconds": option_types.duration_s,
    "bytes": option_types.size_bytes,
    "nanodollars": option_types.nanodollars,
    "headers": option_types.header,
    "auth": option_types.auth,
}


@value_class
class _Option:
    """A setting of a crawl as an option. Without `metavar` the option is a switch."""

    setting: Setting
    metavar: str
    words: Mapping[str, Any]

    @classmethod
    def build(cls, setting: Setting) -> _Option:
        words = setting.words
        if setting.kind == "pii_kinds":
            words = {kind: kind for kind in KINDS}
        elif setting.kind == "switch" and setting.metavar:
            words = {"yes": True, "no": False}
        return cls(setting=setting, metavar=setting.metavar or "|".join(words), words=words)

    def add(self, add: Callable[..., Any], default: str | None = None) -> None:
        more: dict[str, Any] = {"help": self.setting.help}
        if self.setting.kind == "switch" and not self.metavar:
            add(self.setting.flag, action="store_true", **more)
            return
        if isinstance(self.setting.default, tuple):
            more |= {"action": "append", "default": []}
        else:
            more["default"] = default
        reads = option_types.one_of(tuple(self.words)) if self.words else None
        kind = self.setting.kind
        read = reads or _TYPES.get(kind)
        add(self.setting.flag, type=read, metavar=self.metavar or None, **more)

    def part(self, arguments: Namespace) -> Any:
        value = getattr(arguments, self.setting.argument, None)
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
    one.name: _Option.build(one)
    for one in sorted(
        (one for one in SETTINGS if one.option),
        key=lambda one: _ORDER.index(one.name) if one.name in _ORDER else len(_ORDER),
    )
}
# The option that sets each part of a plan, by the name of the part.
OPTIONS = {"seeds": "URL", "id": "--id", "idempotency_key": "--idempotency-key"} | {
    part: option.setting.flag for part, option in _BY_NAME.items()
}


def given(arguments: Namespace) -> dict[str, Any]:
    """Return the parts of a plan that the options set, by name."""
    parts = {"seeds": tuple(getattr(arguments, "seeds", ())), "id": getattr(arguments, "id", None)}
    parts |= {part: option.part(arguments) for part, option in _BY_NAME.items()}
    return {part: value for part, value in parts.items() if value is not None and value != ()}


def add_plan(add: Callable[..., Any]) -> None:
    add("seeds", nargs="*", metavar="URL", help="seed URLs; - reads a list from the standard input")
    lists = "a list of seeds, one a line or in a CSV column; - is the input; may be repeated"
    add("--seeds", dest="seed_lists", action="append", default=[], metavar="FILE", help=lists)
    column = "the column of a CSV list by its name, or its number if there is no header (url)"
    add("--column", metavar="NAME", help=column)
    config = "definition of the crawl; options replace its values"
    add("--config", type=Path, metavar="FILE", help=config)
    for part, option in _BY_NAME.items():
        option.add(add)
        if part == "window_s":
            add("--refetch", type=option_types.one_of([MISSING]), metavar=MISSING, help=_REFETCH)
    most = "exit with 1 if more URLs failed (default: never)"
    add("--fail-above", type=option_types.threshold, metavar="N|N%", help=most)


_REFETCH = (
    "request only pages that earlier runs stored with other item rules or --render, or without"
    " --text, --links, --bodies or --redact"
)


def add_changeable(parser: Any) -> None:
    """Add the options whose settings can change while a crawl runs (`control/edits.py`)."""
    for option in _BY_NAME.values():
        if option.setting.editable:
            option.add(parser.add_argument)


def add_request(parser: Any) -> None:
    for name in ("obey_robots", "user_agents", "headers", *_TRUST, "redacted"):
        _BY_NAME[name].add(parser.add_argument)


def add_check(parser: Any) -> None:
    """Add the options that also apply to a check of links."""
    left_out = "omit links that match this regular expression; may be repeated"
    parser.add_argument("--exclude", action="append", default=[], metavar="RE", help=left_out)
    names = ("depth_max", "pages_max", "delay_ms", "concurrency", "obey_robots", "user_agents")
    for name in (*names, "headers"):
        _BY_NAME[name].add(parser.add_argument)
    limit = "maximum time for the requests to other URLs (10m)"
    parser.add_argument("--duration", type=option_types.duration_s, metavar="TIME", help=limit)


def add_links(parser: Any) -> None:
    _BY_NAME["scope"].add(parser.add_argument, "host")
    for name in ("strip_parameters", "keep_parameters"):
        _BY_NAME[name].add(parser.add_argument)
