"""A program's own state, given to the session that it runs in and found again after a restore.

    from holdfast import snapshots

    snapshots.register(save=lambda: json.dumps(game).encode(), load=restore_game)

The host asks before a checkpoint, and starts the session's command anew with the state when it is
restored: on this machine or another, at any level, without root. Both sides go by files and one
signal (docs/snapshots.md), so that a program in any language can do the same.
"""

from __future__ import annotations

import contextlib
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_DIRECTORY, _SIGNAL = "HOLDFAST_SNAPSHOT_DIR", "HOLDFAST_SNAPSHOT_SIGNAL"


def register(save: Callable[[], bytes], load: Callable[[bytes], None]) -> bool:
    """Offer this program's state to its session. Call it once, from the main thread of the
    session's main program, when the program is ready to give and to take its state.

    `load` is called at once if the program was started to go on from a saved state. `save` is
    called in the main thread whenever the host asks; what it raises makes that checkpoint fail, and
    changes nothing else. Gives whether there is a session that asks; outside of one nothing
    happens."""
    directory, number = os.environ.get(_DIRECTORY, ""), os.environ.get(_SIGNAL, "")
    if not (directory and number.isdecimal() and os.path.isdir(directory)):
        return False
    with contextlib.suppress(FileNotFoundError), open(f"{directory}/restore", "rb") as file:
        load(file.read())

    def asked(_number: int, _frame: FrameType | None) -> None:
        try:
            _put(directory, "state", save())
        except Exception as error:
            _put(directory, "failed", str(error).encode())

    signal.signal(int(number), asked)
    _put(directory, "offer", b"%d\n" % os.getpid())
    return True


def _put(directory: str, name: str, data: bytes) -> None:
    """Whole, or not at all."""
    new = f"{directory}/.{name}.{os.getpid()}"
    with open(new, "wb") as file:
        file.write(data)
    os.rename(new, f"{directory}/{name}")
