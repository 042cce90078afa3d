"""M2: a disk that is full while a checkpoint is stored or given out."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.model.errors import StorageFailed
from process.imaging import Host, contents, described, images, pages

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "small", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.requirement("M2")
def test_a_checkpoint_that_the_disk_cannot_take_is_refused_and_leaves_its_room_free(
    small: Path, tmp_path: Path
) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "checkpoints").symlink_to(small)
    host = Host(tmp_path / "host")
    large = images(tmp_path / "large", pages(1, 2000))
    fitting = images(tmp_path / "fitting", pages(2, 500))

    async def story() -> None:
        store = host.open()
        for seq in (1, 2):
            with pytest.raises(StorageFailed, match="No space left"):
                await store.save(described(seq), str(large))
            assert [path for path in small.rglob("*") if path.is_file()] == []
        checkpoint = await store.save(described(3), str(fitting))
        await store.load(checkpoint.id, str(tmp_path / "out"))
        await store.close()

    asyncio.run(asyncio.wait_for(story(), 60))
    assert contents(tmp_path / "out") == contents(fitting)


@pytest.mark.requirement("M2")
def test_images_that_the_disk_cannot_take_are_not_given_out_in_part(
    small: Path, tmp_path: Path
) -> None:
    host, source = Host(tmp_path / "host"), images(tmp_path / "images", pages(1, 2000))

    async def story() -> None:
        store = host.open()
        checkpoint = await store.save(described(), str(source))
        for into in (small, small / "deeper"):
            with pytest.raises(StorageFailed, match="No space left"):
                await store.load(checkpoint.id, str(into))
            assert list(small.iterdir()) == []
        await store.close()

    asyncio.run(asyncio.wait_for(story(), 60))
