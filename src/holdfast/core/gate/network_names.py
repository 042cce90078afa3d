"""Network destinations that a command names. A program may connect anywhere without naming it: at
level contained the exec gate sees connections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

_URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^\s/@]*@)?(\[[0-9a-fA-F:.]+\]|[^\s/:?#'\"]+)(:\d+)?"
)
_DEV_TCP = re.compile(r"/dev/(?:tcp|udp)/([^/\s]+)/(\w+)")
_SCP = re.compile(r"(?:[\w.-]+@)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9][\w.-]*):(?!//)")
_HOST = re.compile(r"(?:[\w.-]+@)?([A-Za-z0-9][A-Za-z0-9._-]*|\[?[0-9a-fA-F:]+\]?)(:\d+)?")

# Commands whose first operand is a host, and their options that have a value.
_FIRST = {
    "ssh": "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
    "sftp": "-b -c -F -i -o -P",
    "telnet": "-l", "ping": "-c -i -w -W -s -t", "ping6": "-c -i -w -W -s", "traceroute": "-m -p",
    "nc": "-p -s -w -x -X -e -i -q", "ncat": "-p -s -w -e -c -i", "netcat": "-p -s -w -e",
    "curl": "-o -X -H -d -F -u -A -e -T -b -c -D -m -x -w -K --output --request --header --data "
    "--data-raw --data-binary --form --user --max-time --proxy --write-out --cookie",
    "wget": "-O -P -o -a -t -T -U", "ftp": "", "mosh": "-p", "nmap": "-p -o", "dig": "", "host": "",
    "nslookup": "", "whois": "-h -p", "rdesktop": "-u -p", "rlogin": "-l", "rsh": "-l",
}  # fmt: skip
_PORT_NEXT = frozenset(("nc", "ncat", "netcat", "telnet"))  # the operand after the host
_COPIES = frozenset(("scp", "rsync", "git", "sftp"))
_HOST_OPTIONS = frozenset(("-h", "--host", "--server", "--hostname"))
_DATABASES = frozenset(("psql", "mysql", "mongo", "mongosh", "redis-cli", "mariadb", "pg_dump"))


def hosts(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """As written, without user and path; `host:port` when a port is named."""
    for text in arguments:
        for found in _URL.finditer(text):
            yield f"{found[1]}{found[2] or ''}"
        if name in _COPIES and (copied := _SCP.match(text)):
            yield copied[1]
    if name in _FIRST:
        operands = _operands(arguments, _FIRST[name].split())
        named = _HOST.fullmatch(operands[0].split("/")[0]) if operands else None
        if named is not None and "://" not in operands[0]:
            port = named[2] or ""
            if name in _PORT_NEXT and operands[1:] and operands[1].isdigit():
                port = f":{operands[1]}"
            yield f"{named[1]}{port}"
    if name in _DATABASES:
        for option, value in pairwise(arguments):
            if option in _HOST_OPTIONS:
                yield value


def of_destination(destination: str) -> Iterator[str]:
    """Of a connection to `host:port`: the same, and the host alone."""
    if destination:
        yield destination
        yield destination.rpartition(":")[0].strip("[]")


def host_of_path(path: str) -> str:
    """`/dev/tcp/HOST/PORT` is a connection in bash; empty if it is none."""
    found = _DEV_TCP.match(path)
    return f"{found[1]}:{found[2]}" if found is not None else ""


def _operands(arguments: Sequence[str], values: Sequence[str]) -> list[str]:
    found, at = [], 0
    while at < len(arguments):
        if arguments[at] in values:
            at += 2
            continue
        if not arguments[at].startswith("-"):
            found.append(arguments[at])
        at += 1
    return found
