"""Key echo through an attached client.

The session runs `cat` on a raw terminal. Timed: from writing one key to the client's terminal until
the key comes out of it. Keys are characters that are no part of any control sequence, and there is
a pause between them, so that every process sleeps when a key comes, as with a person typing."""

from __future__ import annotations

import contextlib
import time
from functools import partial

from bench.content import ask
from bench.results import Row, Target
from bench.sampling import Samples, interleaved, percentile
from bench.stage import Stage
from bench.terminal import Terminal

_KEYS = b"#&^!~%"
BLOCK = 50  # keys to one system before the next has its turn
_PAUSE_S = 0.003
TIMEOUT_S = 10.0
HINT_GONE_S = 3.0  # `hold attach` shows a hint at first, and takes it away again


def measure(stage: Stage) -> list[Row]:
    samples: Samples = {}
    with contextlib.ExitStack() as attached:
        terminals = {
            system.name: attached.enter_context(stage.attached(system, "keys", stage.block_file()))
            for system in stage.systems()
        }
        for terminal in terminals.values():
            ask(terminal, "keys", TIMEOUT_S)
        time.sleep(HINT_GONE_S)
        for name, terminal in terminals.items():
            terminal.discard(0.1)
            samples[name] = []
        blocks = {
            name: partial(type_block, terminal, samples[name])
            for name, terminal in terminals.items()
        }
        interleaved(blocks, stage.scale.keys // BLOCK, warm_up=0)
    for taken in samples.values():
        del taken[: BLOCK // 2]  # warm-up
    return [
        _row("key echo, p50", samples, 50, Target("<=", 1.6)),
        _row("key echo, p99", samples, 99, Target("<=", 2)),
    ]


def _row(name: str, samples: Samples, percent: int, target: Target) -> Row:
    values = {system: percentile(taken, percent) for system, taken in samples.items()}
    return Row(name, "ms", values, "tmux", target=target, samples=samples if percent == 50 else {})


def type_block(terminal: Terminal, samples: list[float]) -> float:
    for number in range(BLOCK):
        at = number % len(_KEYS)
        key = _KEYS[at : at + 1]
        time.sleep(_PAUSE_S)
        began = time.perf_counter()
        terminal.type(key)
        terminal.wait_for(key, TIMEOUT_S)
        samples.append((time.perf_counter() - began) * 1000)
    return 0.0
