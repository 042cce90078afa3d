"""47 MB of coloured text to one attached terminal.

Timed: from typing the request at the client's terminal until the marker behind the text has come
out of it. Whether all the bytes came is noted: holdfast, unlike dtach, may resync a client that
falls behind, and a number that came from skipping must say so. So it is done once more with a
session whose ring holds the whole text, where nothing can be skipped."""

from __future__ import annotations

import contextlib
from functools import partial

from bench.content import ask
from bench.results import Row, Target
from bench.sampling import interleaved, medians
from bench.stage import Stage
from bench.systems import Holdfast
from bench.terminal import Terminal

_TIMEOUT_S = 120.0
_SCREEN_REPETITIONS = 1  # informational, and slow
_WHOLE = "holdfast, ring holds all"


class Whole(Holdfast):
    """The same host; its sessions hold more."""

    name = "holdfast"
    ring_bytes = 64 << 20

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.directory, stage.env)


def measure(stage: Stage) -> list[Row]:
    megabytes = stage.scale.text_blocks
    sent = megabytes * 1e6
    delivered: dict[str, float] = {}

    def rate(name: str, terminal: Terminal) -> float:
        before = terminal.received
        seconds = ask(terminal, "cat", _TIMEOUT_S)
        share = (terminal.received - before) / sent
        delivered[name] = min(delivered.get(name, share), share)
        return megabytes / seconds

    with contextlib.ExitStack() as attached:
        actions = {
            system.name: partial(
                rate,
                system.name,
                attached.enter_context(stage.attached(system, "text", stage.text_file())),
            )
            for system in stage.systems()
        }
        whole = Whole(stage)
        terminal = attached.enter_context(stage.attached(whole, "whole", stage.text_file()))
        actions[_WHOLE] = partial(rate, _WHOLE, terminal)
        slow = {name: actions.pop(name) for name in ("screen",) if name in actions}
        samples = interleaved(actions, stage.scale.text_repetitions)
        samples |= interleaved(slow, min(_SCREEN_REPETITIONS, stage.scale.text_repetitions), 0)
    values = medians(samples)
    every_byte = {**values, "holdfast": values.pop(_WHOLE)}
    # Line ends grow by a carriage return on the way, so all of it is a little over 100 %.
    shares = ", ".join(f"{name} {share:.0%}" for name, share in delivered.items())
    note = f"bytes that reached the terminal, least of all repetitions: {shares}"
    name = f"{megabytes} MB of coloured text, attached"
    return [
        Row(name, "MB/s", values, "tmux", target=Target(">=", 3), note=note, samples=samples),
        Row(name, "MB/s", values, "dtach", target=Target(">=", 0.6)),
        Row(f"{name}, nothing skipped", "MB/s", every_byte, "dtach"),
    ]
