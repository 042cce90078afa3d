"""A key for which anybody can sign is nobody's."""

from __future__ import annotations

import pytest

from holdfast.wire.ed25519 import _SMALL_ORDER, check, proves_nothing

ZEROS = bytes(64)
MESSAGES = [b"%d" % number for number in range(64)]


@pytest.mark.parametrize("sign", [0, 0x80])
def test_no_signature_is_right_for_a_weak_key(sign: int) -> None:
    for point in _SMALL_ORDER:
        key = point[:31] + bytes((point[31] | sign,))
        assert proves_nothing(key)
        # Without the rule, zeros are right for one message in one, two, four or eight.
        assert not any(check(key, message, ZEROS) for message in MESSAGES)


def test_other_keys_are_not_weak() -> None:
    assert not proves_nothing(bytes(range(32)))
    assert not proves_nothing(b"\1" * 32)
    assert not proves_nothing(b"")
