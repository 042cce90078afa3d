"""M2: checkpoints in each kind of place, a real S3 server among them, and what is said when that is
not there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.blobs import CREDENTIALS, KINDS, Place, S3Server, s3_server
from holdfast.model.errors import CheckpointStoreDown
from process.imaging import SESSION, Host, contents, described, images, pages


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.requirement("M2")
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_are_saved_shared_loaded_and_deleted(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    place = Place(kind, tmp_path, request.getfixturevalue("server") if kind == "s3" else None)
    host = Host(tmp_path / "host", place.open)
    memory = pages(1, 1500)
    first, second = images(tmp_path / "1", memory), images(tmp_path / "2", memory + pages(2, 20))

    async def story() -> None:
        store = host.open()
        one = await store.save(described(7), str(first))
        two = await store.save(described(8), str(second))
        assert two.stored_bytes < one.stored_bytes / 4
        await store.close()
        store = host.open()
        assert await store.load(SESSION, str(tmp_path / "out-2")) == two
        assert await store.used_bytes() == sum(blob.size for blob in place.open().list(""))
        await store.delete(two.id)
        assert await store.load(SESSION, str(tmp_path / "out-1")) == one
        await store.delete(one.id)
        assert list(place.open().list("")) == []
        await store.close()

    asyncio.run(asyncio.wait_for(story(), 90))
    assert contents(tmp_path / "out-2") == contents(second)
    assert contents(tmp_path / "out-1") == contents(first)


@pytest.mark.requirement("M2")
def test_a_service_that_goes_away_is_said_and_costs_no_checkpoint(
    server: S3Server, tmp_path: Path
) -> None:
    place = Place("s3", tmp_path, server)
    host, source = Host(tmp_path / "host", place.open), images(tmp_path / "1", pages(1, 6000))

    async def story() -> None:
        store = host.open()
        begun = asyncio.Event()

        def progress(done: int, _total: int) -> None:
            if done:
                begun.set()

        saving = asyncio.create_task(store.save(described(7), str(source), progress))
        await begun.wait()
        server.stop()
        for doing in (saving, store.save(described(8), str(source)), store.find(SESSION)):
            with pytest.raises(CheckpointStoreDown):
                await doing
        await store.close()

    asyncio.run(asyncio.wait_for(story(), 90))
