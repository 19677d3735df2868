"""Contract of secrets: reads return the current value; a missing secret is Permanent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import pytest

from orbweaver.adapters.aws.secrets import ManagedSecrets
from orbweaver.adapters.web.proxy_client import Proxies, Trouble
from orbweaver.adapters.web.proxy_sources import secret_source
from orbweaver.fetching.proxy_pool import Proxy, Wait
from orbweaver.model.errors import Permanent
from tests.contract.worlds import AWS_WORLDS, AwsWorld, MemoryWorld, SqliteWorld
from tests.memory import MemorySecrets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orbweaver.model.ports import Secrets
    from tests.contract.worlds import Opener
    from tests.memory import ManualClock

TEXT = json.dumps(["http://me:wörd@p.test:3128"])


class Kept(Protocol):
    """A secret and the operations of its owner."""

    @property
    def secrets(self) -> Secrets:
        pass

    @property
    def name(self) -> str: ...

    async def put(self, text: str) -> None: ...

    async def remove(self) -> None: ...


class KeptInMemory:
    """Secret in memory."""

    name: str = "pool"

    def __init__(self, world: MemoryWorld) -> None:
        self._held = world.state.secrets
        self.secrets = MemorySecrets(world.state)

    async def put(self, text: str) -> None:
        self._held[self.name] = text

    async def remove(self) -> None:
        del self._held[self.name]


class KeptInAFile:
    """Secret in a file beside a store."""

    name: str = "pool"

    def __init__(self, world: SqliteWorld) -> None:
        self._path = world.ports.folder / "secrets" / self.name
        self.secrets = world.ports.secrets

    async def put(self, text: str) -> None:
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(text, encoding="utf-8")

    async def remove(self) -> None:
        self._path.unlink()


class KeptByAws:
    """Secret in Secrets Manager."""

    def __init__(self, world: AwsWorld) -> None:
        self._aws = world.aws
        self.name = f"{world.name}/pool"
        self.secrets = ManagedSecrets(world.aws)
        self.arn: str | None = None

    async def put(self, text: str) -> None:
        client = await self._aws.client("secretsmanager")
        if self.arn is None:
            answer = await client.create_secret(Name=self.name, SecretString=text)
            self.arn = answer["ARN"]
        else:
            await client.put_secret_value(SecretId=self.name, SecretString=text)

    async def put_parameter(self, text: str) -> None:
        client = await self._aws.client("ssm")
        given = {"Name": f"/{self.name}", "Value": text, "Type": "SecureString"}
        await client.put_parameter(**given, Overwrite=True)

    async def remove(self) -> None:
        client = await self._aws.client("secretsmanager")
        await client.delete_secret(SecretId=self.name, ForceDeleteWithoutRecovery=True)


@pytest.fixture(params=["memory", "sqlite", *AWS_WORLDS])
async def kept(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[Kept]:
    async with opener(request.param) as world:
        if isinstance(world, MemoryWorld):
            yield KeptInMemory(world)
        elif isinstance(world, SqliteWorld):
            yield KeptInAFile(world)
        else:
            assert isinstance(world, AwsWorld)
            yield KeptByAws(world)


async def test_rotated_secret_is_read(kept: Kept) -> None:
    for text in (TEXT, "[]", "x" * 60_000):
        await kept.put(text)
        assert await kept.secrets.read(kept.name) == text


async def test_secret_of_login_is_read_by_reference(kept: Kept) -> None:
    if isinstance(kept, KeptInMemory):
        pytest.skip("the memory has only exact names")
    await kept.put(TEXT)
    assert await kept.secrets.read(f"secret:{kept.name}") == TEXT
    for reference in ("env:NO_SUCH_VARIABLE", "file:no-such-file"):
        with pytest.raises(Permanent):
            await kept.secrets.read(reference)
    if not isinstance(kept, KeptByAws):
        with pytest.raises(Permanent, match="only a stack reads"):
            await kept.secrets.read("ssm:a")
        return
    await kept.put_parameter("s3cr3t")
    assert await kept.secrets.read(f"ssm:/{kept.name}") == "s3cr3t"
    missing = "'ssm:/none': get_parameter: ParameterNotFound: create it"
    with pytest.raises(Permanent, match=missing):
        await kept.secrets.read("ssm:/none")


async def test_missing_secret_is_permanent_error(kept: Kept) -> None:
    with pytest.raises(Permanent):
        await kept.secrets.read(kept.name)
    await kept.put(TEXT)
    await kept.remove()
    with pytest.raises(Permanent) as raised:
        await kept.secrets.read(kept.name)
    assert "me" not in str(raised.value).replace("memory", "").split()


async def test_proxy_pool_follows_its_secret(kept: Kept, clock: ManualClock) -> None:
    proxies = Proxies(secret_source(kept.secrets, kept.name), clock)
    assert isinstance(await proxies.pick("h.test"), Wait)
    await kept.put(json.dumps(["http://me:one@p.test:3128"]))
    clock.at_ms += 30_000
    first = await proxies.pick("h.test")
    assert isinstance(first, Proxy)
    await kept.put(json.dumps(["http://me:two@p.test:3128"]))
    clock.at_ms += 119_000
    assert await proxies.pick("h.test") == first
    clock.at_ms += 1_000
    second = await proxies.pick("h.test")
    assert isinstance(second, Proxy)
    assert (second.url, second.user) == (first.url, first.user)
    assert second.authorization != first.authorization
    await kept.remove()
    proxies.note(second, "h.test", Trouble.BROKEN, clock.at_ms)
    clock.at_ms += 30_000
    assert await proxies.pick("h.test") == Wait(until_ms=clock.at_ms + 30_000)


@pytest.mark.parametrize("name", AWS_WORLDS)
async def test_secret_is_named_by_arn_or_name(opener: Opener, name: str) -> None:
    async with opener(name) as world:
        assert isinstance(world, AwsWorld)
        kept = KeptByAws(world)
        await kept.put(TEXT)
        assert kept.arn is not None
        assert await kept.secrets.read(kept.arn) == TEXT
        client = await world.aws.client("secretsmanager")
        await client.create_secret(Name=f"{world.name}/bytes", SecretBinary=b"{}")
        with pytest.raises(Permanent, match="bytes"):
            await kept.secrets.read(f"{world.name}/bytes")
