"""The places for blobs the contract is shown on: a directory, and a bucket of a real S3 server."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import selectors
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from holdfast.adapters.blobs.directory import DirectoryBlobs
from holdfast.adapters.blobs.object_store import ObjectBlobs
from holdfast.ports.blob_store import BlobStore

KINDS = ("directory", "s3")
_START_S = 30.0
_names = itertools.count(1)

# For the server of these tests anything will do, but nothing may be looked for elsewhere.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "holdfast",
    "AWS_SECRET_ACCESS_KEY": "of-these-tests",
    "AWS_REGION": "us-east-1",
}


class S3Server:
    """A process of its own, on loopback."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **CREDENTIALS},
        )
        self.endpoint = f"http://127.0.0.1:{self._port()}"
        # Its log must go somewhere, or it stops at a full pipe.
        assert self._process.stderr is not None
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def _port(self) -> int:
        assert self._process.stderr is not None
        said, until = b"", time.monotonic() + _START_S
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stderr, selectors.EVENT_READ)
            while time.monotonic() < until and ready.select(until - time.monotonic()):
                read = os.read(self._process.stderr.fileno(), 4096)
                said += read
                if found := re.search(rb"Running on http://127\.0\.0\.1:(\d+)\s", said):
                    return int(found[1])
                if not read:
                    break
        self.stop()
        raise AssertionError(f"the S3 server did not start: {said.decode()}")

    def bucket(self) -> str:
        """The URL of a new one."""
        name = f"bucket-{next(_names)}"
        made = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.open(made, timeout=_START_S).close()
        return f"s3://{name}/some/path?endpoint={self.endpoint}"

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait(_START_S)


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    server = S3Server()
    try:
        yield server
    finally:
        server.stop()


class Place:
    """One place, empty at first, that can be opened again."""

    def __init__(self, kind: str, directory: Path, server: S3Server | None) -> None:
        self.at = str(directory / "blobs") if server is None else server.bucket()
        self.kind = kind

    def open(self) -> BlobStore:
        return DirectoryBlobs(self.at) if self.kind == "directory" else ObjectBlobs(self.at)
