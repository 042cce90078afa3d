"""`move`, asked for by an operator."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from holdfast.host.continuity.moving.moves import Moves
from holdfast.wire.messages.moving import Move, SessionMoved

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.session.live_session import LiveSession


class MoveRequests:
    """Handlers of one host."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves

    async def move(
        self, operator: OperatorConnection, request: Move, live: LiveSession
    ) -> SessionMoved:
        began, name = time.time(), live.spec.name
        moving = self._moves.move(live, operator.actor.id, request.ticket, request.to)
        runner = await asyncio.shield(asyncio.ensure_future(moving))
        return SessionMoved(
            request.id,
            runner.session,
            name,
            runner.to,
            runner.machine.epoch,
            runner.bytes,
            round(time.time() - began, 3),
            round(runner.stood_still_s, 3),
        )
