"""A record kept as one JSON file: read whole, replaced whole, on disk when `write` returns."""

from __future__ import annotations

import json
import os
from typing import TypeVar

from holdfast.adapters import atomic_file
from holdfast.model.errors import StorageFailed
from holdfast.model.record import Malformed, Record

R = TypeVar("R", bound=Record)


def read(path: str, kind: type[R], *, without: str) -> R | None:
    """None when there is no such file. `without`: what follows when it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return kind.unpack(json.loads(file.read(), object_hook=_revived))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, Malformed) as error:
        raise StorageFailed(
            f"cannot read {path}: {error}",
            hint=f"without it {without}; restore it, or move it away to start over",
        ) from error


def write(path: str, record: Record) -> None:
    """Raises OSError, and leaves the file as it was."""
    atomic_file.replace(path, encode(record))
    atomic_file.sync_directory(os.path.dirname(path))


def encode(record: Record) -> bytes:
    return json.dumps(record.pack(), default=_plain, indent=1).encode()


def _plain(value: object) -> dict[str, str]:
    """Bytes, which JSON has not."""
    assert isinstance(value, bytes)
    return {"hex": value.hex()}


def _revived(value: dict[str, object]) -> object:
    return bytes.fromhex(str(value["hex"])) if value.keys() == {"hex"} else value
