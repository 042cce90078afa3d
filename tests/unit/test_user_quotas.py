"""How much of a host one unix user may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.core.access.user_quotas import Usage, UserQuotas
from holdfast.host.session.user_usage import UserDisk
from holdfast.model.errors import LimitReached, StorageFailed, why_not
from holdfast.model.ids import SessionId
from holdfast.model.limits import OPERATORS_KEPT, OPERATORS_MAX, SESSIONS_KEPT, SESSIONS_MAX

QUOTAS = UserQuotas(connections=4, sessions=2, ring_bytes=100, disk_bytes=1000)
NOTHING = Usage(0, 0, 0)


def test_other_users_together_leave_the_places_kept_for_the_hosts_own() -> None:
    others = OPERATORS_MAX - OPERATORS_KEPT
    with pytest.raises(LimitReached, match="of other users"):
        QUOTAS.check_connection(0, others, others, trusted=False)
    QUOTAS.check_connection(900, others, others, trusted=True)
    with pytest.raises(LimitReached, match="limit of 1024 connections"):
        QUOTAS.check_connection(OPERATORS_KEPT, others, OPERATORS_MAX, trusted=True)


def test_the_hosts_own_connections_take_nothing_from_other_users() -> None:
    QUOTAS.check_connection(3, 3, OPERATORS_MAX - 1, trusted=False)
    with pytest.raises(LimitReached, match="you have your limit of 4"):
        QUOTAS.check_connection(4, 4, 4, trusted=False)


def test_sessions_are_kept_for_the_hosts_own_too() -> None:
    nearly = SESSIONS_MAX - SESSIONS_KEPT
    with pytest.raises(LimitReached, match="of other users"):
        QUOTAS.check_session(NOTHING, 1, nearly, trusted=False)
    QUOTAS.check_session(Usage(2000, 10**12, 10**12), 1, nearly, trusted=True)
    with pytest.raises(LimitReached):
        QUOTAS.check_session(NOTHING, 1, SESSIONS_MAX, trusted=True)


@pytest.mark.parametrize("used", [Usage(2, 0, 0), Usage(1, 91, 0), Usage(0, 0, 1000)])
def test_what_one_user_has_is_bounded_and_the_refusal_names_the_setting(used: Usage) -> None:
    QUOTAS.check_session(Usage(1, 90, 999), 10, 1, trusted=False)
    with pytest.raises(LimitReached) as refused:
        QUOTAS.check_session(used, 10, 1, trusted=False)
    assert "config.toml" in refused.value.hint and "user_" in refused.value.hint


def test_a_running_session_may_fill_its_users_quota_and_no_more() -> None:
    QUOTAS.check_journal(900, 100)
    with pytest.raises(StorageFailed, match="quota is 1000") as refused:
        QUOTAS.check_journal(900, 101)
    assert "user_disk_bytes" in refused.value.hint


def test_what_journals_take_counts_before_the_disk_is_looked_at_again(tmp_path: Path) -> None:
    one = SessionId.of_key(b"k" * 32)
    sizes = {one: 500}
    (tmp_path / one).mkdir()
    (tmp_path / one / "spec.json").write_text('{"uid": 7}')
    disk = UserDisk(str(tmp_path), lambda session: sizes[session])
    disk.take(7, 100)
    assert disk.known(7) == 100 and disk.is_stale(7)
    assert disk.used(7) == 500 and not disk.is_stale(7)  # the look saw what was taken before
    disk.take(7, 200)
    sizes[one] = 50
    assert disk.used(7) == 700
    disk.outdate(7)
    assert disk.known(7) == 700  # and not nothing, which would let anything through
    assert disk.used(7) == 50


def test_a_failure_of_storage_always_has_its_reason() -> None:
    assert why_not(OSError(28, "No space left on device")) == "No space left on device"
    assert why_not(OSError("the disk is gone")) == "the disk is gone"
    assert why_not(OSError()) == "OSError"
    assert StorageFailed("").message
