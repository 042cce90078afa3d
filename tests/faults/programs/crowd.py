"""Runs as another unix user and keeps connections open, most of them silent.

Starts as root in the host's run directory and becomes the user before it connects. Arguments: the
user's name, how many connections, and the bytes that each says, in hex. Prints how many it made,
then stays until its input ends."""

import contextlib
import os
import pwd
import resource
import socket
import sys


def main() -> None:
    user, count, said = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 64, count + 64))
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    crowd = []
    for _ in range(count):
        each = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        each.connect("hold.sock")
        with contextlib.suppress(OSError):  # refused already
            each.sendall(said)
        crowd.append(each)
    print(len(crowd), flush=True)
    sys.stdin.read()


main()
