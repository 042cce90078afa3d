"""The coordination point this host uses: opened when it is first needed, again if that failed.

A host without re-homeable sessions never opens one. While it is being opened, and when it cannot
be, every question to it goes without an answer, as the port says; nobody waits for longer than a
call may take.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from holdfast.adapters.sqlite.coordination import SqliteCoordination
from holdfast.model.errors import CoordinationDown, HoldfastError, InvalidArgument, Unsupported
from holdfast.model.lease import CLUSTER, EMBEDDED, LeaseTerms
from holdfast.model.limits import COORDINATION_CALL_S, LEASE_GRACE_S, LEASE_RETRY_S
from holdfast.ports.coordination import CasLost, CasUnknown, Coordination, StoredValue, Written

BUCKET = "holdfast"
_NATS, _TLS, _SQLITE = "nats://", "tls://", "sqlite:"
_RENEWALS = 5  # in one length of a lease
_MARGINS = 10  # a short lease's grace and retries are this part of it
_SAFE_REPLICAS = 3


class CoordinationPoint:
    """One, by its name in the configuration; "" is a file of the host's own."""

    def __init__(self, setting: str, own_file: str) -> None:
        self._urls = nats_urls(setting)
        self._file = setting.removeprefix(_SQLITE) or own_file
        self._opening: asyncio.Task[Coordination] | None = None

    async def get(self, key: str) -> StoredValue:
        return await (await self._opened()).get(key)

    async def cas(self, key: str, value: bytes, revision: int) -> Written | CasLost | CasUnknown:
        try:
            store = await self._opened()
        except CoordinationDown as error:
            return CasUnknown(error.message)
        return await store.cas(key, value, revision)

    async def close(self) -> None:
        opening, self._opening = self._opening, None
        if opening is None:
            return
        if not opening.done():
            opening.cancel()
        with contextlib.suppress(HoldfastError, asyncio.CancelledError, TimeoutError):
            async with asyncio.timeout(COORDINATION_CALL_S):
                await (await opening).close()

    async def _opened(self) -> Coordination:
        """Every caller waits for the same opening, and none for too long."""
        if self._opening is None or (self._opening.done() and _failed(self._opening)):
            self._opening = asyncio.get_running_loop().create_task(self._open())
        try:
            async with asyncio.timeout(COORDINATION_CALL_S):
                return await asyncio.shield(self._opening)
        except TimeoutError as error:
            raise CoordinationDown("the coordination point does not answer yet") from error

    async def _open(self) -> Coordination:
        if not self._urls:
            return await asyncio.to_thread(SqliteCoordination, Path(self._file))
        try:
            from holdfast.adapters.nats.coordination import NatsCoordination
        except ImportError as error:
            raise Unsupported(
                "this installation cannot talk to NATS", hint="pip install 'holdfast[cluster]'"
            ) from error
        # Relays use the same bucket, and take it with three replicas only. Who names fewer servers
        # may mean some of a cluster, or one that is alone: that is for the server to say.
        return await NatsCoordination.connect(
            self._urls, BUCKET, replicas=_SAFE_REPLICAS, alone=len(self._urls) < _SAFE_REPLICAS
        )


def _failed(opening: asyncio.Task[Coordination]) -> bool:
    return opening.cancelled() or opening.exception() is not None


def nats_urls(setting: str) -> list[str]:
    """The servers a setting names; none when it names a file. Raises InvalidArgument when it is
    neither."""
    if not setting or (setting.startswith(f"{_SQLITE}/")):
        return []
    scheme = _TLS if setting.startswith(_TLS) else _NATS
    hosts = [host for host in setting.removeprefix(scheme).split(",") if host]
    if not setting.startswith(scheme) or not hosts or any("/" in host for host in hosts):
        raise InvalidArgument(
            f"coordination = {setting.rpartition('@')[2][:80]!r} names no coordination point",
            hint='"nats://a:4222,b:4222,c:4222", "tls://…", or "sqlite:/absolute/path"',
        )
    # User and password, if any, are said once and are those of all.
    user, at, _ = hosts[0].rpartition("@")
    return [f"{scheme}{host if '@' in host else f'{user}{at}{host}'}" for host in hosts]


def terms_of(setting: str, lease_s: float | None) -> LeaseTerms:
    """The times of a lease there. Raises InvalidArgument when a holder could not live by them."""
    usual = CLUSTER if nats_urls(setting) else EMBEDDED
    if lease_s is None:
        return usual
    margin = lease_s / _MARGINS
    return LeaseTerms(
        lease_s,
        lease_s / _RENEWALS,
        grace_s=min(LEASE_GRACE_S, margin),
        retry_s=min(LEASE_RETRY_S, margin),
    ).checked()
