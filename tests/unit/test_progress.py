"""How far a checkpoint or restore is: said only of what takes a while, and that it is over."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.cli.text.progress import progress_text
from holdfast.host.continuity.progress import WorkProgress
from holdfast.model.ids import SessionId
from holdfast.model.limits import PROGRESS_AFTER_S, PROGRESS_EVERY_S
from holdfast.wire.messages.checkpoints import ProgressEvent
from unit.virtual_time import run

SESSION = SessionId("0" * 26)


def work(said: list[ProgressEvent]) -> WorkProgress:
    return WorkProgress(SESSION, "build", "checkpoint", said.append)


def test_what_is_quick_is_not_talked_about() -> None:
    said: list[ProgressEvent] = []

    async def story() -> None:
        progress = work(said)
        with progress.told():
            progress.phase("store")
            progress.bytes(5, 10)
            await asyncio.sleep(PROGRESS_AFTER_S * 0.9)
        await asyncio.sleep(10)

    run(story)
    assert said == []


def test_what_takes_longer_is_told_now_and_then_and_that_it_is_over() -> None:
    said: list[ProgressEvent] = []
    measured = iter(range(100, 1000, 100))

    async def story() -> None:
        progress = work(said)
        with pytest.raises(OSError), progress.told():
            progress.phase("freeze", measure=lambda: next(measured))
            await asyncio.sleep(PROGRESS_AFTER_S + PROGRESS_EVERY_S * 1.5)
            progress.phase("store")
            progress.bytes(7, 20)
            await asyncio.sleep(PROGRESS_EVERY_S)
            raise OSError("the disk is full")
        await asyncio.sleep(10)

    run(story)
    assert [(each.phase, each.done, each.total, each.over) for each in said] == [
        ("freeze", 100, 0, False),
        ("freeze", 200, 0, False),
        ("store", 7, 20, False),
        ("store", 7, 20, True),
    ]


def test_a_person_reads_a_bar_where_the_whole_is_known() -> None:
    told = ProgressEvent(SESSION, "build", "restore", "load", 1 << 20, 4 << 20, 1.0)
    assert progress_text(told) == (
        "build: restore: reading and checking it [#####---------------] 25% of 4096 KiB"
    )
    frozen = told.replace(work="checkpoint", phase="freeze", total=0)
    assert progress_text(frozen) == "build: checkpoint: writing its memory, 1024 KiB"
    assert progress_text(frozen.replace(phase="new", done=0)) == "build: checkpoint: new"
