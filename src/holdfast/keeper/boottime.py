"""CLOCK_BOOTTIME, and an alarm by it.

Leases use this clock because it includes the time a machine is suspended. The time-outs of an event
loop do not: a loop that waits ten seconds when the machine is suspended waits for the rest after it
resumes, long after a lease has expired. Python has no timerfd before 3.13, so it is called here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time

_TFD_TIMER_ABSTIME = 1
_SOONEST_S = 1e-6  # zero would disarm the timer


class _Timespec(ctypes.Structure):
    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def now() -> float:
    """Seconds since boot, including suspended time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """The id of the current boot, to which those seconds belong."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class Alarm:
    """A descriptor that becomes readable at a set time. One time at once."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        flags = os.O_CLOEXEC | os.O_NONBLOCK
        self._fd = self._checked(self._libc.timerfd_create(time.CLOCK_BOOTTIME, flags))

    def fileno(self) -> int:
        return self._fd

    def set(self, at: float | None) -> None:
        """A time in the past fires at once; None disarms it."""
        seconds = 0.0 if at is None else max(at, _SOONEST_S)
        whole = int(seconds)
        value = _Timespec(whole, int((seconds - whole) * 1e9))
        spec = _Itimerspec(_Timespec(0, 0), value)
        fd, flags = self._fd, _TFD_TIMER_ABSTIME
        self._checked(self._libc.timerfd_settime(fd, flags, ctypes.byref(spec), None))

    def heard(self) -> None:
        """Acknowledge it; it stays quiet until it is set again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)

    def close(self) -> None:
        os.close(self._fd)

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"timerfd: {os.strerror(number)}")
        return result
