"""Blobs in a bucket behind a URL: S3 and what speaks its protocol, and the other services that
`obstore` knows.

Credentials, region and endpoint come from the environment the host was started in (`AWS_…` for S3),
as with other programs; the endpoint may also stand in the URL: `s3://bucket/path?endpoint=http://…`.
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from holdfast.model.errors import CheckpointStoreDown, InvalidArgument, Unsupported
from holdfast.ports.blob_store import Blob

# One request: a blob is a quarter of a megabyte, so a link of 100 kB/s is enough.
_CONNECT_S, _REQUEST_S = 3, 10
_RETRIES, _RETRYING_S = 3, 10  # of what a server or a network does now and then
_LIST_AT_ONCE = 1000
_SETTINGS = {"endpoint", "region"}


class ObjectBlobs:
    """A bucket, or what is below a path in it."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.exceptions import BaseError
        except ImportError as error:
            raise Unsupported(
                f"a checkpoint store at {url.partition('?')[0]} needs the package obstore",
                hint="pip install 'holdfast[objectstore]'",
            ) from error
        self._api, self._failure = obstore, BaseError
        self._url, settings = _parts(url)
        options: dict[str, Any] = {
            "connect_timeout": timedelta(seconds=_CONNECT_S),
            "timeout": timedelta(seconds=_REQUEST_S),
        }
        if settings.get("endpoint", "").startswith("http:"):
            options["allow_http"] = True
        retry: dict[str, Any] = {
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=_RETRYING_S),
        }
        with self._errors("open"):
            # The types of its settings differ from service to service.
            opened: Any = obstore.store.from_url
            self._store = opened(
                self._url, config=settings or None, client_options=options, retry_config=retry
            )

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._errors("write to"):
            try:
                self._api.put(self._store, name, data, mode="create" if new else "overwrite")
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def flush(self) -> None:
        """A service has it when it says so."""

    def get(self, name: str) -> bytes | None:
        with self._errors("read"):
            try:
                return bytes(self._api.get(self._store, name).bytes())
            except FileNotFoundError:
                return None

    def list(self, prefix: str) -> Iterator[Blob]:
        with self._errors("list"):
            pages = self._api.list(
                self._store, prefix.rstrip("/") or None, chunk_size=_LIST_AT_ONCE
            )
            for page in pages:
                for each in page:
                    yield Blob(each["path"], each["size"])

    def delete(self, name: str) -> None:
        with self._errors("delete from"), contextlib.suppress(FileNotFoundError):
            self._api.delete(self._store, name)

    def close(self) -> None:
        """Its connections go with it."""

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise self._down(doing, error) from error  # a bucket that is not there
        except (self._failure, OSError, ValueError) as error:
            raise self._down(doing, error) from error

    def _down(self, doing: str, error: Exception) -> CheckpointStoreDown:
        # The library tells of retries and of its own debugging in further lines.
        reason = " ".join(str(error).split("\n\n")[0].split())[:300]
        return CheckpointStoreDown(
            f"cannot {doing} the checkpoint store {self._url}: {reason}",
            hint="check that it runs and can be reached, and the credentials in the environment "
            "that the host was started in",
        )


def _parts(url: str) -> tuple[str, dict[str, str]]:
    """The address, and the settings behind its question mark."""
    parsed = urllib.parse.urlsplit(url)
    settings = dict(urllib.parse.parse_qsl(parsed.query))
    unknown = set(settings) - _SETTINGS
    if unknown:
        raise InvalidArgument(
            f"checkpoint_store: unknown setting {sorted(unknown)[0]!r} in the URL",
            hint=f"known are: {', '.join(sorted(_SETTINGS))}",
        )
    return urllib.parse.urlunsplit(parsed._replace(query="")), settings
