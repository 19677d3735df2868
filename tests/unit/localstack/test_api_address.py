"""API address in the outputs of a stack."""

from __future__ import annotations

from localstack.cdk import local_outputs

AWS = "https://cb833e21.execute-api.us-east-1.amazonaws.com/v1/"
OTHERS = {"Bucket": "b"}


def test_api_address_of_emulator_is_local() -> None:
    environment = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4601"}
    here = "http://127.0.0.1:4601/restapis/cb833e21/v1/_user_request_/"
    assert local_outputs({**OTHERS, "ApiUrl": AWS}, environment) == {**OTHERS, "ApiUrl": here}
    assert local_outputs({"ApiUrl": here}, environment) == {"ApiUrl": here}
    assert local_outputs(OTHERS, environment) == OTHERS


def test_api_address_on_aws_is_unchanged() -> None:
    assert local_outputs({"ApiUrl": AWS}, {}) == {"ApiUrl": AWS}
