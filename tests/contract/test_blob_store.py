"""What a place for blobs promises, on a directory and on a real S3 server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contract.blobs import CREDENTIALS, KINDS, Place, S3Server, s3_server
from holdfast.adapters.blobs.object_store import ObjectBlobs
from holdfast.model.errors import CheckpointStoreDown, InvalidArgument
from holdfast.ports.blob_store import Blob, BlobStore


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    of = request.getfixturevalue("server") if request.param == "s3" else None
    return Place(request.param, tmp_path, of)


@pytest.fixture
def blobs(place: Place) -> Iterator[BlobStore]:
    store = place.open()
    yield store
    store.close()


def test_what_was_put_is_got_by_everybody_who_opens_the_place(
    blobs: BlobStore, place: Place
) -> None:
    assert blobs.put("a/b-1/c.d", b"\0some bytes\xff")
    blobs.flush()
    assert blobs.get("a/b-1/c.d") == b"\0some bytes\xff"
    assert place.open().get("a/b-1/c.d") == b"\0some bytes\xff"


def test_a_blob_may_be_empty_or_large(blobs: BlobStore) -> None:
    large = bytes(range(256)) * (16 << 10)
    assert blobs.put("empty", b"") and blobs.put("large", large)
    assert (blobs.get("empty"), blobs.get("large")) == (b"", large)


def test_a_blob_that_is_not_there_is_none_and_deleting_it_is_no_error(blobs: BlobStore) -> None:
    assert blobs.get("a/b") is None
    blobs.delete("a/b")
    blobs.put("a/b", b"x")
    assert blobs.get("a") is None
    assert blobs.get("a/b/c") is None


def test_a_put_replaces_and_a_put_of_a_new_one_does_not(blobs: BlobStore) -> None:
    assert blobs.put("x", b"1")
    assert blobs.put("x", b"2")
    assert not blobs.put("x", b"3", new=True)
    assert blobs.get("x") == b"2"
    blobs.delete("x")
    assert blobs.get("x") is None
    assert blobs.put("x", b"4", new=True)
    assert blobs.get("x") == b"4"


def test_of_many_that_put_a_new_one_at_once_one_does(blobs: BlobStore) -> None:
    begin = threading.Barrier(6)

    def put(number: int) -> bool:
        begin.wait(30)
        return blobs.put("contested", b"%d" % number, new=True)

    with ThreadPoolExecutor(6) as threads:
        won = list(threads.map(put, range(6)))
    assert sum(won) == 1
    assert blobs.get("contested") == b"%d" % won.index(True)


def test_a_listing_has_names_and_sizes_of_what_is_below_a_prefix(blobs: BlobStore) -> None:
    for name in ("a/1", "a/b/2", "ab/3", "c"):
        blobs.put(name, name.encode())
    assert sorted(blobs.list("a/")) == [Blob("a/1", 3), Blob("a/b/2", 5)]
    assert sorted(blob.name for blob in blobs.list("")) == ["a/1", "a/b/2", "ab/3", "c"]
    assert list(blobs.list("none/")) == []


def test_a_listing_goes_on_beyond_one_page(blobs: BlobStore) -> None:
    names = {f"many/{number:05}" for number in range(1100)}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: blobs.put(name, b"x"), names))
    assert {blob.name for blob in blobs.list("many/")} == names


def test_what_a_dead_process_was_writing_is_not_listed_and_goes_away(tmp_path: Path) -> None:
    place = Place("directory", tmp_path, None)
    place.open().put("whole", b"x")
    (tmp_path / "blobs" / ".unfinished" / "1-1").write_bytes(b"half")
    assert [blob.name for blob in place.open().list("")] == ["whole"]
    assert not (tmp_path / "blobs" / ".unfinished" / "1-1").exists()


def test_files_of_a_directory_are_their_owners_alone(tmp_path: Path) -> None:
    Place("directory", tmp_path, None).open().put("a/b", b"x")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"blobs": 0o700, ".unfinished": 0o700, "a": 0o700, "b": 0o600}


@pytest.mark.requirement("M2")
def test_a_service_that_does_not_answer_is_said_in_bounded_time() -> None:
    """A closed port, and a server that takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        closed = socket.create_server(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        closed.close()
        for number, patience_s in ((port, 15.0), (silent.getsockname()[1], 45.0)):
            blobs = ObjectBlobs(f"s3://bucket?endpoint=http://127.0.0.1:{number}")
            began = time.monotonic()
            with pytest.raises(CheckpointStoreDown, match="s3://bucket"):
                blobs.get("x")
            assert time.monotonic() - began < patience_s


def test_a_bucket_that_is_not_there_and_a_directory_that_cannot_be_made_are_said(
    server: S3Server, tmp_path: Path
) -> None:
    blobs = ObjectBlobs(f"s3://nobodys?endpoint={server.endpoint}")
    with pytest.raises(CheckpointStoreDown, match="nobodys"):
        blobs.put("x", b"")
    (tmp_path / "blobs").write_text("a file")
    with pytest.raises(CheckpointStoreDown, match="blobs"):
        Place("directory", tmp_path, None).open()


def test_an_unknown_setting_in_the_url_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="secret"):
        ObjectBlobs("s3://bucket?secret=x")
