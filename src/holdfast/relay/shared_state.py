"""What a relay shares, by its options: nothing, a file with its next run, or NATS with other
relays. Adapters are imported when used: a single relay does not need NATS."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from holdfast.model.errors import StorageFailed, Unsupported
from holdfast.ports.relay_bus import RelayBus
from holdfast.relay.epoch_floors import Floors, MemoryFloors, SharedFloors
from holdfast.relay.options import Options


@contextlib.asynccontextmanager
async def shared(options: Options) -> AsyncIterator[tuple[Floors, RelayBus | None]]:
    """Floors, and the bus to other relays if there is a cluster."""
    most = options.bounds.epochs_max
    if options.registry:
        from holdfast.adapters.sqlite.coordination import SqliteCoordination

        path = Path(options.registry)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageFailed(f"cannot open the registry: {error}") from error
        file = SqliteCoordination(path)
        try:
            yield SharedFloors(file, most), None
        finally:
            await file.close()
    elif options.nats:
        async with _nats(options) as both:
            yield both
    else:
        yield MemoryFloors(most), None


@contextlib.asynccontextmanager
async def _nats(options: Options) -> AsyncIterator[tuple[Floors, RelayBus]]:
    try:
        from holdfast.adapters.nats.coordination import NatsCoordination
        from holdfast.adapters.nats.relay_bus import NatsBus
    except ImportError as error:
        raise Unsupported(
            "a relay in a cluster needs the NATS client", hint="pip install 'holdfast[cluster]'"
        ) from error
    place, replicas = options.cluster, options.nats_replicas
    store = await NatsCoordination.connect(options.nats, place, replicas=replicas)
    try:
        # Closed by the cluster, which sends its last messages over it.
        bus = await NatsBus.connect(options.nats, place)
        yield SharedFloors(store, options.bounds.epochs_max), bus
    finally:
        await store.close()
