"""S7: whatever the evidence, there is one answer, and the strong facts win."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.activity import RULES, judge
from holdfast.model.graph import Evidence
from holdfast.model.state import SessionState

pids = st.integers(min_value=0, max_value=4)  # few, so that they meet
groups = st.lists(pids, max_size=3).map(tuple)

evidence = st.builds(
    Evidence,
    alive=st.booleans(),
    frozen=st.booleans(),
    canonical=st.booleans(),
    echo=st.booleans(),
    shell_pid=pids,
    shell_pgid=pids,
    foreground_pgid=pids,
    foreground_stopped=st.booleans(),
    tty_waiters=groups,
    shell_is_shell=st.booleans(),
    line_editor=st.booleans(),
    shell_edits_lines=st.booleans(),
    shell_reads_bytes=st.booleans(),
    unseen=groups,
)


@given(evidence)
def test_there_is_always_a_state_and_a_reason(e: Evidence) -> None:
    assert isinstance(judge(e), SessionState)
    assert next(reason for _, reason, applies in RULES if applies(e))


@given(evidence)
def test_an_end_outweighs_everything_and_a_halt_everything_else(e: Evidence) -> None:
    assert judge(e.replace(alive=False)) is SessionState.ENDED
    assert judge(e.replace(alive=True, frozen=True)) is SessionState.HALTED


@given(evidence)
def test_nobody_is_said_to_ask_when_nobody_waits(e: Evidence) -> None:
    quiet = e.replace(alive=True, frozen=False, foreground_stopped=False, tty_waiters=(), unseen=())
    assert judge(quiet) is SessionState.WORKING


@given(evidence)
def test_a_prompt_is_only_ever_the_shells_own(e: Evidence) -> None:
    if judge(e) is SessionState.PROMPT:
        assert e.shell_is_shell
        assert e.shell_pgid == e.foreground_pgid
        assert e.shell_pid in (*e.tty_waiters, *e.unseen)


@given(evidence)
def test_a_visible_line_is_never_called_a_secret(e: Evidence) -> None:
    assert judge(e.replace(echo=True)) is not SessionState.SECRET


@given(evidence)
def test_evidence_survives_the_wire(e: Evidence) -> None:
    assert Evidence.unpack(e.pack()) == e
