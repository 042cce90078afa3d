"""The system call filter of a contained session: which calls wait for an answer, and which fail.

Installed once, by root, before the session's user is set: without no_new_privs, so that sudo works
inside, and for everything the session ever starts. Whether anything is judged is decided later and
elsewhere; this is only what could be judged.

What waits for an answer: executing a program; opening a file for writing, truncating one by name,
giving one another name, changing or removing one, making a directory, link or device; mounting;
connecting; attaching to another process, writing into its memory and taking a descriptor of it.
What fails:
io_uring, which would open files past the filter; userfaultfd, with which a program holds up
whoever reads its memory; typing into the terminal by TIOCSTI, which is input of no actor; and
reaching by ptrace or process_vm_writev into the session's init and main program (inside always
numbers 1 and 2).

32-bit programs run: what waits here waits there. The x32 interface, which no distribution uses, is
not there. Deliberately left alone: what only reads (ptrace of one's own children, perf,
process_vm_readv), since it commits nothing.

Only x86_64. A checkpoint recognizes it by its having calls wait: no other can, below it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct

_SYS_SECCOMP = 317
_SET_MODE_FILTER = 1
# SPEC_ALLOW: older kernels would slow down every filtered process against attacks on itself, and
# this filter guards no secret. Never WAIT_KILLABLE_RECV: a held task could not be frozen.
_NEW_LISTENER, _SPEC_ALLOW = 8, 4

_ARCH_X86_64, _ARCH_I386 = 0xC000003E, 0x40000003
_X32_BIT = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_EPERM, _ENOSYS = 1, 38

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TIOCSTI = 0x5412
_PTRACE_ATTACH, _PTRACE_SEIZE = 16, 0x4206
FIRST_OTHER_PID = 3  # 1 is the init, 2 the main program

EXECVE, EXECVEAT = 59, 322
OPEN, OPENAT, CREAT, OPENAT2, OPEN_BY_HANDLE_AT, TRUNCATE = 2, 257, 85, 437, 304, 76
RENAME, RENAMEAT, RENAMEAT2, LINK, LINKAT = 82, 264, 316, 86, 265
UNLINK, UNLINKAT, RMDIR, CHMOD, FCHMODAT, FCHMODAT2 = 87, 263, 84, 90, 268, 452
CHOWN, LCHOWN, FCHOWNAT, UTIMENSAT, SETXATTR, LSETXATTR = 92, 94, 260, 280, 188, 189
UTIME, UTIMES, FUTIMESAT, REMOVEXATTR, LREMOVEXATTR = 132, 235, 261, 197, 198
SETXATTRAT, REMOVEXATTRAT, FILE_SETATTR = 463, 466, 469
FCHMOD, FCHOWN, FSETXATTR, FREMOVEXATTR = 91, 93, 190, 199
MKDIR, MKDIRAT, SYMLINK, SYMLINKAT, MKNOD, MKNODAT = 83, 258, 88, 266, 133, 259
# Change something at a name, without opening it; the same of what is open, which may be for reading
# only; and make something where nothing was.
REMOVES = (UNLINK, UNLINKAT, RMDIR)
CHANGES = (
    *(*REMOVES, CHMOD, FCHMODAT, FCHMODAT2, CHOWN, LCHOWN, FCHOWNAT),
    *(UTIMENSAT, UTIME, UTIMES, FUTIMESAT, FILE_SETATTR),
    *(SETXATTR, LSETXATTR, SETXATTRAT, REMOVEXATTR, LREMOVEXATTR, REMOVEXATTRAT),
)
CHANGES_OPEN = (FCHMOD, FCHOWN, FSETXATTR, FREMOVEXATTR)
MAKES = (MKDIR, MKDIRAT, SYMLINK, SYMLINKAT, MKNOD, MKNODAT)
_CHANGES_32 = (
    *(10, 301, 40, 15, 306, 452, 182, 212, 16, 198, 298, 320, 412, 226, 227),
    *(30, 271, 299, 469, 235, 236, 463, 466, 94, 95, 207, 228, 237),
)
_MAKES_32 = (39, 296, 83, 304, 14, 297)
# Whoever mounts one place at another gives all that is there other names.
MOUNT, PIVOT_ROOT, OPEN_TREE, MOVE_MOUNT, FSOPEN, FSPICK = 165, 155, 428, 429, 430, 433
MOUNTS = (MOUNT, PIVOT_ROOT, OPEN_TREE, MOVE_MOUNT, FSOPEN, FSPICK)
_MOUNTS_32 = (21, 217, OPEN_TREE, MOVE_MOUNT, FSOPEN, FSPICK)
CONNECT = 42
_CONNECT_32, _SOCKETCALL_32 = 362, 102
_SOCKETCALL_CONNECT = 3
PTRACE, PROCESS_VM_WRITEV, PIDFD_GETFD = 101, 311, 438
_IOCTL, _IO_URING_SETUP, _USERFAULTFD = 16, 425, 323

_Rule = list[tuple[int, int, int, int]]  # instructions; a jump counts from the next one


def _nr(number: int, then: _Rule) -> _Rule:
    """If the call is this one. `then` ends in a return on every way through."""
    return [(_EQUAL, 0, len(then), number), *then]


def _give(action: int) -> _Rule:
    return [(_RETURN, 0, 0, action)]


def _argument(index: int) -> _Rule:
    """Its lower half: what these calls take is an int."""
    return [(_LOAD, 0, 0, 16 + 8 * index)]


def _if_bits(index: int, bits: int) -> _Rule:
    return [*_argument(index), (_HAS_BITS, 0, 1, bits), *_give(_NOTIFY), *_give(_ALLOW)]


def _of_another(index: int) -> _Rule:
    """By the pid it names. The init and the main program are refused; a negative one is large."""
    others = [*_argument(index), (_AT_LEAST, 1, 0, FIRST_OTHER_PID)]
    return [*others, *_give(_ERRNO | _EPERM), *_give(_NOTIFY)]


def _attaching() -> _Rule:
    other = _of_another(1)
    return [
        *_argument(0),
        (_EQUAL, 2, 0, _PTRACE_ATTACH),
        (_EQUAL, 1, 0, _PTRACE_SEIZE),
        *_give(_ALLOW),
        *other,
    ]


def _calls(
    execs: tuple[int, ...],
    opens: tuple[tuple[int, int], ...],
    writes: tuple[int, ...],
    rest: dict[str, int],
) -> _Rule:
    rules: _Rule = []
    for number in (*execs, *writes):
        rules += _nr(number, _give(_NOTIFY))
    for number, flags in opens:
        rules += _nr(number, _if_bits(flags, _WRITES))
    rules += _nr(rest["ptrace"], _attaching())
    rules += _nr(rest["process_vm_writev"], _of_another(0))
    tty = [*_argument(1), (_EQUAL, 0, 1, _TIOCSTI), *_give(_ERRNO | _EPERM), *_give(_ALLOW)]
    rules += _nr(rest["ioctl"], tty)
    rules += _nr(_IO_URING_SETUP, _give(_ERRNO | _ENOSYS))
    rules += _nr(rest["userfaultfd"], _give(_ERRNO | _EPERM))
    return [*rules, *_give(_ALLOW)]


@functools.cache
def program() -> bytes:
    """The filter, as the kernel takes it."""
    of_64 = _calls(
        (EXECVE, EXECVEAT),
        ((OPENAT, 2), (OPEN, 1), (OPEN_BY_HANDLE_AT, 2)),
        (
            *(CREAT, OPENAT2, TRUNCATE, RENAME, RENAMEAT, RENAMEAT2, LINK, LINKAT),
            *(*CHANGES, *CHANGES_OPEN, *MAKES, *MOUNTS, CONNECT, PIDFD_GETFD),
        ),
        {"ptrace": PTRACE, "process_vm_writev": PROCESS_VM_WRITEV, "ioctl": _IOCTL}
        | {"userfaultfd": _USERFAULTFD},
    )
    socketcall = [*_argument(0), (_EQUAL, 0, 1, _SOCKETCALL_CONNECT), *_give(_NOTIFY)]
    of_32 = _nr(_SOCKETCALL_32, [*socketcall, *_give(_ALLOW)]) + _calls(
        (11, 358),
        ((295, 2), (5, 1), (342, 2)),
        # 193: truncate64; then the names
        (
            *(8, OPENAT2, 92, 193, 38, 302, 353, 9, 303, *_CHANGES_32, *_MAKES_32),
            *(*_MOUNTS_32, _CONNECT_32, PIDFD_GETFD),
        ),
        {"ptrace": 26, "process_vm_writev": 348, "ioctl": 54, "userfaultfd": 374},
    )
    number: _Rule = [(_LOAD, 0, 0, 0)]
    x32 = [(_AT_LEAST, 0, 1, _X32_BIT), *_give(_ERRNO | _ENOSYS)]
    wide = [*number, *x32, *of_64]
    instructions: _Rule = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 0, len(wide), _ARCH_X86_64),
        *wide,
        (_EQUAL, 1, 0, _ARCH_I386),
        *_give(_ERRNO | _ENOSYS),
        *number,
        *of_32,
    ]
    return b"".join(struct.pack("=HBBI", *each) for each in instructions)


def unavailable() -> str:
    """Why sessions have no exec gate on this machine; "" when they can."""
    machine = platform.machine()
    return "" if machine == "x86_64" else f"the filter is not made for {machine}"


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def install() -> int:
    """Put this process, and all that it will start, under the filter. Gives the descriptor by which
    what waits is answered. Needs root."""
    code = program()
    text = ctypes.create_string_buffer(code, len(code))
    whole = _Program(len(code) // 8, ctypes.cast(text, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    listener: int = libc.syscall(
        *(ctypes.c_long(_SYS_SECCOMP), ctypes.c_long(_SET_MODE_FILTER)),
        *(ctypes.c_long(_NEW_LISTENER | _SPEC_ALLOW), ctypes.byref(whole)),
    )
    if listener < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
    return listener
