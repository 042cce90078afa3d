"""The coordination point on a NATS JetStream cluster: for several relays.

The bucket is laid out as NATS' own key-value store (`nats kv` can read it), but is used below that
level, because nats-py's is not enough for a lease: its update drops the time to live, and its get
and create stumble over the mark that an expired value leaves. Three replicas, one value per key,
and no direct reads, which may come from a replica that lags.

A write without an answer is *unknown*: one in seven of those had been done when this was tried
under faults. A refusal is not taken for final either: once, under faults, a refused write was found
done. Why is not known; a server that leads no more could answer so. So each write has a name, and a
refusal counts when another's write is seen to stand there. The time to live is the server's wall
clock, so it only ever tidies up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError

from holdfast.adapters.nats.client import FAILURES, RETRY_S, connected, noticing_cancellation, shown
from holdfast.model.errors import CoordinationDown, StorageFailed, Unsupported
from holdfast.model.limits import (
    COORDINATION_CALL_S,
    COORDINATION_HEARTBEAT_S,
    COORDINATION_MARKER_S,
    COORDINATION_VALUE_MAX_BYTES,
)
from holdfast.ports.coordination import (
    CasLost,
    CasUnknown,
    StoredValue,
    Written,
    check_key,
    check_write,
)

log = logging.getLogger(__name__)

_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_TTL = "Nats-TTL"
_NAME = "Holdfast-Write"
_MARKS = ("KV-Operation", "Nats-Marker-Reason")  # a deletion by hand; by the server
_WRONG_REVISION = (10071, 10164)
_NO_ROOM = (10023, 10047)  # refused before it is proposed to anybody, so surely not written
_NO_MESSAGE = 10037
_ALONE = 10074  # one server, of no cluster: it has nobody to keep replicas
_OVERHEAD_BYTES = 4096  # of headers, within what the server accepts for one message
_SETTLING_S = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


class NatsCoordination:
    """One client. `connect` is the way to make one."""

    def __init__(self, client: Client, bucket: str) -> None:
        self._client = client
        self._js: JetStreamContext = client.jetstream(timeout=COORDINATION_CALL_S)
        self._stream, self._prefix = f"KV_{bucket}", f"$KV.{bucket}."

    @classmethod
    async def connect(
        cls,
        urls: Sequence[str],
        bucket: str,
        *,
        replicas: int = 3,
        alone: bool = False,
        within_s: float = 30.0,
    ) -> NatsCoordination:
        """Connected, with the bucket made or found fit. A cluster that is just starting is waited
        for. `alone`: one server of no cluster will do, and a bucket that was made there; where
        there is a cluster, a new bucket has all its replicas."""
        made: NatsCoordination | None = None
        try:
            async with asyncio.timeout(within_s):
                made = cls(await connected(urls), bucket)
                await made._make_bucket(replicas, 1 if alone else replicas)
                return made
        except BaseException as error:
            if made is not None:
                await made.close()
            if isinstance(error, FAILURES):
                raise CoordinationDown(
                    f"no answer from NATS at {shown(urls)} within {within_s:.0f} s"
                ) from error
            raise

    # -- the port ---------------------------------------------------------------------------------

    async def get(self, key: str) -> StoredValue:
        check_key(key)
        return (await self._read(key))[0]

    async def cas(
        self, key: str, value: bytes, revision: int, *, gone_after_s: int | None = None
    ) -> Written | CasLost | CasUnknown:
        check_write(key, value, revision, gone_after_s)
        name = secrets.token_hex(8)
        headers: dict[str, Any] = {_EXPECTED: str(revision), _NAME: name}
        if gone_after_s is not None:
            headers[_TTL] = f"{gone_after_s}s"
        try:
            answer = await noticing_cancellation(
                self._js.publish(
                    self._prefix + key, value, timeout=COORDINATION_CALL_S, headers=headers
                )
            )
        except APIError as error:
            if error.err_code in _WRONG_REVISION:
                return await self._refused(key, revision, name)
            if error.err_code in _NO_ROOM:
                raise StorageFailed(f"NATS has no room: {error.description}") from error
            return CasUnknown(repr(error))
        except FAILURES as error:
            return CasUnknown(repr(error))
        return Written(answer.seq)

    async def watch(self, key: str, *, below: bool = False) -> AsyncIterator[StoredValue]:
        check_key(key)
        subjects = [self._prefix + key, *([f"{self._prefix}{key}.>"] if below else [])]
        seen = 0
        while True:
            try:
                seen = await self._at_most_last(seen)
                inbox = await noticing_cancellation(
                    self._client.subscribe(self._client.new_inbox())
                )
            except FAILURES:
                await asyncio.sleep(RETRY_S)
                continue
            try:
                async for entry in self._feed(inbox, subjects):
                    if entry.revision > seen:
                        seen = entry.revision
                        yield entry
            finally:
                with contextlib.suppress(*FAILURES):
                    await inbox.unsubscribe()

    async def close(self) -> None:
        await self._client.close()

    # -- reading ----------------------------------------------------------------------------------

    async def _read(self, key: str) -> tuple[StoredValue, str]:
        """The current value, and the name of the write that stored it."""
        try:
            subject = self._prefix + key
            message = await noticing_cancellation(self._js.get_msg(self._stream, subject=subject))
        except NotFoundError as error:
            if error.err_code == _NO_MESSAGE:
                return StoredValue(key, 0, None), ""
            raise CoordinationDown(f"the bucket is gone: {error}") from error
        except FAILURES as error:
            raise CoordinationDown(f"no answer from NATS: {error!r}") from error
        headers = message.headers or {}
        gone = any(mark in headers for mark in _MARKS)
        entry = StoredValue(key, message.seq or 0, None if gone else message.data)
        return entry, headers.get(_NAME, "")

    async def _refused(self, key: str, revision: int, name: str) -> Written | CasLost | CasUnknown:
        """What a refusal is worth. A competing write may take a moment to be decided."""
        for pause_s in _SETTLING_S:
            await asyncio.sleep(pause_s)
            try:
                entry, stands = await self._read(key)
            except CoordinationDown as error:
                return CasUnknown(f"refused, and then: {error.message}")
            if stands == name:
                return Written(entry.revision)
            if entry.revision > revision:
                return CasLost()
        return CasUnknown("refused, but nothing is seen to have taken its place")

    # -- the bucket -------------------------------------------------------------------------------

    async def _make_bucket(self, replicas: int, least: int) -> None:
        wanted = api.StreamConfig(
            name=self._stream,
            subjects=[f"{self._prefix}>"],
            num_replicas=replicas,
            storage=api.StorageType.FILE,
            max_msgs_per_subject=1,  # with more, a mark's time would stretch every shorter one
            max_msg_size=COORDINATION_VALUE_MAX_BYTES + _OVERHEAD_BYTES,
            discard=api.DiscardPolicy.NEW,
            deny_delete=True,
            allow_rollup_hdrs=True,
            allow_direct=False,
            allow_msg_ttl=True,
            subject_delete_marker_ttl=COORDINATION_MARKER_S,
        )
        while True:
            try:
                found = await self._stream_config()
                if found is None:
                    await noticing_cancellation(self._js.add_stream(wanted))
                    return
                _check_fit(found, least)
                return
            except FAILURES as error:
                if getattr(error, "err_code", 0) == _ALONE and least < replicas:
                    log.warning("one NATS server keeps %s: relays ask for more", self._stream)
                    replicas = wanted.num_replicas = least
                    continue
                await asyncio.sleep(RETRY_S)  # no leader yet; the caller's patience bounds it

    async def _stream_config(self) -> api.StreamConfig | None:
        try:
            return (await noticing_cancellation(self._js.stream_info(self._stream))).config
        except NotFoundError:
            return None

    async def _at_most_last(self, seen: int) -> int:
        """Revisions start again when a bucket is recreated; a watch must not wait for the old
        ones."""
        last = (await noticing_cancellation(self._js.stream_info(self._stream))).state.last_seq
        return seen if seen <= last else 0

    # -- one life of a watch ----------------------------------------------------------------------

    async def _feed(self, inbox: Subscription, subjects: list[str]) -> AsyncIterator[StoredValue]:
        """What one consumer tells, until something was lost on the way or it falls silent: it
        lives on one server and dies with that. The next one begins with all there is."""
        try:
            config = api.ConsumerConfig(
                deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT,
                deliver_subject=inbox.subject,
                ack_policy=api.AckPolicy.NONE,
                filter_subjects=subjects,
                idle_heartbeat=COORDINATION_HEARTBEAT_S,
                inactive_threshold=COORDINATION_HEARTBEAT_S * 10,
                mem_storage=True,
                num_replicas=1,
            )
            await noticing_cancellation(self._js.add_consumer(self._stream, config))
            told = 0
            while True:
                message = await noticing_cancellation(
                    inbox.next_msg(timeout=COORDINATION_HEARTBEAT_S * 3)
                )
                headers = message.headers or {}
                if "Status" in headers:
                    if headers.get("Nats-Last-Consumer", str(told)) != str(told):
                        return
                    continue
                if message.metadata.sequence.consumer != told + 1:
                    return
                told += 1
                yield self._entry(message, headers)
        except FAILURES:
            await asyncio.sleep(RETRY_S)

    def _entry(self, message: Msg, headers: dict[str, str]) -> StoredValue:
        gone = any(mark in headers for mark in _MARKS)
        key = message.subject.removeprefix(self._prefix)
        return StoredValue(key, message.metadata.sequence.stream, None if gone else message.data)


def _check_fit(found: api.StreamConfig, replicas: int) -> None:
    """Somebody else's bucket of that name, or one made by hand, may promise less."""
    lacks = [
        what
        for what, fits in {
            "direct reads must be off": not found.allow_direct,
            "one value per key": found.max_msgs_per_subject == 1,
            "a time to live for each message": bool(found.allow_msg_ttl),
            f"{replicas} replicas": (found.num_replicas or 1) >= replicas,
        }.items()
        if not fits
    ]
    if lacks:
        raise Unsupported(
            f"the NATS bucket {found.name} is not fit for leases: {', '.join(lacks)}",
            hint="remove it or choose another name",
        )
