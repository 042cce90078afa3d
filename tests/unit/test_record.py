"""Records: frozen, checked when they come from outside, tolerant of newer peers."""

from __future__ import annotations

import pytest

from holdfast.model.graph import Evidence
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.record import Malformed, Record
from holdfast.model.size import Size
from holdfast.model.state import Level


class Sample(Record):
    size: Size
    level: Level
    names: tuple[str, ...] = ()
    table: dict[str, int] = {}  # noqa: RUF012
    maybe: int | None = None


SAMPLE = Sample(Size(80, 24), Level.PLAIN, ("a", "b"), {"x": 1})


def test_what_is_packed_can_be_unpacked() -> None:
    assert Sample.unpack(SAMPLE.pack()) == SAMPLE
    assert type(Sample.unpack(SAMPLE.pack()).level) is Level


def test_packed_data_is_plain() -> None:
    assert SAMPLE.pack() == {
        "size": {"cols": 80, "rows": 24},
        "level": "plain",
        "names": ["a", "b"],
        "table": {"x": 1},
        "maybe": None,
    }
    assert type(SAMPLE.pack()["level"]) is str


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        SAMPLE.maybe = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del SAMPLE.maybe
    assert SAMPLE.replace(maybe=3).maybe == 3
    assert SAMPLE.maybe is None


def test_fields_a_newer_peer_sends_are_ignored() -> None:
    assert Sample.unpack({**SAMPLE.pack(), "invented_later": 1}) == SAMPLE


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"size": 3}, "Sample.size: expected a map"),
        ({"size": {"cols": "80", "rows": 24}}, "Sample.size.cols: expected int, got str"),
        ({"size": {"cols": True, "rows": 24}}, "expected int, got bool"),
        ({"level": "heavenly"}, "Sample.level"),
        ({"names": "ab"}, "Sample.names: expected a list"),
        ({"names": [1]}, r"Sample.names\[0\]: expected str"),
        ({"table": {1: 1}}, "text keys"),
        ({"maybe": "x"}, "Sample.maybe"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_place(change: dict[str, object], says: str) -> None:
    with pytest.raises(Malformed, match=says):
        Sample.unpack({**SAMPLE.pack(), **change})


class Awkward(Record):
    """Field names that generated code might trip over."""

    data: bytes
    where: str = ""
    cls: int = 0


def test_no_field_name_gets_in_the_way() -> None:
    awkward = Awkward(b"x", "here", 3)
    assert Awkward.unpack(awkward.pack()) == awkward


def test_a_missing_field_is_named() -> None:
    with pytest.raises(Malformed, match="'alive' is missing"):
        Evidence.unpack({})


def test_ids_refuse_what_is_not_one() -> None:
    assert SessionId.of_key(b"k" * 32) == SessionId.of_key(b"k" * 32)
    assert SessionId.of_key(b"k" * 32) != SessionId.of_key(b"l" * 32)
    for text in ("", "short", "i" * 26, "../" + "0" * 23):
        with pytest.raises(ValueError, match="not a session id"):
            SessionId(text)
    with pytest.raises(ValueError, match="not an operator id"):
        OperatorId("zz" * 16)
