"""docs/channel.md and its vectors say what the code says, and enough of it: ends written from the
page alone make and read every byte of the exchange."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.model import device, errors, limits
from holdfast.wire import channel, output_broadcast, request_classes, signed_input
from holdfast.wire.record_layer import BODY_MAX_BYTES, RECORD_MAX_BYTES, RecordKind
from unit import channel_vectors, documented
from unit.plain_channel import (
    Direction,
    Noise,
    Reader,
    hkdf,
    input_text,
    is_signed,
    public_of,
    sha,
    sign,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "channel.md").read_text(encoding="utf-8")
SECTIONS = documented.sections(TEXT)
VECTORS: dict[str, Any] = json.loads((DOCS / "channel-vectors.json").read_text(encoding="utf-8"))
HANDSHAKE: dict[str, str] = VECTORS["handshakes"][0]


def bytes_of(name: str, *, of: str = "") -> bytes:
    return bytes.fromhex(VECTORS[of][name] if of else VECTORS[name])


# -- the page ---------------------------------------------------------------------------------


def test_every_text_that_opens_something_is_named() -> None:
    rows = re.findall(r'^\| `"(holdfast [a-z ]+ v1)" 0` \|', TEXT, re.MULTILINE)
    used = {
        device.DEVICE_DOMAIN, channel.CHANNEL_DOMAIN, signed_input.STREAM_DOMAIN,
        signed_input.INPUT_DOMAIN, output_broadcast.FRAME_DOMAIN, output_broadcast.CHAIN_DOMAIN,
        output_broadcast.SIGNATURE_DOMAIN,
    }  # fmt: skip
    assert {row.encode() + b"\0" for row in rows} == used
    assert len(rows) == len(used)


def test_the_sizes_said_of_these_texts_are_theirs() -> None:
    said = re.findall(r'^(\d+) bytes   "(holdfast [a-z ]+ v1)" 0$', TEXT, re.MULTILINE)
    assert len(said) == 7
    assert all(int(size) == len(text) + 1 for size, text in said)


def test_every_kind_of_record_is_documented() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \| \w+ \| .+ \|$", TEXT, re.MULTILINE)
    assert [(name, int(number)) for name, number in rows] == [(k.name, int(k)) for k in RecordKind]


def test_limits_have_the_values_of_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \| [^|]+ \|$", TEXT, re.MULTILINE)
    assert {name for name, _ in rows} >= {
        name
        for name in vars(limits)
        if name.startswith(("CHANNEL_", "OUTPUT_KEY", "OUTPUT_UNSIGNED"))
        and name != "OUTPUT_UNSIGNED_S"
    }
    assert all(getattr(limits, name) == int(value) for name, value in rows)
    assert f"within {limits.OUTPUT_UNSIGNED_S * 1000:.0f} ms" in TEXT
    assert f"at most {RECORD_MAX_BYTES} bytes" in SECTIONS["Records"]
    assert f"({BODY_MAX_BYTES} bytes of body)" in SECTIONS["Records"]
    assert f"every {limits.CHANNEL_BEAT_S:.0f} s" in SECTIONS["Records"]
    assert f"nothing for {limits.CHANNEL_PATIENCE_S:.0f} s" in SECTIONS["Records"]
    assert f"{limits.CHANNEL_PATIENCE_S:.0f} s after" in SECTIONS["Output"]


def test_errors_that_are_named_exist() -> None:
    codes = set(errors.by_code())
    named = set(re.findall(r"\(`([a-z_]+)`\)", TEXT)) | {
        case["error"] for case in VECTORS["refused"]
    }
    assert {"fenced", "channel_broken", "output_gap", "output_refused"} <= named <= codes


# -- the vectors ------------------------------------------------------------------------------


def test_the_vectors_are_what_is_written_today_byte_by_byte() -> None:
    assert channel_vectors.made() == VECTORS


def test_every_part_of_the_vectors_is_explained() -> None:
    section = SECTIONS["Test vectors"]
    assert [part for part in set(VECTORS) - {"about"} if f"`{part}`" not in section] == []


@pytest.mark.parametrize(
    "case", VECTORS["refused"], ids=lambda case: f"{case['what']}: {case['why']}"
)
def test_what_must_be_refused_is_refused_as_is_said(case: dict[str, Any]) -> None:
    assert case["error"]
    assert (
        channel_vectors.refusal(case["what"], case["at"], bytes.fromhex(case["bytes"]))
        == case["error"]
    )


# -- ends written from the page ---------------------------------------------------------------


@pytest.mark.parametrize("whose", ["host", "operator"])
def test_a_device_is_signed_as_the_page_says(whose: str) -> None:
    of = VECTORS[whose]
    text = b"holdfast device v1\0" + bytes.fromhex(of["key"] + of["static"])
    assert text.hex() == of["device_text"]
    assert sign(bytes.fromhex(of["seed"]), text).hex() == of["signature"]
    assert public_of(bytes.fromhex(of["static_private"])).hex() == of["static"]


@pytest.mark.parametrize("index", [0, 1])
def test_the_handshake_is_written_from_the_page(index: int) -> None:
    vector = VECTORS["handshakes"][index]
    operator, host, psk = VECTORS["operator"], VECTORS["host"], bytes_of("psk") if index else b""
    said = (
        b"\1" + bytes_of("key", of="operator") + bytes_of("signature", of="operator")
        + bytes_of("stream") + VECTORS["seen_epoch"].to_bytes(8) + bytes_of("grant")
    )  # fmt: skip
    told = b"\1" + VECTORS["epoch"].to_bytes(8) + b"\0" + bytes(8) + bytes_of("genesis")
    assert (said.hex(), told.hex()) == (vector["first_payload"], vector["second_payload"])
    prologue = b"holdfast channel v1\0" + VECTORS["session"].encode()
    noise = Noise(prologue, bytes_of("static", of="host"), psk)
    static, ephemeral = (
        bytes.fromhex(operator[f"{kind}_private"]) for kind in ("static", "ephemeral")
    )
    first = noise.first(static, ephemeral, bytes.fromhex(host["static"]), said)
    assert (bytes([2 if psk else 1]) + first).hex() == vector["first"]
    second = noise.second(
        bytes.fromhex(host["ephemeral_private"]), public_of(ephemeral), public_of(static), told
    )
    assert (second.hex(), noise.h.hex()) == (vector["second"], vector["h"])
    keys = [key.hex() for key in hkdf(noise.ck, b"", 2)]
    assert keys == [vector["to_host"], vector["to_operator"]]


def test_the_records_are_written_from_the_page() -> None:
    ways = {name: Direction(bytes.fromhex(HANDSHAKE[name])) for name in ("to_host", "to_operator")}
    for each in VECTORS["records"]:
        plain = bytes.fromhex(each["plain"])
        assert plain[0] == RecordKind[each["kind"]]
        assert ways[each["direction"]].seal(plain).hex() == each["record"]
    kinds = {each["kind"] for each in VECTORS["records"]}
    assert kinds == {"ALIVE", "INPUT", "REKEY", "ACCEPTED", "MESSAGE", "FIN"}


def test_the_inputs_are_signed_and_chained_as_the_page_says() -> None:
    session, key, stream = VECTORS["session"], bytes_of("key", of="operator"), bytes_of("stream")
    head = sha(b"holdfast input stream v1\0", session.encode(), key, stream)
    assert head == bytes_of("genesis")
    bodies = [r["plain"][2:] for r in VECTORS["records"] if r["kind"] == "INPUT"]
    for number, entry in enumerate(VECTORS["inputs"], 1):
        payload, signature = bytes.fromhex(entry["payload"]), bytes.fromhex(entry["signature"])
        h = bytes.fromhex(HANDSHAKE["h"])
        text = input_text(session, VECTORS["epoch"], h, stream, number, head, payload)
        assert (text.hex(), head.hex(), number) == (entry["text"], entry["before"], entry["seq"])
        assert is_signed(key, text, signature)
        head = sha(text, signature)
        assert head.hex() == entry["after"]
        assert (
            entry["body"] == bodies[number - 1] == (number.to_bytes(8) + signature + payload).hex()
        )


def test_the_output_is_read_as_the_page_says() -> None:
    session = VECTORS["session"]
    reader = Reader(session, bytes_of("key", of="host"))
    place = VECTORS["epoch"].to_bytes(8) + bytes(8)
    early = sha(b"holdfast output chain v1\0", session.encode(), place)
    assert early.hex() == VECTORS["output"]["genesis"]
    for step in VECTORS["output"]["steps"]:
        data = bytes.fromhex(step["bytes"])
        if step["what"] == "frame":
            shown, provisional = reader.open(data)
            assert (shown.hex(), provisional) == (step["data"], step["provisional"])
            assert reader.head.hex() == step["head"]
        else:
            (reader.take_key if step["what"] == "key" else reader.mark)(data)
        assert reader.settled == step["settled"]


# -- what a command does not pay for ----------------------------------------------------------


def test_what_every_verb_imports_of_wire_brings_no_cryptography() -> None:
    program = (
        "import sys, holdfast.wire, holdfast.wire.frames, holdfast.wire.messages.session, "
        "holdfast.wire.messages.access, holdfast.model.device; "
        "print([m for m in sys.modules if m.startswith('cryptography')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_the_requests_that_need_no_signature_are_those_on_the_page() -> None:

    listed = re.search(r"Requests that only look \((.*?)\)", TEXT, re.S)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed.group(1))) == set(request_classes._LOOKING)
