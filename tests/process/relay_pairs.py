"""Two relay processes over a NATS cluster, as one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TypeAlias

from holdfast.adapters.nats.server import NatsCluster
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from process.relaying import Dialler, HostClient, OperatorClient, RelayProcess, at, subscribe

Pair: TypeAlias = tuple[RelayProcess, RelayProcess]


def relay_on(nats: NatsCluster, cluster: str, *, listen: str = "127.0.0.1:0") -> RelayProcess:
    words = [word for url in nats.urls for word in ("--nats", url)]
    words += ["--nats-replicas", str(len(nats.nodes)), "--cluster", cluster]
    for limit in ("failed_proofs=1000", "opens=100000", "drain_s=2"):
        words += ["--limit", limit]
    return RelayProcess(*words, listen=listen)


@contextlib.contextmanager
def pair_on(nats: NatsCluster, cluster: str) -> Iterator[Pair]:
    """Two that know of each other."""
    with relay_on(nats, cluster) as one, relay_on(nats, cluster) as other:
        for relay in (one, other):
            asyncio.run(relay.metric_is("relays", 1))
        yield one, other


@contextlib.asynccontextmanager
async def both(relays: Pair) -> AsyncIterator[tuple[Dialler, Dialler]]:
    async with at(relays[0]) as here, at(relays[1]) as there:
        yield here, there


async def far_subscriber(
    host: HostClient, there: Dialler, session: SessionId
) -> tuple[OperatorClient, r.StreamOpened, int]:
    """An operator at the other relay, admitted and subscribed; and the host's number for it."""
    operator = await there.operator()
    opened = await operator.open(session)
    number = (await host.hear_among(r.Incoming)).stream
    await host.say(r.Admit(number, session))
    await subscribe(operator, session)
    return operator, opened, number
