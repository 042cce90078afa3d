"""CLOCK_BOOTTIME, and an alarm by it.

Leases run by this clock because it counts the time a machine sleeps. The time-outs of an event loop
do not: a loop that waits for ten seconds when the lid is closed waits for the rest of them after it
is opened, long after a lease is over. Python has no timerfd before 3.13, so this is the call.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time

_TFD_TIMER_ABSTIME = 1
_SOONEST_S = 1e-6  # a time of zero would mean: never


class _Timespec(ctypes.Structure):
    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def now() -> float:
    """Seconds since this boot, asleep or awake."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Which boot of the machine the seconds are of."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class Alarm:
    """A descriptor that is readable from a moment on. One moment at a time."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        flags = os.O_CLOEXEC | os.O_NONBLOCK
        self._fd = self._checked(self._libc.timerfd_create(time.CLOCK_BOOTTIME, flags))

    def fileno(self) -> int:
        return self._fd

    def set(self, at: float | None) -> None:
        """A moment that has passed is now; None: never."""
        seconds = 0.0 if at is None else max(at, _SOONEST_S)
        whole = int(seconds)
        value = _Timespec(whole, int((seconds - whole) * 1e9))
        spec = _Itimerspec(_Timespec(0, 0), value)
        fd, flags = self._fd, _TFD_TIMER_ABSTIME
        self._checked(self._libc.timerfd_settime(fd, flags, ctypes.byref(spec), None))

    def heard(self) -> None:
        """It rang; it is quiet until it is set again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)

    def close(self) -> None:
        os.close(self._fd)

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"timerfd: {os.strerror(number)}")
        return result
