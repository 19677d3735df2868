"""Context keys: their types, parsing and error messages."""

from __future__ import annotations

import difflib
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import Field

# Errors hide these values, because a person may have typed the secret instead of its name.
SECRETS = ("proxy_secret", "webhook_secret", "sftp_secret")
# A whole ARN includes the six characters that AWS appends to the name.
ARN = r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+-[A-Za-z0-9]{6}"


class ConfigError(Exception):
    """A context key has no valid value. The message contains the key, the value and a remedy."""


def number(default: int, low: int, high: int, meaning: str, *, local: int | None = None) -> int:
    """A key whose value is an integer within bounds."""
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
    """A key whose value is a text that matches a pattern. `takes` describes the pattern."""
    rule = {"pattern": pattern, "takes": takes, "meaning": meaning, "local": local}
    return field(default=default, metadata=rule)


def secret(meaning: str, *, also: str = "", local: str | None = None) -> str:
    """A key whose value is a secret's name or ARN. `also` is one more accepted word."""
    return text(
        "",
        meaning,
        pattern=rf"({ARN}|[A-Za-z0-9/_+=.@-]{{1,512}})?",
        takes=f"{also and also + ', or '}the name or whole ARN of a secret, not the secret itself",
        local=local,
    )


def choice(default: str, options: tuple[str, ...], meaning: str, **local: str) -> str:
    """A key whose value is one of several words."""
    takes = " or ".join(options)
    return text(default, meaning, pattern="|".join(options), takes=takes, **local)


def convert(item: Field[Any], value: object, *, local: bool) -> int | str:
    """Convert a key's value. Raises ConfigError if it is invalid."""
    rule = item.metadata
    if "low" in rule:
        digits = str(value)
        fits = re.fullmatch(r"[0-9]{1,6}", digits) and rule["low"] <= int(digits) <= rule["high"]
        if not fits:
            raise unfit(
                item.name, value, f"set a whole number from {rule['low']} to {rule['high']}"
            )
        return int(digits)
    free = local and item.name == "runtime"  # Config checks it against this machine's runtime.
    if not isinstance(value, str) or not (free or re.fullmatch(rule["pattern"], value)):
        raise unfit(item.name, value, f"give {rule['takes']}")
    return value


def unfit(key: str, value: object, fix: str) -> ConfigError:
    """Return the error for an invalid value. `fix` is the remedy."""
    shown = "…" if key in SECRETS else value
    return ConfigError(f"context key {key}={shown} is invalid: {fix}")


def unknown(key: str, value: object, known: list[str]) -> ConfigError:
    """Return the error for an unknown key, with the closest known key."""
    near = difflib.get_close_matches(key, known, n=1)
    fix = f"did you mean {near[0]}?" if near else "`python -m infra.config` lists all keys"
    return ConfigError(f"context key {key}={value} is unknown: {fix}")
