"""Context keys of the hosted console: docs/console.md."""

from __future__ import annotations

from dataclasses import dataclass

from infra.keys import choice, unfit
from infra.watch_keys import WatchKeys

# Cognito rejects a sign-in domain that contains one of these words.
RESERVED = ("aws", "amazon", "cognito")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleKeys(WatchKeys):
    """Settings of the hosted console."""

    console: str = choice(
        "no",
        ("no", "yes"),
        "yes: host the console for users in two groups (look, steer): docs/console.md",
    )

    @property
    def hosts_console(self) -> bool:
        return self.console == "yes"

    def check_console(self, target: str, stack_name: str) -> None:
        """Raise ConfigError if users of the console could not sign in."""
        if not self.hosts_console:
            return
        if target == "local":
            fix = "omit it: `orbweaver console` shows a stack on this machine"
            raise unfit("console", self.console, fix)
        found = next((word for word in RESERVED if word in stack_name.lower()), None)
        if found is not None:
            fix = f"the address of its sign-in page must not contain {found!r}: choose another name"
            raise unfit("stack_name", stack_name, fix)
