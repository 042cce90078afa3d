"""What a session is doing (S7), judged from kernel evidence.

A table, read from the top: the first rule whose facts hold is the answer, and the last one always
holds. Nothing here looks at output, remembers earlier judgements or knows time.

What the evidence cannot tell, and how it is judged then:
- a shell builtin that starts the shell's own line editor (bash `read -e`, zsh `vared`, every fish
  `read`) looks like the prompt, because it is the same code with the same settings: PROMPT;
- a shell with its line editor switched off (`bash --noediting`) looks like its `read`: INPUT;
- a program that relays keys to a terminal of its own (ssh, tmux, sudo with use_pty) always waits
  for keys, whatever runs behind it: INPUT;
- a shell started inside the session's shell is a program waiting for input: INPUT; unless it
  reports, and then it is the shell that these rules speak of.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.model.graph import Evidence
from holdfast.model.state import SessionState

Rule = tuple[SessionState, str, Callable[[Evidence], bool]]


def _someone_asks(e: Evidence) -> bool:
    return bool(e.tty_waiters)


def _shell_asks(e: Evidence) -> bool:
    return (
        e.shell_is_shell
        and e.foreground_pgid == e.shell_pgid
        and (e.shell_pid in e.tty_waiters or (not e.tty_waiters and e.shell_pid in e.unseen))
    )


RULES: tuple[Rule, ...] = (
    (
        SessionState.ENDED,
        "the main process is gone",
        lambda e: not e.alive,
    ),
    (
        SessionState.HALTED,
        "the whole tree is frozen",
        lambda e: e.frozen,
    ),
    (
        SessionState.STOPPED,
        "every process of the foreground job is stopped by a signal",
        lambda e: e.foreground_stopped,
    ),
    (
        # Nobody hides a line from the screen except to ask for a secret, so here even a process
        # that may not be looked into (sudo, su, passwd) is sure enough.
        SessionState.SECRET,
        "a line is awaited with echo off",
        lambda e: e.canonical and not e.echo and (_someone_asks(e) or bool(e.unseen)),
    ),
    (
        SessionState.PROMPT,
        "the shell's line editor waits in the foreground",
        lambda e: _shell_asks(e) and e.line_editor,
    ),
    (
        SessionState.PROMPT,
        "the shell, which has no line editor, waits for a line in the foreground",
        lambda e: (
            _shell_asks(e)
            and _someone_asks(e)
            and e.canonical
            and not e.shell_edits_lines
            and not e.shell_reads_bytes
        ),
    ),
    (
        SessionState.INPUT,
        "a program waits for the terminal",
        _someone_asks,
    ),
    (
        # Only a program that reads keys makes the terminal raw.
        SessionState.INPUT,
        "the terminal is raw and a process that may not be looked into sleeps in front",
        lambda e: bool(e.unseen) and not e.canonical,
    ),
    (
        SessionState.WORKING,
        "nobody waits for the terminal",
        lambda e: True,
    ),
)


def judge(evidence: Evidence) -> SessionState:
    """The state the evidence shows."""
    return next(state for state, _, applies in RULES if applies(evidence))
