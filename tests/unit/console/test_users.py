"""Who is answered by the hosted console: by claims that a gateway has verified, and by groups."""

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
    """Read who asks with these claims."""
    return user_of(event_of("GET", "/api/overview", claims), sign_in, NOW_MS)


def test_a_visitor_has_a_name_a_right_and_an_end() -> None:
    """As the token says."""
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
def test_a_token_that_does_not_fit_is_none(claims: dict[str, Any]) -> None:
    """The gateway verifies all of it; the function refuses what a gateway would have let pass."""
    with pytest.raises(Refused) as refused:
        seen(claims)
    assert refused.value.status == 401


@pytest.mark.parametrize(
    "groups",
    [None, "", "[]", "[Look]", "[STEER]", "[looks]", "[steer,look]", "[steer]]", "x", 7, {}, [7]],
)
def test_a_user_of_no_group_may_nothing(groups: Any) -> None:
    """Groups of other names are none of the two, however near."""
    with pytest.raises(Refused) as refused:
        seen(CLAIMS | {"cognito:groups": groups})
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "authorizer", [None, {}, {"jwt": None}, {"jwt": {}}, {"lambda": CLAIMS}, 7]
)
def test_a_route_that_was_left_open_opens_nothing(authorizer: Any) -> None:
    """Without what a verified token leaves behind, nobody is known."""
    event = event_of("GET", "/api/overview")
    event["requestContext"]["authorizer"] = authorizer
    with pytest.raises(Refused) as refused:
        user_of(event, SIGN_IN, NOW_MS)
    assert refused.value.status == 401


@pytest.mark.parametrize("missing", ["issuer", "client"])
def test_a_function_that_knows_no_issuer_knows_nobody(missing: str) -> None:
    """A setting that is empty fits no claim, not even an empty one."""
    told = {"issuer": ISSUER, "client": CLIENT, "pages": "", missing: ""}
    claims = CLAIMS | {"iss": told["issuer"], "client_id": told["client"]}
    with pytest.raises(Refused):
        seen(claims, SignIn(**told))


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz[],\"'", min_size=1), max_size=4))
def test_no_name_of_a_group_is_taken_for_another(names: list[str]) -> None:
    """A list that was written between brackets, with blanks, is read as it was."""
    assert groups_in(f"[{' '.join(names)}]") == names
    assert groups_in(names) == names


@given(
    st.dictionaries(
        st.sampled_from(sorted(CLAIMS)),
        st.one_of(st.none(), st.text(max_size=20), st.integers(), st.lists(st.text(max_size=5))),
        min_size=1,
    )
)
def test_forged_claims_bring_nobody_in(forged: dict[str, Any]) -> None:
    """Whatever stands in their place: they fit, or the request is refused with a reason."""
    claims = CLAIMS | forged
    try:
        user = seen(claims)
    except Refused:
        return
    assert claims["iss"] == ISSUER
    assert claims["client_id"] == CLIENT
    assert claims["token_use"] == "access"
    assert user.until_ms > NOW_MS
    assert set(groups_in(claims["cognito:groups"])) & set(Group)
