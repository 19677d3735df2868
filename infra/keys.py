"""Context keys (settings of a deployment, `cdk deploy -c key=value`): types, parsing and errors."""

from __future__ import annotations

import difflib
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from dataclasses import Field

# Keys whose values are not shown in errors, because a person may have given the secret itself
# instead of its name.
SECRETS = ("proxy_secret", "webhook_secret", "sftp_secret", "sftp_url")
# ARN of a secret. A whole ARN includes the six characters that AWS appends to the secret's name.
ARN = r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+-[A-Za-z0-9]{6}"


class ConfigError(Exception):
    """A context key has no valid value. The message contains the key, the value and a remedy."""


def number(default: int, low: int, high: int, meaning: str, *, local: int | None = None) -> int:
    """Define a key whose value is an integer from `low` to `high`.

    `local` is the default with an emulator, if it differs.
    """
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
    """Define a key whose value is a text that matches `pattern`. `takes` describes it in errors."""
    rule = {"pattern": pattern, "takes": takes, "meaning": meaning, "local": local}
    return field(default=default, metadata=rule)


def secret(meaning: str, *, also: str = "", local: str | None = None) -> str:
    """Define a key whose value is a secret's name or ARN.

    `also` is a word that is accepted, too.
    """
    return text(
        "",
        meaning,
        pattern=rf"({ARN}|[A-Za-z0-9/_+=.@-]{{1,512}})?",
        takes=f"{also and also + ', or '}the name or whole ARN of a secret, not the secret itself",
        local=local,
    )


def choice(default: str, options: tuple[str, ...], meaning: str, **local: str) -> str:
    """Define a key whose value is one of the words in `options`."""
    takes = " or ".join(options)
    return text(default, meaning, pattern="|".join(options), takes=takes, **local)


def convert(item: Field[Any], value: object) -> int | str:
    """Convert the value of a key. Raises ConfigError if the value is invalid."""
    rule = item.metadata
    if "low" in rule:
        digits = str(value)
        fits = re.fullmatch(r"[0-9]{1,10}", digits) and rule["low"] <= int(digits) <= rule["high"]
        if not fits:
            raise unfit(
                item.name, value, f"set a whole number from {rule['low']} to {rule['high']}"
            )
        return int(digits)
    if not isinstance(value, str) or not re.fullmatch(rule["pattern"], value):
        raise unfit(item.name, value, f"give {rule['takes']}")
    return value


def unfit(key: str, value: object, fix: str) -> ConfigError:
    """Return the error for an invalid value. `fix` is the remedy, such as "give a word"."""
    shown = "…" if key in SECRETS else value
    return ConfigError(f"context key {key}={shown} is invalid: {fix}")


def unknown(key: str, value: object, known: Iterable[str]) -> ConfigError:
    """Return the error for an unknown key. It names a similar key, if there is one."""
    near = difflib.get_close_matches(key, known, n=1)
    fix = f"did you mean {near[0]}?" if near else "`python -m infra.config` lists all keys"
    return ConfigError(f"context key {key}={value} is unknown: {fix}")
