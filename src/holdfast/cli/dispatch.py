"""From the command line to the verb, and from an error to one readable line."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from types import ModuleType

from holdfast import __version__
from holdfast.cli.session_address import select_machine
from holdfast.model.errors import HoldfastError, StorageFailed
from holdfast.sdk import host_start

# In the order of `hold --help`. A verb's file is its name, with `_` for `-`.
# A group is a folder of `cli/verbs`.
GROUPS = {
    "sessions": (
        "run",
        "ls",
        "attach",
        "detach",
        "show",
        "rename",
        "end",
        "acknowledge",
        "revive",
        "pin",
        "unpin",
    ),
    "continuity": (
        "checkpoint",
        "checkpoints",
        "restore",
        "can-move",
        "move",
        "drain",
        "certificate",
    ),
    "input": ("exec", "submit", "send", "keys", "signal", "resize", "forward"),
    "observe": ("screen", "tail", "wait", "watch", "graph"),
    "access": ("actor", "grant", "revoke", "turn", "seize", "halt", "resume", "catchup"),
    "record": ("log", "blame", "trace", "score", "verify", "proof", "status", "export"),
    "gate": ("policy", "approvals", "approve", "deny", "why", "adopt"),
    "machines": ("invite", "join", "machines", "device", "delegate"),
    "host": (
        "up",
        "down",
        "daemon",
        "host",
        "relay",
        "sshd",
        "mcp",
        "doctor",
        "contract",
        "prune",
        "reap",
        "metrics",
        "completion",
    ),
}
TITLES = {
    "sessions": "Sessions",
    "continuity": "Continuity",
    "input": "Input",
    "observe": "Observation",
    "access": "Access and turn",
    "gate": "Gate",
    "record": "Record",
    "machines": "Other machines",
    "host": "Host",
}
_GROUP_OF = {verb: group for group, verbs in GROUPS.items() for verb in verbs}
VERBS = tuple(_GROUP_OF)

# What people type who know tmux, screen, ssh, docker or git.
_HABITS = {
    "kill": "`hold end NAME` ends a session, `hold signal NAME TERM` sends a signal",
    "kill-session": "`hold end NAME` ends a session",
    "stop": "`hold halt NAME` freezes a session, `hold end NAME` ends it, `hold down` stops the "
    "host and leaves sessions running",
    "quit": "`hold end NAME` ends a session, `hold down` stops the host",
    "exit": "`hold end NAME` ends a session, `hold down` stops the host",
    "rm": "`hold end NAME` ends a session; `hold prune` removes what ended long ago",
    "remove": "`hold end NAME` ends a session; `hold prune` removes what ended long ago",
    "delete": "`hold end NAME` ends a session; `hold prune` removes what ended long ago",
    "new": "`hold run` starts a session, `hold run --name NAME` with a name",
    "new-session": "`hold run` starts a session, `hold run --name NAME` with a name",
    "create": "`hold run` starts a session, `hold run --name NAME` with a name",
    "start": "`hold run` starts a session, `hold up` the host",
    "list": "`hold ls` lists sessions",
    "list-sessions": "`hold ls` lists sessions",
    "ps": "`hold ls` lists sessions, `hold graph NAME` the processes of one",
    "a": "`hold attach NAME` attaches this terminal",
    "at": "`hold attach NAME` attaches this terminal",
    "attach-session": "`hold attach NAME` attaches this terminal",
    "open": "`hold attach NAME` attaches this terminal",
    "enter": "`hold attach NAME` attaches this terminal",
    "connect": "`hold attach NAME` attaches this terminal",
    "rename-session": "`hold rename NAME NEW` gives a session another name",
    "mv": "`hold rename NAME NEW` gives a session another name",
    "detach-client": "`hold detach NAME` detaches its terminals; C-\\ d your own",
    "switch": "in an attached terminal C-\\ n, p and w switch to another session",
    "switch-client": "in an attached terminal C-\\ n, p and w switch to another session",
    "info": "`hold show NAME` shows one session, `hold doctor` the host",
    "inspect": "`hold show NAME` shows one session",
    "logs": "`hold tail NAME` prints a session's output, `hold log NAME` what was done to it",
    "output": "`hold tail NAME` prints a session's output",
    "cat": "`hold tail NAME` prints a session's output",
    "send-keys": "`hold keys NAME KEY` presses keys, `hold send NAME TEXT` types text",
    "type": "`hold send NAME TEXT` types text, `hold keys NAME KEY` presses keys",
    "capture-pane": "`hold screen NAME` prints what the screen shows",
    "freeze": "`hold halt NAME` freezes a session",
    "pause": "`hold halt NAME` freezes a session",
    "unfreeze": "`hold resume NAME` lets a halted session go on",
    "share": "`hold invite` makes a link for somebody else",
    "history": "`hold log NAME` shows what was done to a session, and by whom",
    "restart": "`hold daemon restart` replaces the daemon; sessions carry on",
}

EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141
EXIT_FULL = StorageFailed.exit_status


def main(arguments: list[str] | None = None) -> int:
    """The entry point of `hold`."""
    try:
        try:
            return _run(sys.argv[1:] if arguments is None else arguments)
        finally:  # here and not when Python exits, where a failure is a traceback
            sys.stdout.flush()
    except HoldfastError as error:
        return _say(error, error.exit_status)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Our reader is gone (`hold ls | head -1`): say nothing, as other tools do.
        _discard_output()
        return EXIT_PIPE_CLOSED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _discard_output()
        return _say(StorageFailed("the output cannot be written: no space left"), EXIT_FULL)


def _discard_output() -> None:
    """What is still held back would fail again, with a traceback, when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    while words[:1] in (["--as"], ["--on"]) and len(words) > 1:
        os.environ["HOLDFAST_AS" if words[0] == "--as" else "HOLDFAST_ON"] = words[1]
        words = words[2:]
    if not words or words[0] in ("-h", "--help", "help"):
        if len(words) > 1 and words[1] in VERBS:
            return _run([words[1], "--help"])
        print(_overview())
        return 0 if words else 64
    if words[0] in ("-V", "--version", "version"):
        print(f"hold {__version__}")
        return 0
    if words[0] not in VERBS:
        return _no_such_verb(words[0])
    host_start.starter = _carry_on
    verb = load(words[0])
    options = verb.parser().parse_args(words[1:])
    if isinstance(getattr(options, "session", None), str):
        options.session = select_machine(options.session)
    status: int | None = verb.run(options)
    return status or 0


def _carry_on(path: str) -> bool:
    from holdfast.cli.start_host import carry_on

    return carry_on(path)


def _no_such_verb(word: str) -> int:
    from difflib import get_close_matches

    hint = _HABITS.get(word, "")
    if not hint:
        near = get_close_matches(word, VERBS, n=1)
        hint = f"did you mean `hold {near[0]}`? see `hold --help`" if near else "see `hold --help`"
    print(f"hold: there is no verb {word[:80]!r} (usage); {hint}", file=sys.stderr)
    return 64


def load(verb: str) -> ModuleType:
    file = verb.replace("-", "_")
    return import_module(f"holdfast.cli.verbs.{_GROUP_OF[verb]}.{file}")


def _say(error: HoldfastError, status: int) -> int:
    hint = f"; {error.hint}" if error.hint else ""
    code = f" ({error.code})" if error.code != "internal" else ""
    print(f"hold: {error.message}{code}{hint}", file=sys.stderr)
    return status


def _overview() -> str:
    lines = [
        "usage: hold [--as ACTOR] [--on MACHINE] VERB [OPTIONS]",
        "",
        "Keeps live executions alive as sessions nobody owns: attach, watch, write, leave.",
    ]
    for group, verbs in GROUPS.items():
        lines += ["", f"{TITLES[group]}:"]
        lines += [f"  {verb:<11} {load(verb).SUMMARY}" for verb in verbs]
    lines += [
        "",
        "A session is named by its name or its id (6 characters suffice to read); on a machine you",
        "have joined, by MACHINE/NAME; anywhere else by its whole id and a relay, ID@RELAY-URL.",
        "--on, or HOLDFAST_ON, selects the machine for any verb.",
        "`hold VERB --help` has details and examples. HOLDFAST_HOME is the folder of all state;",
        "--as, or HOLDFAST_AS, acts as another actor whose key you can read (`hold actor add`).",
    ]
    return "\n".join(lines)
