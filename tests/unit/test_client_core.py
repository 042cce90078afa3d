"""The client's waits and readers, as transcripts: what is asked, what comes, what is given."""

from __future__ import annotations

import re

import pytest

from holdfast.model.errors import (
    Fenced,
    HostDown,
    HostLost,
    InputUnknown,
    InvalidArgument,
    NoSuchSession,
    NotPermitted,
    RelayUnreachable,
    SessionEnded,
)
from holdfast.model.size import Size
from holdfast.model.state import Ending, SessionState
from holdfast.model.turn_info import TurnInfo
from holdfast.sdk.client_core.client_machine import ask, finish, reconnect
from holdfast.sdk.client_core.event_reader import wait_for_state
from holdfast.sdk.client_core.exec_reader import ExecReader
from holdfast.sdk.client_core.output_reader import OutputReader
from holdfast.sdk.client_core.retry_policy import FORWARD, LOCAL, OUTPUT_PAUSE_S, RELAY
from holdfast.sdk.client_core.text_wait import pattern, wait_for_text
from holdfast.sdk.client_core.turn_wait import wait_for_turn, withdraw
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from unit.scripted_io import INFO, SESSION, ScriptedIo

LOST, AWAY = HostLost("lost"), RelayUnreachable("no way")
DONE, ENDED = m.Done(0), m.Closed(0, Ending(code=3))


def state(kind: SessionState, ending: Ending | None = None) -> m.StateEvent:
    return m.StateEvent(SESSION, "s", kind, 0.0, "", ending)


def attached(offset: int) -> m.Attached:
    return m.Attached(0, 0, INFO, offset, 0)


def screen(text: str, offset: int = 0) -> m.ScreenShown:
    return m.ScreenShown(0, text, 0, 0, Size(80, 24), "", offset)


# -- asking and connecting --------------------------------------------------------------------


def test_what_may_be_asked_twice_is_asked_again_after_a_loss() -> None:
    io = ScriptedIo(LOST, AWAY, DONE)
    assert finish(ask(io, m.Watch(0), m.Done)) == DONE
    assert (len(io.asked), io.came_back, io.time > 0) == (3, 1, True)


def test_a_relay_that_leads_nowhere_is_an_answer_unless_the_host_was_lost_before() -> None:
    io = ScriptedIo(AWAY)
    with pytest.raises(RelayUnreachable):
        finish(ask(io, m.Watch(0), m.Done))
    assert len(io.asked) == 1


def test_it_is_not_asked_for_longer_than_the_patience() -> None:
    io = ScriptedIo(LOST, *[AWAY] * 1000)
    with pytest.raises(RelayUnreachable):
        finish(ask(io, m.Watch(0), m.Done))
    assert io.patience_s <= io.time < io.patience_s + 1


def test_what_must_not_be_done_twice_is_asked_once() -> None:
    io = ScriptedIo(LOST)
    with pytest.raises(HostLost):
        finish(ask(io, m.Run(0), m.Shown, once=True))
    assert len(io.asked) == 1


def test_another_answer_than_the_one_that_belongs_to_the_request_is_no_answer() -> None:
    with pytest.raises(HostLost, match="answered done instead of shown"):
        finish(ask(ScriptedIo(DONE), m.Show(0, "s"), m.Shown, once=True))


class Dialling:
    """Fails so often, each time with this."""

    def __init__(self, error: Exception, times: int) -> None:
        self._error, self._times = error, times
        self.io = ScriptedIo()
        self.at: list[float] = []

    async def dial(self) -> str:
        self.at.append(self.io.time)
        if len(self.at) <= self._times:
            raise self._error
        return "connected"


def down(cause: Exception) -> HostDown:
    error = HostDown("no host is running here")
    error.__cause__ = cause
    return error


def test_dialling_goes_on_until_the_patience_is_over() -> None:
    dialling = Dialling(RelayUnreachable("no way"), 1 << 20)
    with pytest.raises(RelayUnreachable):
        finish(reconnect(dialling.io, dialling.dial, RELAY))
    assert RELAY.patience_s <= dialling.at[-1] < RELAY.patience_s + 1


def test_a_host_that_was_stopped_is_given_up_at_once() -> None:
    dialling = Dialling(down(FileNotFoundError()), 5)
    with pytest.raises(HostLost, match="was stopped"):
        finish(reconnect(dialling.io, dialling.dial, LOCAL))
    assert dialling.at == [0.0]


def test_forwarding_dials_for_ever_less_and_less_often() -> None:
    dialling = Dialling(down(FileNotFoundError()), 500)
    assert finish(reconnect(dialling.io, dialling.dial, FORWARD)) == "connected"
    pauses = [b - a for a, b in zip(dialling.at, dialling.at[1:], strict=False)]
    assert pauses[0] == FORWARD.first_s and pauses[-1] == pytest.approx(FORWARD.max_s)
    assert dialling.at[-1] > RELAY.patience_s


def test_what_trying_again_does_not_help_is_raised_at_once() -> None:
    dialling = Dialling(NotPermitted("no"), 5)
    with pytest.raises(NotPermitted):
        finish(reconnect(dialling.io, dialling.dial, FORWARD))
    assert dialling.at == [0.0]


# -- states -----------------------------------------------------------------------------------


def test_a_state_is_waited_for_across_a_lost_connection_by_id() -> None:
    first = (state(SessionState.WORKING), LOST)
    second = (state(SessionState.WORKING), state(SessionState.PROMPT))
    io = ScriptedIo(DONE, DONE, inboxes=(first, second))
    event = finish(wait_for_state(io, "build", (SessionState.PROMPT,)))
    assert event.state is SessionState.PROMPT
    watched = [each.session for each in io.asked if isinstance(each, m.Watch)]
    assert watched == ["build", SESSION], "the name may be another session's by then"
    assert io.open_inboxes == 0


def test_the_end_of_a_session_ends_waiting_for_any_state() -> None:
    end = state(SessionState.ENDED, Ending(code=0))
    io = ScriptedIo(DONE, inboxes=((end,),))
    assert finish(wait_for_state(io, "s", (SessionState.PROMPT,))) is end


# -- a text -----------------------------------------------------------------------------------


def test_a_text_on_the_screen_is_found_without_attaching() -> None:
    io = ScriptedIo(screen("ready\n$ "))
    assert finish(wait_for_text(io, SESSION, pattern("^rea.y$"), None)) == "ready"


def test_a_text_printed_in_two_pieces_is_found_from_the_screens_offset_on() -> None:
    pieces = (m.Output(0, 5, b"list\x1b[1men"), m.Output(0, 15, b"ing on 80"))
    io = ScriptedIo(screen("", 5), attached(5), inboxes=(pieces,))
    assert finish(wait_for_text(io, SESSION, pattern("listening on .."), None)) == "listening on 80"
    assert isinstance(io.asked[-1], m.Attach) and io.asked[-1].since == 5
    assert io.open_inboxes == 0


def test_the_screen_is_looked_at_again_when_output_pauses() -> None:
    drawn = (m.Output(0, 0, b"\x1b[3;4Hx"), None)
    io = ScriptedIo(screen(""), attached(0), screen("full menu"), inboxes=(drawn,))
    assert finish(wait_for_text(io, SESSION, pattern("menu"), None)) == "menu"
    assert io.pauses == [None, OUTPUT_PAUSE_S], "silence is no reason to look"


def test_with_an_offset_only_the_output_from_there_counts() -> None:
    io = ScriptedIo(attached(7), inboxes=((m.Output(0, 7, b"no"), m.Output(0, 9, b"yes")),))
    assert finish(wait_for_text(io, SESSION, pattern("yes"), 7)) == "yes"
    assert set(io.pauses) == {None}


def test_a_session_that_ends_first_is_told_with_its_ending() -> None:
    io = ScriptedIo(screen(""), attached(0), inboxes=((ENDED,),))
    with pytest.raises(SessionEnded, match="s ended before that: "):
        finish(wait_for_text(io, SESSION, pattern("never"), None))


def test_a_pattern_that_is_none_says_where() -> None:
    with pytest.raises(InvalidArgument, match=re.escape("'1+('")):
        pattern("1+(")


# -- output -----------------------------------------------------------------------------------


def test_an_observer_that_may_not_write_reads_on_and_one_dismissed_is_told() -> None:
    dismissed = (m.Dismissed(0, "not_permitted"),)
    gone = NoSuchSession("none")
    io = ScriptedIo(NotPermitted("no"), attached(0), NotPermitted("no"), gone, inboxes=(dismissed,))
    with pytest.raises(NotPermitted, match="no longer watch"):
        finish(OutputReader(io, SESSION, 0, observe=False).next())
    assert [each.observe for each in io.asked if isinstance(each, m.Attach)] == [
        False, True, False, True,
    ]  # fmt: skip


def test_a_host_that_lost_the_lease_is_told_as_that() -> None:
    io = ScriptedIo(attached(0), inboxes=((m.Dismissed(0, Fenced.code),),))
    with pytest.raises(Fenced):
        finish(OutputReader(io, SESSION, 0).next())


# -- the turn ---------------------------------------------------------------------------------


def turn(yours: bool) -> turn_messages.TurnMessage:
    return turn_messages.TurnMessage(SESSION, "grant", 0.0, "ann", TurnInfo(), yours)


def shown(yours: bool) -> turn_messages.TurnShown:
    return turn_messages.TurnShown(0, TurnInfo(), yours)


REQUEST = turn_messages.RequestTurn(0, SESSION, "please")


def test_the_turn_is_waited_for_and_asked_for_again_after_a_loss() -> None:
    io = ScriptedIo(DONE, shown(False), DONE, shown(False), inboxes=((LOST,), (turn(True),)))
    assert finish(wait_for_turn(io, REQUEST)).yours
    assert [each for each in io.asked if isinstance(each, turn_messages.RequestTurn)] == [
        REQUEST,
        REQUEST,
    ]
    assert io.open_inboxes == 0


def test_events_that_were_dropped_may_have_told_of_the_turn_so_it_is_asked() -> None:
    io = ScriptedIo(DONE, shown(False), shown(True), inboxes=((m.EventsDropped(3),),))
    assert finish(wait_for_turn(io, REQUEST)).yours
    assert isinstance(io.asked[-1], turn_messages.GetTurn)


def test_a_session_that_ends_ends_waiting_for_its_turn() -> None:
    end = state(SessionState.ENDED, Ending(code=0))
    with pytest.raises(SessionEnded):
        finish(wait_for_turn(ScriptedIo(DONE, shown(False), inboxes=((end,),)), REQUEST))


def test_whoever_withdraws_too_late_learns_that_the_turn_has_come() -> None:
    io = ScriptedIo(InvalidArgument("does not wait"), shown(True))
    assert finish(withdraw(io, SESSION)).yours


# -- a command --------------------------------------------------------------------------------

EXEC = m.Exec(0, SESSION, 1, "make", "", "")
BEGAN, PRINTED = m.ExecBegan(0, 1, 5, 0), m.ExecOutput(0, b"out", 10)


def test_a_command_is_joined_again_under_its_number() -> None:
    end = m.ExecEnded(0, 0, "/", 1.0)
    io = ScriptedIo(inboxes=((BEGAN, PRINTED, LOST), (BEGAN, PRINTED, end)))
    reader = ExecReader(io, EXEC)
    answers = [finish(reader.next()) for _ in range(5)]
    assert answers == [BEGAN, PRINTED, BEGAN, PRINTED, end]
    assert io.asked == [EXEC, EXEC] and reader.joined


@pytest.mark.requirement("G4")
@pytest.mark.parametrize("code", ["session_ended", "no_such_session", "invalid_argument"])
@pytest.mark.parametrize("began", [False, True])
def test_a_refusal_after_a_loss_does_not_say_that_the_command_did_not_run(
    code: str, began: bool
) -> None:
    refused = m.Failed(0, code, "why", "look", False)
    first = (BEGAN, LOST) if began else (LOST,)
    reader = ExecReader(ScriptedIo(inboxes=(first, (refused,))), EXEC)
    known = began and code == "session_ended"  # then it ended with the session
    with pytest.raises(SessionEnded if known else InputUnknown, match="why"):
        for _ in range(2):
            finish(reader.next())


def test_a_refusal_without_a_loss_is_told_as_it_is() -> None:
    refused = m.Failed(0, "session_ended", "why", "", False)
    reader = ExecReader(ScriptedIo(inboxes=((refused,),)), EXEC)
    with pytest.raises(SessionEnded):
        finish(reader.next())


@pytest.mark.parametrize(("before", "error"), [((), InputUnknown), ((BEGAN,), HostLost)])
def test_a_command_whose_host_stays_away_is_unknown_unless_it_had_begun(
    before: tuple[m.Message, ...], error: type[Exception]
) -> None:
    io = ScriptedIo(inboxes=((*before, LOST),), back=HostLost("the host was stopped"))
    reader = ExecReader(io, EXEC)
    with pytest.raises(error):
        for _ in range(2):
            finish(reader.next())
