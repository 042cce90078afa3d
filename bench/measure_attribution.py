"""What attribution costs a key press: its echo with authority, turn, secret check and journal, and
by a daemon that has none of these on the way of a key.

The other daemon is this one with the way of a key replaced as it starts (a `sitecustomize` on its
PYTHONPATH; nothing on disk changes): it takes the key and types it, as before there were actors.
Both clients are the same, and keys go to them by turns."""

from __future__ import annotations

import contextlib
import os
import time
from functools import partial

from bench.content import ask
from bench.measure_echo import BLOCK, HINT_GONE_S, TIMEOUT_S, type_block
from bench.results import Row, Target
from bench.sampling import Samples, interleaved, percentile
from bench.stage import Stage
from bench.systems import Holdfast

_BARE = "unrecorded"
_WITHOUT = """
import importlib, sys
def judged(self, event):
    return []
def take_inputs(self, answers):
    while (first := self._inputs.next(self.ledger.room())) is not None:
        self.ledger.take(first.operator, first.seq, first.data)
        self._inputs.taken(first)
        self.flush_to_pty()
        answers.settled(first, self._ring.head)
if "holdfast.host" in sys.argv or any("host" in word for word in sys.orig_argv):
    custody = importlib.import_module("holdfast.host.session.input_custody").InputCustody
    assert custody.take_inputs
    custody.take_inputs = take_inputs
    core = importlib.import_module("holdfast.core.session").SessionMachine
    assert core._judged
    core._judged = judged
"""


class Unrecorded(Holdfast):
    """A host whose keys are judged by nobody and recorded nowhere."""

    name = _BARE

    def begin(self) -> None:
        patch = os.path.join(self.directory, "patch")
        os.makedirs(patch, exist_ok=True)
        with open(os.path.join(patch, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(_WITHOUT)
        self.env["PYTHONPATH"] = patch
        super().begin()
        del self.env["PYTHONPATH"]


def measure(stage: Stage) -> list[Row]:
    bare = Unrecorded(stage.directory, stage.env)
    samples: Samples = {"holdfast": [], _BARE: []}
    with contextlib.ExitStack() as attached:
        attached.callback(bare.close)
        bare.begin()
        terminals = {
            system.name: attached.enter_context(
                stage.attached(system, "attributed", stage.block_file())
            )
            for system in (stage.holdfast, bare)
        }
        for terminal in terminals.values():
            ask(terminal, "keys", TIMEOUT_S)
        time.sleep(HINT_GONE_S)
        for terminal in terminals.values():
            terminal.discard(0.1)
        blocks = {
            name: partial(type_block, terminal, samples[name])
            for name, terminal in terminals.items()
        }
        interleaved(blocks, stage.scale.keys // BLOCK, warm_up=0)
    for taken in samples.values():
        del taken[: BLOCK // 2]  # warm-up
    found = {name: percentile(taken, 50) for name, taken in samples.items()}
    return [
        Row(
            "key echo, attributed and recorded, p50",
            "ms",
            {"holdfast": found["holdfast"]},
            _BARE,
            target=Target("<=", 1.3),
            baseline=found[_BARE],
            samples=samples,
            note="against the same host with nothing judged or recorded on the way of a key",
        )
    ]
