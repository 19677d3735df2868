"""Deliveries of a deployed stack: exports reach their receivers.

The test needs its own stack, because receivers are deployment settings.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator

import pytest

from orbweaver.adapters.aws.clients import Aws
from orbweaver.adapters.aws.event_bus import BusEvents
from orbweaver.exporting.manifest import PREFIX, Manifest, decode_manifest, manifest_path
from tests.e2e import enforced
from tests.e2e.stand import Stand, until
from tests.sites import graph, sshd
from tests.sites.sshd import Sshd
from tests.unit.delivering import exported, lies

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(400)]

SECRET, FOLDER, BUCKET = "crawl/sftp", "incoming", "their-exports"
PAGES = 5
LETTERS = "DeliveryDeadLetterQueueUrl"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    if sshd.program() is None:
        pytest.skip(sshd.ABSENT)
    with sshd.serving(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture(scope="module")
def stand(server: Sshd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    context = {
        "sftp_url": f"sftp://{server.user}@{sshd.HOST}:{server.port}/~/{FOLDER}",
        "sftp_host_key": server.host_key,
        "sftp_secret": SECRET,
        "copy_bucket": BUCKET,
    }
    with enforced.standing(tmp_path_factory.mktemp("stand"), context) as made:
        with made.client("secretsmanager") as secrets, made.client("s3") as s3:
            secrets.create_secret(Name=SECRET, SecretString=server.key)
            s3.create_bucket(Bucket=BUCKET)
        yield made


@pytest.fixture(scope="module")
def export(stand: Stand) -> Manifest:
    """Put an export into the bucket and announce it like the exporter."""
    files: dict[str, bytes] = {}
    manifest = exported(files, {"shop-1": [b"one" * 500_000, b"two"], "shop-2": [b"three"]})
    with stand.client("s3") as s3:
        for key, body in files.items():
            s3.put_object(Bucket=stand.outputs["Bucket"], Key=key, Body=body)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in stand.environment.items():
            patch.setenv(name, value)
        asyncio.run(announce(manifest, stand.outputs["Bucket"]))
    return manifest


async def announce(manifest: Manifest, bucket: str) -> None:
    async with Aws() as aws:
        events = BusEvents(
            await aws.client("events"), bus="default", stack="Orbweaver", bucket=bucket
        )
        await events.exported(manifest, PREFIX + manifest.path)


def pushed(server: Sshd) -> dict[str, bytes]:
    prefix = f"{FOLDER}/"
    return {name.removeprefix(prefix): body for name, body in server.files().items()}


def copied(stand: Stand, bucket: str = BUCKET) -> dict[str, bytes]:
    found = stand.files("exports/", bucket)
    return {key.removeprefix("exports/"): body for key, body in found}


def test_export_is_delivered_to_both_receivers(
    stand: Stand, server: Sshd, export: Manifest
) -> None:
    until(lambda: export.path in pushed(server), "pushed", log=stand.log)
    until(lambda: export.path in copied(stand), "copied", log=stand.log)
    made = {PREFIX + path: body for path, body in copied(stand, stand.outputs["Bucket"]).items()}
    for there in (pushed(server), copied(stand)):
        lies(there, export, made)
    assert not stand.take(stand.outputs[LETTERS])


def test_crawl_is_delivered_after_export(stand: Stand, server: Sshd) -> None:
    links = [f"/{n}" for n in range(PAGES)]
    with graph.serve_in_background({path: graph.page(path, links) for path in links}) as site:
        ran = stand.orbweaver("start", f"{site.url}/0", "--delay", "0", "--wait", "--json")
    stand.wait_idle()
    day = str(stand.scan("PagesTable")[0]["day"]["S"]).partition("#")[0]
    stand.export_day(day)
    path = manifest_path(day)

    def delivered() -> Manifest | None:
        manifest = decode_manifest(pushed(server).get(path, b""))
        return manifest if manifest and ran.result["crawl"] in manifest.crawls else None

    manifest = until(delivered, "the crawl's export is pushed", log=stand.log)
    assert manifest is not None
    assert manifest.crawls[ran.result["crawl"]].rows["pages"] == PAGES
    there = pushed(server)
    for file in manifest.files:
        assert hashlib.sha256(there[file.path]).hexdigest() == file.sha256
