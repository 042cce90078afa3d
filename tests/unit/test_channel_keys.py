"""Who may use a channel, and how its keys and those of the output change."""

from __future__ import annotations

import pytest

from holdfast.model.errors import (
    BadSignature,
    ChannelBroken,
    HandshakeFailed,
    InvalidArgument,
    OutputRefused,
    VersionMismatch,
)
from holdfast.model.limits import CHANNEL_PATIENCE_S, OUTPUT_KEY_S, OUTPUT_UNSIGNED_FRAMES
from holdfast.wire import channel
from holdfast.wire.channel import Pace
from holdfast.wire.key_agreement import Aead, KeyPair
from holdfast.wire.output_broadcast import HEADER, UNSIGNED, Broadcaster, OutputKey, bound, nonce
from holdfast.wire.record_layer import RecordKind, Rekeying
from unit.malicious_relay import (
    Host,
    Keys,
    Line,
    Operator,
    forged,
    fresh,
    stage,
)


def test_a_device_whose_keys_do_not_belong_together_is_refused() -> None:
    host = Host()
    operator, other = Operator(host), Keys()
    operator.keys.device = operator.keys.device.replace(signature=other.device.signature)
    with pytest.raises(BadSignature):
        operator.dial()
    deceived = Operator(host)
    deceived.knows = deceived.knows.replace(static=other.device.static)
    with pytest.raises(BadSignature):  # a host's channel key that its own key does not vouch for
        deceived.dial()
    honest = Operator(host)  # and a host checks it too: another's name with one's own channel key
    dialling = honest.dial()
    dialling._me = other.device
    with pytest.raises(BadSignature):
        host.answer(dialling.first())


def test_an_invitation_is_of_use_only_to_who_knows_its_secret() -> None:
    from holdfast.wire.channel import HostHandshake, OperatorHandshake

    host, psk = Host(), fresh()
    operator = Operator(host)

    def dial(secret: bytes) -> bytes:
        keys = operator.keys
        operator.dial()
        return OperatorHandshake(
            operator.stream, keys.device, keys.static, KeyPair(fresh()), host.keys.device,
            operator.floor, psk=secret,
        ).first()  # fmt: skip

    def answer(message: bytes, secret: bytes) -> HostHandshake:
        incarnation = host.incarnation
        return HostHandshake(incarnation, host.keys.static, KeyPair(fresh()), message, psk=secret)

    assert answer(dial(psk), psk).caller.invited
    assert not answer(operator.dial().first(), psk).caller.invited
    for message, secret in ((dial(fresh()), psk), (dial(psk), b"")):
        with pytest.raises(HandshakeFailed):
            answer(message, secret)


@pytest.mark.parametrize("rekeying", [Rekeying(3, 1 << 20), Rekeying(1000, 40), Rekeying(1, 1)])
def test_keys_are_renewed_in_the_stream(rekeying: Rekeying) -> None:
    host = Host()
    line = Line(host, Operator(host), pace=Pace(rekeying=rekeying))
    first = line.at_operator.sealed._out.cipher._aead
    for index in range(20):
        line.type(b"%d" % index)
        line.deliver()
        line.confirm()
        line.deliver()
    assert host.typed == [b"%d" % index for index in range(20)]
    assert line.at_operator.sealed._out.cipher._aead is not first


def test_a_peer_that_does_not_renew_its_keys_is_refused() -> None:
    host = Host()
    operator = Operator(host)
    line = Line(host, operator, pace=Pace(rekeying=Rekeying(4, 1 << 20)))
    line.at_operator.sealed._out._limits = Rekeying(1000, 1 << 20)
    line.type(b"1", b"2", b"3", b"4")
    with pytest.raises(ChannelBroken, match="did not renew its key"):
        line.deliver()
    assert host.typed == [b"1", b"2", b"3"]  # the first beat counts too


def test_a_long_message_goes_over_in_parts_and_beats_may_come_between() -> None:
    line = stage()
    long = bytes(range(256)) * 1000
    line.down += line.at_host.seal(RecordKind.MESSAGE, long, 0.0)
    assert len(line.down) == 4
    line.down[2:2] = []
    got = [line.at_operator.receive(record, 0.0) for record in line.down]
    assert [each.body for each in got if each] == [long]
    line.at_operator.sealed._message_max = 200_000
    with pytest.raises(ChannelBroken, match="over the limit"):
        for record in line.at_host.seal(RecordKind.MESSAGE, long, 0.0):
            line.at_operator.receive(record, 0.0)


def test_a_channel_is_due_for_new_secrets_within_the_hour() -> None:
    line = stage()
    sealed = line.at_operator.sealed
    assert (sealed.renewal_due(3599.0), sealed.renewal_due(3600.0)) == (False, True)


def test_sender_keys_change_hourly_and_frames_on_their_way_still_open() -> None:
    line = stage()
    line.watch()
    host = line.host.broadcaster
    assert (host.rotation_due(OUTPUT_KEY_S - 1), host.rotation_due(OUTPUT_KEY_S)) == (False, True)
    before = [host.frame(b"%d" % index, 0.0) for index in range(3)]
    line.tell(host.rotate(fresh(), OUTPUT_KEY_S))  # overtakes the frames
    after = host.frame(b"3", 0.0, sign=True)
    assert [line.read(frame).data for frame in (*before, after)] == [b"0", b"1", b"2", b"3"]
    assert len(line.operator.listener._keys) == 1


def test_a_sender_key_is_not_used_twice_in_a_row() -> None:
    line, key = stage(), fresh()
    line.host.broadcaster.rotate(key, 0.0)
    for bad in (key, key[:31]):
        with pytest.raises(InvalidArgument):
            line.host.broadcaster.rotate(bad, 0.0)


def test_sender_keys_do_not_go_back() -> None:
    line = stage()
    line.watch()
    old = line.host.broadcaster.join("x")
    line.tell(line.host.broadcaster.rotate(fresh(), 0.0))
    with pytest.raises(OutputRefused):
        line.operator.listener.take_key(old, 0.0)
    line.read(line.host.broadcaster.frame(b"1", 0.0, sign=True))
    with pytest.raises(OutputRefused):
        line.operator.listener.take_key(old, 0.0)


def test_a_new_key_gives_away_a_forger_that_was_there_before_it() -> None:
    """Whether the key comes before the forged frame or after it."""
    line = stage()
    line.watch()
    line.read(forged(line, b"evil"))
    line.host.broadcaster.frame(b"real", 0.0)
    with pytest.raises(BadSignature):
        line.tell(line.host.broadcaster.rotate(fresh(), 0.0))
    line = stage()
    line.watch()
    bad = forged(line, b"evil")
    line.host.broadcaster.frame(b"real", 0.0)
    line.tell(line.host.broadcaster.rotate(fresh(), 0.0))
    with pytest.raises(BadSignature):
        line.read(bad)


def test_many_changes_of_key_without_output_leave_one_key() -> None:
    line = stage()
    line.watch()
    for _ in range(300):
        line.tell(line.host.broadcaster.rotate(fresh(), 0.0))
    assert len(line.operator.listener._keys) == 1
    assert line.read(line.host.broadcaster.frame(b"x", 0.0, sign=True)).data == b"x"


def test_who_joins_reads_from_there_on() -> None:
    line = stage()
    early = line.host.broadcaster.frame(b"early", 0.0)
    line.watch()
    with pytest.raises(OutputRefused):
        line.read(early)
    assert line.read(line.host.broadcaster.frame(b"now", 0.0, sign=True)).data == b"now"


def test_another_daemon_of_the_same_incarnation_goes_on_above_all_numbers_used() -> None:
    line = stage()
    line.watch()
    line.read(line.host.broadcaster.frame(b"1", 0.0))
    line.host.broadcaster = Broadcaster(
        line.host.incarnation, line.host.keys.sign, fresh(), 0.0, life=1
    )
    line.watch()
    assert line.read(line.host.broadcaster.frame(b"2", 0.0, sign=True)).data == b"2"


def test_the_host_signs_in_time_and_a_mark_settles_too() -> None:
    line = stage()
    line.watch()
    host = line.host.broadcaster
    shown = line.read(host.frame(b"1", 1.0), 1.0)
    assert shown.provisional
    assert host.settle(1.04) is None
    assert host.settle_at() == 1.05
    settling = host.settle(1.05)
    assert settling is not None
    assert line.read(settling, 1.05).settled == 2
    assert host.settle(9.0) is None
    line.read(host.frame(b"2", 2.0), 2.0)
    assert line.operator.listener.mark(host.mark(), 2.0) == 3


def test_a_host_signs_at_the_latest_when_a_reader_would_take_no_more() -> None:
    line = stage()
    line.watch()
    shown = [line.read(line.host.broadcaster.frame(b"x", 0.0)) for _ in range(200)]
    assert sum(not each.provisional for each in shown) == 3


def test_output_that_is_never_signed_is_refused_in_the_end() -> None:
    line = stage()
    line.watch()
    line.read(line.host.broadcaster.frame(b"x", 0.0), 1.0)
    line.operator.listener.poll(1.0 + CHANNEL_PATIENCE_S - 0.01)
    with pytest.raises(BadSignature):
        line.operator.listener.poll(1.0 + CHANNEL_PATIENCE_S)


def test_a_reader_takes_no_more_unsigned_frames_than_a_host_may_send() -> None:
    line = stage()
    line.watch()
    for _ in range(OUTPUT_UNSIGNED_FRAMES - 1):
        assert line.read(line.host.broadcaster.frame(b"x", 0.0)).provisional
    line.host.broadcaster._unsigned = 0  # a host that does not keep to it
    with pytest.raises(BadSignature):
        line.read(line.host.broadcaster.frame(b"x", 0.0))


def test_a_new_key_does_not_open_frames_from_before_it() -> None:
    line = stage()
    line.watch()
    real = line.host.broadcaster.frame(b"real", 0.0)
    told = line.host.broadcaster.rotate(fresh(), 0.0)
    line.tell(told)
    key = OutputKey.decode(told[line.operator.name])
    header = HEADER.pack(UNSIGNED, key.epoch, key.group, key.seq - 1)
    bad = Aead(key.key).seal(nonce(key.seq - 1), b"evil", bound(line.operator.session, header))
    with pytest.raises(OutputRefused):
        line.read(header + bad)
    assert line.read(real).data == b"real"


def test_a_forger_just_before_a_new_key_is_given_away_by_the_first_frame_under_it() -> None:
    line = stage()
    line.watch()
    host = line.host.broadcaster
    one = host.frame(b"1", 0.0)
    line.operator.listener.mark(host.mark(), 0.0)  # ahead of the frame
    bad = forged(line, b"evil")
    host.frame(b"2", 0.0)
    line.tell(host.rotate(fresh(), 0.0))
    line.read(one)
    assert line.read(bad).provisional
    with pytest.raises(BadSignature):
        line.read(host.frame(b"3", 0.0))


def test_a_channel_of_another_version_is_refused_by_either_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host()
    operator = Operator(host)
    monkeypatch.setattr(channel, "VERSION", 2)
    first = operator.dial().first()
    monkeypatch.undo()
    with pytest.raises(VersionMismatch):
        host.answer(first)
    dialling = operator.dial()
    answer, _ = host.answer(dialling.first())
    monkeypatch.setattr(channel, "VERSION", 2)
    with pytest.raises(VersionMismatch):
        dialling.finish(answer, 0.0)


def test_a_mark_that_does_not_fit_what_was_shown_gives_a_forger_away() -> None:
    line = stage()
    line.watch()
    line.read(forged(line, b"evil"))
    line.host.broadcaster.frame(b"real", 0.0)
    with pytest.raises(BadSignature):
        line.operator.listener.mark(line.host.broadcaster.mark(), 0.0)
