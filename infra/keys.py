"""Context keys: their values, how they are read, and what is said of one that does not fit."""

from __future__ import annotations

import difflib
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import Field

# A person who takes it for what the secret holds has typed that.
SECRETS = ("proxy_secret", "webhook_secret", "sftp_secret")
# Whole: with the six characters that AWS puts behind the name.
ARN = r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+-[A-Za-z0-9]{6}"


class ConfigError(Exception):
    """A context key has no usable value; the text names it, its value and what to do."""


def number(default: int, low: int, high: int, meaning: str, *, local: int | None = None) -> int:
    """A whole number within bounds."""
    rule = {"low": low, "high": high, "meaning": meaning, "local": local}
    return field(default=default, metadata=rule)


def text(
    default: str,
    meaning: str,
    *,
    pattern: str = "[ -~]*",
    takes: str = "printable ASCII",
    local: str | None = None,
) -> str:
    """A text of one pattern."""
    rule = {"pattern": pattern, "takes": takes, "meaning": meaning, "local": local}
    return field(default=default, metadata=rule)


def secret(meaning: str, *, also: str = "", local: str | None = None) -> str:
    """The name or ARN of a secret; `also` is a word that is taken as well."""
    return text(
        "",
        meaning,
        pattern=rf"({ARN}|[A-Za-z0-9/_+=.@-]{{1,512}})?",
        takes=f"{also and also + ', or '}the name or whole ARN of a secret, and not what it holds",
        local=local,
    )


def choice(default: str, options: tuple[str, ...], meaning: str, **local: str) -> str:
    """One of several words."""
    takes = " or ".join(options)
    return text(default, meaning, pattern="|".join(options), takes=takes, **local)


def convert(item: Field[Any], value: object, *, local: bool) -> int | str:
    """Read a value as its key takes it; raises ConfigError."""
    rule = item.metadata
    if "low" in rule:
        digits = str(value)
        fits = re.fullmatch(r"[0-9]{1,6}", digits) and rule["low"] <= int(digits) <= rule["high"]
        if not fits:
            raise unfit(
                item.name, value, f"give a whole number from {rule['low']} to {rule['high']}"
            )
        return int(digits)
    free = local and item.name == "runtime"  # checked against this machine
    if not isinstance(value, str) or not (free or re.fullmatch(rule["pattern"], value)):
        raise unfit(item.name, value, f"give {rule['takes']}")
    return value


def unfit(key: str, value: object, fix: str) -> ConfigError:
    """Say that a value does not fit, and what to do."""
    shown = "…" if key in SECRETS else value
    return ConfigError(f"context key {key}={shown} does not fit: {fix}")


def unknown(key: str, value: object, known: list[str]) -> ConfigError:
    """Say that there is no such key, and which is near."""
    near = difflib.get_close_matches(key, known, n=1)
    fix = f"did you mean {near[0]}?" if near else "`python -m infra.config` lists all keys"
    return ConfigError(f"context key {key}={value} is not known: {fix}")
