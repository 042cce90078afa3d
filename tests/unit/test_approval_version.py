"""What names the state of an approval that somebody read, and what is known to have changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.gate.approvals import Approval
from holdfast.host.gate.approval_notices import _WhenAsked, version_of
from holdfast.model.actor import ActorKind
from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import ActorId, SessionId

_BOT, _JONAS = (ActorId(letter * 26) for letter in "ab")
_SET = Contributor(_BOT, "bot", ActorKind.AGENT, Part.TRIGGER)
INFO = ApprovalInfo(
    *("1a2b3c4d", SessionId("s" * 26), "build", "line", "make", "bot", (_SET,), "why", "host", 2),
    *((), 100.0, 1000.0, "pending"),
    cwd="/srv",
    user="ci",
)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    "change",
    [
        {"text": "make "},
        {"text": "", "text_known": False},
        {"kind": "input"},
        {"contributors": (_SET, Contributor(_JONAS, "jonas", ActorKind.HUMAN, Part.STATE, "cwd"))},
        {"changed": ("directory: /srv -> /tmp",)},
        {"changes_known": False},
        {"cwd": "/"},
        {"user": "root"},
        {"reason": "another"},
        {"policy": "label:x"},
    ],
)
def test_another_state_has_another_version(change: dict[str, Any]) -> None:
    assert version_of(INFO.replace(**change)) != version_of(INFO)


@pytest.mark.parametrize(
    "change",
    [
        {"approved_by": ("jonas",)},
        {"changed": ("output: 40 bytes",)},
        {"name": "renamed"},
        {"version": "x"},
    ],
)
def test_what_decides_nothing_leaves_the_version(change: dict[str, Any]) -> None:
    assert version_of(INFO.replace(**change)) == version_of(INFO)


def test_files_that_others_wrote_are_compared_with_what_they_were(tmp_path: Path) -> None:
    script, gone, made = (tmp_path / name for name in ("script", "gone", "made"))
    script.write_text("echo a")
    gone.write_text("")
    behind = tuple(
        Contributor(_JONAS, "jonas", ActorKind.HUMAN, Part.FILE, f"file:{path}")
        for path in (script, gone, made, "relative")
    )
    approval = Approval("1a", "line", "make", _BOT, (_SET, *behind), "", "host", 1, (), 0.0, 60.0)
    asked = _WhenAsked.of(approval, None)
    assert list(asked.changed_files()) == []
    os.utime(script, (1, 1))  # the same bytes and size: it was written again
    gone.unlink()
    made.write_text("")
    assert list(asked.changed_files()) == [
        f"file: {gone} was removed",
        f"file: {made} was made",
        f"file: {script} changed",
    ]
