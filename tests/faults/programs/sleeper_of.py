"""Starts a session as another unix user. Starts as root in the host's run directory and becomes the
user before it connects. Arguments: the user's name, the ring's bytes. Prints the refusal, if any:
code, message and hint, with | between them."""

import os
import pwd
import sys

from holdfast.model.errors import HoldfastError
from holdfast.sdk.client import Host


def main() -> None:
    entry = pwd.getpwnam(sys.argv[1])
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    try:
        with Host(path="hold.sock") as host:
            host.run(["sleep", "1000"], cwd="/", ring_bytes=int(sys.argv[2]))
    except HoldfastError as error:
        print(error.code, error.message, error.hint, sep="|")


main()
