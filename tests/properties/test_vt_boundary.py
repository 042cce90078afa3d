"""Cutting output: the backward look agrees with reading everything from the front."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.core.vt_boundary import complete_prefix
from holdfast.wire.terminal_queries import find_queries, strip_queries

ESC, CAN, SUB, BEL = 0x1B, 0x18, 0x1A, 0x07


def step(state: str, byte: int) -> str:
    """The reference: one state and one byte at a time. `dcs_esc` is an ESC within a DCS."""
    if state == "dcs_esc" and byte == ESC:
        return "dcs"
    if byte == ESC:
        return "dcs_esc" if state == "dcs" else "escape"
    if state == "dcs_esc":
        state = "escape"
    if state == "shift":
        return text_step("ground", byte)
    if state in ("ground", "utf8_1", "utf8_2", "utf8_3"):
        return text_step(state, byte)
    if byte in (CAN, SUB):
        return "ground"
    if state == "escape":
        return escape_step(byte)
    ends = {"csi": range(0x40, 0x7F), "between": range(0x30, 0x7F), "osc": (BEL,)}
    return "ground" if byte in ends.get(state, ()) else state


def text_step(state: str, byte: int) -> str:
    if state != "ground" and 0x80 <= byte < 0xC0:
        return {"utf8_3": "utf8_2", "utf8_2": "utf8_1", "utf8_1": "ground"}[state]
    for low, high, wanted in ((0xC2, 0xDF, 1), (0xE0, 0xEF, 2), (0xF0, 0xF4, 3)):
        if low <= byte <= high:
            return f"utf8_{wanted}"
    return "ground"


def escape_step(byte: int) -> str:
    if byte < 0x20 or byte >= 0x7F:
        return "escape"
    if byte < 0x30:
        return "between"
    kinds = {"[": "csi", "]": "osc", "P": "dcs", "N": "shift", "O": "shift"}
    return "string" if chr(byte) in "X^_" else kinds.get(chr(byte), "ground")


def reference(data: bytes) -> int:
    state, good = "ground", 0
    for i, byte in enumerate(data, 1):
        state = step(state, byte)
        if state == "ground":
            good = i
    return good


PIECES = [
    *(bytes([b]) for b in b"\x1b\x1b\x1b\x18\x1a\x07\\[]P_XNO(?;>031mqAz "),
    *(bytes([b]) for b in b"\x00\x7f\x9c\x9d\x80\xe6\xf0\xc3"),
    b"\x1b[31m", b"\x1b]0;t\x07", b"\x1b]0;t\x1b\\", b"\x1bPtmux;\x1b\x1b[1m\x1b\\", b"\x1b\x1b",
    b"\x1bP1$r0m\x1b\\", b"\x1b_Gx\x1b\\", b"\x1bOA", "漢é🎉".encode(), b"text\r\n", b"\x1b(B",
]  # fmt: skip
OUTPUT = st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join)


@settings(derandomize=True, max_examples=1200, deadline=None)
@given(OUTPUT)
@example(b"\x1bPq\x1b\x1b")
@example(b"\x1b\x1b[")
@example(b"a\x1bO\xe6")
def test_the_cut_is_where_reading_from_the_front_puts_it(data: bytes) -> None:
    assert complete_prefix(data, len(data) + 1) == reference(data)
    assert complete_prefix(memoryview(data), len(data) + 1) == reference(data)


@settings(derandomize=True, max_examples=600, deadline=None)
@given(OUTPUT, st.integers(1, 12))
def test_a_short_look_is_right_about_short_sequences_and_lets_long_ones_through(
    data: bytes, limit: int
) -> None:
    good, cut = reference(data), complete_prefix(data, limit)
    if cut != good:
        # The open sequence, or the DCS whose quoted ESCs would tell, begins before the look.
        assert len(data) - good > limit or b"P" in data
        assert good <= cut <= len(data)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(OUTPUT, st.integers(0, 60))
def test_pieces_cut_one_by_one_add_up(data: bytes, at: int) -> None:
    first = data[: complete_prefix(data[:at], 1 << 16)]
    rest = data[len(first) :]
    assert len(first) + complete_prefix(rest, 1 << 16) == reference(data)


COLOURED = b"".join(b"\x1b[3%dmword%d \x1b[0m" % (i % 8, i) for i in range(9)) + b"\r\n"


@pytest.mark.parametrize("tail", [b"", b"\x1b[3", b"\x1b]0;title", b"\xe6\xbc"])
def test_looking_at_a_piece_of_64_kb_takes_microseconds(tail: bytes) -> None:
    piece = memoryview((COLOURED * 900)[: (64 << 10) - 200] + b"\r\n" + tail)
    best = min(_timed(piece) for _ in range(200))
    assert best < 20e-6


def _timed(piece: memoryview) -> float:
    start = time.perf_counter()
    complete_prefix(piece, 16 << 10)
    return time.perf_counter() - start


QUERIES = [
    b"\x1b[c", b"\x1b[0c", b"\x1b[>c", b"\x1b[>0c", b"\x1b[=c", b"\x1b[5n", b"\x1b[6n", b"\x1b[?6n",
    b"\x1b[?996n", b"\x1b[?2004$p", b"\x1b[4$p", b"\x1b]4;1;?\x07", b"\x1b]4;1;?;2;?\x1b\\",
    b"\x1b]10;?\x07", b"\x1b]11;?\x1b\\", b"\x1b]12;?\x07", b"\x1b]10;?;?\x07", b"\x1b[>q",
    b"\x1b[>0q", b"\x1bP+q544e;436f\x1b\\", b"\x1bP$qm\x1b\\", b"\x1b[?u", b"\x1b[14t",
    b"\x1b[14;2t", b"\x1b[16t", b"\x1b[18t", b"\x1bZ", b"\x1b[?4m", b"\x1b]52;c;?\x07", b"\x1b[x",
    b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
]  # fmt: skip
NO_QUERIES = [
    b"cn6n", b"\x1b[0m", b"\x1b[38;5;1m", b"\x1b[2 q", b'\x1b[1"q', b"\x1b[!p", b"\x1b[u",
    b"\x1b[>1u", b"\x1b[=5;1u", b"\x1b[<u", b"\x1b[22;0t", b"\x1b[23;0t", b"\x1b[8;24;80t",
    b"\x1b]4;1;rgb:00/00/00\x07", b"\x1b]10;#ffffff\x07", b"\x1b]2;what?\x07", b"\x1b]0;?\x07",
    b"\x1b]8;;http://x/?\x1b\\", b"\x1b[>4;2m", b"\x1b[?25h", b"\x1b[?1$r", b"\x1bPq#0\x1b\\",
    b"\x1b[3S", b"\x1b[4h", b"\x1b]104\x07", b"\x1b]52;c;aGk=\x07", b"\x1b_Ga=T;AAAA\x1b\\",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_a_question_is_found_and_taken_out_alone(query: bytes) -> None:
    around = b"\x1b[31mred\x1b[0m" + query + b"text\x1b[2 q"
    assert find_queries(around)
    assert strip_queries(around) == b"\x1b[31mred\x1b[0mtext\x1b[2 q"


@pytest.mark.parametrize("other", NO_QUERIES)
def test_what_asks_nothing_stays(other: bytes) -> None:
    assert not find_queries(other)
    assert strip_queries(other) == other


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(QUERIES + NO_QUERIES + [b"text", b"\r\n"]), max_size=12))
def test_stripping_leaves_the_rest_in_order(parts: list[bytes]) -> None:
    assert strip_queries(b"".join(parts)) == b"".join(p for p in parts if p not in QUERIES)
