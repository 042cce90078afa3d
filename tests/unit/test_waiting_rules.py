"""S7: the table of states, one line of evidence each."""

from __future__ import annotations

import pytest

from holdfast.core.activity import RULES, judge
from holdfast.model.graph import Evidence
from holdfast.model.state import SessionState

SHELL, PROGRAM = 100, 200

# A shell in front whose line editor waits; every case below changes what it names.
AT_PROMPT = Evidence(
    alive=True,
    frozen=False,
    canonical=False,
    echo=False,
    shell_pid=SHELL,
    shell_pgid=SHELL,
    foreground_pgid=SHELL,
    foreground_stopped=False,
    tty_waiters=(SHELL,),
    shell_is_shell=True,
    line_editor=True,
)
LINE = AT_PROMPT.replace(canonical=True, echo=True, line_editor=False)
KEY = AT_PROMPT.replace(line_editor=False)
COMMAND = AT_PROMPT.replace(foreground_pgid=PROGRAM, tty_waiters=(), canonical=True, echo=True)
DASH = LINE.replace(shell_edits_lines=False)
SUDO = COMMAND.replace(unseen=(PROGRAM,))

CASES = {
    "main process gone": (AT_PROMPT.replace(alive=False), SessionState.ENDED),
    "tree frozen at the prompt": (AT_PROMPT.replace(frozen=True), SessionState.HALTED),
    "foreground stopped": (COMMAND.replace(foreground_stopped=True), SessionState.STOPPED),
    "bash, zsh, fish prompt": (AT_PROMPT, SessionState.PROMPT),
    "dash prompt": (DASH, SessionState.PROMPT),
    "bash read": (LINE, SessionState.INPUT),
    "bash read -s": (LINE.replace(echo=False), SessionState.SECRET),
    "bash read -n1": (KEY.replace(echo=True), SessionState.INPUT),
    "bash read -sn1": (KEY, SessionState.INPUT),
    "dash read": (DASH.replace(shell_reads_bytes=True), SessionState.INPUT),
    "dash read after stty -echo": (DASH.replace(echo=False), SessionState.SECRET),
    "python REPL as the session": (
        AT_PROMPT.replace(shell_is_shell=False),
        SessionState.INPUT,
    ),
    "vim from the shell": (
        AT_PROMPT.replace(foreground_pgid=PROGRAM, tty_waiters=(PROGRAM,)),
        SessionState.INPUT,
    ),
    "input() from the shell": (COMMAND.replace(tty_waiters=(PROGRAM,)), SessionState.INPUT),
    "getpass from the shell": (
        COMMAND.replace(tty_waiters=(PROGRAM,), echo=False),
        SessionState.SECRET,
    ),
    "a command that runs": (COMMAND, SessionState.WORKING),
    "a command that runs, echo off": (COMMAND.replace(echo=False), SessionState.WORKING),
    "a shell function that runs": (LINE.replace(tty_waiters=()), SessionState.WORKING),
    "prompt with a daemon watching the terminal": (
        AT_PROMPT.replace(tty_waiters=(PROGRAM, SHELL)),
        SessionState.PROMPT,
    ),
    "sudo asking, not to be looked into": (SUDO.replace(echo=False), SessionState.SECRET),
    "sudo make, not to be looked into": (SUDO, SessionState.WORKING),
    "sudo vim, not to be looked into": (
        SUDO.replace(canonical=False, echo=False),
        SessionState.INPUT,
    ),
    "prompt of a shell not to be looked into": (
        AT_PROMPT.replace(tty_waiters=(), unseen=(SHELL,)),
        SessionState.PROMPT,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_evidence_shows_the_state(case: str) -> None:
    evidence, state = CASES[case]
    assert judge(evidence) is state


def test_every_rule_is_the_answer_to_some_case() -> None:
    answers = {
        next(reason for _, reason, applies in RULES if applies(evidence))
        for evidence, _ in CASES.values()
    }
    assert answers == {reason for _, reason, _ in RULES}
