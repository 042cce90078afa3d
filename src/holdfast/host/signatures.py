"""The signatures of the failure modes (the M table of the contract), counted from what is written
into the journals of this host: one place, so that metrics say what the records say.

docs/signatures.md has how to read each. No number names a session or an actor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from holdfast.journal import entries as e
from holdfast.model.discontinuity import DiscontinuityKind
from holdfast.model.restore import ContinuityKind

# What an entry adds to a total, beside being counted under its kind.
_OUTCOMES = ("allow", "hold", "refuse")
_LOSSES = tuple(DiscontinuityKind)


class Signatures:
    """Of one host, since this daemon began."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._judged: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._restored: Counter[str] = Counter()
        self._gap_s, self._restore_ms, self._frozen_ms = 0.0, 0.0, 0.0
        self._restored_bytes = self._checkpoint_bytes = self._resets = self._inputs_lost = 0

    def written(self, body: e.Body) -> None:
        """One entry of one session."""
        self._kinds[body.tag] += 1
        if isinstance(body, e.AttachedEntry):
            self._gap_s += body.gap_s
        elif isinstance(body, e.JudgedEntry):
            self._judged[body.outcome] += 1
        elif isinstance(body, e.CheckpointedEntry):
            self._checkpoint_bytes += body.size
            self._frozen_ms += body.frozen_ms
        elif isinstance(body, e.RestoredEntry):
            self._restored[body.kind] += 1
            self._restore_ms += sum(phase.ms for phase in body.phases)
            self._restored_bytes += body.size
            self._resets += body.resets
            self._inputs_lost += body.inputs_lost

    def lost(self, cause: str) -> None:
        """A session was lost; its journal is closed by then."""
        self._lost[cause if cause in _LOSSES else DiscontinuityKind.UNKNOWN] += 1

    def text(self) -> Iterable[str]:
        """In the text form of Prometheus."""
        yield from _family("journal_entries_total", "counter", "entries written, by kind")
        for kind in sorted(e.BY_TAG):
            yield f'holdfast_journal_entries_total{{kind="{kind}"}} {self._kinds[kind]}'
        yield from _family(
            "attach_gap_seconds_total", "counter", "how long operators that came back had been away"
        )
        yield f"holdfast_attach_gap_seconds_total {self._gap_s:.0f}"
        yield from _family("restores_total", "counter", "sessions restored, by what went on")
        for kind in ContinuityKind:
            yield f'holdfast_restores_total{{kind="{kind}"}} {self._restored[kind]}'
        for name, meaning, value in (
            ("restore_ms_total", "time that restores took", self._restore_ms),
            ("restored_bytes_total", "size of the checkpoints restored", self._restored_bytes),
            ("connections_reset_total", "connections to peers that restores reset", self._resets),
            ("restore_inputs_lost_total", "inputs newer than a checkpoint", self._inputs_lost),
            ("checkpoint_bytes_total", "size of the checkpoints made", self._checkpoint_bytes),
            ("checkpoint_frozen_ms_total", "for so long sessions stood still", self._frozen_ms),
        ):
            yield from _family(name, "counter", meaning)
            yield f"holdfast_{name} {value:.0f}"
        yield from _family("gate_decisions_total", "counter", "effects that a policy judged")
        for outcome in _OUTCOMES:
            yield f'holdfast_gate_decisions_total{{outcome="{outcome}"}} {self._judged[outcome]}'
        yield from _family("sessions_lost_total", "counter", "sessions that were lost, by cause")
        for cause in _LOSSES:
            yield f'holdfast_sessions_lost_total{{cause="{cause}"}} {self._lost[cause]}'


def _family(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP holdfast_{name} {meaning}", f"# TYPE holdfast_{name} {kind}"]
