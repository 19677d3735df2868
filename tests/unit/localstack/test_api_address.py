"""The API's address among the outputs of a stack."""

from __future__ import annotations

from localstack.api_address import local_outputs

AWS = "https://cb833e21.execute-api.us-east-1.amazonaws.com/v1/"
OTHERS = {"Bucket": "b"}


def test_an_emulator_serves_the_api_itself() -> None:
    """No request that is signed for a stack on this machine leaves it."""
    environment = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4601"}
    here = "http://127.0.0.1:4601/restapis/cb833e21/v1/_user_request_/"
    assert local_outputs({**OTHERS, "ApiUrl": AWS}, environment) == {**OTHERS, "ApiUrl": here}
    assert local_outputs({"ApiUrl": here}, environment) == {"ApiUrl": here}
    assert local_outputs(OTHERS, environment) == OTHERS


def test_on_aws_the_address_is_its_own() -> None:
    """Without an endpoint nothing is replaced."""
    assert local_outputs({"ApiUrl": AWS}, {}) == {"ApiUrl": AWS}
