"""Sends prepared requests as another unix user, each on a connection of its own.

Starts as root in the host's run directory and becomes the user before it connects, because the
interpreter may lie where only root can read. Argument: the user's name. Reads one JSON list of
requests (base64 of their frames) and prints a JSON list: the tag or error code of each answer, and
the whole answer as text, unless it is a refusal."""

import base64
import json
import os
import pwd
import sys

from faults.raw_socket import RawSocket
from holdfast.wire.messages.session import Failed


def main() -> None:
    entry = pwd.getpwnam(sys.argv[1])
    frames = [base64.b64decode(each) for each in json.load(sys.stdin)]
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    print(json.dumps([ask(frame) for frame in frames]), flush=True)


def ask(frame: bytes) -> list[str]:
    with RawSocket("hold.sock") as connection:
        connection.throw(frame)
        while True:
            heard = connection.hear()
            if getattr(heard, "id", None) == 1:
                # A refusal repeats what was asked for.
                if isinstance(heard, Failed):
                    return [heard.code, ""]
                return [heard.tag, repr(heard)]


main()
