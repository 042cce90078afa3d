"""A lease, step by step (F1-F3). That no order of steps goes wrong is shown by
`tests/simulation/test_fencing_model.py`; here each rule can be read."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.lease.events import (
    Acquire,
    Acquired,
    Force,
    LeaseFenced,
    LeaseOutcome,
    LeaseTick,
    LeaseWritten,
    LookFailed,
    ReadRecord,
    RecordSeen,
    Release,
    Released,
    Renewed,
    Write,
    WriteLost,
    WriteUnknown,
)
from holdfast.core.lease.machine import Lease, SavedLease
from holdfast.core.lease.table import (
    ASKING,
    FENCED,
    HELD,
    IDLE,
    RELEASED,
    TRANSITIONS,
    WAITING,
    LeaseState,
    LeaseStep,
)
from holdfast.model.errors import InvalidArgument, ProtocolViolation
from holdfast.model.ids import SessionId
from holdfast.model.lease import CLUSTER, EMBEDDED, PINNED, LeaseRecord, LeaseTerms
from holdfast.wire.coordination import pack_lease, unpack_lease

SESSION = SessionId("0" * 26)
# Usable for 8 s, waited for 12 s.
TERMS = LeaseTerms(10.0, 2.0, drift=0.1, grace_s=1.0, retry_s=1.0)
THEIRS = LeaseRecord(SESSION, "other", "theirs", 4, 10.0)


def a_lease(terms: LeaseTerms = TERMS, **more: Any) -> Lease:
    return Lease(SESSION, "here", "mine", terms, **more)


def mine(epoch: int, length_s: float | None = 10.0, **more: Any) -> LeaseRecord:
    return LeaseRecord(SESSION, "here", "mine", epoch, length_s, **more)


def held(terms: LeaseTerms = TERMS, now: float = 100.0) -> Lease:
    """Taken over a released record of epoch 4; revision 8, epoch 5, sent at `now`."""
    lease = a_lease(terms)
    lease.handle(Acquire(now))
    lease.handle(RecordSeen(now, 7, THEIRS.replace(released=True)))
    lease.handle(LeaseWritten(now, 8))
    assert lease.state is HELD
    return lease


def writes(outcomes: list[LeaseOutcome]) -> list[Write]:
    return [outcome for outcome in outcomes if isinstance(outcome, Write)]


# -- taking it ------------------------------------------------------------------------------------


def test_a_session_born_here_is_taken_at_once_with_epoch_one() -> None:
    lease = a_lease(born=True)
    assert lease.handle(Acquire(5.0)) == [ReadRecord()]
    assert lease.handle(RecordSeen(5.0, 0, None)) == [Write(mine(1), 0)]
    assert not lease.usable(5.0)
    assert lease.handle(LeaseWritten(6.0, 1)) == [Acquired(1, 13.0)]
    assert lease.usable(12.99)
    assert not lease.usable(13.0)


def test_absence_of_a_record_proves_nothing_about_a_session_not_born_here() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    assert lease.handle(RecordSeen(0.0, 0, None)) == []
    assert lease.wakes_at() is None
    assert lease.handle(LeaseTick(1e9)) == []
    assert writes(lease.handle(Force(1e9, "alice", "its disk burnt", 0)))


def test_a_released_record_is_taken_at_once() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    assert lease.handle(RecordSeen(0.0, 7, THEIRS.replace(released=True))) == [Write(mine(5), 7)]


def test_a_holder_is_waited_for_from_the_first_sight_of_its_revision() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    assert lease.handle(RecordSeen(1.0, 7, THEIRS)) == []
    assert lease.wakes_at() == 13.0
    assert lease.handle(RecordSeen(10.0, 7, THEIRS)) == []  # the same one: no new beginning
    assert lease.handle(LeaseTick(12.9)) == []
    assert lease.handle(LeaseTick(13.0)) == [Write(mine(5), 7)]
    assert lease.state is ASKING


def test_a_renewal_seen_begins_the_wait_anew() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(1.0, 7, THEIRS))
    lease.handle(RecordSeen(12.0, 8, THEIRS))
    assert lease.handle(LeaseTick(23.9)) == []
    assert lease.handle(LeaseTick(24.0)) == [Write(mine(5), 8)]


def test_the_record_says_how_long_its_holder_may_act_not_our_own_terms() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS.replace(length_s=100.0)))
    assert lease.wakes_at() == pytest.approx(111.0)


def test_the_epoch_rises_above_all_that_was_ever_seen() -> None:
    """A store made anew begins with low revisions and no memory of epochs."""
    lease = a_lease(max_seen=41)
    lease.handle(Acquire(0.0))
    (write,) = writes(lease.handle(RecordSeen(0.0, 1, THEIRS.replace(released=True))))
    assert write.record.epoch == 42


def test_a_claim_that_came_too_late_looks_again() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS.replace(released=True)))
    assert lease.handle(WriteLost(1.0)) == [ReadRecord()]
    assert lease.state is WAITING


def test_a_claim_without_an_answer_is_read_again_and_claimed_over() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS.replace(released=True)))
    assert lease.handle(WriteUnknown(2.0)) == [ReadRecord()]
    assert not lease.usable(2.0)
    # It was done: nobody but us can act on it, so nobody is waited for.
    assert lease.handle(RecordSeen(2.0, 8, mine(5))) == [Write(mine(6), 8)]


def test_a_grant_that_took_longer_than_the_lease_is_not_used() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS.replace(released=True)))
    assert lease.handle(LeaseWritten(8.0, 8)) == [Write(mine(6), 8)]
    assert lease.handle(LeaseWritten(8.5, 9)) == [Acquired(6, 16.0)]


def test_a_store_that_does_not_answer_is_asked_again_after_a_pause() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    assert lease.handle(LookFailed(2.0)) == []
    assert lease.wakes_at() == 3.0
    assert lease.handle(LeaseTick(2.9)) == []
    assert lease.handle(LeaseTick(3.0)) == [ReadRecord()]


# -- holding it -----------------------------------------------------------------------------------


def test_a_renewal_gives_time_from_when_it_was_sent() -> None:
    lease = held()
    assert lease.wakes_at() == 102.0
    assert lease.handle(LeaseTick(102.0)) == [Write(mine(5), 8)]
    assert lease.handle(LeaseWritten(105.0, 9)) == [Renewed(110.0), Write(mine(5), 9)]
    assert lease.usable(109.9)
    assert not lease.usable(110.0)


def test_a_renewal_without_an_answer_gives_no_time() -> None:
    lease = held()
    lease.handle(LeaseTick(102.0))
    assert lease.handle(WriteUnknown(104.0)) == [ReadRecord()]
    assert lease.deadline == 108.0
    # Done after all: the revision is ours to go on from, the time is still the old one.
    assert lease.handle(RecordSeen(104.5, 9, mine(5))) == [Write(mine(5), 9)]
    assert lease.deadline == 108.0
    assert lease.handle(LeaseWritten(105.0, 10)) == [Renewed(112.5)]


def test_a_renewal_refused_because_of_our_own_earlier_one_is_no_loss() -> None:
    lease = held()
    lease.handle(LeaseTick(102.0))
    lease.handle(WriteUnknown(103.0))
    lease.handle(RecordSeen(103.0, 8, mine(5)))  # not done yet
    assert writes(lease.handle(LeaseTick(104.0)))
    # Now the first one arrives, and the watch tells before the second's refusal is heard.
    lease.handle(RecordSeen(104.1, 9, mine(5)))
    assert lease.handle(WriteLost(104.2)) == [ReadRecord()]
    assert lease.state is HELD
    assert writes(lease.handle(RecordSeen(104.3, 9, mine(5))))


def test_a_refused_renewal_fences_at_once() -> None:
    lease = held()
    lease.handle(LeaseTick(102.0))
    assert lease.handle(WriteLost(102.1)) == [LeaseFenced(LeaseStep.REFUSED, 5)]
    assert not lease.usable(102.1)


def test_the_deadline_fences_whatever_comes_first_after_it() -> None:
    for event in (
        LeaseTick(108.0),
        LeaseWritten(108.0, 9),
        RecordSeen(108.0, 9, mine(5)),
        Release(108.0),
    ):
        lease = held()
        lease.handle(LeaseTick(102.0))
        assert lease.handle(event) == [LeaseFenced(LeaseStep.LAPSE, 5)]


def test_a_fenced_incarnation_stays_fenced() -> None:
    lease = held()
    lease.handle(LeaseTick(102.0))
    lease.handle(LeaseTick(108.0))
    for event in (
        LeaseWritten(109.0, 9),
        RecordSeen(109.0, 9, mine(5)),
        LeaseTick(110.0),
        Release(110.0),
    ):
        assert lease.handle(event) == []
        assert not lease.usable(103.0)
    with pytest.raises(InvalidArgument):
        lease.handle(Acquire(110.0))
    assert lease.state is FENCED


def test_the_sight_of_a_later_incarnation_fences() -> None:
    lease = held()
    assert lease.handle(RecordSeen(101.0, 9, THEIRS.replace(epoch=6))) == [
        LeaseFenced(LeaseStep.OUSTED, 5)
    ]


def test_an_old_sight_of_an_earlier_incarnation_changes_nothing() -> None:
    lease = held()
    assert lease.handle(RecordSeen(101.0, 7, THEIRS)) == []
    assert lease.usable(101.0)


# -- pinned ---------------------------------------------------------------------------------------


def test_a_pinned_lease_is_usable_for_ever_and_never_renewed() -> None:
    lease = held(PINNED)
    assert lease.wakes_at() is None
    assert lease.handle(LeaseTick(1e9)) == []
    assert lease.usable(1e9)


def test_no_time_makes_way_to_a_pinned_session() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS.replace(length_s=None)))
    assert lease.wakes_at() is None
    assert lease.handle(LeaseTick(1e9)) == []


def test_a_force_is_attributed_and_names_the_epoch_that_is_gone() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS.replace(length_s=None)))
    with pytest.raises(InvalidArgument):
        lease.handle(Force(1.0, "alice", "", 4))
    assert lease.handle(Force(1.0, "alice", "another epoch", 3)) == []
    forced = mine(5, forced_by="alice", reason="its disk burnt")
    assert lease.handle(Force(1.0, "alice", "its disk burnt", 4)) == [Write(forced, 7)]
    assert lease.handle(LeaseWritten(1.5, 8)) == [Acquired(5, 9.0, "alice")]


def test_a_pinned_holder_that_was_forced_out_is_fenced_when_it_hears_of_it() -> None:
    lease = held(PINNED)
    taken = THEIRS.replace(epoch=6, forced_by="alice", reason="gone")
    assert lease.handle(RecordSeen(200.0, 9, taken)) == [LeaseFenced(LeaseStep.OUSTED, 5)]


def test_a_pinned_holder_tells_a_store_that_lost_its_memory() -> None:
    lease = held(PINNED)
    assert lease.handle(RecordSeen(200.0, 0, None)) == [Write(mine(5, None), 0)]
    assert lease.handle(LeaseWritten(200.1, 1)) == [Renewed(float("inf"))]
    assert lease.usable(1e9)


# -- letting go -----------------------------------------------------------------------------------


def test_a_release_stops_first_and_then_tells() -> None:
    lease = held()
    assert lease.handle(Release(101.0)) == [Write(mine(5, released=True), 8)]
    assert not lease.usable(101.0)
    assert lease.handle(LeaseWritten(101.1, 9)) == [Released()]
    assert lease.wakes_at() is None


def test_a_release_during_a_renewal_waits_for_its_answer() -> None:
    lease = held()
    lease.handle(LeaseTick(102.0))
    assert lease.handle(Release(102.5)) == []
    assert lease.handle(LeaseWritten(103.0, 9)) == [Write(mine(5, released=True), 9)]


def test_a_release_without_an_answer_is_told_again_until_it_stands() -> None:
    lease = held()
    lease.handle(Release(101.0))
    assert lease.handle(WriteUnknown(103.0)) == [ReadRecord()]
    assert lease.handle(RecordSeen(103.0, 8, mine(5))) == [Write(mine(5, released=True), 8)]
    assert lease.handle(WriteLost(103.5)) == [ReadRecord()]  # the first one was done meanwhile
    assert lease.handle(RecordSeen(104.0, 9, mine(5, released=True))) == [Released()]


def test_giving_up_a_wait_leaves_nothing_behind() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS))
    assert lease.handle(Release(1.0)) == [Released()]
    assert lease.state is RELEASED


def test_giving_up_a_claim_under_way_releases_it_if_it_was_granted() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS.replace(released=True)))
    assert lease.handle(Release(0.5)) == []
    assert lease.handle(LeaseWritten(1.0, 8)) == [Write(mine(5, released=True), 8)]
    assert not lease.usable(1.0)


def test_giving_up_a_claim_of_unknown_fate_never_touches_the_record_of_another() -> None:
    lease = a_lease()
    lease.handle(Acquire(0.0))
    lease.handle(RecordSeen(0.0, 7, THEIRS.replace(released=True)))
    lease.handle(WriteUnknown(1.0))
    lease.handle(Release(1.5))
    assert (
        lease.handle(RecordSeen(2.0, 7, THEIRS.replace(released=True))) == []
    )  # it may be done yet
    assert lease.handle(LeaseTick(3.0)) == [ReadRecord()]
    assert lease.handle(RecordSeen(3.0, 9, THEIRS.replace(epoch=6))) == [Released()]


# -- around it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", LeaseState)
@pytest.mark.parametrize(
    ("event", "step"),
    [
        (Acquire(100.5), LeaseStep.ACQUIRE),
        (Force(100.5, "alice", "gone", 9), LeaseStep.FORCE),
        (Release(100.5), LeaseStep.RELEASE),
    ],
)
def test_what_is_not_in_the_table_is_refused_and_changes_nothing(
    state: LeaseState, event: Any, step: LeaseStep
) -> None:
    lease = _in_state(state)
    if (state, step) in TRANSITIONS or (state is FENCED and step is LeaseStep.RELEASE):
        lease.handle(event)
        return
    before = lease.kept("boot")
    with pytest.raises(InvalidArgument):
        lease.handle(event)
    assert lease.kept("boot") == before


def _in_state(state: LeaseState) -> Lease:
    lease = a_lease()
    if state is IDLE:
        return lease
    if state is WAITING:
        lease.handle(Acquire(100.0))
        return lease
    if state is ASKING:
        lease.handle(Acquire(100.0))
        lease.handle(RecordSeen(100.0, 7, THEIRS.replace(released=True)))
        return lease
    lease = held()
    if state is RELEASED:
        lease.handle(Release(100.1))
    if state is FENCED:
        lease.handle(RecordSeen(100.1, 9, THEIRS.replace(epoch=6)))
    assert lease.state is state
    return lease


def test_a_lease_outlives_its_daemon_and_looks_first() -> None:
    lease = held()
    lease.handle(LeaseTick(102.0))  # a renewal is under way; its answer will not be heard
    again = Lease.of(SavedLease.unpack(lease.kept("boot 1").pack()), "boot 1")
    assert again.usable(107.9)
    assert not again.usable(108.0)
    assert again.handle(LeaseTick(103.0)) == [ReadRecord()]
    assert again.handle(RecordSeen(103.0, 9, mine(5))) == [Write(mine(5), 9)]


def test_a_claim_under_way_outlives_its_daemon_as_one_without_an_answer() -> None:
    again = Lease.of(_in_state(ASKING).kept("boot 1"), "boot 1")
    assert again.state is WAITING
    assert again.handle(LeaseTick(103.0)) == [ReadRecord()]
    assert writes(again.handle(RecordSeen(103.0, 8, mine(5))))


def test_a_pinned_lease_outlives_its_daemon_without_a_date_in_it() -> None:
    again = Lease.of(SavedLease.unpack(held(PINNED).kept("boot 1").pack()), "boot 1")
    assert again.usable(1e12)


def test_no_lease_outlives_the_boot_its_times_are_of() -> None:
    again = Lease.of(held().kept("boot 1"), "boot 2")
    assert again.state is FENCED
    assert not again.usable(100.5)


@pytest.mark.parametrize("terms", [EMBEDDED, CLUSTER])
def test_the_shipped_terms_leave_room_for_three_missed_renewals(terms: LeaseTerms) -> None:
    assert terms.length_s is not None
    assert terms.checked().usable_s() > 3 * terms.renew_s
    assert terms.wait_s(terms.length_s) > terms.length_s > terms.usable_s()


def test_terms_nobody_could_keep_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        LeaseTerms(2.0, 1.5).checked()  # a second of grace leaves less than one to renew in
    with pytest.raises(InvalidArgument):
        LeaseTerms(10.0, 1.0, drift=1.0).checked()


def test_a_record_survives_its_bytes_and_a_damaged_one_is_not_taken_for_none() -> None:
    record = mine(5, forced_by="alice", reason="gone")
    assert unpack_lease(pack_lease(record)) == record
    assert unpack_lease(pack_lease(mine(5, None))) == mine(5, None)
    assert unpack_lease(None) is None
    for damaged in (b"\xc1", b"", b"\x80", pack_lease(record)[:-3]):
        with pytest.raises(ProtocolViolation):
            unpack_lease(damaged)


# -- handed over ----------------------------------------------------------------------------------


def handed_over(successor: str) -> LeaseRecord:
    return THEIRS.replace(released=True, successor=successor)


def test_a_release_names_its_successor() -> None:
    lease = held()
    (write,) = writes(lease.handle(Release(101.0, "next")))
    assert write.record == mine(5, released=True, successor="next")


def test_what_is_released_to_another_is_as_if_it_were_held() -> None:
    lease = a_lease(PINNED)
    lease.handle(Acquire(0.0))
    assert not writes(lease.handle(RecordSeen(0.0, 7, handed_over("next").replace(length_s=None))))
    timed = a_lease()
    timed.handle(Acquire(0.0))
    assert not writes(timed.handle(RecordSeen(0.0, 7, handed_over("next"))))
    assert not writes(timed.handle(LeaseTick(11.9)))
    assert writes(timed.handle(LeaseTick(12.0)))


def test_an_heir_takes_over_by_release_and_never_by_time() -> None:
    heir = a_lease(heir_of=4)
    heir.handle(Acquire(0.0))
    assert not writes(heir.handle(RecordSeen(0.0, 7, THEIRS)))
    assert heir.handle(LeaseTick(1e6)) == [ReadRecord()]
    assert not writes(heir.handle(RecordSeen(1e6, 7, THEIRS)))
    heir.handle(LeaseTick(2e6))
    (write,) = writes(heir.handle(RecordSeen(2e6, 8, handed_over("mine"))))
    assert write == Write(mine(5), 8)


def test_the_host_that_released_it_may_take_it_back() -> None:
    again = Lease(SESSION, "other", "theirs again", TERMS, heir_of=4)
    again.handle(Acquire(0.0))
    assert writes(again.handle(RecordSeen(0.0, 7, handed_over("mine"))))


def test_an_heir_that_sees_a_later_epoch_is_out() -> None:
    heir = a_lease(heir_of=4)
    heir.handle(Acquire(0.0))
    later = LeaseRecord(SESSION, "other", "theirs again", 5, 10.0)
    assert heir.handle(RecordSeen(0.0, 9, later)) == [LeaseFenced(LeaseStep.OUSTED, 0)]
    assert heir.state is FENCED


def test_an_heir_whose_claim_was_refused_looks_who_was_faster() -> None:
    heir = a_lease(heir_of=4)
    heir.handle(Acquire(0.0))
    heir.handle(RecordSeen(0.0, 7, handed_over("mine")))
    assert heir.handle(WriteLost(1.0)) == [ReadRecord()]
    later = LeaseRecord(SESSION, "other", "theirs again", 5, 10.0)
    assert heir.handle(RecordSeen(1.0, 9, later)) == [LeaseFenced(LeaseStep.OUSTED, 0)]


def test_a_release_goes_on_being_written_after_another_boot() -> None:
    lease = held(PINNED)
    lease.handle(Release(101.0, "next"))
    again = Lease.of(lease.kept("boot"), "another boot")
    assert again.state is RELEASED and again.successor == "next"
    assert again.handle(LeaseTick(0.0)) == [ReadRecord()]
    (write,) = writes(again.handle(RecordSeen(0.0, 8, mine(5, None))))
    assert write.record == mine(5, None, released=True, successor="next")


def test_what_is_fenced_can_still_be_released() -> None:
    lease = Lease.of(held(PINNED).kept("boot"), "another boot")
    assert lease.state is FENCED
    assert lease.handle(Release(0.0, "next")) == [ReadRecord()]
    (write,) = writes(lease.handle(RecordSeen(0.0, 8, mine(5, None))))
    assert write.record.released and write.record.successor == "next"
    assert lease.handle(LeaseWritten(0.0, 9)) == [Released()]
