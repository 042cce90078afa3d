"""TCP connections of a session to peers outside of it, and closing those.

A restore brings back both ends of a connection inside the session, as they were. Of one to somebody
else it can bring back this end only, with whatever the peer thinks of it by now: so it is reset,
here and, as far as it can still be reached, there. The program sees ECONNABORTED, and may connect
again.

The peer is inside exactly if the same two addresses, the other way round, belong to a socket of the
session's too: an address alone, as 127.0.0.1, does not say whose the other end is.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from holdfast.adapters.proc import procfs, sock_diag
from holdfast.model.restore import PeerReset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SOCKET = "socket:["


class _Holder(NamedTuple):
    pid: int
    name: str


def foreign(pids: Iterable[int]) -> list[tuple[sock_diag.TcpConnection, PeerReset]]:
    """Those of these processes, each with a process that has it open."""
    holders = _sockets_of(pids)
    if not holders:
        return []
    ours = [each for each in sock_diag.connections() if each.inode in holders]
    ends = {(each.local, each.remote) for each in ours}
    found = []
    for each in ours:
        if (each.remote, each.local) not in ends:
            holder = holders[each.inode]
            local, remote = each.shown
            found.append((each, PeerReset(local, remote, holder.pid, holder.name)))
    return found


def any_connection(pids: Iterable[int]) -> bool:
    """Whether these processes have a connection, to whomever."""
    holders = _sockets_of(pids)
    return bool(holders) and any(each.inode in holders for each in sock_diag.connections())


def reset_foreign(pids: Iterable[int]) -> tuple[PeerReset, ...]:
    """Raises OSError when the kernel cannot close one."""
    found = foreign(pids)
    for connection, _ in found:
        sock_diag.destroy(connection)
    return tuple(reset for _, reset in found)


def _sockets_of(pids: Iterable[int]) -> dict[int, _Holder]:
    found: dict[int, _Holder] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # a zombie has none
            inodes = set()
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    target = os.readlink(f"/proc/{pid}/fd/{name}")
                    if target.startswith(_SOCKET):
                        inodes.add(int(target[len(_SOCKET) : -1]))
            if inodes:
                holder = _Holder(procfs.inner_pid(pid), procfs.stat_of(pid).name)
                found.update(dict.fromkeys(inodes - found.keys(), holder))
    return found
