"""However the bytes arrive and whatever others write between them, the same reports come out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.shell.integration import (
    RECORD_MAX_BYTES,
    CommandBegin,
    CommandEnd,
    ReportReader,
)

NONCE = "0123456789abcdef" * 2
HEAD = b"\0HOLD1 " + NONCE.encode() + b" "


def encoded(text: str) -> bytes:
    return text.encode().replace(b"%", b"%25").replace(b"\n", b"%0A")


def records_of(seq: int, text: str, status: int) -> list[bytes]:
    body = encoded(text)
    pieces = [body[at : at + 80] for at in range(0, len(body), 80)]
    number = str(seq).encode()
    return [
        *(
            HEAD + b"T " + number + b" " + str(index).encode() + b" " + piece + b"\0"
            for index, piece in enumerate(pieces)
        ),
        HEAD + b"B " + number + b" " + str(len(pieces)).encode() + b" whole /\0",
        HEAD + b"E " + number + b" " + str(status).encode() + b" /\0",
    ]


# No NUL and no surrogates: neither can be in a command line.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=300)
commands = st.lists(st.tuples(texts, st.integers(0, 255)), max_size=6)
# What another process of the user may write in one go, between records. Never the nonce.
noise = st.binary(max_size=200).filter(lambda data: NONCE.encode() not in data)


@given(commands, st.data())
def test_torn_reads_and_forgeries_between_records_change_no_report(
    typed: list[tuple[str, int]], data: st.DataObject
) -> None:
    stream = b""
    for index, (text, status) in enumerate(typed):
        for record in records_of(index + 1, text, status):
            stream += data.draw(noise) + record
    reader = ReportReader(NONCE)
    reports = []
    while stream:
        size = data.draw(st.integers(1, max(1, len(stream))))
        reports += reader.feed(stream[:size])
        stream = stream[size:]
    expected = []
    for index, (text, status) in enumerate(typed):
        expected += [CommandBegin(index + 1, text, "/"), CommandEnd(index + 1, status, "/")]
    assert reports == expected


@given(st.lists(st.binary(max_size=3000), max_size=10))
def test_no_input_without_the_nonce_is_believed_or_kept(chunks: list[bytes]) -> None:
    reader = ReportReader(NONCE)
    for chunk in chunks:
        if NONCE.encode() not in chunk:
            assert reader.feed(chunk) == []
            assert len(reader._pending) <= RECORD_MAX_BYTES


@given(commands, st.data())
def test_a_reader_that_starts_in_the_middle_gives_true_reports_only(
    typed: list[tuple[str, int]], data: st.DataObject
) -> None:
    stream = b"".join(
        record
        for index, (text, status) in enumerate(typed)
        for record in records_of(index + 1, text, status)
    )
    reports = ReportReader(NONCE).feed(stream[data.draw(st.integers(0, len(stream))) :])
    for report in reports:
        if isinstance(report, CommandBegin):
            assert report.text in (typed[report.seq - 1][0], "")
        elif isinstance(report, CommandEnd):
            assert report.status == typed[report.seq - 1][1]
