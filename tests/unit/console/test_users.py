"""Users of the hosted console, from verified claims and groups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.api.problems import Refused
from orbweaver.console.users import Group, SignIn, groups_in, user_of
from tests.unit.console.hosting import CLAIMS, CLIENT, ISSUER, LOOKING, SIGN_IN, event_of
from tests.unit.stage import NOW_MS


def seen(claims: Any, sign_in: SignIn = SIGN_IN) -> Any:
    return user_of(event_of("GET", "/api/overview", claims), sign_in, NOW_MS)


def test_visitor_has_name_role_and_expiry_of_token() -> None:
    user = seen(CLAIMS)
    assert (user.name, user.steers) == ("alice", True)
    assert user.until_ms == NOW_MS // 1000 * 1000 + 3_600_000
    assert not seen(LOOKING).steers
    assert seen({key: claim for key, claim in CLAIMS.items() if key != "username"}).name == "f0c1"
    assert seen(CLAIMS | {"cognito:groups": ["look", "steer"], "aud": CLIENT}).steers


UNKNOWN: dict[str, Any] = {
    "no claims": {},
    "another issuer": CLAIMS | {"iss": ISSUER.replace("Abc", "Xyz")},
    "an issuer that begins alike": CLAIMS | {"iss": ISSUER + "4"},
    "no issuer": {key: claim for key, claim in CLAIMS.items() if key != "iss"},
    "another application": CLAIMS | {"client_id": "another"},
    "no application": {key: claim for key, claim in CLAIMS.items() if key != "client_id"},
    "a foreign audience": CLAIMS | {"aud": "another"},
    "several audiences": CLAIMS | {"aud": [CLIENT, "another"]},
    "an identity token": CLAIMS | {"token_use": "id", "aud": CLIENT},
    "no use": {key: claim for key, claim in CLAIMS.items() if key != "token_use"},
    "expired": CLAIMS | {"exp": str(NOW_MS // 1000)},
    "expired long ago": CLAIMS | {"exp": "1"},
    "no end": {key: claim for key, claim in CLAIMS.items() if key != "exp"},
    "an end that is no moment": CLAIMS | {"exp": "soon"},
    "an end that is no number": CLAIMS | {"exp": "nan"},
    "no end at all": CLAIMS | {"exp": "inf"},
}


@pytest.mark.parametrize("claims", UNKNOWN.values(), ids=UNKNOWN)
def test_invalid_claims_are_refused(claims: dict[str, Any]) -> None:
    """API Gateway verifies tokens, and the function checks their claims again."""
    with pytest.raises(Refused) as refused:
        seen(claims)
    assert refused.value.status == 401


@pytest.mark.parametrize(
    "groups",
    [None, "", "[]", "[Look]", "[STEER]", "[looks]", "[steer,look]", "[steer]]", "x", 7, {}, [7]],
)
def test_user_without_known_group_may_do_nothing(groups: Any) -> None:
    with pytest.raises(Refused) as refused:
        seen(CLAIMS | {"cognito:groups": groups})
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "authorizer", [None, {}, {"jwt": None}, {"jwt": {}}, {"lambda": CLAIMS}, 7]
)
def test_request_without_claims_has_no_visitor(authorizer: Any) -> None:
    """A route without an authorizer must not grant access."""
    event = event_of("GET", "/api/overview")
    event["requestContext"]["authorizer"] = authorizer
    with pytest.raises(Refused) as refused:
        user_of(event, SIGN_IN, NOW_MS)
    assert refused.value.status == 401


@pytest.mark.parametrize("missing", ["issuer", "client"])
def test_function_without_issuer_knows_no_visitor(missing: str) -> None:
    """An empty setting matches no claim, not even an empty one."""
    told = {"issuer": ISSUER, "client": CLIENT, "pages": "", missing: ""}
    claims = CLAIMS | {"iss": told["issuer"], "client_id": told["client"]}
    with pytest.raises(Refused):
        seen(claims, SignIn(**told))


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz[],\"'", min_size=1), max_size=4))
def test_group_list_is_split_exactly(names: list[str]) -> None:
    """API Gateway writes a list in brackets, separated by spaces."""
    assert groups_in(f"[{' '.join(names)}]") == names
    assert groups_in(names) == names


@given(
    st.dictionaries(
        st.sampled_from(sorted(CLAIMS)),
        st.one_of(st.none(), st.text(max_size=20), st.integers(), st.lists(st.text(max_size=5))),
        min_size=1,
    )
)
def test_forged_claims_are_accepted_only_if_valid(forged: dict[str, Any]) -> None:
    claims = CLAIMS | forged
    try:
        user = seen(claims)
    except Refused:
        return
    assert (claims["iss"], claims["client_id"], claims["token_use"]) == (ISSUER, CLIENT, "access")
    assert user.until_ms > NOW_MS
    assert set(groups_in(claims["cognito:groups"])) & set(Group)
