"""Every failure mode's signature is exported, and documented where people look for it."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.core.continuity.idle import IdleAction
from holdfast.host.metrics import Counts, text
from holdfast.journal import entries as e
from holdfast.model.info import Residency
from holdfast.model.restore import PeerReset, RestorePhase
from holdfast.wire.messages import BY_TAG

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "signatures.md").read_text("utf-8")
TABLE = {row.split("|")[1].strip(): row for row in DOCUMENT.splitlines() if row.startswith("| M")}


class Nobody:
    reaped = {IdleAction.EVICT: 1, IdleAction.END: 2}  # noqa: RUF012
    failed = 3

    def population(self) -> dict[str, int]:
        return {"idle": 4, "due": 5, "pinned": 6, "evictable": 7}


def printed(counts: Counts) -> dict[str, str]:
    shown = text((), Residency(), 0, counts, 0, 0, 0, Nobody())
    lines = (line for line in shown.splitlines() if not line.startswith("#"))
    return {name: value for name, value in (line.rsplit(" ", 1) for line in lines)}  # noqa: C416


def test_every_mode_has_its_row_and_every_name_in_it_exists() -> None:
    assert list(TABLE) == [f"M{number}" for number in range(1, 10)]
    numbers = {name.partition("{")[0] for name in printed(Counts())}
    for mode, row in TABLE.items():
        _, _, _, records, events, shown, _ = row.split("|")
        if mode == "M4":
            continue
        for name in re.findall(r"`(holdfast_\w+)", shown):
            assert name in numbers, name
        first = re.findall(r"`(\w+)`", records)
        assert first and first[0] in e.BY_TAG, (mode, records)
        for tag in re.findall(r"`(\w+)`", events)[:1]:
            assert tag in BY_TAG, (mode, tag)


def test_every_number_that_is_counted_from_records_is_documented() -> None:
    shown = "\n".join(Counts().signatures.text())
    for name in set(re.findall(r"^(holdfast_\w+)", shown, re.MULTILINE)):
        assert name in DOCUMENT, name


def test_numbers_are_what_the_records_say() -> None:
    counts = Counts()
    written = counts.signatures.written
    written(e.AttachedEntry("0" * 32, "hold attach", False, 10, gap_s=7.0, pid=3, held=10))
    reset = PeerReset("10.0.0.1:5", "10.0.0.2:80", 7, "curl")
    phases = (RestorePhase("check", 4.0), RestorePhase("tree", 6.0))
    written(e.RestoredEntry("ck-1", "memory", 1, 9, 2, phases, 4096, (reset,), 1))
    written(e.JudgedEntry("line", "rm x", "refuse", "no", "host"))
    counts.signatures.lost("host_lost")
    counts.signatures.lost("something a newer version says")
    found = printed(counts)
    wanted = {
        'holdfast_journal_entries_total{kind="attached"}': "1",
        "holdfast_attach_gap_seconds_total": "7",
        'holdfast_restores_total{kind="memory"}': "1",
        "holdfast_restore_ms_total": "10",
        "holdfast_restored_bytes_total": "4096",
        "holdfast_connections_reset_total": "1",
        "holdfast_restore_inputs_lost_total": "2",
        'holdfast_gate_decisions_total{outcome="refuse"}': "1",
        'holdfast_sessions_lost_total{cause="host_lost"}': "1",
        'holdfast_sessions_lost_total{cause="unknown"}': "1",
        'holdfast_reaped_total{action="evict"}': "1",
        'holdfast_resident_sessions{kind="due"}': "5",
        "holdfast_reap_failures_total": "3",
    }
    assert {name: found[name] for name in wanted} == wanted
