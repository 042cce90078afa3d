"""docs/grants.md and its vectors say what the code says, and enough of it: a judge written from the
page alone agrees with ours on every chain."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.model import invite, limits
from holdfast.model.grant import Grant, Reach, Revocations, StepKind
from holdfast.wire import grants, invites
from unit import documented, grants_vectors, plain_grants

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "grants.md").read_text(encoding="utf-8")
SECTIONS = documented.sections(TEXT)
VECTORS: dict[str, Any] = json.loads((DOCS / "grants-vectors.json").read_text(encoding="utf-8"))
KEYS = {name: bytes.fromhex(each["key"]) for name, each in VECTORS["parties"].items()}

# -- the page -----------------------------------------------------------------------------------


def test_a_grant_is_documented_field_by_field_in_its_order() -> None:
    rows = documented.rows(SECTIONS["Grant"])
    assert rows == documented.expected_rows(Grant)


def test_revocations_are_documented_field_by_field_in_their_order() -> None:
    rows = documented.rows(SECTIONS["Revocations"])
    assert rows == documented.expected_rows(Revocations, without=("text", "signature"))


def test_every_kind_of_step_is_documented() -> None:
    assert re.findall(r"^\| `(\w+):\w+` \|", SECTIONS["Reach"], re.MULTILINE) == list(StepKind)


def test_every_text_that_opens_something_is_documented() -> None:
    found = {
        value
        for module in (grants, invites, invite)
        for name, value in vars(module).items()
        if name.endswith("_DOMAIN")
    }
    said = re.findall(r'^\| `"([\w ]+)" 0` \|', TEXT, re.MULTILINE)
    assert {text.encode() + b"\0" for text in said} == found
    assert len(set(said)) == len(said) == len(found)


def test_limits_have_the_values_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", TEXT, re.MULTILINE))
    assert {name: getattr(limits, name) for name in rows} == {n: int(v) for n, v in rows.items()}
    ours = {name for name in vars(limits) if name.startswith(("GRANT_", "INVITE", "REVOCATION"))}
    # What is remembered is nobody else's business.
    assert ours - set(rows) == {"GRANT_KNOWN_LINKS", "GRANT_KNOWN_CHAINS"}
    assert f"not more than {limits.GRANT_SKEW_S} s before `not_before`" in SECTIONS["Judging"]


# -- the vectors --------------------------------------------------------------------------------


def test_the_vectors_are_what_is_written_today_byte_by_byte() -> None:
    assert grants_vectors.made() == VECTORS


def test_every_part_of_the_vectors_is_explained() -> None:
    section = SECTIONS["Test vectors"]
    assert [part for part in set(VECTORS) - {"about"} if f"`{part}`" not in section] == []
    assert [part for part in VECTORS["judged"][0] if f"`{part}`" not in section] == []


def test_the_vectors_show_every_error() -> None:
    assert {case["error"] for case in VECTORS["judged"]} == {
        "",
        "grant_invalid",
        "grant_expired",
        "grant_revoked",
    }


def test_signatures_are_by_the_keys_over_the_texts_that_are_said() -> None:
    seeds = {each["key"]: bytes.fromhex(each["seed"]) for each in VECTORS["parties"].values()}
    assert {SigningKey(seed).public.hex() for seed in seeds.values()} == set(seeds)
    for part in (*VECTORS["chain"]["links"], VECTORS["revocations"]):
        signing = SigningKey(seeds[part["issuer"]])
        assert signing.sign(bytes.fromhex(part["signed"])).hex() == part["signature"]


def test_the_chain_of_the_vectors_is_read_as_it_says() -> None:
    said = VECTORS["chain"]
    data = bytes.fromhex(said["bytes"])
    assert base64.urlsafe_b64encode(data).decode().rstrip("=") == said["text"]
    assert grants.encode_chain(grants.chain_of_text(said["text"])) == data
    last = plain_grants.judge(data, KEYS["host"], [], [], KEYS[said["holder"]], said["now"])
    assert (last[4], "/".join(last[3]), last[6]) == (said["rights"], said["reach"], said["until"])


@pytest.mark.parametrize("case", VECTORS["judged"], ids=lambda case: str(case["why"]))
def test_a_judge_written_from_the_page_agrees(case: dict[str, Any]) -> None:
    error = ""
    try:
        plain_grants.judge(
            bytes.fromhex(case["chain"]),
            KEYS["host"],
            [KEYS[name] for name in case["trusted"]],
            [bytes.fromhex(each) for each in case["revocations"]],
            KEYS[case["holder"]],
            case["now"],
        )
    except plain_grants.Refused as refused:
        error = str(refused)
    assert error == case["error"]


@pytest.mark.parametrize("case", VECTORS["reaches"], ids=str)
def test_reaches_cover_what_is_said(case: dict[str, Any]) -> None:
    wide, narrow = (Reach.parse(case[name]) for name in ("wide", "narrow"))
    assert wide.covers(narrow) is case["covers"]
    assert plain_grants.covers([*wide.steps], [*narrow.steps]) is case["covers"]


def test_an_invites_secrets_are_made_from_the_page_as_by_us() -> None:
    said = VECTORS["invite"]
    for link in ("link", "pinned"):
        found = plain_grants.secrets_of(said[link], bytes.fromhex(said["device"]))
        assert ("certificate" in found) is (link == "pinned")
        assert found == {name: said[name] for name in found}
