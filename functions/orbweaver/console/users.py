"""Users of the hosted console, and their permissions.

- The gateway verifies a token's signature, issuer, audience and times, and passes on its claims.
  The function also refuses requests without claims and claims of another stack. So a route that is
  public by mistake exposes nothing.
- Only access tokens are accepted. An identity token contains no permissions.
- There are two groups: `look` can read, `steer` can do everything. Other users have no access.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from orbweaver.api.problems import Refused
from orbweaver.model.value import value_class

READING = frozenset({"GET", "HEAD"})
# Public routes of the gateway, and routes that need a token.
OPEN_ROUTES = ("GET /", "GET /{file}", "GET /vendor/{file}")
SIGNED_IN_ROUTES = tuple(
    f"{method} /{room}/{{proxy+}}"
    for room, methods in (("api", "GET POST PATCH"), ("console", "GET POST"))
    for method in methods.split()
)


class Group(StrEnum):
    """A group of users, by its name in the user pool."""

    LOOK = "look"
    STEER = "steer"


@value_class
class SignIn:
    """Configuration of the sign-in: issuer of tokens, client id, address of the sign-in pages."""

    issuer: str
    client: str
    pages: str


@value_class
class ConsoleUser:
    """A signed-in user. `until_ms` is the expiry of the token."""

    name: str
    steers: bool
    until_ms: int

    def check(self, method: str) -> None:
        """Raise Refused if the user's groups do not allow the HTTP method."""
        if method not in READING and not self.steers:
            raise Refused(403, f"{self.name} may look; to change anything takes the group `steer`")


def user_of(event: Mapping[str, Any], sign_in: SignIn, now_ms: int) -> ConsoleUser:
    """Return the user of a gateway event, whose claims are verified. Raises Refused."""
    claims = _claims(event)
    expected = {"iss": sign_in.issuer, "client_id": sign_in.client, "token_use": "access"}
    for name, wanted in expected.items():
        if not wanted or claims.get(name) != wanted:
            raise Refused(401, "sign in: there is no token of this console's")
    if claims.get("aud") not in (None, sign_in.client):
        raise Refused(401, "sign in: the token is for another application")
    until_ms = _moment(claims.get("exp"))
    if until_ms <= now_ms:
        raise Refused(401, "sign in again: the token has expired")
    name = str(claims.get("username") or claims.get("sub") or "")[:128]
    groups = set(groups_in(claims.get("cognito:groups")))
    if not name or not groups & set(Group):
        raise Refused(403, f"{name or 'who asks'} is in none of the groups {', '.join(Group)}")
    return ConsoleUser(name=name, steers=Group.STEER in groups, until_ms=until_ms)


def groups_in(claim: object) -> list[str]:
    """Parse group names from a list, or from a text such as `[look steer]`."""
    if isinstance(claim, list):
        return [name for name in claim if isinstance(name, str)]
    if not isinstance(claim, str):
        return []
    if claim.startswith("[") and claim.endswith("]"):
        claim = claim[1:-1]
    return claim.split()


def _claims(event: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = event
    for key in ("requestContext", "authorizer", "jwt", "claims"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _moment(claim: object) -> int:
    """Convert a claim's time from seconds to ms. Returns 0 for an invalid time."""
    try:
        return round(float(str(claim)) * 1000)
    except (ValueError, OverflowError):
        return 0
